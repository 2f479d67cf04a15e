//! Language models over HTTP: OpenAI chat completions and responses, Anthropic messages, Gemini, Ollama, and every
//! server that speaks one of these formats at another address (vLLM, llama.cpp, OpenRouter, LM Studio).
//!
//! - Everything a server sends is untrusted: it is bounded, and an error shows it as one line without control
//!   characters.
//! - The key goes into one header of requests to the configured host and nowhere else, and over plain http only to this
//!   machine, unless the user allows it.
//! - An answer with a usable part is never requested twice.
//! - Token counts follow [`Usage`](crate::domain::Usage), whatever the provider includes in its own counts: `input`
//!   includes `cached`; `output` excludes `reasoning`; `reasoning` stays 0 if the provider counts it as output.
//!
//! A vendor is one file of [`wire`] with its line in `wire::from_kind`, and its row in `config/reviewers/kind.rs`.
//!
//! The formats are implemented here, on top of `reqwest`, because the usable part of a broken stream must be kept.
//! Crates for several providers give a truncated event to their parser, lose the calls that arrived before it, and do
//! not bound the size of a response.

mod api_key;
mod backoff;
mod client;
mod embeddings;
mod failure;
mod response_builder;
mod sse;
mod transport;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

pub(crate) use api_key::ApiKey;
pub use api_key::read_key;
pub use backoff::BackoffClock;
pub(crate) use backoff::{SystemBackoffClock, parse_retry_after, retry_delay};
pub use client::HttpChat;
pub(crate) use embeddings::Embedder;
pub(crate) use transport::{build_client_for, connection_failure, describe_exposed_key, exposes_key};

use super::chat::{AnswerTimeouts, ChatError};
use crate::config::ReviewerKind;
pub(crate) use crate::domain::Effort;

/// A model and its address.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// A kind that talks to a model over HTTP.
    pub kind: ReviewerKind,
    /// Id of the model at the service.
    pub model: String,
    /// The base URL; `None` for the provider's official one. A URL without a path gets the default path of the format
    /// (`/v1`).
    pub base_url: Option<String>,
    /// API key; `None` for a service that needs none.
    pub key: Option<SecretString>,
    /// True to send the key over plain http to another machine.
    pub insecure_http: bool,
    /// Reasoning effort; `None` for the provider's default.
    pub effort: Option<Effort>,
    /// Limit for a connection, including TLS.
    pub connect_timeout: Duration,
    /// Limits for an answer.
    pub timeouts: AnswerTimeouts,
    /// Maximum number of times a request is sent for one answer, the first time included.
    pub attempts: u32,
    /// PEM file of certificates to trust in addition to the system's. The certificates of `SSL_CERT_FILE` are trusted
    /// as well.
    pub ca_file: Option<PathBuf>,
    /// The reviewer's name, for messages.
    pub name: String,
    /// The model's window in tokens, input and output together. Only Ollama uses it, because Ollama truncates the
    /// conversation without it.
    pub window: Option<u64>,
}

/// Creates a client for the endpoint. Sends nothing yet.
///
/// # Errors
///
/// `Configuration` for an unusable address, certificate file or model name, or a kind without a server; `Auth` if the official service of the
/// provider needs a key and there is none.
pub fn open(endpoint: Endpoint) -> Result<HttpChat, ChatError> {
    HttpChat::new(endpoint, Box::new(SystemBackoffClock))
}

/// Creates a client like [`open`], with a clock and random numbers from the caller.
///
/// # Errors
///
/// The errors of [`open`].
pub fn open_with(endpoint: Endpoint, pace: Box<dyn BackoffClock>) -> Result<HttpChat, ChatError> {
    HttpChat::new(endpoint, pace)
}
