//! Wire formats: how a request is written and how the events of an answer are read.
//!
//! - Unknown events, fields and types of a server are ignored.
//! - Ids, names and reasoning from a provider return to it unchanged, and to no other provider.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Effort;
use super::failure::ServerError;
use super::response_builder::{ResponseBuilder, ResponseTooLarge};
use super::sse::Framing;
use super::transport::ServerUrl;
use crate::config::ReviewerKind;
use crate::domain::{ChatRequest, ToolCall};
use crate::reviewers::json_access::{items_at, number_at, str_at};

/// A field of a request that a server may not know, and that a request can omit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionalField {
    Stream,
    /// Token usage at the end of a stream.
    StreamUsage,
    Temperature,
    Effort,
    /// The encrypted or signed reasoning of the model that is sent back.
    OpaqueReasoning,
    /// The marks for prompt caches.
    CacheControl,
    /// The default name of the field for the maximum of output tokens. There is a second name.
    DefaultLimitName,
    Tools,
}

/// The options of a request.
#[derive(Debug)]
pub struct RequestOptions<'a> {
    pub model: &'a str,
    pub effort: Option<Effort>,
    pub window: Option<u64>,
    /// `true` for the provider's official service, `false` for another server that speaks its format.
    pub is_official: bool,
    /// Optional fields that the server rejected.
    pub unsupported: &'a BTreeSet<OptionalField>,
}

impl RequestOptions<'_> {
    /// Returns `true` if the request contains the field.
    pub fn sends(&self, extra: OptionalField, request: &ChatRequest) -> bool {
        !self.unsupported.contains(&extra)
            && match extra {
                OptionalField::Temperature => request.temperature.is_some(),
                OptionalField::Effort => self.effort.is_some(),
                OptionalField::CacheControl => !request.system.is_empty() || request.pinned > 0,
                OptionalField::Tools => !request.tools.is_empty(),
                OptionalField::StreamUsage => !self.unsupported.contains(&OptionalField::Stream),
                OptionalField::Stream | OptionalField::OpaqueReasoning | OptionalField::DefaultLimitName => true,
            }
    }

    /// Returns the opaque items that the model of this request gave. Skips the items of another model: a reviewer may
    /// be replaced in the middle of a conversation.
    pub fn opaque_items<'b>(&self, kind: ReviewerKind, opaque: &'b [Value]) -> impl Iterator<Item = &'b Value> {
        let wanted = !self.unsupported.contains(&OptionalField::OpaqueReasoning);
        opaque
            .iter()
            .filter(move |value| {
                wanted && str_at(value, "/wire") == kind.word() && str_at(value, "/model") == self.model
            })
            .filter_map(|value| value.get("item"))
    }

    /// Returns `true` if the answer arrives in pieces.
    pub fn is_streaming(&self) -> bool {
        !self.unsupported.contains(&OptionalField::Stream)
    }
}

/// A wire format.
pub trait WireFormat: Send + Sync {
    /// Returns the kind whose servers speak the format.
    fn kind(&self) -> ReviewerKind;

    /// Returns the path that is added to a base URL without a path.
    fn default_path(&self) -> &'static str;

    /// Returns the URL of a request.
    fn request_url(&self, target: &ServerUrl, ask: &RequestOptions<'_>) -> reqwest::Url;

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the name of the key's header and the prefix of its value.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value;

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader>;

    /// Returns the optional fields. Each has phrases in lower case; a server's complaint about the field contains one
    /// of the phrases.
    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])];

    /// Returns the request for embedding vectors of texts; `None` if servers of this format compute none.
    fn embeddings_request(&self, _model: &str, _texts: &[String]) -> Option<EmbeddingsRequest> {
        None
    }
}

/// A request for embedding vectors.
#[derive(Debug)]
pub struct EmbeddingsRequest {
    /// Segments of the path below the base URL.
    pub path: &'static [&'static str],
    pub body: Value,
}

/// A reader of the events of one answer.
pub trait ResponseReader {
    /// Applies an event to the answer.
    ///
    /// # Errors
    ///
    /// [`EventError`] if the answer exceeds a limit, or the event reports an error of the server.
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError>;
}

/// The reason why the reading stops before the end of the answer.
#[derive(Debug)]
pub enum EventError {
    TooLarge(ResponseTooLarge),
    Server(ServerError),
}

impl From<ResponseTooLarge> for EventError {
    fn from(large: ResponseTooLarge) -> Self {
        Self::TooLarge(large)
    }
}

/// Returns the format of a kind; `None` for kinds that talk to no server.
pub fn from_kind(kind: ReviewerKind) -> Option<&'static dyn WireFormat> {
    Some(match kind {
        ReviewerKind::Builtin | ReviewerKind::Command => return None,
        ReviewerKind::Openai => &openai_chat::OpenaiChat,
        ReviewerKind::OpenaiResponses => &openai_responses::OpenaiResponses,
        ReviewerKind::Anthropic => &anthropic::Anthropic,
        ReviewerKind::Gemini => &gemini::Gemini,
        ReviewerKind::Ollama => &ollama::Ollama,
    })
}

/// Phrases of several servers for a model that takes no tools. The word "tool" alone is not enough: errors about the
/// content of tool calls contain it too.
const NO_TOOLS_PHRASES: &[&str] = &[
    "does not support tool",
    "not support tool use",
    "support tool use",
    "tools are not supported",
    "tools is not supported",
    "does not support function calling",
    "function calling is not enabled",
    "tools param requires",
    "enable-auto-tool-choice",
];
const NO_STREAM_PHRASES: &[&str] =
    &["to stream this model", "streaming is not supported", "not support stream", "stream is not supported"];

/// Converts arguments from a server into text. Servers send JSON in a string, or JSON.
fn arguments_to_string(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Converts the arguments of a call into an object, for formats that take no text. The arguments of a truncated call
/// become an empty object; the result of the call tells the model so.
fn arguments_to_object(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::Object(Map::new()),
    }
}

/// Converts arguments like [`arguments_to_object`], but into text. Servers parse the text before their templates use
/// it.
fn arguments_to_json_text(call: &ToolCall) -> String {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ => "{}".to_owned(),
    }
}

/// Wraps an item that a provider wants back, for [`RequestOptions::opaque_items`].
fn wrap_opaque(kind: ReviewerKind, model: &str, item: Value) -> Value {
    json!({ "wire": kind.word(), "model": model, "item": item })
}
