//! The wire format of Anthropic's messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Effort;
use super::super::failure::ServerError;
use super::super::response_builder::{ResponseBuilder, ToolCallIndex};
use super::super::transport::ServerUrl;
use super::{
    EventError, NO_STREAM_PHRASES, NO_TOOLS_PHRASES, OptionalField, RequestOptions, ResponseReader, WireFormat,
    arguments_to_object, items_at, number_at, str_at, wrap_opaque,
};
use crate::config::ReviewerKind;
use crate::domain::{ChatMessage, ChatRequest, StopReason, ToolCall, Usage};

pub struct Anthropic;

const KIND: ReviewerKind = ReviewerKind::Anthropic;

impl WireFormat for Anthropic {
    fn kind(&self) -> ReviewerKind {
        KIND
    }

    fn default_path(&self) -> &'static str {
        "/v1"
    }

    /// Returns the request URL. Users give the address of compatible services with or without `/v1`.
    fn request_url(&self, target: &ServerUrl, _: &RequestOptions<'_>) -> reqwest::Url {
        let versioned = target.base.path().trim_end_matches('/').ends_with("/v1");
        target.join(if versioned { &["messages"] } else { &["v1", "messages"] }, None)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value {
        let mut body = json!({
            "model": ask.model,
            "max_tokens": request.max_output,
            "messages": build_messages(request, ask),
            "stream": ask.is_streaming(),
        });
        if !request.system.is_empty() {
            let mut block = json!({ "type": "text", "text": request.system });
            if ask.sends(OptionalField::CacheControl, request) {
                add_cache_control(&mut block);
            }
            body["system"] = json!([block]);
        }
        if ask.sends(OptionalField::Tools, request) {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }))
                .collect();
        }
        let effort = ask.effort.filter(|_| ask.sends(OptionalField::Effort, request));
        if let Some(effort) = effort {
            set_thinking(&mut body, effort, request, ask);
        }
        // A model with thinking enabled accepts only its default temperature.
        if ask.sends(OptionalField::Temperature, request) && body.get("thinking").is_none() {
            body["temperature"] = json!(request.temperature);
        }
        body
    }

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader> {
        Box::new(MessageReader { model: model.to_owned(), blocks: BTreeMap::new() })
    }

    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])] {
        &[
            (OptionalField::CacheControl, &["cache_control"]),
            (OptionalField::Temperature, &["temperature"]),
            (OptionalField::OpaqueReasoning, &["signature", "redacted_thinking", "thinking block"]),
            (OptionalField::Effort, &["output_config", "effort", "thinking", "adaptive"]),
            (OptionalField::Stream, NO_STREAM_PHRASES),
            (OptionalField::Tools, NO_TOOLS_PHRASES),
        ]
    }
}

/// Marks the end of the part that the prompt cache may keep.
fn add_cache_control(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Sets the thinking mode. Models since 4.6 think adaptively and take an effort; Opus 4.5 takes an effort without
/// thinking; older models take a budget of thinking tokens, which counts as part of the answer.
fn set_thinking(body: &mut Value, effort: Effort, request: &ChatRequest, ask: &RequestOptions<'_>) {
    let version = parse_model_version(ask.model);
    if version >= (4, 6) || (version == (4, 5) && ask.model.contains("opus")) {
        body["output_config"] = json!({ "effort": effort.word() });
        if version >= (4, 6) {
            body["thinking"] = json!({ "type": "adaptive" });
        }
        return;
    }
    const MIN_THINKING_TOKENS: u64 = 1024;
    let wanted = match effort {
        Effort::Off => return,
        Effort::Minimal | Effort::Low => MIN_THINKING_TOKENS,
        Effort::Medium => 8_000,
        Effort::High | Effort::Xhigh | Effort::Max => 24_000,
    };
    let budget = wanted.min(request.max_output / 2);
    if budget >= MIN_THINKING_TOKENS && has_thinking_blocks(request, ask) {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
    }
}

/// Returns `true` if the last assistant message has no calls or has its thinking blocks. A model with a thinking budget
/// must find the thinking blocks before the calls whose results it receives.
fn has_thinking_blocks(request: &ChatRequest, ask: &RequestOptions<'_>) -> bool {
    let last = request.messages.iter().rev().find_map(|message| match message {
        ChatMessage::Assistant { calls, opaque, .. } => Some((calls, opaque)),
        _ => None,
    });
    last.is_none_or(|(calls, opaque)| calls.is_empty() || ask.opaque_items(KIND, opaque).next().is_some())
}

/// Parses the version of a model name: `claude-opus-4-5-20251101` is 4.5, `claude-3-7-sonnet-latest` is 3.7. A name
/// without numbers belongs to a newer model.
fn parse_model_version(model: &str) -> (u32, u32) {
    let number = |word: &str| (word.len() <= 2).then(|| word.parse::<u32>().ok()).flatten();
    let mut words = model.split(['-', '.', '@', '/']).skip_while(|word| number(word).is_none());
    match words.next().and_then(number) {
        Some(major) => (major, words.next().and_then(number).unwrap_or(0)),
        None => (u32::MAX, 0),
    }
}

fn build_messages(request: &ChatRequest, ask: &RequestOptions<'_>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len());
    for (position, message) in request.messages.iter().enumerate() {
        let (role, mut blocks) = match message {
            ChatMessage::User { text } => ("user", text_block(text).into_iter().collect()),
            ChatMessage::Tool { call_id, text, .. } => {
                ("user", vec![json!({ "type": "tool_result", "tool_use_id": sanitize_id(call_id), "content": text })])
            }
            ChatMessage::Assistant { text, calls, opaque } => {
                ("assistant", build_assistant_blocks(text, calls, opaque, ask))
            }
        };
        if position + 1 == request.pinned && ask.sends(OptionalField::CacheControl, request) {
            blocks.last_mut().map(add_cache_control);
        }
        // All results of calls stand in one message, together with the user text after them.
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

fn build_assistant_blocks(text: &str, calls: &[ToolCall], opaque: &[Value], ask: &RequestOptions<'_>) -> Vec<Value> {
    let thoughts = ask.opaque_items(KIND, opaque).cloned();
    let calls = calls
        .iter()
        .map(|call| json!({ "type": "tool_use", "id": sanitize_id(&call.id), "name": call.name, "input": arguments_to_object(call) }));
    thoughts.chain(text_block(text)).chain(calls).collect()
}

/// Returns a text block, or `None` for blank text, which the API rejects.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Replaces characters that this API rejects. Ids of other providers may contain them.
fn sanitize_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}

struct MessageReader {
    model: String,
    blocks: BTreeMap<u64, ContentBlock>,
}

enum ContentBlock {
    Call {
        slot: ToolCallIndex,
        given: String,
        pieces: bool,
    },
    /// A thinking block: its first event and the later pieces. The signature arrives with the end of the block.
    Thought {
        block: Value,
        thinking: String,
        signature: String,
    },
}

impl ResponseReader for MessageReader {
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        let index = number_at(event, "/index").unwrap_or(0);
        answer.is_recognized |= matches!(str_at(event, "/type"), "message_start" | "message" | "ping");
        match str_at(event, "/type") {
            "message_start" => {
                str_at(event, "/message/model").clone_into(&mut answer.model);
                update_usage(event.pointer("/message/usage"), &mut answer.usage);
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.begin_block(index, block, answer)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.apply_delta(index, delta, answer)?;
                }
            }
            "content_block_stop" => self.end_block(index, answer)?,
            "message_delta" => {
                answer.stop = parse_stop_reason(str_at(event, "/delta/stop_reason")).or(answer.stop);
                update_usage(event.get("usage"), &mut answer.usage);
            }
            "message_stop" => answer.finished = true,
            // The whole message of a server that does not stream.
            "message" => {
                for (index, block) in (0..).zip(items_at(event, "/content")) {
                    self.begin_block(index, block, answer)?;
                    self.end_block(index, answer)?;
                }
                str_at(event, "/model").clone_into(&mut answer.model);
                update_usage(event.get("usage"), &mut answer.usage);
                answer.stop = parse_stop_reason(str_at(event, "/stop_reason"));
                answer.finished = true;
            }
            _ if event.get("error").is_some() => return Err(EventError::Server(ServerError::from_value(event))),
            _ => {}
        }
        Ok(())
    }
}

impl MessageReader {
    fn begin_block(&mut self, index: u64, block: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        match str_at(block, "/type") {
            "text" => {
                answer.start_paragraph()?;
                answer.push_text(str_at(block, "/text"))?;
            }
            "tool_use" => {
                let slot = answer.start_call(str_at(block, "/id"), str_at(block, "/name"))?;
                let input =
                    block.get("input").filter(|input| input.as_object().is_some_and(|object| !object.is_empty()));
                let given = input.map(Value::to_string).unwrap_or_default();
                self.blocks.insert(index, ContentBlock::Call { slot, given, pieces: false });
            }
            "thinking" | "redacted_thinking" => {
                answer.charge_bytes(block.to_string().len())?;
                let (thinking, signature) =
                    (str_at(block, "/thinking").to_owned(), str_at(block, "/signature").to_owned());
                self.blocks.insert(index, ContentBlock::Thought { block: block.clone(), thinking, signature });
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_delta(&mut self, index: u64, delta: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        match (str_at(delta, "/type"), self.blocks.get_mut(&index)) {
            ("text_delta", _) => answer.push_text(str_at(delta, "/text"))?,
            ("input_json_delta", Some(ContentBlock::Call { slot, pieces, .. })) => {
                let piece = str_at(delta, "/partial_json");
                *pieces |= !piece.is_empty();
                answer.push_arguments(*slot, piece)?;
            }
            ("thinking_delta", Some(ContentBlock::Thought { thinking, .. })) => {
                let piece = str_at(delta, "/thinking");
                answer.charge_bytes(piece.len())?;
                thinking.push_str(piece);
            }
            ("signature_delta", Some(ContentBlock::Thought { signature, .. })) => {
                let piece = str_at(delta, "/signature");
                answer.charge_bytes(piece.len())?;
                signature.push_str(piece);
            }
            _ => {}
        }
        Ok(())
    }

    fn end_block(&mut self, index: u64, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        match self.blocks.remove(&index) {
            Some(ContentBlock::Call { slot, given, pieces }) => {
                answer.end_call(slot, (!pieces).then_some(given.as_str()))?;
            }
            Some(ContentBlock::Thought { mut block, thinking, signature }) => {
                if !signature.is_empty() {
                    block["thinking"] = Value::String(thinking);
                    block["signature"] = Value::String(signature);
                }
                // The API does not accept a thinking block that is neither signed nor encrypted.
                if !str_at(&block, "/signature").is_empty() || !str_at(&block, "/data").is_empty() {
                    answer.push_opaque(wrap_opaque(KIND, &self.model, block))?;
                }
            }
            None => {}
        }
        Ok(())
    }
}

fn parse_stop_reason(reason: &str) -> Option<StopReason> {
    Some(match reason {
        "" => return None,
        "end_turn" | "stop_sequence" => StopReason::Done,
        "tool_use" => StopReason::Tools,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refused,
        _ => StopReason::Unknown,
    })
}

/// Updates the token usage. The counts are totals: a later count replaces an earlier one. `input_tokens` excludes
/// tokens read from or written to the cache; `output_tokens` includes the thinking.
fn update_usage(usage: Option<&Value>, total: &mut Usage) {
    let Some(usage) = usage else { return };
    let cached = number_at(usage, "/cache_read_input_tokens");
    if let Some(input) = number_at(usage, "/input_tokens") {
        let written = number_at(usage, "/cache_creation_input_tokens").unwrap_or(0);
        let cached = cached.unwrap_or(0);
        let sum = input.saturating_add(written).saturating_add(cached);
        // Some services repeat a zero at the end.
        if sum > 0 {
            (total.input, total.cached) = (sum, cached);
        }
    }
    if let Some(output) = number_at(usage, "/output_tokens") {
        total.reasoning = number_at(usage, "/output_tokens_details/thinking_tokens").unwrap_or(0).min(output);
        total.output = output - total.reasoning;
    }
}
