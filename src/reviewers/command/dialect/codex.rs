//! Codex, as of version 0.169.
//!
//! Its events (`codex exec --json`):
//!
//! - `thread.started`, `turn.started`.
//! - `item.started`, `item.updated`, `item.completed`: an `agent_message` item is text of the answer.
//! - `error`: an error, also for each attempt to reach the provider again.
//! - `turn.completed` or `turn.failed`: the last event.
//!
//! No event names the model.

use serde_json::Value;

use super::super::FolderAccess;
use super::super::arguments::{AgentOptions, ArgumentList};
use super::super::error_text;
use super::super::transcript::AgentTranscript;
use super::{AgentDialect, AgentEventReader, ProgressSink};
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;
use crate::reviewers::error_class::classify_agent_error;
use crate::reviewers::json_access::{str_at, str_field, u64_field};

const OPTIONS: &[&[&str]] = &[
    &["--skip-git-repo-check"],
    &["--ephemeral"],
    &["--color", "never"],
    &["-c", "project_doc_max_bytes=0"],
    &["-c", "web_search=\"disabled\""],
];
const READ_OPTIONS: &[&[&str]] = &[&["--sandbox", "read-only"]];
/// The sandbox allows writes in the folder. Its default would allow the folders for temporary files too.
const WRITE_OPTIONS: &[&[&str]] = &[
    &["--sandbox", "workspace-write"],
    &["-c", "sandbox_workspace_write.exclude_slash_tmp=true"],
    &["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"],
];

/// Codex.
#[derive(Debug)]
pub struct CodexDialect;

impl AgentDialect for CodexDialect {
    fn add_options(&self, options: &AgentOptions<'_>, arguments: &mut ArgumentList<'_>) {
        arguments.add_all(&[&["exec"], &["--json"]]);
        arguments.add_all(if options.access == FolderAccess::Write { WRITE_OPTIONS } else { READ_OPTIONS });
        arguments.add_all(OPTIONS);
        arguments.add_model(options.model);
        if let Some(effort) = options.effort {
            arguments.add(&["-c", &format!("model_reasoning_effort={effort:?}")]);
        }
        // The prompt is on standard input.
        arguments.add(&["-"]);
    }

    fn option_aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("--sandbox", "-s"), ("--model", "-m")]
    }

    fn settings_paths(&self) -> &'static [&'static str] {
        &[".codex", "AGENTS.override.md"]
    }

    fn install_command(&self) -> Option<&'static str> {
        Some("npm install -g @openai/codex")
    }

    fn login_advice(&self) -> &'static str {
        "run `codex login`, or set CODEX_API_KEY"
    }

    fn is_session_start(&self, event: &Value) -> bool {
        str_field(event, "type") == "thread.started" && event.get("thread_id").is_some()
    }

    fn new_reader(&self) -> Box<dyn AgentEventReader> {
        Box::new(CodexReader)
    }
}

#[derive(Debug)]
struct CodexReader;

impl AgentEventReader for CodexReader {
    fn read_event(&mut self, event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>) {
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
                said.error = Some((classify_agent_error(0, words), words.to_owned()));
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
                said.error = Some((classify_agent_error(0, words), words.to_owned()));
            }
            _ => {}
        }
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
        ..Usage::default()
    }
}
