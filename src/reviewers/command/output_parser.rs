//! Converts the output of a program into a transcript, line by line.
//!
//! - A line that is a JSON object with a `type` is an event. Events of unknown types are ignored.
//! - Other lines of an agent are kept aside, in case there is nothing else.
//! - The output of a program of unknown kind is the answer itself, except for the events of
//!   [`plain`](super::dialect). If its first event is that of a known agent, it is read as that agent.

use serde_json::Value;

use super::dialect::{self, AgentDialect, AgentEventReader, ProgressSink};
use super::lines::{BoundedLines, MAX_LINE_BYTES};
use super::transcript::AgentTranscript;
use crate::domain::Usage;
use crate::reviewers::chat::ChatProgress;

/// The parser of the output of one program.
#[derive(Debug)]
pub struct OutputParser {
    dialect: &'static dyn AgentDialect,
    reader: Box<dyn AgentEventReader>,
    lines: BoundedLines,
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
    pub dialect: &'static dyn AgentDialect,
}

impl OutputParser {
    pub fn new(dialect: &'static dyn AgentDialect) -> Self {
        Self {
            dialect,
            reader: dialect.new_reader(),
            lines: BoundedLines::default(),
            said: AgentTranscript::default(),
            stray: Vec::new(),
        }
    }

    /// Parses more output.
    pub fn feed(&mut self, bytes: &[u8], tell: ProgressSink<'_>) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.parse_line(line, tell));
        self.lines = lines;
    }

    /// Ends the output and returns what was parsed.
    pub fn finish(mut self, tell: ProgressSink<'_>) -> AgentOutput {
        if let Some(line) = std::mem::take(&mut self.lines).finish() {
            self.parse_line(&line, tell);
        }
        self.said.finish();
        if self.said.events == 0 && self.reader.read_stray_lines(&self.stray, &mut self.said) {
            self.said.events = 1;
        }
        if self.said.usage == Usage::default() {
            self.said.usage = self.reader.counted_usage();
        }
        AgentOutput { said: self.said, stray: self.stray, dialect: self.dialect }
    }

    fn parse_line(&mut self, line: &[u8], tell: ProgressSink<'_>) {
        let event = parse_event(line);
        if let Some(event) = &event {
            self.detect_dialect(event);
        }
        match event.filter(|event| self.dialect.is_event(event)) {
            Some(event) => {
                self.said.events += 1;
                self.reader.read_event(&event, &mut self.said, tell);
            }
            None if !self.dialect.writes_events() => self.push_plain_line(line, tell),
            None => {
                let room = MAX_LINE_BYTES.saturating_sub(self.stray.len());
                self.stray.extend(line.iter().chain(b"\n").take(room));
            }
        }
    }

    /// Detects an agent under another name by its first event, before any text of the answer.
    fn detect_dialect(&mut self, event: &Value) {
        if self.dialect.writes_events() || !self.said.text.is_empty() {
            return;
        }
        if let Some(agent) = dialect::all().find(|agent| agent.is_session_start(event)) {
            self.dialect = agent;
            self.reader = agent.new_reader();
        }
    }

    fn push_plain_line(&mut self, line: &[u8], tell: ProgressSink<'_>) {
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

#[cfg(test)]
#[path = "output_parser_tests.rs"]
mod tests;
