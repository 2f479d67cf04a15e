//! OpenAI's chat completions, which most servers speak: vLLM, llama.cpp, LM Studio, OpenRouter, DeepSeek, Mistral, xAI.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::answer::{Answer, Slot};
use super::super::failure::ServerError;
use super::super::transport::Target;
use super::{
    Ask, Extra, NO_STREAM, NO_TOOLS, Reader, Trouble, Wire, WireKind, arguments_in_text, arguments_of, list, sealed,
    text, tokens,
};
use crate::domain::{ChatRequest, Message, Stop, ToolSpec, Usage};

pub struct OpenaiChat;

const KIND: WireKind = WireKind::OpenaiChat;

impl Wire for OpenaiChat {
    fn home(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn usual_path(&self) -> &'static str {
        "/v1"
    }

    fn address(&self, target: &Target, _: &Ask<'_>) -> reqwest::Url {
        target.below(&["chat", "completions"], None)
    }

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "messages": messages(request, ask),
            "stream": ask.streams(),
        });
        if ask.sends(Extra::StreamUsage, request) {
            body["stream_options"] = json!({ "include_usage": true });
        }
        // OpenAI's models that think know the new name only, most other servers the old one only.
        let limit = match ask.at_home == ask.sends(Extra::UsualLimit, request) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body[limit] = json!(request.max_output);
        if ask.sends(Extra::Temperature, request) {
            body["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(Extra::Effort, request)) {
            body["reasoning_effort"] = json!(effort.word());
        }
        if ask.sends(Extra::Tools, request) {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        body
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        let thoughts = Thoughts::default();
        Box::new(ChatReader { model: model.to_owned(), calls: BTreeMap::new(), thoughts, refused: false })
    }

    fn extras(&self) -> &'static [(Extra, &'static [&'static str])] {
        &[
            (Extra::StreamUsage, &["stream_options", "include_usage"]),
            (Extra::Stream, NO_STREAM),
            (Extra::Temperature, &["temperature"]),
            (Extra::Effort, &["reasoning_effort", "reasoning effort"]),
            (Extra::SealedThoughts, &["reasoning_content", "reasoning_details", "extra_content", "thought_signature"]),
            (Extra::UsualLimit, &["max_tokens", "max_completion_tokens"]),
            (Extra::Tools, NO_TOOLS),
        ]
    }
}

/// A tool as chat completions and Ollama take it.
pub fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.parameters },
    })
}

fn messages(request: &ChatRequest, ask: &Ask<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message {
            Message::User { text } => messages.push(json!({ "role": "user", "content": text })),
            Message::Tool { call_id, text, .. } => {
                messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": text }));
            }
            Message::Assistant { text, calls, .. } if calls.is_empty() => {
                if !text.is_empty() {
                    messages.push(json!({ "role": "assistant", "content": text }));
                }
            }
            Message::Assistant { text, calls, opaque } => {
                let content = if text.is_empty() { Value::Null } else { json!(text) };
                let mut message = json!({ "role": "assistant", "content": content });
                let mut calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        let function = json!({ "name": call.name, "arguments": arguments_in_text(call) });
                        json!({ "id": call.id, "type": "function", "function": function })
                    })
                    .collect();
                for item in ask.thoughts(KIND, opaque) {
                    for field in THOUGHTS {
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

/// What servers want back while tools are answered: DeepSeek, Kimi and GLM their thoughts in words, OpenRouter those of
/// several providers, signed.
const THOUGHTS: &[&str] = &["reasoning_content", "reasoning_details"];

#[derive(Debug, Default)]
struct Thoughts {
    content: String,
    details: Vec<Value>,
}

struct ChatReader {
    model: String,
    /// By the server's index: the id it gave, and the call. Gemini's server gives each call the index 0.
    calls: BTreeMap<u64, (String, Slot)>,
    thoughts: Thoughts,
    refused: bool,
}

impl Reader for ChatReader {
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        if event.get("error").is_some_and(|error| !error.is_null()) || text(event, "/object") == "error" {
            return Err(Trouble::Server(ServerError::from_value(event)));
        }
        if answer.model.is_empty() {
            text(event, "/model").clone_into(&mut answer.model);
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            answer.usage = usage_of(usage);
        }
        for choice in list(event, "/choices").filter(|choice| tokens(choice, "/index").unwrap_or(0) == 0) {
            answer.heard = true;
            if choice.get("error").is_some_and(|error| !error.is_null()) {
                return Err(Trouble::Server(ServerError::from_value(choice)));
            }
            // A server that does not stream gives the whole message.
            let whole = choice.get("message");
            if let Some(delta) = whole.or(choice.get("delta")) {
                self.delta(delta, answer)?;
            }
            answer.finished |= whole.is_some();
            if let Some(stop) = stop_of(text(choice, "/finish_reason")) {
                answer.stop = Some(if self.refused { Stop::Refused } else { stop });
                self.keep_thoughts(answer)?;
            }
        }
        Ok(())
    }
}

impl ChatReader {
    fn delta(&mut self, delta: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        answer.say(text(delta, "/content"))?;
        // Mistral's content comes in parts, of which some are thoughts.
        for part in list(delta, "/content").filter(|part| text(part, "/type") == "text") {
            answer.say(text(part, "/text"))?;
        }
        let refusal = text(delta, "/refusal");
        answer.say(refusal)?;
        self.refused |= !refusal.is_empty();
        let thought = text(delta, "/reasoning_content");
        answer.grow(thought.len())?;
        self.thoughts.content.push_str(thought);
        for detail in list(delta, "/reasoning_details") {
            answer.grow(detail.to_string().len())?;
            add_detail(&mut self.thoughts.details, detail);
        }
        for (position, call) in (0..).zip(list(delta, "/tool_calls")) {
            self.call(call, tokens(call, "/index").unwrap_or(position), answer)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, index: u64, answer: &mut Answer) -> Result<(), Trouble> {
        let (id, name) = (text(call, "/id"), text(call, "/function/name"));
        let again = |known: &str| id.is_empty() || name.is_empty() || known == id;
        let known = self.calls.get(&index).filter(|(known, _)| again(known)).map(|(_, slot)| *slot);
        let slot = match known {
            Some(slot) => {
                answer.name(slot, name);
                slot
            }
            None => {
                let slot = answer.call(id, name)?;
                self.calls.insert(index, (id.chars().take(128).collect(), slot));
                slot
            }
        };
        answer.arguments(slot, &arguments_of(call.pointer("/function/arguments")))?;
        // The signature of Gemini behind this format.
        if let Some(extra) = call.get("extra_content").filter(|extra| extra.is_object()) {
            let item = json!({ "call": answer.id(slot), "extra_content": extra });
            answer.keep(sealed(KIND, &self.model, item))?;
        }
        Ok(())
    }

    /// Thoughts are wanted back with calls only; without, they would be paid for as input again.
    fn keep_thoughts(&mut self, answer: &mut Answer) -> Result<(), Trouble> {
        let thoughts = std::mem::take(&mut self.thoughts);
        if !answer.has_calls() {
            return Ok(());
        }
        if !thoughts.content.is_empty() {
            answer.keep(sealed(KIND, &self.model, json!({ "reasoning_content": thoughts.content })))?;
        }
        if !thoughts.details.is_empty() {
            answer.keep(sealed(KIND, &self.model, json!({ "reasoning_details": thoughts.details })))?;
        }
        Ok(())
    }
}

/// Puts the pieces of a thought together: those that follow each other with one type and index.
fn add_detail(details: &mut Vec<Value>, piece: &Value) {
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

/// `None` while the answer goes on.
fn stop_of(reason: &str) -> Option<Stop> {
    Some(match reason {
        "" => return None,
        "stop" | "end_turn" | "eos" => Stop::Done,
        "tool_calls" | "function_call" => Stop::Tools,
        "length" => Stop::Length,
        "content_filter" => Stop::Refused,
        _ => Stop::Unknown,
    })
}

/// `completion_tokens` has the reasoning in it, but for xAI, whose total tells.
fn usage_of(usage: &Value) -> Usage {
    let count = |pointer: &str| tokens(usage, pointer).unwrap_or(0);
    let (input, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    let apart = reasoning > 0
        && tokens(usage, "/total_tokens") == input.checked_add(completion).and_then(|sum| sum.checked_add(reasoning));
    Usage {
        input,
        cached: tokens(usage, "/prompt_tokens_details/cached_tokens")
            .or(tokens(usage, "/prompt_cache_hit_tokens"))
            .or(tokens(usage, "/cached_tokens"))
            .unwrap_or(0),
        output: if apart { completion } else { completion.saturating_sub(reasoning) },
        reasoning,
    }
}
