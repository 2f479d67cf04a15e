//! The wire format of Ollama's chat.

use serde_json::{Value, json};

use super::super::Effort;
use super::super::failure::ServerError;
use super::super::response_builder::{ResponseBuilder, is_generated_id};
use super::super::sse::Framing;
use super::super::transport::ServerUrl;
use super::openai_chat::build_tool;
use super::{
    EmbeddingsRequest, EventError, NO_STREAM_PHRASES, NO_TOOLS_PHRASES, OptionalField, RequestOptions, ResponseReader,
    WireFormat, arguments_to_object, arguments_to_string, items_at, number_at, str_at, wrap_opaque,
};
use crate::config::ReviewerKind;
use crate::domain::{ChatMessage, ChatRequest, StopReason, Usage};

pub struct Ollama;

const KIND: ReviewerKind = ReviewerKind::Ollama;
/// Minimum window to request. A change of the window size makes Ollama load the model again.
const MIN_WINDOW_TOKENS: u64 = 16_384;
/// Bytes of code and JSON per token. The number is low on purpose, so that the window is rather too large.
const BYTES_PER_TOKEN: u64 = 3;

impl WireFormat for Ollama {
    fn kind(&self) -> ReviewerKind {
        KIND
    }

    fn default_path(&self) -> &'static str {
        "/"
    }

    fn request_url(&self, target: &ServerUrl, _: &RequestOptions<'_>) -> reqwest::Url {
        target.join(&["api", "chat"], None)
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value {
        let messages = build_messages(request, ask);
        let mut options = json!({
            "num_predict": request.max_output,
            "num_ctx": ask.window.unwrap_or_else(|| estimate_window(&messages, request)),
        });
        if ask.sends(OptionalField::Temperature, request) {
            options["temperature"] = json!(request.temperature);
        }
        let mut body = json!({
            "model": ask.model,
            "messages": messages,
            "stream": ask.is_streaming(),
            "options": options,
            // An error is better than a conversation without its beginning. Older servers ignore these fields.
            "truncate": false,
            "shift": false,
        });
        if let Some(effort) = ask.effort.filter(|_| ask.sends(OptionalField::Effort, request)) {
            body["think"] = build_think_value(effort, ask.model);
        }
        if ask.sends(OptionalField::Tools, request) {
            body["tools"] = request.tools.iter().map(build_tool).collect();
        }
        body
    }

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader> {
        Box::new(LineReader { model: model.to_owned(), thoughts: String::new() })
    }

    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])] {
        &[
            (OptionalField::Tools, NO_TOOLS_PHRASES),
            (OptionalField::Effort, &["does not support think", "think value", "think level"]),
            (OptionalField::Stream, NO_STREAM_PHRASES),
        ]
    }

    fn embeddings_request(&self, model: &str, texts: &[String]) -> Option<EmbeddingsRequest> {
        let body = json!({ "model": model, "input": texts, "truncate": true });
        Some(EmbeddingsRequest { path: &["api", "embed"], body })
    }
}

/// Builds the `think` field: gpt-oss takes a level, other models take a boolean.
fn build_think_value(effort: Effort, model: &str) -> Value {
    if model.contains("gpt-oss") { json!(effort.word()) } else { json!(effort != Effort::Off) }
}

/// Estimates the window for a conversation if the settings do not give the model's size. Ollama's default window would
/// truncate the conversation; the size of the model bounds a window that is too large. The result is a power of two,
/// because each new size makes Ollama load the model again.
fn estimate_window(messages: &[Value], request: &ChatRequest) -> u64 {
    let bytes: usize = messages.iter().map(|message| message.to_string().len()).sum();
    let tools: usize = request.tools.iter().map(|spec| build_tool(spec).to_string().len()).sum();
    let tokens = (bytes + tools) as u64 / BYTES_PER_TOKEN + request.max_output;
    tokens.max(MIN_WINDOW_TOKENS).next_power_of_two()
}

fn build_messages(request: &ChatRequest, ask: &RequestOptions<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        messages.push(match message {
            ChatMessage::User { text } => json!({ "role": "user", "content": text }),
            ChatMessage::Tool { call_id, name, text } => {
                let mut message = json!({ "role": "tool", "tool_name": name, "content": text });
                if !is_generated_id(call_id) {
                    message["tool_call_id"] = json!(call_id);
                }
                message
            }
            ChatMessage::Assistant { text, calls, opaque } => {
                let mut message = json!({ "role": "assistant", "content": text });
                if let Some(thoughts) = ask.opaque_items(KIND, opaque).find_map(|item| item.get("thinking")) {
                    message["thinking"] = thoughts.clone();
                }
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        let mut sent =
                            json!({ "function": { "name": call.name, "arguments": arguments_to_object(call) } });
                        if !is_generated_id(&call.id) {
                            sent["id"] = json!(call.id);
                        }
                        sent
                    })
                    .collect();
                if !calls.is_empty() {
                    message["tool_calls"] = Value::Array(calls);
                }
                message
            }
        });
    }
    messages
}

struct LineReader {
    model: String,
    thoughts: String,
}

impl ResponseReader for LineReader {
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(EventError::Server(ServerError::from_value(event)));
        }
        answer.is_recognized |= event.get("message").is_some() || event.get("done").is_some();
        if answer.model.is_empty() {
            str_at(event, "/model").clone_into(&mut answer.model);
        }
        let thought = str_at(event, "/message/thinking");
        answer.charge_bytes(thought.len())?;
        self.thoughts.push_str(thought);
        answer.push_text(str_at(event, "/message/content"))?;
        for call in items_at(event, "/message/tool_calls") {
            let slot = answer.start_call(str_at(call, "/id"), str_at(call, "/function/name"))?;
            answer.end_call(slot, Some(&arguments_to_string(call.pointer("/function/arguments"))))?;
        }
        if event.get("done").and_then(Value::as_bool) == Some(true) {
            let count = |pointer: &str| number_at(event, pointer).unwrap_or(0);
            answer.usage = Usage {
                input: count("/prompt_eval_count"),
                cached: count("/prompt_eval_cached_count"),
                output: count("/eval_count"),
                // Ollama counts reasoning as part of the answer.
                reasoning: 0,
                ..Usage::default()
            };
            answer.stop = Some(match str_at(event, "/done_reason") {
                "stop" | "" => StopReason::Done,
                "length" => StopReason::Length,
                _ => StopReason::Unknown,
            });
            answer.finished = true;
            if answer.has_calls() && !self.thoughts.is_empty() {
                answer.push_opaque(wrap_opaque(
                    KIND,
                    &self.model,
                    json!({ "thinking": std::mem::take(&mut self.thoughts) }),
                ))?;
            }
        }
        Ok(())
    }
}
