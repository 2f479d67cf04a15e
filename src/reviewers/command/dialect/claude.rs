//! Claude Code, as of version 2.1.
//!
//! Its events (`--output-format stream-json --verbose --include-partial-messages`):
//!
//! - `system`: `init` names the model, `api_retry` reports a wait.
//! - `stream_event`: the provider's own stream, in pieces.
//! - `assistant`: a whole message. Claude Code's own message after a failure of the provider is an `assistant` event
//!   too, with an `error` and the model `<synthetic>`.
//! - `user`: the results of tools.
//! - `result`: the last event.

use serde_json::Value;

use super::super::FolderAccess;
use super::super::arguments::{AgentOptions, ArgumentList};
use super::super::error_text;
use super::super::transcript::AgentTranscript;
use super::{AgentDialect, AgentEventReader, ProgressSink};
use crate::domain::{ErrorClass, StopReason, Usage};
use crate::reviewers::chat::ChatProgress;
use crate::reviewers::error_class::classify_agent_error;
use crate::reviewers::json_access::{items_at, str_at, str_field, u64_field};

const OPTIONS: &[&[&str]] = &[
    &["-p"],
    &["--output-format", "stream-json"],
    &["--verbose"],
    &["--include-partial-messages"],
    &["--strict-mcp-config"],
    &["--setting-sources", "user"],
    &["--disable-slash-commands"],
    &["--no-session-persistence"],
];
const READ_OPTIONS: &[&[&str]] = &[&["--permission-mode", "plan"], &["--tools", "Read,Grep,Glob"]];
/// Edits of files in the folder are accepted. Every other permission request is refused, because there is no terminal.
const WRITE_OPTIONS: &[&[&str]] = &[&["--permission-mode", "acceptEdits"], &["--tools", "Read,Grep,Glob,Edit,Write"]];

/// Claude Code.
#[derive(Debug)]
pub struct ClaudeDialect;

impl AgentDialect for ClaudeDialect {
    fn add_options(&self, options: &AgentOptions<'_>, arguments: &mut ArgumentList<'_>) {
        arguments.add_all(OPTIONS);
        arguments.add_all(if options.access == FolderAccess::Write { WRITE_OPTIONS } else { READ_OPTIONS });
        arguments.add_model(options.model);
        if let Some(effort) = options.effort {
            arguments.add(&["--effort", effort]);
        }
    }

    fn option_aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("-p", "--print"), ("--model", "-m"), ("--tools", "--allowedTools"), ("--tools", "--allowed-tools")]
    }

    fn session_variables(&self) -> &'static [&'static str] {
        &[
            "CLAUDECODE",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_EXECPATH",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_EFFORT",
        ]
    }

    fn settings_paths(&self) -> &'static [&'static str] {
        &[".claude", ".mcp.json", "CLAUDE.local.md", "CLAUDE.md"]
    }

    fn install_command(&self) -> Option<&'static str> {
        Some("npm install -g @anthropic-ai/claude-code")
    }

    fn login_advice(&self) -> &'static str {
        "start `claude` once and log in with /login, or set ANTHROPIC_API_KEY"
    }

    fn is_session_start(&self, event: &Value) -> bool {
        str_field(event, "type") == "system"
            && str_field(event, "subtype") == "init"
            && event.get("session_id").is_some()
    }

    fn new_reader(&self) -> Box<dyn AgentEventReader> {
        Box::new(ClaudeReader::default())
    }
}

/// Reader of the events, with the usage of messages that are not yet included in a `result` event.
#[derive(Debug, Default)]
struct ClaudeReader {
    counted: ClaudeUsageCounter,
}

#[derive(Debug, Default)]
struct ClaudeUsageCounter {
    message: String,
    /// Usage of the current message. Each event of a message repeats its whole count.
    usage: Usage,
    earlier: Usage,
}

impl AgentEventReader for ClaudeReader {
    fn read_event(&mut self, event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>) {
        match str_field(event, "type") {
            "system" => read_system(event, said, tell),
            "stream_event" => {
                let piece = str_at(event, "/event/delta/text");
                if !piece.is_empty() {
                    said.push_preview(piece);
                    tell(ChatProgress::Text(piece.to_owned()));
                }
            }
            "assistant" => read_assistant(event, said, &mut self.counted, tell),
            "result" => read_result(event, said, &mut self.counted),
            _ => {}
        }
    }

    fn counted_usage(&self) -> Usage {
        [self.counted.earlier, self.counted.usage].into_iter().sum()
    }
}

fn read_system(event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>) {
    match str_field(event, "subtype") {
        "init" => str_field(event, "model").clone_into(&mut said.model),
        "api_retry" => tell(ChatProgress::Waiting {
            reason: error_text::to_one_line(&format!(
                "{}, attempt {} of {}",
                str_field(event, "error").replace('_', " "),
                u64_field(event, "attempt"),
                u64_field(event, "max_retries")
            )),
            wait_ms: event.get("retry_delay_ms").and_then(Value::as_f64).map_or(0, |wait| wait.max(0.0) as u64),
        }),
        _ => {}
    }
}

fn read_assistant(event: &Value, said: &mut AgentTranscript, counted: &mut ClaudeUsageCounter, tell: ProgressSink<'_>) {
    let mut whole = String::new();
    for block in items_at(event, "/message/content") {
        if str_field(block, "type") == "text" {
            whole.push_str(str_field(block, "text"));
        }
    }
    let error = str_field(event, "error");
    if error == "max_output_tokens" {
        said.stop = Some(StopReason::Length);
    } else if !error.is_empty() {
        said.error = Some((classify_error(error, 0, &whole), whole));
        return;
    }
    let model = str_at(event, "/message/model");
    if model.starts_with('<') {
        return;
    }
    if !model.is_empty() {
        model.clone_into(&mut said.model);
    }
    if let Some(usage) = event.pointer("/message/usage") {
        add_usage(usage, str_at(event, "/message/id"), counted);
    }
    if said.partial.is_empty() && !whole.is_empty() {
        tell(ChatProgress::Text(whole.clone()));
    }
    if !whole.is_empty() {
        said.push_message(&whole);
    }
}

fn read_result(event: &Value, said: &mut AgentTranscript, counted: &mut ClaudeUsageCounter) {
    let last = str_field(event, "result");
    if event.get("is_error").and_then(Value::as_bool) == Some(true) || str_field(event, "subtype").starts_with("error")
    {
        let errors = items_at(event, "/errors").filter_map(Value::as_str);
        let words = if last.is_empty() { errors.collect::<Vec<_>>().join("; ") } else { last.to_owned() };
        match str_field(event, "subtype") {
            // The program reached its own limit: its text so far is still usable.
            subtype if subtype.starts_with("error_max_") => said.stop = Some(StopReason::Interrupted),
            _ => {
                let earlier = said.error.take().map(|(class, _)| class);
                let class = classify_error("", u64_field(event, "api_error_status"), &words);
                said.error = Some((earlier.filter(|_| class == ErrorClass::Reviewer).unwrap_or(class), words));
            }
        }
    } else {
        if !last.is_empty() && !said.text.contains(last.trim()) {
            said.push_message(last);
        }
        said.stop = Some(match str_field(event, "stop_reason") {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refused,
            _ => said.stop.unwrap_or(StopReason::Done),
        });
    }
    if let Some(usage) = event.get("usage") {
        said.usage = read_usage(usage);
    }
    *counted = ClaudeUsageCounter::default();
}

fn classify_error(error: &str, status: u64, words: &str) -> ErrorClass {
    match (error, status) {
        ("authentication_failed" | "oauth_org_not_allowed", _) => ErrorClass::Auth,
        ("billing_error", _) => ErrorClass::Quota,
        ("model_not_found", _) => ErrorClass::Configuration,
        ("overloaded" | "server_error", _) => ErrorClass::Overloaded,
        _ => classify_agent_error(status, words),
    }
}

fn add_usage(usage: &Value, message: &str, counted: &mut ClaudeUsageCounter) {
    if counted.message != message {
        counted.earlier += counted.usage;
        message.clone_into(&mut counted.message);
    }
    counted.usage = read_usage(usage);
}

/// Parses the token usage. `input_tokens` excludes all cached tokens; the output includes the thinking.
fn read_usage(usage: &Value) -> Usage {
    let cached = u64_field(usage, "cache_read_input_tokens");
    Usage {
        input: u64_field(usage, "input_tokens")
            .saturating_add(u64_field(usage, "cache_creation_input_tokens"))
            .saturating_add(cached),
        cached,
        output: u64_field(usage, "output_tokens"),
        ..Usage::default()
    }
}
