//! The wire format of OpenAI's chat completions. Most servers speak it: vLLM, llama.cpp, LM Studio, OpenRouter,
//! DeepSeek, Mistral, xAI.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::failure::ServerError;
use super::super::response_builder::{ResponseBuilder, ToolCallIndex};
use super::super::transport::ServerUrl;
use super::{
    EmbeddingsRequest, EventError, NO_STREAM_PHRASES, NO_TOOLS_PHRASES, OptionalField, RequestOptions, ResponseReader,
    WireFormat, arguments_to_json_text, arguments_to_string, items_at, number_at, str_at, wrap_opaque,
};
use crate::config::ReviewerKind;
use crate::domain::{ChatMessage, ChatRequest, StopReason, ToolSpec, Usage};

pub struct OpenaiChat;

const KIND: ReviewerKind = ReviewerKind::Openai;

impl WireFormat for OpenaiChat {
    fn kind(&self) -> ReviewerKind {
        KIND
    }

    fn default_path(&self) -> &'static str {
        "/v1"
    }

    fn request_url(&self, target: &ServerUrl, _: &RequestOptions<'_>) -> reqwest::Url {
        target.join(&["chat", "completions"], None)
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "messages": build_messages(request, ask),
            "stream": ask.is_streaming(),
        });
        if ask.sends(OptionalField::StreamUsage, request) {
            body["stream_options"] = json!({ "include_usage": true });
        }
        // OpenAI's reasoning models know the new name only, most other servers know the old name only.
        let limit = match ask.is_official == ask.sends(OptionalField::DefaultLimitName, request) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body[limit] = json!(request.max_output);
        if ask.sends(OptionalField::Temperature, request) {
            body["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(OptionalField::Effort, request)) {
            body["reasoning_effort"] = json!(effort.word());
        }
        if ask.sends(OptionalField::Tools, request) {
            body["tools"] = request.tools.iter().map(build_tool).collect();
        }
        body
    }

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader> {
        let thoughts = ReasoningParts::default();
        Box::new(ChatReader { model: model.to_owned(), calls: BTreeMap::new(), thoughts, refused: false })
    }

    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])] {
        &[
            (OptionalField::StreamUsage, &["stream_options", "include_usage"]),
            (OptionalField::Stream, NO_STREAM_PHRASES),
            (OptionalField::Temperature, &["temperature"]),
            (OptionalField::Effort, &["reasoning_effort", "reasoning effort"]),
            (
                OptionalField::OpaqueReasoning,
                &["reasoning_content", "reasoning_details", "extra_content", "thought_signature"],
            ),
            (OptionalField::DefaultLimitName, &["max_tokens", "max_completion_tokens"]),
            (OptionalField::Tools, NO_TOOLS_PHRASES),
        ]
    }

    fn embeddings_request(&self, model: &str, texts: &[String]) -> Option<EmbeddingsRequest> {
        let body = json!({ "model": model, "input": texts, "encoding_format": "float" });
        Some(EmbeddingsRequest { path: &["embeddings"], body })
    }
}

/// Builds a tool specification for chat completions and Ollama.
pub fn build_tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.parameters },
    })
}

fn build_messages(request: &ChatRequest, ask: &RequestOptions<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message {
            ChatMessage::User { text } => messages.push(json!({ "role": "user", "content": text })),
            ChatMessage::Tool { call_id, text, .. } => {
                messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": text }));
            }
            ChatMessage::Assistant { text, calls, .. } if calls.is_empty() => {
                if !text.is_empty() {
                    messages.push(json!({ "role": "assistant", "content": text }));
                }
            }
            ChatMessage::Assistant { text, calls, opaque } => {
                let content = if text.is_empty() { Value::Null } else { json!(text) };
                let mut message = json!({ "role": "assistant", "content": content });
                let mut calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        let function = json!({ "name": call.name, "arguments": arguments_to_json_text(call) });
                        json!({ "id": call.id, "type": "function", "function": function })
                    })
                    .collect();
                for item in ask.opaque_items(KIND, opaque) {
                    for field in REASONING_FIELDS {
                        if let Some(thoughts) = item.get(field) {
                            message[*field] = thoughts.clone();
                        }
                    }
                    let call = calls.iter_mut().find(|call| call.get("id") == item.get("call"));
                    if let (Some(call), Some(extra)) = (call, item.get("extra_content")) {
                        call["extra_content"] = extra.clone();
                    }
                }
                message["tool_calls"] = Value::Array(calls);
                messages.push(message);
            }
        }
    }
    messages
}

/// Fields that servers want back while tool calls are answered: DeepSeek, Kimi and GLM want their reasoning as text,
/// OpenRouter wants the signed reasoning of several providers.
const REASONING_FIELDS: &[&str] = &["reasoning_content", "reasoning_details"];

#[derive(Debug, Default)]
struct ReasoningParts {
    content: String,
    details: Vec<Value>,
}

struct ChatReader {
    model: String,
    /// The id from the server and the call, by the server's index. Gemini's server gives index 0 to each call.
    calls: BTreeMap<u64, (String, ToolCallIndex)>,
    thoughts: ReasoningParts,
    refused: bool,
}

impl ResponseReader for ChatReader {
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        if event.get("error").is_some_and(|error| !error.is_null()) || str_at(event, "/object") == "error" {
            return Err(EventError::Server(ServerError::from_value(event)));
        }
        if answer.model.is_empty() {
            str_at(event, "/model").clone_into(&mut answer.model);
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            answer.usage = parse_usage(usage);
        }
        for choice in items_at(event, "/choices").filter(|choice| number_at(choice, "/index").unwrap_or(0) == 0) {
            answer.is_recognized = true;
            if choice.get("error").is_some_and(|error| !error.is_null()) {
                return Err(EventError::Server(ServerError::from_value(choice)));
            }
            // A server that does not stream sends the whole message.
            let whole = choice.get("message");
            if let Some(delta) = whole.or(choice.get("delta")) {
                self.apply_delta(delta, answer)?;
            }
            answer.finished |= whole.is_some();
            if let Some(stop) = parse_finish_reason(str_at(choice, "/finish_reason")) {
                answer.stop = Some(if self.refused { StopReason::Refused } else { stop });
                self.store_reasoning(answer)?;
            }
        }
        Ok(())
    }
}

impl ChatReader {
    fn apply_delta(&mut self, delta: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        answer.push_text(str_at(delta, "/content"))?;
        // Mistral's content is a list of parts, and some parts are reasoning.
        for part in items_at(delta, "/content").filter(|part| str_at(part, "/type") == "text") {
            answer.push_text(str_at(part, "/text"))?;
        }
        let refusal = str_at(delta, "/refusal");
        answer.push_text(refusal)?;
        self.refused |= !refusal.is_empty();
        let thought = str_at(delta, "/reasoning_content");
        answer.charge_bytes(thought.len())?;
        self.thoughts.content.push_str(thought);
        for detail in items_at(delta, "/reasoning_details") {
            answer.charge_bytes(detail.to_string().len())?;
            merge_detail(&mut self.thoughts.details, detail);
        }
        for (position, call) in (0..).zip(items_at(delta, "/tool_calls")) {
            self.apply_call_delta(call, number_at(call, "/index").unwrap_or(position), answer)?;
        }
        Ok(())
    }

    fn apply_call_delta(&mut self, call: &Value, index: u64, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        let (id, name) = (str_at(call, "/id"), str_at(call, "/function/name"));
        let again = |known: &str| id.is_empty() || name.is_empty() || known == id;
        let known = self.calls.get(&index).filter(|(known, _)| again(known)).map(|(_, slot)| *slot);
        let slot = match known {
            Some(slot) => {
                answer.set_call_name(slot, name);
                slot
            }
            None => {
                let slot = answer.start_call(id, name)?;
                self.calls.insert(index, (id.chars().take(128).collect(), slot));
                slot
            }
        };
        answer.push_arguments(slot, &arguments_to_string(call.pointer("/function/arguments")))?;
        // The signature of a Gemini model that is served in this format.
        if let Some(extra) = call.get("extra_content").filter(|extra| extra.is_object()) {
            let item = json!({ "call": answer.call_id(slot), "extra_content": extra });
            answer.push_opaque(wrap_opaque(KIND, &self.model, item))?;
        }
        Ok(())
    }

    /// Stores the reasoning only if the answer has calls. Without calls the server does not need it back, and it would
    /// cost input tokens again.
    fn store_reasoning(&mut self, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        let thoughts = std::mem::take(&mut self.thoughts);
        if !answer.has_calls() {
            return Ok(());
        }
        if !thoughts.content.is_empty() {
            answer.push_opaque(wrap_opaque(KIND, &self.model, json!({ "reasoning_content": thoughts.content })))?;
        }
        if !thoughts.details.is_empty() {
            answer.push_opaque(wrap_opaque(KIND, &self.model, json!({ "reasoning_details": thoughts.details })))?;
        }
        Ok(())
    }
}

/// Merges a piece of reasoning into the last piece if both have the same type and index.
fn merge_detail(details: &mut Vec<Value>, piece: &Value) {
    let same =
        |last: &Value| last.is_object() && ["type", "index"].iter().all(|field| last.get(field) == piece.get(field));
    let (Some(last), Some(fields)) = (details.last_mut().filter(|last| same(last)), piece.as_object()) else {
        details.push(piece.clone());
        return;
    };
    for (field, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let grows = matches!(field.as_str(), "text" | "summary" | "data");
        match (last.get_mut(field), value) {
            (Some(Value::String(before)), Value::String(more)) if grows => before.push_str(more),
            _ => last[field] = value.clone(),
        }
    }
}

/// Parses the finish reason. Returns `None` while the answer goes on.
fn parse_finish_reason(reason: &str) -> Option<StopReason> {
    Some(match reason {
        "" => return None,
        "stop" | "end_turn" | "eos" => StopReason::Done,
        "tool_calls" | "function_call" => StopReason::Tools,
        "length" => StopReason::Length,
        "content_filter" => StopReason::Refused,
        _ => StopReason::Unknown,
    })
}

/// Parses the token usage. `completion_tokens` includes the reasoning, except at xAI, where the total shows the
/// difference.
fn parse_usage(usage: &Value) -> Usage {
    let count = |pointer: &str| number_at(usage, pointer).unwrap_or(0);
    let (input, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    let apart = reasoning > 0
        && number_at(usage, "/total_tokens")
            == input.checked_add(completion).and_then(|sum| sum.checked_add(reasoning));
    Usage {
        input,
        cached: number_at(usage, "/prompt_tokens_details/cached_tokens")
            .or(number_at(usage, "/prompt_cache_hit_tokens"))
            .or(number_at(usage, "/cached_tokens"))
            .unwrap_or(0),
        output: if apart { completion } else { completion.saturating_sub(reasoning) },
        reasoning,
        ..Usage::default()
    }
}
