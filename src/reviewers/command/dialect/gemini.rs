//! Gemini CLI, as of version 0.61.
//!
//! Its events (`--output-format stream-json`):
//!
//! - `init`: names the model.
//! - `message`: the assistant's text, in pieces if `delta` is set.
//! - `tool_use`, `tool_result`.
//! - `error`: an error or a warning.
//! - `result`: the last event.
//!
//! The single object (`--output-format json`) contains only the last message: `response`, `stats`, `error`.

use serde_json::Value;

use super::super::FolderAccess;
use super::super::arguments::{AgentOptions, ArgumentList};
use super::super::transcript::AgentTranscript;
use super::{AgentDialect, AgentEventReader, ProgressSink};
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;
use crate::reviewers::error_class::classify_agent_error;
use crate::reviewers::json_access::{str_at, str_field, u64_field};

const OPTIONS: &[&[&str]] = &[
    &["--output-format", "stream-json"],
    // No server and no extension has this name.
    &["--allowed-mcp-server-names", "none"],
    &["--extensions", "none"],
    &["-p", "Do what the text from standard input says."],
];
const READ_OPTIONS: &[&[&str]] = &[&["--approval-mode", "plan"]];
const WRITE_OPTIONS: &[&[&str]] = &[&["--approval-mode", "auto_edit"]];

/// Gemini CLI. It takes no effort.
#[derive(Debug)]
pub struct GeminiDialect;

impl AgentDialect for GeminiDialect {
    fn add_options(&self, options: &AgentOptions<'_>, arguments: &mut ArgumentList<'_>) {
        arguments.add_all(if options.access == FolderAccess::Write { WRITE_OPTIONS } else { READ_OPTIONS });
        arguments.add_all(OPTIONS);
        arguments.add_model(options.model);
    }

    fn option_aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("-p", "--prompt"), ("--output-format", "-o"), ("--extensions", "-e"), ("--model", "-m")]
    }

    /// Returns the switch that makes the folder a trusted one. It is safe because of
    /// [`super::agent_settings_paths`].
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[("GEMINI_CLI_TRUST_WORKSPACE", "true")]
    }

    fn settings_paths(&self) -> &'static [&'static str] {
        &[".gemini", "GEMINI.md"]
    }

    fn install_command(&self) -> Option<&'static str> {
        Some("npm install -g @google/gemini-cli")
    }

    fn login_advice(&self) -> &'static str {
        "start `gemini` once and log in, or set GEMINI_API_KEY"
    }

    fn is_session_start(&self, event: &Value) -> bool {
        str_field(event, "type") == "init" && event.get("session_id").is_some() && event.get("model").is_some()
    }

    fn new_reader(&self) -> Box<dyn AgentEventReader> {
        Box::new(GeminiReader)
    }
}

#[derive(Debug)]
struct GeminiReader;

impl AgentEventReader for GeminiReader {
    fn read_event(&mut self, event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>) {
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

    /// Reads a single object over many lines, perhaps with other text before it.
    fn read_stray_lines(&mut self, lines: &[u8], said: &mut AgentTranscript) -> bool {
        let starts = lines.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line))
        });
        let start = starts.into_iter().find(|(_, line)| line.trim_ascii().starts_with(b"{")).map(|(start, _)| start);
        let object = start.and_then(|start| lines.get(start..)).and_then(|text| serde_json::from_slice(text).ok());
        object.is_some_and(|object: Value| read_object(&object, said))
    }
}
/// Reads the single object. Returns `false` if the JSON is not such an object.
fn read_object(object: &Value, said: &mut AgentTranscript) -> bool {
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
    said.error = Some((classify_agent_error(0, words), words.to_owned()));
}

/// Parses the token usage. Only the total includes the thinking tokens.
fn read_stream_stats(stats: &Value) -> Usage {
    let (input, output) = (u64_field(stats, "input_tokens"), u64_field(stats, "output_tokens"));
    Usage {
        input,
        cached: u64_field(stats, "cached"),
        output,
        reasoning: u64_field(stats, "total_tokens").saturating_sub(input).saturating_sub(output),
        ..Usage::default()
    }
}
