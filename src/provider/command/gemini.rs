//! The events of Gemini CLI (`--output-format stream-json`), and its one object (`--output-format json`), seen with
//! 0.61.
//!
//! `init` (names the model), `message` (of the assistant in pieces, `delta`), `tool_use`, `tool_result`, `error` (also
//! warnings), and at last `result`. The one object has only what was said last: `response`, `stats`, `error`.

use serde_json::Value;

use super::said::Said;
use super::trouble;
use super::value::{number, text, text_at};
use crate::domain::{Stop, Usage};
use crate::provider::chat::Progress;

/// Whether an event is the first of a session.
pub fn opens(event: &Value) -> bool {
    text(event, "type") == "init" && event.get("session_id").is_some() && event.get("model").is_some()
}

pub fn hear(event: &Value, said: &mut Said, tell: &mut dyn FnMut(Progress)) {
    match text(event, "type") {
        "init" => text(event, "model").clone_into(&mut said.model),
        "message" if text(event, "role") == "assistant" => {
            let content = text(event, "content");
            tell(Progress::Text(content.to_owned()));
            match event.get("delta").and_then(Value::as_bool) {
                Some(true) => said.go_on(content),
                _ => said.message(content),
            }
        }
        "message" | "tool_use" | "tool_result" => said.pause(),
        "error" if text(event, "severity") != "warning" => fail(text(event, "message"), said),
        "result" => {
            match text(event, "status") {
                "error" => fail(text_at(event, "/error/message"), said),
                _ => {
                    said.trouble = None;
                    said.stop = Some(Stop::Done);
                }
            }
            if let Some(stats) = event.get("stats") {
                said.usage = read_stream_stats(stats);
            }
        }
        _ => {}
    }
}

/// The one object; whether it was one.
pub fn hear_whole(object: &Value, said: &mut Said) -> bool {
    let words = text_at(object, "/error/message");
    if words.is_empty() && object.get("response").is_none() {
        return false;
    }
    said.message(text(object, "response"));
    match words {
        "" => said.stop = Some(Stop::Done),
        words => fail(words, said),
    }
    let mut most = 0;
    for (model, stats) in object.pointer("/stats/models").and_then(Value::as_object).into_iter().flatten() {
        let tokens = stats.get("tokens").unwrap_or(&Value::Null);
        // The one that did most of the work.
        if said.model.is_empty() || number(tokens, "prompt") > most {
            most = number(tokens, "prompt");
            model.clone_into(&mut said.model);
        }
        said.usage.input = said.usage.input.saturating_add(number(tokens, "prompt"));
        said.usage.cached = said.usage.cached.saturating_add(number(tokens, "cached"));
        said.usage.output = said.usage.output.saturating_add(number(tokens, "candidates"));
        said.usage.reasoning = said.usage.reasoning.saturating_add(number(tokens, "thoughts"));
    }
    true
}

fn fail(words: &str, said: &mut Said) {
    said.trouble = Some((trouble::class_of(0, words), words.to_owned()));
}

/// Here thoughts are only in the total.
fn read_stream_stats(stats: &Value) -> Usage {
    let (input, output) = (number(stats, "input_tokens"), number(stats, "output_tokens"));
    Usage {
        input,
        cached: number(stats, "cached"),
        output,
        reasoning: number(stats, "total_tokens").saturating_sub(input).saturating_sub(output),
    }
}
