//! The events of Codex (`codex exec --json`), seen with 0.169.
//!
//! `thread.started`, `turn.started`, `item.started|updated|completed` (of which `agent_message` is what it says), `error`
//! (also for each attempt to reach the provider again), and at last `turn.completed` or `turn.failed`. The model is not
//! named.

use serde_json::Value;

use super::said::Said;
use super::trouble;
use super::value::{number, text, text_at};
use crate::domain::{Stop, Usage};
use crate::provider::chat::Progress;

/// Whether an event is the first of a session.
pub fn opens(event: &Value) -> bool {
    text(event, "type") == "thread.started" && event.get("thread_id").is_some()
}

pub fn hear(event: &Value, said: &mut Said, tell: &mut dyn FnMut(Progress)) {
    match text(event, "type") {
        "item.completed" if is_message(event) => {
            let whole = text_at(event, "/item/text");
            tell(Progress::Text(whole.to_owned()));
            said.message(whole);
        }
        "error" => {
            let words = text(event, "message");
            if words.starts_with("Reconnecting") {
                tell(Progress::Waiting { reason: trouble::one_line(words), wait_ms: 0 });
            }
            said.trouble = Some((trouble::class_of(0, words), words.to_owned()));
        }
        "turn.completed" => {
            // Troubles before were overcome.
            said.trouble = None;
            said.stop = Some(Stop::Done);
            if let Some(usage) = event.get("usage") {
                said.usage = read_usage(usage);
            }
        }
        "turn.failed" => {
            let words = text_at(event, "/error/message");
            said.trouble = Some((trouble::class_of(0, words), words.to_owned()));
        }
        _ => {}
    }
}

fn is_message(event: &Value) -> bool {
    // `item_type: assistant_message` until 0.43.
    let item = |key: &str| event.get("item").map_or("", |item| text(item, key));
    item("type") == "agent_message" || item("item_type") == "assistant_message"
}

/// Here input includes what a cache knew, and output includes thoughts.
fn read_usage(usage: &Value) -> Usage {
    let reasoning = number(usage, "reasoning_output_tokens");
    Usage {
        input: number(usage, "input_tokens"),
        cached: number(usage, "cached_input_tokens"),
        output: number(usage, "output_tokens").saturating_sub(reasoning),
        reasoning,
    }
}
