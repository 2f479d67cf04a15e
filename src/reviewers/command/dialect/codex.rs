//! Reads the events of Codex (`codex exec --json`), as of version 0.169.
//!
//! - `thread.started`, `turn.started`.
//! - `item.started`, `item.updated`, `item.completed`: an `agent_message` item is text of the answer.
//! - `error`: an error, also for each attempt to reach the provider again.
//! - `turn.completed` or `turn.failed`: the last event.
//!
//! No event names the model.

use serde_json::Value;

use super::super::error_text;
use super::super::json_access::{str_at, str_field, u64_field};
use super::super::transcript::AgentTranscript;
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;

/// Returns `true` if the event is the first of a session.
pub fn is_session_start(event: &Value) -> bool {
    str_field(event, "type") == "thread.started" && event.get("thread_id").is_some()
}

pub fn read_event(event: &Value, said: &mut AgentTranscript, tell: &mut dyn FnMut(ChatProgress)) {
    match str_field(event, "type") {
        "item.completed" if is_message(event) => {
            let whole = str_at(event, "/item/text");
            tell(ChatProgress::Text(whole.to_owned()));
            said.push_message(whole);
        }
        "error" => {
            let words = str_field(event, "message");
            if words.starts_with("Reconnecting") {
                tell(ChatProgress::Waiting { reason: error_text::to_one_line(words), wait_ms: 0 });
            }
            said.error = Some((error_text::classify(0, words), words.to_owned()));
        }
        "turn.completed" => {
            // Codex recovered from earlier errors.
            said.error = None;
            said.stop = Some(StopReason::Done);
            if let Some(usage) = event.get("usage") {
                said.usage = read_usage(usage);
            }
        }
        "turn.failed" => {
            let words = str_at(event, "/error/message");
            said.error = Some((error_text::classify(0, words), words.to_owned()));
        }
        _ => {}
    }
}

fn is_message(event: &Value) -> bool {
    // The field was `item_type: assistant_message` until 0.43.
    let item = |key: &str| event.get("item").map_or("", |item| str_field(item, key));
    item("type") == "agent_message" || item("item_type") == "assistant_message"
}

/// Parses the token usage. The input includes cached tokens, the output includes reasoning.
fn read_usage(usage: &Value) -> Usage {
    let reasoning = u64_field(usage, "reasoning_output_tokens");
    Usage {
        input: u64_field(usage, "input_tokens"),
        cached: u64_field(usage, "cached_input_tokens"),
        output: u64_field(usage, "output_tokens").saturating_sub(reasoning),
        reasoning,
    }
}
