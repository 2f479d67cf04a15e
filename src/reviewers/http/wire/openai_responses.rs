//! The wire format of OpenAI's responses. The server stores nothing: each request contains the whole conversation,
//! including the encrypted reasoning.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::failure::ServerError;
use super::super::response_builder::{ResponseBuilder, ToolCallIndex};
use super::super::transport::ServerUrl;
use super::{
    EventError, NO_STREAM_PHRASES, NO_TOOLS_PHRASES, OptionalField, RequestOptions, ResponseReader, WireFormat,
    arguments_to_json_text, items_at, number_at, str_at, wrap_opaque,
};
use crate::config::ReviewerKind;
use crate::domain::{ChatMessage, ChatRequest, StopReason, Usage};

pub struct OpenaiResponses;

const KIND: ReviewerKind = ReviewerKind::OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn kind(&self) -> ReviewerKind {
        KIND
    }

    fn default_path(&self) -> &'static str {
        "/v1"
    }

    fn request_url(&self, target: &ServerUrl, _: &RequestOptions<'_>) -> reqwest::Url {
        target.join(&["responses"], None)
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "instructions": request.system,
            "input": build_input(request, ask),
            "max_output_tokens": request.max_output,
            "store": false,
            "stream": ask.is_streaming(),
        });
        if ask.sends(OptionalField::OpaqueReasoning, request) {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if ask.sends(OptionalField::Temperature, request) {
            body["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(OptionalField::Effort, request)) {
            body["reasoning"] = json!({ "effort": effort.word() });
        }
        if ask.sends(OptionalField::Tools, request) {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                        // Strict schemas may not have optional fields.
                        "strict": false,
                    })
                })
                .collect();
        }
        body
    }

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader> {
        Box::new(EventReader { model: model.to_owned(), calls: BTreeMap::new(), refused: false })
    }

    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])] {
        &[
            (OptionalField::OpaqueReasoning, &["encrypted", "include", "not persisted", "required following item"]),
            (OptionalField::Temperature, &["temperature"]),
            (OptionalField::Effort, &["reasoning"]),
            (OptionalField::Stream, NO_STREAM_PHRASES),
            (OptionalField::Tools, NO_TOOLS_PHRASES),
        ]
    }
}

fn build_input(request: &ChatRequest, ask: &RequestOptions<'_>) -> Vec<Value> {
    let mut input = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message {
            ChatMessage::User { text } => {
                let content = json!([{ "type": "input_text", "text": text }]);
                input.push(json!({ "type": "message", "role": "user", "content": content }));
            }
            ChatMessage::Tool { call_id, text, .. } => {
                input.push(json!({ "type": "function_call_output", "call_id": call_id, "output": text }));
            }
            ChatMessage::Assistant { text, calls, opaque } => {
                // A reasoning item must be followed by its text or its calls.
                if !text.is_empty() || !calls.is_empty() {
                    input.extend(ask.opaque_items(KIND, opaque).cloned());
                }
                if !text.is_empty() {
                    let content = json!([{ "type": "output_text", "text": text }]);
                    input.push(json!({ "type": "message", "role": "assistant", "content": content }));
                }
                input.extend(calls.iter().map(|call| {
                    json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": arguments_to_json_text(call),
                    })
                }));
            }
        }
    }
    input
}

struct EventReader {
    model: String,
    /// Calls by the index of their output item.
    calls: BTreeMap<u64, ToolCallIndex>,
    refused: bool,
}

impl ResponseReader for EventReader {
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        let index = number_at(event, "/output_index").unwrap_or(0);
        let kind = str_at(event, "/type");
        answer.is_recognized |= kind.starts_with("response.");
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.apply_item(index, item, kind.ends_with("done"), answer)?;
                }
            }
            "response.content_part.added" if str_at(event, "/part/type") == "output_text" => {
                answer.start_paragraph()?
            }
            "response.output_text.delta" => answer.push_text(str_at(event, "/delta"))?,
            "response.refusal.delta" => {
                self.refused = true;
                answer.push_text(str_at(event, "/delta"))?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(slot) = self.calls.get(&index) {
                    answer.push_arguments(*slot, str_at(event, "/delta"))?;
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(slot) = self.calls.get(&index) {
                    answer.end_call(*slot, Some(str_at(event, "/arguments")))?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish_response(event.get("response").unwrap_or(&Value::Null), answer)?;
            }
            "error" => return Err(EventError::Server(ServerError::from_value(event))),
            _ if str_at(event, "/object") == "response" => {
                answer.is_recognized = true;
                self.finish_response(event, answer)?;
            }
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(EventError::Server(ServerError::from_value(event)));
            }
            _ => {}
        }
        Ok(())
    }
}

impl EventReader {
    fn apply_item(
        &mut self,
        index: u64,
        item: &Value,
        done: bool,
        answer: &mut ResponseBuilder,
    ) -> Result<(), EventError> {
        match str_at(item, "/type") {
            "function_call" => {
                let slot = match self.calls.get(&index) {
                    Some(slot) => *slot,
                    None => {
                        let slot = answer.start_call(str_at(item, "/call_id"), str_at(item, "/name"))?;
                        self.calls.insert(index, slot);
                        slot
                    }
                };
                if done {
                    answer.end_call(slot, Some(str_at(item, "/arguments")))?;
                }
            }
            // Reasoning that is not encrypted is useless to a server that stores nothing.
            "reasoning" if done && !str_at(item, "/encrypted_content").is_empty() => {
                let mut thought = item.clone();
                if let Some(fields) = thought.as_object_mut() {
                    fields.retain(|field, _| matches!(field.as_str(), "type" | "id" | "summary" | "encrypted_content"));
                    fields.entry("summary").or_insert_with(|| json!([]));
                }
                answer.push_opaque(wrap_opaque(KIND, &self.model, thought))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies the whole response, which the last event contains. A server that does not stream sends it too.
    fn finish_response(&mut self, response: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        if str_at(response, "/status") == "failed" && !answer.has_calls() && answer.text.is_empty() {
            return Err(EventError::Server(ServerError::from_value(response)));
        }
        if answer.text.is_empty() && !answer.has_calls() {
            let thoughts_are_kept = !answer.opaque.is_empty();
            for (index, item) in (0..).zip(items_at(response, "/output")) {
                if str_at(item, "/type") != "reasoning" || !thoughts_are_kept {
                    self.apply_item(index, item, true, answer)?;
                }
                for part in items_at(item, "/content") {
                    answer.start_paragraph()?;
                    answer.push_text(str_at(part, "/text"))?;
                    answer.push_text(str_at(part, "/refusal"))?;
                    self.refused |= str_at(part, "/type") == "refusal";
                }
            }
        }
        str_at(response, "/model").clone_into(&mut answer.model);
        if let Some(usage) = response.get("usage") {
            answer.usage = parse_usage(usage);
        }
        answer.stop = match (str_at(response, "/status"), str_at(response, "/incomplete_details/reason")) {
            // Text and calls from before the failure are used, but the answer is not complete.
            ("failed", _) => None,
            _ if self.refused => Some(StopReason::Refused),
            ("completed", _) => Some(StopReason::Done),
            ("incomplete", "max_output_tokens" | "max_tokens") => Some(StopReason::Length),
            ("incomplete", "content_filter") => Some(StopReason::Refused),
            _ => Some(StopReason::Unknown),
        };
        match answer.stop {
            None => Err(EventError::Server(ServerError::from_value(response))),
            Some(_) => {
                answer.finished = true;
                Ok(())
            }
        }
    }
}

/// Parses the token usage. `input` includes cached tokens and the server's output count includes the reasoning.
fn parse_usage(usage: &Value) -> Usage {
    let count = |pointer: &str| number_at(usage, pointer).unwrap_or(0);
    let output = count("/output_tokens");
    let reasoning = count("/output_tokens_details/reasoning_tokens").min(output);
    Usage {
        input: count("/input_tokens"),
        cached: count("/input_tokens_details/cached_tokens"),
        output: output - reasoning,
        reasoning,
        ..Usage::default()
    }
}
