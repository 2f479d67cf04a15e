//! Reads the events of Gemini CLI (`--output-format stream-json`) and its single object (`--output-format json`), as of
//! version 0.61.
//!
//! - `init`: names the model.
//! - `message`: the assistant's text, in pieces if `delta` is set.
//! - `tool_use`, `tool_result`.
//! - `error`: an error or a warning.
//! - `result`: the last event.
//!
//! The single object contains only the last message: `response`, `stats`, `error`.

use serde_json::Value;

use super::super::error_text;
use super::super::json_access::{str_at, str_field, u64_field};
use super::super::transcript::AgentTranscript;
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;

/// Returns `true` if the event is the first of a session.
pub fn is_session_start(event: &Value) -> bool {
    str_field(event, "type") == "init" && event.get("session_id").is_some() && event.get("model").is_some()
}

pub fn read_event(event: &Value, said: &mut AgentTranscript, tell: &mut dyn FnMut(ChatProgress)) {
    match str_field(event, "type") {
        "init" => str_field(event, "model").clone_into(&mut said.model),
        "message" if str_field(event, "role") == "assistant" => {
            let content = str_field(event, "content");
            tell(ChatProgress::Text(content.to_owned()));
            match event.get("delta").and_then(Value::as_bool) {
                Some(true) => said.push_text(content),
                _ => said.push_message(content),
            }
        }
        "message" | "tool_use" | "tool_result" => said.end_message(),
        "error" if str_field(event, "severity") != "warning" => set_error(str_field(event, "message"), said),
        "result" => {
            match str_field(event, "status") {
                "error" => set_error(str_at(event, "/error/message"), said),
                _ => {
                    said.error = None;
                    said.stop = Some(StopReason::Done);
                }
            }
            if let Some(stats) = event.get("stats") {
                said.usage = read_stream_stats(stats);
            }
        }
        _ => {}
    }
}

/// Reads the single object. Returns `false` if the JSON is not such an object.
pub fn read_object(object: &Value, said: &mut AgentTranscript) -> bool {
    let words = str_at(object, "/error/message");
    if words.is_empty() && object.get("response").is_none() {
        return false;
    }
    said.push_message(str_field(object, "response"));
    match words {
        "" => said.stop = Some(StopReason::Done),
        words => set_error(words, said),
    }
    let mut most = 0;
    for (model, stats) in object.pointer("/stats/models").and_then(Value::as_object).into_iter().flatten() {
        let tokens = stats.get("tokens").unwrap_or(&Value::Null);
        // Take the model that processed the most prompt tokens.
        if said.model.is_empty() || u64_field(tokens, "prompt") > most {
            most = u64_field(tokens, "prompt");
            model.clone_into(&mut said.model);
        }
        said.usage.input = said.usage.input.saturating_add(u64_field(tokens, "prompt"));
        said.usage.cached = said.usage.cached.saturating_add(u64_field(tokens, "cached"));
        said.usage.output = said.usage.output.saturating_add(u64_field(tokens, "candidates"));
        said.usage.reasoning = said.usage.reasoning.saturating_add(u64_field(tokens, "thoughts"));
    }
    true
}

fn set_error(words: &str, said: &mut AgentTranscript) {
    said.error = Some((error_text::classify(0, words), words.to_owned()));
}

/// Parses the token usage. Only the total includes the thinking tokens.
fn read_stream_stats(stats: &Value) -> Usage {
    let (input, output) = (u64_field(stats, "input_tokens"), u64_field(stats, "output_tokens"));
    Usage {
        input,
        cached: u64_field(stats, "cached"),
        output,
        reasoning: u64_field(stats, "total_tokens").saturating_sub(input).saturating_sub(output),
    }
}
