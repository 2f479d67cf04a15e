//! Anthropic's messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Effort;
use super::super::answer::{Answer, Slot};
use super::super::failure::ServerError;
use super::super::transport::Target;
use super::{Ask, Extra, NO_STREAM, NO_TOOLS, Reader, Trouble, Wire, WireKind, list, object_of, sealed, text, tokens};
use crate::domain::{ChatRequest, Message, Stop, ToolCall, Usage};

pub struct Anthropic;

const KIND: WireKind = WireKind::Anthropic;

impl Wire for Anthropic {
    fn home(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn usual_path(&self) -> &'static str {
        "/v1"
    }

    /// Addresses of services in this format are given with and without their `/v1`.
    fn address(&self, target: &Target, _: &Ask<'_>) -> reqwest::Url {
        let versioned = target.base.path().trim_end_matches('/').ends_with("/v1");
        target.below(if versioned { &["messages"] } else { &["v1", "messages"] }, None)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "max_tokens": request.max_output,
            "messages": messages(request, ask),
            "stream": ask.streams(),
        });
        if !request.system.is_empty() {
            let mut block = json!({ "type": "text", "text": request.system });
            if ask.sends(Extra::CacheMarks, request) {
                mark(&mut block);
            }
            body["system"] = json!([block]);
        }
        if ask.sends(Extra::Tools, request) {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }))
                .collect();
        }
        let effort = ask.effort.filter(|_| ask.sends(Extra::Effort, request));
        if let Some(effort) = effort {
            think(&mut body, effort, request, ask);
        }
        // Models that think take no other temperature than their own.
        if ask.sends(Extra::Temperature, request) && body.get("thinking").is_none() {
            body["temperature"] = json!(request.temperature);
        }
        body
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(MessageReader { model: model.to_owned(), blocks: BTreeMap::new() })
    }

    fn extras(&self) -> &'static [(Extra, &'static [&'static str])] {
        &[
            (Extra::CacheMarks, &["cache_control"]),
            (Extra::Temperature, &["temperature"]),
            (Extra::SealedThoughts, &["signature", "redacted_thinking", "thinking block"]),
            (Extra::Effort, &["output_config", "effort", "thinking", "adaptive"]),
            (Extra::Stream, NO_STREAM),
            (Extra::Tools, NO_TOOLS),
        ]
    }
}

/// Marks the end of what a prompt cache may keep.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Models since 4.6 think as they see fit and are told how hard to try, 4.5 is told without thinking, older ones get a
/// number of tokens to think with, out of those of the answer.
fn think(body: &mut Value, effort: Effort, request: &ChatRequest, ask: &Ask<'_>) {
    let version = version_of(ask.model);
    if version >= (4, 6) || (version == (4, 5) && ask.model.contains("opus")) {
        body["output_config"] = json!({ "effort": effort.word() });
        if version >= (4, 6) {
            body["thinking"] = json!({ "type": "adaptive" });
        }
        return;
    }
    const LEAST: u64 = 1024;
    let wanted = match effort {
        Effort::Off => return,
        Effort::Minimal | Effort::Low => LEAST,
        Effort::Medium => 8_000,
        Effort::High | Effort::Xhigh | Effort::Max => 24_000,
    };
    let budget = wanted.min(request.max_output / 2);
    if budget >= LEAST && thoughts_are_there(request, ask) {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
    }
}

/// A model with such a budget must find the thoughts before the calls whose answers it gets.
fn thoughts_are_there(request: &ChatRequest, ask: &Ask<'_>) -> bool {
    let last = request.messages.iter().rev().find_map(|message| match message {
        Message::Assistant { calls, opaque, .. } => Some((calls, opaque)),
        _ => None,
    });
    last.is_none_or(|(calls, opaque)| calls.is_empty() || ask.thoughts(KIND, opaque).next().is_some())
}

/// `claude-opus-4-5-20251101` is 4.5, `claude-3-7-sonnet-latest` 3.7. A name without numbers is a newer model's.
fn version_of(model: &str) -> (u32, u32) {
    let number = |word: &str| (word.len() <= 2).then(|| word.parse::<u32>().ok()).flatten();
    let mut words = model.split(['-', '.', '@', '/']).skip_while(|word| number(word).is_none());
    match words.next().and_then(number) {
        Some(major) => (major, words.next().and_then(number).unwrap_or(0)),
        None => (u32::MAX, 0),
    }
}

fn messages(request: &ChatRequest, ask: &Ask<'_>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len());
    for (position, message) in request.messages.iter().enumerate() {
        let (role, mut blocks) = match message {
            Message::User { text } => ("user", text_block(text).into_iter().collect()),
            Message::Tool { call_id, text, .. } => {
                ("user", vec![json!({ "type": "tool_result", "tool_use_id": id_of(call_id), "content": text })])
            }
            Message::Assistant { text, calls, opaque } => ("assistant", assistant(text, calls, opaque, ask)),
        };
        if position + 1 == request.pinned && ask.sends(Extra::CacheMarks, request) {
            blocks.last_mut().map(mark);
        }
        // All answers to calls stand in one message, and what a user says after them too.
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.append(&mut blocks);
                }
            }
            _ if blocks.is_empty() => {}
            _ => messages.push(json!({ "role": role, "content": blocks })),
        }
    }
    messages
}

fn assistant(text: &str, calls: &[ToolCall], opaque: &[Value], ask: &Ask<'_>) -> Vec<Value> {
    let thoughts = ask.thoughts(KIND, opaque).cloned();
    let calls = calls
        .iter()
        .map(|call| json!({ "type": "tool_use", "id": id_of(&call.id), "name": call.name, "input": object_of(call) }));
    thoughts.chain(text_block(text)).chain(calls).collect()
}

/// Blocks of white space are not taken.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Ids of other providers may have characters that are not taken here.
fn id_of(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}

struct MessageReader {
    model: String,
    blocks: BTreeMap<u64, Block>,
}

enum Block {
    Call {
        slot: Slot,
        given: String,
        pieces: bool,
    },
    /// A thought: the block as it began, and what came after. Only with its end is its signature there.
    Thought {
        block: Value,
        thinking: String,
        signature: String,
    },
}

impl Reader for MessageReader {
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        let index = tokens(event, "/index").unwrap_or(0);
        answer.heard |= matches!(text(event, "/type"), "message_start" | "message" | "ping");
        match text(event, "/type") {
            "message_start" => {
                text(event, "/message/model").clone_into(&mut answer.model);
                count(event.pointer("/message/usage"), &mut answer.usage);
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.begin(index, block, answer)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.delta(index, delta, answer)?;
                }
            }
            "content_block_stop" => self.end(index, answer)?,
            "message_delta" => {
                answer.stop = stop_of(text(event, "/delta/stop_reason")).or(answer.stop);
                count(event.get("usage"), &mut answer.usage);
            }
            "message_stop" => answer.finished = true,
            // The whole message of a server that does not stream.
            "message" => {
                for (index, block) in (0..).zip(list(event, "/content")) {
                    self.begin(index, block, answer)?;
                    self.end(index, answer)?;
                }
                text(event, "/model").clone_into(&mut answer.model);
                count(event.get("usage"), &mut answer.usage);
                answer.stop = stop_of(text(event, "/stop_reason"));
                answer.finished = true;
            }
            _ if event.get("error").is_some() => return Err(Trouble::Server(ServerError::from_value(event))),
            _ => {}
        }
        Ok(())
    }
}

impl MessageReader {
    fn begin(&mut self, index: u64, block: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        match text(block, "/type") {
            "text" => {
                answer.paragraph()?;
                answer.say(text(block, "/text"))?;
            }
            "tool_use" => {
                let slot = answer.call(text(block, "/id"), text(block, "/name"))?;
                let input =
                    block.get("input").filter(|input| input.as_object().is_some_and(|object| !object.is_empty()));
                let given = input.map(Value::to_string).unwrap_or_default();
                self.blocks.insert(index, Block::Call { slot, given, pieces: false });
            }
            "thinking" | "redacted_thinking" => {
                answer.grow(block.to_string().len())?;
                let (thinking, signature) = (text(block, "/thinking").to_owned(), text(block, "/signature").to_owned());
                self.blocks.insert(index, Block::Thought { block: block.clone(), thinking, signature });
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        match (text(delta, "/type"), self.blocks.get_mut(&index)) {
            ("text_delta", _) => answer.say(text(delta, "/text"))?,
            ("input_json_delta", Some(Block::Call { slot, pieces, .. })) => {
                let piece = text(delta, "/partial_json");
                *pieces |= !piece.is_empty();
                answer.arguments(*slot, piece)?;
            }
            ("thinking_delta", Some(Block::Thought { thinking, .. })) => {
                let piece = text(delta, "/thinking");
                answer.grow(piece.len())?;
                thinking.push_str(piece);
            }
            ("signature_delta", Some(Block::Thought { signature, .. })) => {
                let piece = text(delta, "/signature");
                answer.grow(piece.len())?;
                signature.push_str(piece);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, index: u64, answer: &mut Answer) -> Result<(), Trouble> {
        match self.blocks.remove(&index) {
            Some(Block::Call { slot, given, pieces }) => {
                answer.end_call(slot, (!pieces).then_some(given.as_str()))?;
            }
            Some(Block::Thought { mut block, thinking, signature }) => {
                if !signature.is_empty() {
                    block["thinking"] = Value::String(thinking);
                    block["signature"] = Value::String(signature);
                }
                // A thought that is neither signed nor sealed is not taken back.
                if !text(&block, "/signature").is_empty() || !text(&block, "/data").is_empty() {
                    answer.keep(sealed(KIND, &self.model, block))?;
                }
            }
            None => {}
        }
        Ok(())
    }
}

fn stop_of(reason: &str) -> Option<Stop> {
    Some(match reason {
        "" => return None,
        "end_turn" | "stop_sequence" => Stop::Done,
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        _ => Stop::Unknown,
    })
}

/// The counts are totals: later ones take the place of earlier ones. `input_tokens` is without those that were read
/// from or written to the cache; `output_tokens` is with the thoughts.
fn count(usage: Option<&Value>, total: &mut Usage) {
    let Some(usage) = usage else { return };
    let cached = tokens(usage, "/cache_read_input_tokens");
    if let Some(input) = tokens(usage, "/input_tokens") {
        let written = tokens(usage, "/cache_creation_input_tokens").unwrap_or(0);
        let cached = cached.unwrap_or(0);
        let sum = input.saturating_add(written).saturating_add(cached);
        // Some services repeat a zero at the end.
        if sum > 0 {
            (total.input, total.cached) = (sum, cached);
        }
    }
    if let Some(output) = tokens(usage, "/output_tokens") {
        total.reasoning = tokens(usage, "/output_tokens_details/thinking_tokens").unwrap_or(0).min(output);
        total.output = output - total.reasoning;
    }
}
