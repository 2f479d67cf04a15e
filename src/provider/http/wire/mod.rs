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

use super::answer::{Answer, TooLarge};
use super::failure::ServerError;
use super::frames::Framing;
use super::transport::Target;
use super::{Effort, WireKind};
use crate::domain::{ChatRequest, ToolCall};

/// Parts of a request that a server may not know, and that it can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extra {
    Stream,
    /// Usage at the end of a stream.
    StreamUsage,
    Temperature,
    Effort,
    /// The thoughts of the model, sealed or signed, that are given back.
    SealedThoughts,
    /// The marks for prompt caches.
    CacheMarks,
    /// The usual name of the field for the most tokens of an answer; there is another one.
    UsualLimit,
    Tools,
}

/// What a request is written for.
#[derive(Debug)]
pub struct Ask<'a> {
    pub model: &'a str,
    pub effort: Option<Effort>,
    pub window: Option<u64>,
    /// The provider's own service, not one that speaks its format.
    pub at_home: bool,
    pub left_out: &'a BTreeSet<Extra>,
}

impl Ask<'_> {
    /// Whether this request has the part.
    pub fn sends(&self, extra: Extra, request: &ChatRequest) -> bool {
        !self.left_out.contains(&extra)
            && match extra {
                Extra::Temperature => request.temperature.is_some(),
                Extra::Effort => self.effort.is_some(),
                Extra::CacheMarks => !request.system.is_empty() || request.pinned > 0,
                Extra::Tools => !request.tools.is_empty(),
                Extra::StreamUsage => !self.left_out.contains(&Extra::Stream),
                Extra::Stream | Extra::SealedThoughts | Extra::UsualLimit => true,
            }
    }

    /// What the model of this request gave to get back. What another one gave (a reviewer may be replaced by another
    /// in the middle of a conversation) is left out.
    pub fn thoughts<'b>(&self, kind: WireKind, opaque: &'b [Value]) -> impl Iterator<Item = &'b Value> {
        let wanted = !self.left_out.contains(&Extra::SealedThoughts);
        opaque
            .iter()
            .filter(move |value| wanted && text(value, "/wire") == kind.word() && text(value, "/model") == self.model)
            .filter_map(|value| value.get("item"))
    }

    /// Whether an answer comes in pieces.
    pub fn streams(&self) -> bool {
        !self.left_out.contains(&Extra::Stream)
    }
}

/// One wire format.
pub trait Wire: Send + Sync {
    /// The address of the provider's own service.
    fn home(&self) -> &'static str;

    /// The path of a base address that has none.
    fn usual_path(&self) -> &'static str;

    /// The address that a request goes to.
    fn address(&self, target: &Target, ask: &Ask<'_>) -> reqwest::Url;

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

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value;

    fn reader(&self, model: &str) -> Box<dyn Reader>;

    /// What can be left out, each with words (in lower case) of which one stands in the objection of a server.
    fn extras(&self) -> &'static [(Extra, &'static [&'static str])];
}

/// Reads the events of one answer.
pub trait Reader {
    /// Takes an event into the answer.
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble>;
}

/// Why reading ends before the answer's end.
#[derive(Debug)]
pub enum Trouble {
    TooLarge(TooLarge),
    Server(ServerError),
}

impl From<TooLarge> for Trouble {
    fn from(large: TooLarge) -> Self {
        Self::TooLarge(large)
    }
}

/// The format of a kind.
pub fn of(kind: WireKind) -> &'static dyn Wire {
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
const NO_TOOLS: &[&str] = &[
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
const NO_STREAM: &[&str] =
    &["to stream this model", "streaming is not supported", "not support stream", "stream is not supported"];

/// A text below `value`, or nothing.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// A number of tokens (or a position) below `value`, if it can be one: nobody adds up to an overflow.
fn tokens(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64).filter(|number| *number <= u64::from(u32::MAX))
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Arguments as a server gives them: JSON in a text, or JSON.
fn arguments_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The arguments of a call as an object, for formats that have no room for a text. Those of a call that was cut off
/// are lost to the model; the answer to the call tells it so.
fn object_of(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::Object(Map::new()),
    }
}

/// As [`object_of`], in a text: servers parse it before their templates use it.
fn arguments_in_text(call: &ToolCall) -> String {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ => "{}".to_owned(),
    }
}

/// Wraps what a provider wants back, for [`Ask::thoughts`].
fn sealed(kind: WireKind, model: &str, item: Value) -> Value {
    json!({ "wire": kind.word(), "model": model, "item": item })
}
