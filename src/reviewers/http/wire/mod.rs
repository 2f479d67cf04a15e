//! The wire formats: how a request is written and how the events of an answer are read.
//!
//! Invariants: unknown events, fields and types of a server are passed over; ids, names and thoughts that a provider
//! gave go back to it as they were, and to no other.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::failure::ServerError;
use super::response_builder::{ResponseBuilder, ResponseTooLarge};
use super::sse::Framing;
use super::transport::ServerUrl;
use super::{Effort, WireKind};
use crate::domain::{ChatRequest, ToolCall};

/// Parts of a request that a server may not know, and that it can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionalField {
    Stream,
    /// Usage at the end of a stream.
    StreamUsage,
    Temperature,
    Effort,
    /// The thoughts of the model, sealed or signed, that are given back.
    OpaqueReasoning,
    /// The marks for prompt caches.
    CacheControl,
    /// The usual name of the field for the most tokens of an answer; there is another one.
    DefaultLimitName,
    Tools,
}

/// What a request is written for.
#[derive(Debug)]
pub struct RequestOptions<'a> {
    pub model: &'a str,
    pub effort: Option<Effort>,
    pub window: Option<u64>,
    /// The provider's own service, not one that speaks its format.
    pub is_official: bool,
    pub unsupported: &'a BTreeSet<OptionalField>,
}

impl RequestOptions<'_> {
    /// Whether this request has the part.
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

    /// What the model of this request gave to get back. What another one gave (a reviewer may be replaced by another
    /// in the middle of a conversation) is left out.
    pub fn opaque_items<'b>(&self, kind: WireKind, opaque: &'b [Value]) -> impl Iterator<Item = &'b Value> {
        let wanted = !self.unsupported.contains(&OptionalField::OpaqueReasoning);
        opaque
            .iter()
            .filter(move |value| {
                wanted && str_at(value, "/wire") == kind.word() && str_at(value, "/model") == self.model
            })
            .filter_map(|value| value.get("item"))
    }

    /// Whether an answer comes in pieces.
    pub fn is_streaming(&self) -> bool {
        !self.unsupported.contains(&OptionalField::Stream)
    }
}

/// One wire format.
pub trait WireFormat: Send + Sync {
    /// The address of the provider's own service.
    fn official_url(&self) -> &'static str;

    /// The path of a base address that has none.
    fn default_path(&self) -> &'static str;

    /// The address that a request goes to.
    fn request_url(&self, target: &ServerUrl, ask: &RequestOptions<'_>) -> reqwest::Url;

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header of the key, and what stands before it.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    /// Whether the provider's own service takes requests without a key.
    fn needs_key(&self) -> bool {
        true
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value;

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader>;

    /// What can be left out, each with words (in lower case) of which one stands in the objection of a server.
    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])];
}

/// Reads the events of one answer.
pub trait ResponseReader {
    /// Takes an event into the answer.
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError>;
}

/// Why reading ends before the answer's end.
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

/// The format of a kind.
pub fn from_kind(kind: WireKind) -> &'static dyn WireFormat {
    match kind {
        WireKind::OpenaiChat => &openai_chat::OpenaiChat,
        WireKind::OpenaiResponses => &openai_responses::OpenaiResponses,
        WireKind::Anthropic => &anthropic::Anthropic,
        WireKind::Gemini => &gemini::Gemini,
        WireKind::Ollama => &ollama::Ollama,
    }
}

/// How servers of several formats say that a model takes no tools. A word alone would not do: errors about the
/// content of tool calls have it too.
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

/// A text below `value`, or nothing.
fn str_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// A number of tokens (or a position) below `value`, if it can be one: nobody adds up to an overflow.
fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64).filter(|number| *number <= u64::from(u32::MAX))
}

fn items_at<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Arguments as a server gives them: JSON in a text, or JSON.
fn arguments_to_string(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The arguments of a call as an object, for formats that have no room for a text. Those of a call that was cut off
/// are lost to the model; the answer to the call tells it so.
fn arguments_to_object(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::Object(Map::new()),
    }
}

/// As [`object_of`], in a text: servers parse it before their templates use it.
fn arguments_to_json_text(call: &ToolCall) -> String {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ => "{}".to_owned(),
    }
}

/// Wraps what a provider wants back, for [`Ask::thoughts`].
fn wrap_opaque(kind: WireKind, model: &str, item: Value) -> Value {
    json!({ "wire": kind.word(), "model": model, "item": item })
}
