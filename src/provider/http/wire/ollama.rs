//! Ollama's chat.

use serde_json::{Value, json};

use super::super::Effort;
use super::super::answer::{Answer, is_own_id};
use super::super::failure::ServerError;
use super::super::frames::Framing;
use super::super::transport::Target;
use super::openai_chat::tool;
use super::{
    Ask, Extra, NO_STREAM, NO_TOOLS, Reader, Trouble, Wire, WireKind, arguments_of, list, object_of, sealed, text,
    tokens,
};
use crate::domain::{ChatRequest, Message, Stop, Usage};

pub struct Ollama;

const KIND: WireKind = WireKind::Ollama;
/// The least window that is asked for: a new size loads the model anew.
const LEAST_WINDOW: u64 = 16_384;
/// Bytes of code and JSON that make a token, rather too few.
const BYTES_OF_A_TOKEN: u64 = 3;

impl Wire for Ollama {
    fn home(&self) -> &'static str {
        "http://127.0.0.1:11434"
    }

    fn usual_path(&self) -> &'static str {
        "/"
    }

    fn address(&self, target: &Target, _: &Ask<'_>) -> reqwest::Url {
        target.below(&["api", "chat"], None)
    }

    fn needs_key(&self) -> bool {
        false
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value {
        let messages = messages(request, ask);
        let mut options = json!({
            "num_predict": request.max_output,
            "num_ctx": ask.window.unwrap_or_else(|| window_for(&messages, request)),
        });
        if ask.sends(Extra::Temperature, request) {
            options["temperature"] = json!(request.temperature);
        }
        let mut body = json!({
            "model": ask.model,
            "messages": messages,
            "stream": ask.streams(),
            "options": options,
            // Rather an error than a conversation without its beginning. Older servers do not know it.
            "truncate": false,
            "shift": false,
        });
        if let Some(effort) = ask.effort.filter(|_| ask.sends(Extra::Effort, request)) {
            body["think"] = think(effort, ask.model);
        }
        if ask.sends(Extra::Tools, request) {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        body
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(LineReader { model: model.to_owned(), thoughts: String::new() })
    }

    fn extras(&self) -> &'static [(Extra, &'static [&'static str])] {
        &[
            (Extra::Tools, NO_TOOLS),
            (Extra::Effort, &["does not support think", "think value", "think level"]),
            (Extra::Stream, NO_STREAM),
        ]
    }
}

/// gpt-oss takes levels; other models think or do not.
fn think(effort: Effort, model: &str) -> Value {
    if model.contains("gpt-oss") { json!(effort.word()) } else { json!(effort != Effort::Off) }
}

/// A window for a conversation when nobody says how large the model's is. Ollama's own default would cut it, and its
/// model's size bounds it. In powers of two, because each new size loads the model anew.
fn window_for(messages: &[Value], request: &ChatRequest) -> u64 {
    let bytes: usize = messages.iter().map(|message| message.to_string().len()).sum();
    let tools: usize = request.tools.iter().map(|spec| tool(spec).to_string().len()).sum();
    let tokens = (bytes + tools) as u64 / BYTES_OF_A_TOKEN + request.max_output;
    tokens.max(LEAST_WINDOW).next_power_of_two()
}

fn messages(request: &ChatRequest, ask: &Ask<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        messages.push(match message {
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Tool { call_id, name, text } => {
                let mut message = json!({ "role": "tool", "tool_name": name, "content": text });
                if !is_own_id(call_id) {
                    message["tool_call_id"] = json!(call_id);
                }
                message
            }
            Message::Assistant { text, calls, opaque } => {
                let mut message = json!({ "role": "assistant", "content": text });
                if let Some(thoughts) = ask.thoughts(KIND, opaque).find_map(|item| item.get("thinking")) {
                    message["thinking"] = thoughts.clone();
                }
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        let mut sent = json!({ "function": { "name": call.name, "arguments": object_of(call) } });
                        if !is_own_id(&call.id) {
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

impl Reader for LineReader {
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Trouble::Server(ServerError::from_value(event)));
        }
        answer.heard |= event.get("message").is_some() || event.get("done").is_some();
        if answer.model.is_empty() {
            text(event, "/model").clone_into(&mut answer.model);
        }
        let thought = text(event, "/message/thinking");
        answer.grow(thought.len())?;
        self.thoughts.push_str(thought);
        answer.say(text(event, "/message/content"))?;
        for call in list(event, "/message/tool_calls") {
            let slot = answer.call(text(call, "/id"), text(call, "/function/name"))?;
            answer.end_call(slot, Some(&arguments_of(call.pointer("/function/arguments"))))?;
        }
        if event.get("done").and_then(Value::as_bool) == Some(true) {
            let count = |pointer: &str| tokens(event, pointer).unwrap_or(0);
            answer.usage = Usage {
                input: count("/prompt_eval_count"),
                cached: count("/prompt_eval_cached_count"),
                output: count("/eval_count"),
                // Counted with the answer.
                reasoning: 0,
            };
            answer.stop = Some(match text(event, "/done_reason") {
                "stop" | "" => Stop::Done,
                "length" => Stop::Length,
                _ => Stop::Unknown,
            });
            answer.finished = true;
            if answer.has_calls() && !self.thoughts.is_empty() {
                answer.keep(sealed(KIND, &self.model, json!({ "thinking": std::mem::take(&mut self.thoughts) })))?;
            }
        }
        Ok(())
    }
}
