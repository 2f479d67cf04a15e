//! Gemini's `generateContent`.

use serde_json::{Value, json};

use super::super::Effort;
use super::super::answer::{Answer, is_own_id};
use super::super::failure::ServerError;
use super::super::transport::Target;
use super::{
    Ask, Extra, NO_STREAM, NO_TOOLS, Reader, Trouble, Wire, WireKind, arguments_of, list, object_of, sealed, text,
    tokens,
};
use crate::domain::{ChatRequest, Message, Stop, ToolCall, Usage};

pub struct Gemini;

const KIND: WireKind = WireKind::Gemini;
/// What stands in for the signature of a first call that has none, because another model made it or its answer broke
/// off; documented by Google. Models since Gemini 3 refuse a call without any.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl Wire for Gemini {
    fn home(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn usual_path(&self) -> &'static str {
        "/v1beta"
    }

    fn address(&self, target: &Target, ask: &Ask<'_>) -> reqwest::Url {
        let model = ask.model.trim_start_matches("models/");
        match ask.streams() {
            true => target.below(&["models", &format!("{model}:streamGenerateContent")], Some(("alt", "sse"))),
            false => target.below(&["models", &format!("{model}:generateContent")], None),
        }
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn body(&self, request: &ChatRequest, ask: &Ask<'_>) -> Value {
        let mut settings = json!({ "maxOutputTokens": request.max_output });
        if ask.sends(Extra::Temperature, request) {
            settings["temperature"] = json!(request.temperature);
        }
        if let Some(effort) = ask.effort.filter(|_| ask.sends(Extra::Effort, request)) {
            settings["thinkingConfig"] = thinking(effort, ask.model);
        }
        let mut body = json!({ "contents": contents(request, ask), "generationConfig": settings });
        if !request.system.is_empty() {
            body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
        }
        if ask.sends(Extra::Tools, request) {
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

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(ContentReader { model: model.to_owned() })
    }

    fn extras(&self) -> &'static [(Extra, &'static [&'static str])] {
        &[
            (Extra::SealedThoughts, &["thought signature", "thought_signature", "thoughtsignature"]),
            (Extra::Effort, &["thinking"]),
            (Extra::Temperature, &["temperature"]),
            (Extra::Stream, NO_STREAM),
            (Extra::Tools, NO_TOOLS),
        ]
    }
}

/// Gemini 2.5 is given tokens to think with (its Pro takes at least 128 and at most 32,768), later ones a level.
fn thinking(effort: Effort, model: &str) -> Value {
    match (model.contains("gemini-2"), effort) {
        (false, effort) => json!({ "thinkingLevel": effort.word().to_uppercase() }),
        (true, Effort::Off) => json!({ "thinkingBudget": 0 }),
        (true, Effort::Minimal | Effort::Low) => json!({ "thinkingBudget": 1_024 }),
        (true, Effort::Medium) => json!({ "thinkingBudget": 8_192 }),
        (true, Effort::High | Effort::Xhigh | Effort::Max) => json!({ "thinkingBudget": 24_576 }),
    }
}

fn contents(request: &ChatRequest, ask: &Ask<'_>) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::with_capacity(request.messages.len());
    let mut answers = false;
    for message in &request.messages {
        let follows = answers;
        answers = matches!(message, Message::Tool { .. });
        match message {
            Message::User { text } => contents.push(json!({ "role": "user", "parts": [{ "text": text }] })),
            Message::Assistant { text, calls, opaque } => {
                let parts = parts(text, calls, opaque, ask);
                if !parts.is_empty() {
                    contents.push(json!({ "role": "model", "parts": parts }));
                }
            }
            Message::Tool { call_id, name, text } => {
                let mut response = json!({ "name": name, "response": { "output": text } });
                if !is_own_id(call_id) {
                    response["id"] = json!(call_id);
                }
                let part = json!({ "functionResponse": response });
                // The answers to the calls of one message stand in one message.
                match contents.last_mut().and_then(|last| last["parts"].as_array_mut()).filter(|_| follows) {
                    Some(parts) => parts.push(part),
                    None => contents.push(json!({ "role": "user", "parts": [part] })),
                }
            }
        }
    }
    contents
}

fn parts(text: &str, calls: &[ToolCall], opaque: &[Value], ask: &Ask<'_>) -> Vec<Value> {
    let signature = |call: Option<&str>| {
        let of = |item: &&Value| item.get("call").and_then(Value::as_str) == call;
        ask.thoughts(KIND, opaque).find(of).and_then(|item| item.get("signature")).cloned()
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
        let mut function = json!({ "name": call.name, "args": object_of(call) });
        if !is_own_id(&call.id) {
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

impl Reader for ContentReader {
    fn read(&mut self, event: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        if event.get("error").is_some() || event.pointer("/0/error").is_some() {
            return Err(Trouble::Server(ServerError::from_value(event)));
        }
        answer.heard |= event.get("candidates").is_some() || event.get("usageMetadata").is_some();
        for part in list(event, "/candidates/0/content/parts") {
            self.part(part, answer)?;
        }
        if answer.model.is_empty() {
            text(event, "/modelVersion").clone_into(&mut answer.model);
        }
        if let Some(usage) = event.get("usageMetadata") {
            answer.usage = usage_of(usage);
        }
        if !text(event, "/promptFeedback/blockReason").is_empty() {
            answer.heard = true;
            answer.stop = Some(Stop::Refused);
        }
        // The connection's end is the end of the stream; usage may still follow.
        answer.stop = stop_of(text(event, "/candidates/0/finishReason")).or(answer.stop);
        Ok(())
    }
}

impl ContentReader {
    fn part(&mut self, part: &Value, answer: &mut Answer) -> Result<(), Trouble> {
        let mut of_call = None;
        if let Some(call) = part.get("functionCall") {
            let slot = answer.call(text(call, "/id"), text(call, "/name"))?;
            answer.end_call(slot, Some(&arguments_of(call.get("args"))))?;
            of_call = Some(answer.id(slot).to_owned());
        } else if part.get("thought").and_then(Value::as_bool) != Some(true) {
            answer.say(text(part, "/text"))?;
        }
        let signature = text(part, "/thoughtSignature");
        if !signature.is_empty() {
            answer.keep(sealed(KIND, &self.model, json!({ "call": of_call, "signature": signature })))?;
        }
        Ok(())
    }
}

fn stop_of(reason: &str) -> Option<Stop> {
    Some(match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => Stop::Done,
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => Stop::Refused,
        _ => Stop::Unknown,
    })
}

/// Thoughts are counted apart from the answer; cached tokens within the prompt's.
fn usage_of(usage: &Value) -> Usage {
    let count = |pointer: &str| tokens(usage, pointer).unwrap_or(0);
    Usage {
        input: count("/promptTokenCount").saturating_add(count("/toolUsePromptTokenCount")),
        cached: count("/cachedContentTokenCount"),
        output: count("/candidatesTokenCount"),
        reasoning: count("/thoughtsTokenCount"),
    }
}
