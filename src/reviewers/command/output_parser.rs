//! Converts the output of a program into a transcript, line by line.
//!
//! - A line that is a JSON object with a `type` is an event. Events of unknown types are ignored.
//! - Other lines of an agent are kept aside, in case there is nothing else.
//! - The output of a program of unknown kind is the answer itself, except for the lines that [`read_plain_event`]
//!   reads. If its first event is that of a known agent, it is read as that agent.

use serde_json::Value;

use super::CommandDialect;
use super::dialect::{claude, codex, gemini};
use super::json_access::{str_field, u64_field};
use super::lines::{BoundedLines, MAX_LINE_BYTES};
use super::transcript::AgentTranscript;
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;

/// The parser of the output of one program.
#[derive(Debug)]
pub struct OutputParser {
    dialect: CommandDialect,
    lines: BoundedLines,
    counted: claude::ClaudeUsageCounter,
    said: AgentTranscript,
    /// Lines that are no events.
    stray: Vec<u8>,
}

/// The transcript of a program and the rest of its output.
#[derive(Debug)]
pub struct AgentOutput {
    pub said: AgentTranscript,
    /// Lines that are no events, from a program that should write events; at most [`MAX_LINE_BYTES`].
    pub stray: Vec<u8>,
    /// The detected kind of program.
    pub dialect: CommandDialect,
}

impl OutputParser {
    pub fn new(dialect: CommandDialect) -> Self {
        Self {
            dialect,
            lines: BoundedLines::default(),
            counted: claude::ClaudeUsageCounter::default(),
            said: AgentTranscript::default(),
            stray: Vec::new(),
        }
    }

    /// Parses more output.
    pub fn feed(&mut self, bytes: &[u8], tell: &mut dyn FnMut(ChatProgress)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.parse_line(line, tell));
        self.lines = lines;
    }

    /// Ends the output and returns what was parsed.
    pub fn finish(mut self, tell: &mut dyn FnMut(ChatProgress)) -> AgentOutput {
        if let Some(line) = std::mem::take(&mut self.lines).finish() {
            self.parse_line(&line, tell);
        }
        self.said.finish();
        if self.said.events == 0 && self.dialect == CommandDialect::Gemini {
            // A single object over many lines, perhaps with other text before it.
            let from = self.stray.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
                let start = *at;
                *at += line.len();
                Some((start, line))
            });
            let start = from.into_iter().find(|(_, line)| line.trim_ascii().starts_with(b"{")).map(|(start, _)| start);
            let object =
                start.and_then(|start| self.stray.get(start..)).and_then(|text| serde_json::from_slice(text).ok());
            self.said.events +=
                u64::from(object.is_some_and(|object: Value| gemini::read_object(&object, &mut self.said)));
        }
        if self.said.usage == Usage::default() {
            self.said.usage = self.counted.total();
        }
        AgentOutput { said: self.said, stray: self.stray, dialect: self.dialect }
    }

    fn parse_line(&mut self, line: &[u8], tell: &mut dyn FnMut(ChatProgress)) {
        match parse_event(line) {
            Some(event) if self.dialect == CommandDialect::Plain => {
                if self.said.text.is_empty() && self.detect_dialect(&event) {
                    self.dispatch_event(&event, tell);
                } else if !read_plain_event(&event, &mut self.said, tell) {
                    self.push_plain_line(line, tell);
                }
            }
            Some(event) => self.dispatch_event(&event, tell),
            None if self.dialect == CommandDialect::Plain => self.push_plain_line(line, tell),
            None => {
                let room = MAX_LINE_BYTES.saturating_sub(self.stray.len());
                self.stray.extend(line.iter().chain(b"\n").take(room));
            }
        }
    }

    fn dispatch_event(&mut self, event: &Value, tell: &mut dyn FnMut(ChatProgress)) {
        self.said.events += 1;
        match self.dialect {
            CommandDialect::Claude => claude::read_event(event, &mut self.said, &mut self.counted, tell),
            CommandDialect::Codex => codex::read_event(event, &mut self.said, tell),
            CommandDialect::Gemini => gemini::read_event(event, &mut self.said, tell),
            CommandDialect::Plain => {}
        }
    }

    /// Detects the agent from its first event. Returns `false` if the event belongs to no agent.
    fn detect_dialect(&mut self, event: &Value) -> bool {
        self.dialect = match () {
            () if claude::is_session_start(event) => CommandDialect::Claude,
            () if codex::is_session_start(event) => CommandDialect::Codex,
            () if gemini::is_session_start(event) => CommandDialect::Gemini,
            () => return false,
        };
        true
    }

    fn push_plain_line(&mut self, line: &[u8], tell: &mut dyn FnMut(ChatProgress)) {
        if self.said.is_truncated {
            return;
        }
        let mut line = String::from_utf8_lossy(line).into_owned();
        line.push('\n');
        self.said.push_text(&line);
        self.said.is_truncated |= line.len() > MAX_LINE_BYTES;
        tell(ChatProgress::Text(line));
    }
}

fn parse_event(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    if !line.starts_with(b"{") {
        return None;
    }
    let event: Value = match serde_json::from_slice(line) {
        Ok(event) => event,
        // An event with bytes that are not UTF-8.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)).ok()?,
    };
    event.get("type").is_some_and(Value::is_string).then_some(event)
}

/// Reads an event that a program of unknown kind may write beside its answer, one per line. Returns `false` for other
/// events.
///
/// - `{"type": "text", "text": ...}`: a message of the answer.
/// - `{"type": "usage", "input": n, "cached": n, "output": n, "reasoning": n, "model": ...}`: the token usage.
fn read_plain_event(event: &Value, said: &mut AgentTranscript, tell: &mut dyn FnMut(ChatProgress)) -> bool {
    match str_field(event, "type") {
        "text" if event.get("text").is_some_and(Value::is_string) => {
            said.push_message(str_field(event, "text"));
            tell(ChatProgress::Text(str_field(event, "text").to_owned()));
            said.stop = Some(StopReason::Done);
        }
        "usage" if event.get("input").is_some_and(Value::is_u64) => {
            said.usage = Usage {
                input: u64_field(event, "input"),
                cached: u64_field(event, "cached"),
                output: u64_field(event, "output"),
                reasoning: u64_field(event, "reasoning"),
            };
            str_field(event, "model").clone_into(&mut said.model);
        }
        _ => return false,
    }
    said.events += 1;
    true
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
