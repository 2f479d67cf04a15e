//! The events of Claude Code (`--output-format stream-json --verbose --include-partial-messages`), seen with 2.1.
//!
//! `system` (`init` names the model, `api_retry` a wait), `stream_event` (the provider's own stream, in pieces),
//! `assistant` (a whole message), `user` (answers of tools) and at last `result`. What it says itself when the provider
//! does not answer is an `assistant` event too, with an `error` and the model `<synthetic>`.

use serde_json::Value;

use super::said::Said;
use super::trouble;
use super::value::{number, text, text_at};
use crate::domain::{ErrorClass, Stop, Usage};
use crate::provider::chat::Progress;

/// Tokens of messages that no `result` has summed up yet.
#[derive(Debug, Default)]
pub struct Counted {
    message: String,
    /// Of that message: each of its events brings the whole count again.
    usage: Usage,
    earlier: Usage,
}

/// Whether an event is the first of a session.
pub fn opens(event: &Value) -> bool {
    text(event, "type") == "system" && text(event, "subtype") == "init" && event.get("session_id").is_some()
}

pub fn hear(event: &Value, said: &mut Said, counted: &mut Counted, tell: &mut dyn FnMut(Progress)) {
    match text(event, "type") {
        "system" => system(event, said, tell),
        "stream_event" => {
            let piece = text_at(event, "/event/delta/text");
            if !piece.is_empty() {
                said.preview(piece);
                tell(Progress::Text(piece.to_owned()));
            }
        }
        "assistant" => assistant(event, said, counted, tell),
        "result" => result(event, said, counted),
        _ => {}
    }
}

fn system(event: &Value, said: &mut Said, tell: &mut dyn FnMut(Progress)) {
    match text(event, "subtype") {
        "init" => text(event, "model").clone_into(&mut said.model),
        "api_retry" => tell(Progress::Waiting {
            reason: trouble::one_line(&format!(
                "{}, attempt {} of {}",
                text(event, "error").replace('_', " "),
                number(event, "attempt"),
                number(event, "max_retries")
            )),
            wait_ms: event.get("retry_delay_ms").and_then(Value::as_f64).map_or(0, |wait| wait.max(0.0) as u64),
        }),
        _ => {}
    }
}

fn assistant(event: &Value, said: &mut Said, counted: &mut Counted, tell: &mut dyn FnMut(Progress)) {
    let mut whole = String::new();
    for block in event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten() {
        if text(block, "type") == "text" {
            whole.push_str(text(block, "text"));
        }
    }
    let error = text(event, "error");
    if error == "max_output_tokens" {
        said.stop = Some(Stop::Length);
    } else if !error.is_empty() {
        said.trouble = Some((class(error, 0, &whole), whole));
        return;
    }
    let model = text_at(event, "/message/model");
    if model.starts_with('<') {
        return;
    }
    if !model.is_empty() {
        model.clone_into(&mut said.model);
    }
    if let Some(usage) = event.pointer("/message/usage") {
        count(usage, text_at(event, "/message/id"), counted);
    }
    if said.partial.is_empty() && !whole.is_empty() {
        tell(Progress::Text(whole.clone()));
    }
    if !whole.is_empty() {
        said.message(&whole);
    }
}

fn result(event: &Value, said: &mut Said, counted: &mut Counted) {
    let last = text(event, "result");
    if event.get("is_error").and_then(Value::as_bool) == Some(true) || text(event, "subtype").starts_with("error") {
        let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let words = if last.is_empty() { errors.collect::<Vec<_>>().join("; ") } else { last.to_owned() };
        match text(event, "subtype") {
            // It was not given more: what it said stands.
            subtype if subtype.starts_with("error_max_") => said.stop = Some(Stop::Interrupted),
            _ => {
                let earlier = said.trouble.take().map(|(class, _)| class);
                let class = class("", number(event, "api_error_status"), &words);
                said.trouble = Some((earlier.filter(|_| class == ErrorClass::Reviewer).unwrap_or(class), words));
            }
        }
    } else {
        if !last.is_empty() && !said.text.contains(last.trim()) {
            said.message(last);
        }
        said.stop = Some(match text(event, "stop_reason") {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Refused,
            _ => said.stop.unwrap_or(Stop::Done),
        });
    }
    if let Some(usage) = event.get("usage") {
        said.usage = read_usage(usage);
    }
    *counted = Counted::default();
}

fn class(error: &str, status: u64, words: &str) -> ErrorClass {
    match (error, status) {
        ("authentication_failed" | "oauth_org_not_allowed", _) => ErrorClass::Auth,
        ("billing_error", _) => ErrorClass::Quota,
        ("model_not_found", _) => ErrorClass::Configuration,
        ("overloaded" | "server_error", _) => ErrorClass::Overloaded,
        _ => trouble::class_of(status, words),
    }
}

fn count(usage: &Value, message: &str, counted: &mut Counted) {
    if counted.message != message {
        counted.earlier += counted.usage;
        message.clone_into(&mut counted.message);
    }
    counted.usage = read_usage(usage);
}

impl Counted {
    pub fn total(&self) -> Usage {
        [self.earlier, self.usage].into_iter().sum()
    }
}

/// Here `input_tokens` are those that no cache knew; thoughts are part of the output.
fn read_usage(usage: &Value) -> Usage {
    let cached = number(usage, "cache_read_input_tokens");
    Usage {
        input: number(usage, "input_tokens")
            .saturating_add(number(usage, "cache_creation_input_tokens"))
            .saturating_add(cached),
        cached,
        output: number(usage, "output_tokens"),
        reasoning: 0,
    }
}
