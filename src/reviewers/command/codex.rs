//! The events of Codex (`codex exec --json`), seen with 0.169.
//!
//! `thread.started`, `turn.started`, `item.started|updated|completed` (of which `agent_message` is what it says), `error`
//! (also for each attempt to reach the provider again), and at last `turn.completed` or `turn.failed`. The model is not
//! named.

use serde_json::Value;

use super::error_text;
use super::json_access::{str_at, str_field, u64_field};
use super::transcript::AgentTranscript;
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;

/// Whether an event is the first of a session.
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
            // Troubles before were overcome.
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
    // `item_type: assistant_message` until 0.43.
    let item = |key: &str| event.get("item").map_or("", |item| str_field(item, key));
    item("type") == "agent_message" || item("item_type") == "assistant_message"
}

/// Here input includes what a cache knew, and output includes thoughts.
fn read_usage(usage: &Value) -> Usage {
    let reasoning = u64_field(usage, "reasoning_output_tokens");
    Usage {
        input: u64_field(usage, "input_tokens"),
        cached: u64_field(usage, "cached_input_tokens"),
        output: u64_field(usage, "output_tokens").saturating_sub(reasoning),
        reasoning,
    }
}
