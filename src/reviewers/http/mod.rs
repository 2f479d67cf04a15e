//! Models over HTTP: OpenAI chat completions and responses, Anthropic messages, Gemini, Ollama, and whatever speaks
//! one of these formats at another address (vLLM, llama.cpp, OpenRouter, LM Studio).
//!
//! Invariants: what a server sends is hostile: bounded, and made one harmless line before it stands in an error. The
//! key goes into one header of requests to the configured host and nowhere else. An answer of which something can be
//! used is never asked for twice.
//!
//! Tokens are counted as [`Usage`](crate::domain::Usage) adds them up, whatever a provider includes where: `input` with
//! the `cached` ones, `output` without `reasoning`; `reasoning` stays 0 where the provider counts it as output.
//!
//! The formats are written here, over `reqwest`, because what a broken stream leaves has to be used: libraries for
//! several providers give an event that was cut off to their parser, lose the calls that came before it, and do not
//! bound what a server sends.

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
use serde::{Deserialize, Serialize};

pub use api_key::{CredentialSource, read_key};
pub use backoff::{BackoffClock, SystemBackoffClock};
pub use client::HttpChat;
pub use embeddings::Embedder;

use super::chat::ChatError;
pub use crate::domain::Effort;
use crate::domain::word_enum;

word_enum!(
    /// What is spoken with a server. The words are those of `kind` in the settings.
    WireKind {
        /// `POST chat/completions`; what most servers other than OpenAI's speak as well.
        OpenaiChat = "openai",
        /// `POST responses`.
        OpenaiResponses = "openai-responses",
        /// `POST v1/messages`.
        Anthropic = "anthropic",
        /// `POST models/MODEL:streamGenerateContent`.
        Gemini = "gemini",
        /// `POST api/chat`.
        Ollama = "ollama",
    }
);

/// How long is waited for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpTimeouts {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// Without a byte, before the first one too: models that think say nothing meanwhile.
    pub idle: Duration,
    /// For one request, from its sending to the last byte of the answer.
    pub total: Duration,
}

impl Default for HttpTimeouts {
    /// 15 seconds, 5 minutes, 30 minutes: a large model that thinks hard has been silent for some minutes, and a local
    /// one takes as long to read a full window.
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), idle: Duration::from_secs(300), total: Duration::from_secs(1800) }
    }
}

/// A model and how to reach it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub kind: WireKind,
    pub model: String,
    /// The provider's own when absent. Without a path, the format's usual one is added (`/v1`).
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
    pub effort: Option<Effort>,
    pub timeouts: HttpTimeouts,
    /// How often a request may be sent for one answer, the first time included.
    pub attempts: u32,
    /// Certificates (PEM) to trust beside the system's; those of `SSL_CERT_FILE` are trusted as well.
    pub ca_file: Option<PathBuf>,
    /// The reviewer's name, for messages.
    pub name: String,
    /// Tokens the model can take in and give. Only Ollama has to be told, and cuts the conversation when it is not.
    pub window: Option<u64>,
}

/// A client for the endpoint. Nothing is sent yet.
///
/// # Errors
/// `Configuration` for an address, a certificate file or a model name that cannot be used, `Auth` when a provider
/// that takes no request without a key would get none.
pub fn open(endpoint: Endpoint) -> Result<HttpChat, ChatError> {
    HttpChat::new(endpoint, Box::new(SystemBackoffClock))
}

/// As [`open`], with waiting and chance from outside.
///
/// # Errors
/// As [`open`].
pub fn open_with(endpoint: Endpoint, pace: Box<dyn BackoffClock>) -> Result<HttpChat, ChatError> {
    HttpChat::new(endpoint, pace)
}
