//! The wire format of Gemini's `generateContent`.

use serde_json::{Value, json};

use super::super::Effort;
use super::super::failure::ServerError;
use super::super::response_builder::{ResponseBuilder, is_generated_id};
use super::super::transport::ServerUrl;
use super::{
    EventError, NO_STREAM_PHRASES, NO_TOOLS_PHRASES, OptionalField, RequestOptions, ResponseReader, WireFormat,
    arguments_to_object, arguments_to_string, items_at, number_at, str_at, wrap_opaque,
};
use crate::config::ReviewerKind;
use crate::domain::{ChatMessage, ChatRequest, StopReason, ToolCall, Usage};

pub struct Gemini;

const KIND: ReviewerKind = ReviewerKind::Gemini;
/// Placeholder for the signature of a first call without one, when another model made the call or its answer broke off.
/// Google documents it. Models since Gemini 3 reject a call without a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl WireFormat for Gemini {
    fn kind(&self) -> ReviewerKind {
        KIND
    }

    fn default_path(&self) -> &'static str {
        "/v1beta"
    }

    fn request_url(&self, target: &ServerUrl, ask: &RequestOptions<'_>) -> reqwest::Url {
        let model = ask.model.trim_start_matches("models/");
        match ask.is_streaming() {
            true => target.join(&["models", &format!("{model}:streamGenerateContent")], Some(("alt", "sse"))),
            false => target.join(&["models", &format!("{model}:generateContent")], None),
        }
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn build_body(&self, request: &ChatRequest, ask: &RequestOptions<'_>) -> Value {
        let mut settings = json!({ "maxOutputTokens": request.max_output });
        if ask.sends(OptionalField::Temperature, request) {
            settings["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(OptionalField::Effort, request)) {
            settings["thinkingConfig"] = build_thinking_config(effort, ask.model);
        }
        let mut body = json!({ "contents": build_contents(request, ask), "generationConfig": settings });
        if !request.system.is_empty() {
            body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
        }
        if ask.sends(OptionalField::Tools, request) {
            let tools: Vec<Value> = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": tool.parameters,
                    })
                })
                .collect();
            body["tools"] = json!([{ "functionDeclarations": tools }]);
        }
        body
    }

    fn new_reader(&self, model: &str) -> Box<dyn ResponseReader> {
        Box::new(ContentReader { model: model.to_owned() })
    }

    fn optional_fields(&self) -> &'static [(OptionalField, &'static [&'static str])] {
        &[
            (OptionalField::OpaqueReasoning, &["thought signature", "thought_signature", "thoughtsignature"]),
            (OptionalField::Effort, &["thinking"]),
            (OptionalField::Temperature, &["temperature"]),
            (OptionalField::Stream, NO_STREAM_PHRASES),
            (OptionalField::Tools, NO_TOOLS_PHRASES),
        ]
    }
}

/// Builds the thinking options. Gemini 2.5 takes a token budget (Pro accepts 128 to 32,768), later models take a level.
fn build_thinking_config(effort: Effort, model: &str) -> Value {
    match (model.contains("gemini-2"), effort) {
        (false, effort) => json!({ "thinkingLevel": effort.word().to_uppercase() }),
        (true, Effort::Off) => json!({ "thinkingBudget": 0 }),
        (true, Effort::Minimal | Effort::Low) => json!({ "thinkingBudget": 1_024 }),
        (true, Effort::Medium) => json!({ "thinkingBudget": 8_192 }),
        (true, Effort::High | Effort::Xhigh | Effort::Max) => json!({ "thinkingBudget": 24_576 }),
    }
}

fn build_contents(request: &ChatRequest, ask: &RequestOptions<'_>) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::with_capacity(request.messages.len());
    let mut answers = false;
    for message in &request.messages {
        let follows = answers;
        answers = matches!(message, ChatMessage::Tool { .. });
        match message {
            ChatMessage::User { text } => contents.push(json!({ "role": "user", "parts": [{ "text": text }] })),
            ChatMessage::Assistant { text, calls, opaque } => {
                let parts = build_parts(text, calls, opaque, ask);
                if !parts.is_empty() {
                    contents.push(json!({ "role": "model", "parts": parts }));
                }
            }
            ChatMessage::Tool { call_id, name, text } => {
                let mut response = json!({ "name": name, "response": { "output": text } });
                if !is_generated_id(call_id) {
                    response["id"] = json!(call_id);
                }
                let part = json!({ "functionResponse": response });
                // The results of all calls of one message stand in one message.
                match contents.last_mut().and_then(|last| last["parts"].as_array_mut()).filter(|_| follows) {
                    Some(parts) => parts.push(part),
                    None => contents.push(json!({ "role": "user", "parts": [part] })),
                }
            }
        }
    }
    contents
}

fn build_parts(text: &str, calls: &[ToolCall], opaque: &[Value], ask: &RequestOptions<'_>) -> Vec<Value> {
    let signature = |call: Option<&str>| {
        let of = |item: &&Value| item.get("call").and_then(Value::as_str) == call;
        ask.opaque_items(KIND, opaque).find(of).and_then(|item| item.get("signature")).cloned()
    };
    let mut parts = Vec::new();
    if !text.is_empty() {
        let mut part = json!({ "text": text });
        if let Some(signature) = signature(None) {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    for (position, call) in calls.iter().enumerate() {
        let mut function = json!({ "name": call.name, "args": arguments_to_object(call) });
        if !is_generated_id(&call.id) {
            function["id"] = json!(call.id);
        }
        let mut part = json!({ "functionCall": function });
        if let Some(signature) = signature(Some(&call.id)) {
            part["thoughtSignature"] = signature;
        } else if position == 0 && !ask.model.contains("gemini-2") {
            part["thoughtSignature"] = json!(NO_SIGNATURE);
        }
        parts.push(part);
    }
    parts
}

struct ContentReader {
    model: String,
}

impl ResponseReader for ContentReader {
    fn read_event(&mut self, event: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        if event.get("error").is_some() || event.pointer("/0/error").is_some() {
            return Err(EventError::Server(ServerError::from_value(event)));
        }
        answer.is_recognized |= event.get("candidates").is_some() || event.get("usageMetadata").is_some();
        for part in items_at(event, "/candidates/0/content/parts") {
            self.read_part(part, answer)?;
        }
        if answer.model.is_empty() {
            str_at(event, "/modelVersion").clone_into(&mut answer.model);
        }
        if let Some(usage) = event.get("usageMetadata") {
            answer.usage = parse_usage(usage);
        }
        if !str_at(event, "/promptFeedback/blockReason").is_empty() {
            answer.is_recognized = true;
            answer.stop = Some(StopReason::Refused);
        }
        // A finish reason does not end the reading: usage may follow, and the end of the connection ends the stream.
        answer.stop = parse_finish_reason(str_at(event, "/candidates/0/finishReason")).or(answer.stop);
        Ok(())
    }
}

impl ContentReader {
    fn read_part(&mut self, part: &Value, answer: &mut ResponseBuilder) -> Result<(), EventError> {
        let mut of_call = None;
        if let Some(call) = part.get("functionCall") {
            let slot = answer.start_call(str_at(call, "/id"), str_at(call, "/name"))?;
            answer.end_call(slot, Some(&arguments_to_string(call.get("args"))))?;
            of_call = Some(answer.call_id(slot).to_owned());
        } else if part.get("thought").and_then(Value::as_bool) != Some(true) {
            answer.push_text(str_at(part, "/text"))?;
        }
        let signature = str_at(part, "/thoughtSignature");
        if !signature.is_empty() {
            answer.push_opaque(wrap_opaque(KIND, &self.model, json!({ "call": of_call, "signature": signature })))?;
        }
        Ok(())
    }
}

fn parse_finish_reason(reason: &str) -> Option<StopReason> {
    Some(match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => StopReason::Done,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => StopReason::Refused,
        _ => StopReason::Unknown,
    })
}

/// Parses the token usage. Reasoning is counted apart from the answer; cached tokens are part of the prompt.
fn parse_usage(usage: &Value) -> Usage {
    let count = |pointer: &str| number_at(usage, pointer).unwrap_or(0);
    Usage {
        input: count("/promptTokenCount").saturating_add(count("/toolUsePromptTokenCount")),
        cached: count("/cachedContentTokenCount"),
        output: count("/candidatesTokenCount"),
        reasoning: count("/thoughtsTokenCount"),
        ..Usage::default()
    }
}
