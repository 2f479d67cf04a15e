//! OpenAI's responses. Nothing is stored there: each request has the whole conversation, sealed thoughts included.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::answer::{Answer, Slot};
use super::super::failure::ServerError;
use super::super::transport::Target;
use super::{
    Ask, Extra, NO_STREAM, NO_TOOLS, Reader, Trouble, Wire, WireKind, arguments_in_text, list, sealed, text, tokens,
};
use crate::domain::{ChatRequest, Message, Stop, Usage};

pub struct OpenaiResponses;

const KIND: WireKind = WireKind::OpenaiResponses;

impl Wire for OpenaiResponses {
    fn home(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn usual_path(&self) -> &'static str {
        "/v1"
    }

    fn address(&self, target: &Target, _: &Ask<'_>) -> reqwest::Url {
        target.below(&["responses"], None)
    }

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "instructions": request.system,
            "input": input(request, ask),
            "max_output_tokens": request.max_output,
            "store": false,
            "stream": ask.streams(),
        });
        if ask.sends(Extra::SealedThoughts, request) {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if ask.sends(Extra::Temperature, request) {
            body["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(Extra::Effort, request)) {
            body["reasoning"] = json!({ "effort": effort.word() });
        }
        if ask.sends(Extra::Tools, request) {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                        // Strict schemas may have no optional fields.
                        "strict": false,
                    })
                })
                .collect();
        }
        body
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(EventReader { model: model.to_owned(), calls: BTreeMap::new(), refused: false })
    }

    fn extras(&self) -> &'static [(Extra, &'static [&'static str])] {
        &[
            (Extra::SealedThoughts, &["encrypted", "include", "not persisted", "required following item"]),
            (Extra::Temperature, &["temperature"]),
            (Extra::Effort, &["reasoning"]),
            (Extra::Stream, NO_STREAM),
            (Extra::Tools, NO_TOOLS),
        ]
    }
}

fn input(request: &ChatRequest, ask: &Ask<'_>) -> Vec<Value> {
    let mut input = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message {
            Message::User { text } => {
                let content = json!([{ "type": "input_text", "text": text }]);
                input.push(json!({ "type": "message", "role": "user", "content": content }));
            }
            Message::Tool { call_id, text, .. } => {
                input.push(json!({ "type": "function_call_output", "call_id": call_id, "output": text }));
            }
            Message::Assistant { text, calls, opaque } => {
                // A thought must be followed by what came of it.
                if !text.is_empty() || !calls.is_empty() {
                    input.extend(ask.thoughts(KIND, opaque).cloned());
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
                        "arguments": arguments_in_text(call),
                    })
                }));
            }
        }
    }
    input
}

struct EventReader {
    model: String,
    /// By the index of the item.
    calls: BTreeMap<u64, Slot>,
    refused: bool,
}

impl Reader for EventReader {
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        let index = tokens(event, "/output_index").unwrap_or(0);
        let kind = text(event, "/type");
        answer.heard |= kind.starts_with("response.");
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.item(index, item, kind.ends_with("done"), answer)?;
                }
            }
            "response.content_part.added" if text(event, "/part/type") == "output_text" => answer.paragraph()?,
            "response.output_text.delta" => answer.say(text(event, "/delta"))?,
            "response.refusal.delta" => {
                self.refused = true;
                answer.say(text(event, "/delta"))?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(slot) = self.calls.get(&index) {
                    answer.arguments(*slot, text(event, "/delta"))?;
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(slot) = self.calls.get(&index) {
                    answer.end_call(*slot, Some(text(event, "/arguments")))?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(event.get("response").unwrap_or(&Value::Null), answer)?;
            }
            "error" => return Err(Trouble::Server(ServerError::from_value(event))),
            _ if text(event, "/object") == "response" => {
                answer.heard = true;
                self.end(event, answer)?;
            }
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(Trouble::Server(ServerError::from_value(event)));
            }
            _ => {}
        }
        Ok(())
    }
}

impl EventReader {
    fn item(&mut self, index: u64, item: &Value, done: bool, answer: &mut Answer) -> Result<(), Trouble> {
        match text(item, "/type") {
            "function_call" => {
                let slot = match self.calls.get(&index) {
                    Some(slot) => *slot,
                    None => {
                        let slot = answer.call(text(item, "/call_id"), text(item, "/name"))?;
                        self.calls.insert(index, slot);
                        slot
                    }
                };
                if done {
                    answer.end_call(slot, Some(text(item, "/arguments")))?;
                }
            }
            // What is not sealed is of no use to a server that stores nothing.
            "reasoning" if done && !text(item, "/encrypted_content").is_empty() => {
                let mut thought = item.clone();
                if let Some(fields) = thought.as_object_mut() {
                    fields.retain(|field, _| matches!(field.as_str(), "type" | "id" | "summary" | "encrypted_content"));
                    fields.entry("summary").or_insert_with(|| json!([]));
                }
                answer.keep(sealed(KIND, &self.model, thought))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The last event has the whole response; so has a server that does not stream.
    fn end(&mut self, response: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        if text(response, "/status") == "failed" && !answer.has_calls() && answer.text.is_empty() {
            return Err(Trouble::Server(ServerError::from_value(response)));
        }
        if answer.text.is_empty() && !answer.has_calls() {
            let thoughts_are_kept = !answer.opaque.is_empty();
            for (index, item) in (0..).zip(list(response, "/output")) {
                if text(item, "/type") != "reasoning" || !thoughts_are_kept {
                    self.item(index, item, true, answer)?;
                }
                for part in list(item, "/content") {
                    answer.paragraph()?;
                    answer.say(text(part, "/text"))?;
                    answer.say(text(part, "/refusal"))?;
                    self.refused |= text(part, "/type") == "refusal";
                }
            }
        }
        text(response, "/model").clone_into(&mut answer.model);
        if let Some(usage) = response.get("usage") {
            answer.usage = usage_of(usage);
        }
        answer.stop = match (text(response, "/status"), text(response, "/incomplete_details/reason")) {
            // What came before the failure is used; it is not whole.
            ("failed", _) => None,
            _ if self.refused => Some(Stop::Refused),
            ("completed", _) => Some(Stop::Done),
            ("incomplete", "max_output_tokens" | "max_tokens") => Some(Stop::Length),
            ("incomplete", "content_filter") => Some(Stop::Refused),
            _ => Some(Stop::Unknown),
        };
        match answer.stop {
            None => Err(Trouble::Server(ServerError::from_value(response))),
            Some(_) => {
                answer.finished = true;
                Ok(())
            }
        }
    }
}

/// Cached tokens are among the input's, reasoning among the output's.
fn usage_of(usage: &Value) -> Usage {
    let count = |pointer: &str| tokens(usage, pointer).unwrap_or(0);
    let output = count("/output_tokens");
    let reasoning = count("/output_tokens_details/reasoning_tokens").min(output);
    Usage {
        input: count("/input_tokens"),
        cached: count("/input_tokens_details/cached_tokens"),
        output: output - reasoning,
        reasoning,
    }
}
