//! Makes what a program writes into what it said, line by line.
//!
//! A line that is a JSON object with a `type` is an event; events of unknown types are left aside. What else an agent
//! writes is kept aside, for the case that it is all there is. A program of no known kind says its answer as it is,
//! except for lines of [`own_event`]; and when it begins as one of the agents does, it is taken for that one.

use serde_json::Value;

use super::lines::{LINE_BYTES, Lines};
use super::said::Said;
use super::value::{number, text};
use super::{Dialect, claude, codex, gemini};
use crate::domain::{Stop, Usage};
use crate::provider::chat::Progress;

/// Hears one program.
#[derive(Debug)]
pub struct Listener {
    dialect: Dialect,
    lines: Lines,
    counted: claude::Counted,
    said: Said,
    /// What was no event.
    stray: Vec<u8>,
}

/// Everything a program said, and what it wrote beside it.
#[derive(Debug)]
pub struct Transcript {
    pub said: Said,
    /// What was no event, of a program that was expected to write events; at most [`LINE_BYTES`].
    pub stray: Vec<u8>,
    /// What it turned out to be.
    pub dialect: Dialect,
}

impl Listener {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            lines: Lines::default(),
            counted: claude::Counted::default(),
            said: Said::default(),
            stray: Vec::new(),
        }
    }

    /// Takes output in as it comes.
    pub fn feed(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Progress)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.line(line, tell));
        self.lines = lines;
    }

    /// The output is over.
    pub fn finish(mut self, tell: &mut dyn FnMut(Progress)) -> Transcript {
        if let Some(line) = std::mem::take(&mut self.lines).finish() {
            self.line(&line, tell);
        }
        self.said.end();
        if self.said.events == 0 && self.dialect == Dialect::Gemini {
            // One object over many lines, perhaps with words before it.
            let from = self.stray.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
                let start = *at;
                *at += line.len();
                Some((start, line))
            });
            let start = from.into_iter().find(|(_, line)| line.trim_ascii().starts_with(b"{")).map(|(start, _)| start);
            let object =
                start.and_then(|start| self.stray.get(start..)).and_then(|text| serde_json::from_slice(text).ok());
            self.said.events +=
                u64::from(object.is_some_and(|object: Value| gemini::hear_whole(&object, &mut self.said)));
        }
        if self.said.usage == Usage::default() {
            self.said.usage = self.counted.total();
        }
        Transcript { said: self.said, stray: self.stray, dialect: self.dialect }
    }

    fn line(&mut self, line: &[u8], tell: &mut dyn FnMut(Progress)) {
        match event(line) {
            Some(event) if self.dialect == Dialect::Plain => {
                if self.said.text.is_empty() && self.becomes(&event) {
                    self.hear(&event, tell);
                } else if !own_event(&event, &mut self.said, tell) {
                    self.plain(line, tell);
                }
            }
            Some(event) => self.hear(&event, tell),
            None if self.dialect == Dialect::Plain => self.plain(line, tell),
            None => {
                let room = LINE_BYTES.saturating_sub(self.stray.len());
                self.stray.extend(line.iter().chain(b"\n").take(room));
            }
        }
    }

    fn hear(&mut self, event: &Value, tell: &mut dyn FnMut(Progress)) {
        self.said.events += 1;
        match self.dialect {
            Dialect::Claude => claude::hear(event, &mut self.said, &mut self.counted, tell),
            Dialect::Codex => codex::hear(event, &mut self.said, tell),
            Dialect::Gemini => gemini::hear(event, &mut self.said, tell),
            Dialect::Plain => {}
        }
    }

    /// Whether the program turns out to be an agent.
    fn becomes(&mut self, event: &Value) -> bool {
        self.dialect = match () {
            () if claude::opens(event) => Dialect::Claude,
            () if codex::opens(event) => Dialect::Codex,
            () if gemini::opens(event) => Dialect::Gemini,
            () => return false,
        };
        true
    }

    fn plain(&mut self, line: &[u8], tell: &mut dyn FnMut(Progress)) {
        if self.said.cut {
            return;
        }
        let mut line = String::from_utf8_lossy(line).into_owned();
        line.push('\n');
        self.said.go_on(&line);
        self.said.cut |= line.len() > LINE_BYTES;
        tell(Progress::Text(line));
    }
}

fn event(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    if !line.starts_with(b"{") {
        return None;
    }
    let event: Value = match serde_json::from_slice(line) {
        Ok(event) => event,
        // Bytes that are no text, in an event that is one otherwise.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)).ok()?,
    };
    event.get("type").is_some_and(Value::is_string).then_some(event)
}

/// What a program of no known kind may say beside its answer, a line each: `{"type": "text", "text": ...}` for a
/// message of the answer, `{"type": "usage", "input": n, "cached": n, "output": n, "reasoning": n, "model": ...}` for
/// what it took. Whether the event was one of these.
fn own_event(event: &Value, said: &mut Said, tell: &mut dyn FnMut(Progress)) -> bool {
    match text(event, "type") {
        "text" if event.get("text").is_some_and(Value::is_string) => {
            said.message(text(event, "text"));
            tell(Progress::Text(text(event, "text").to_owned()));
            said.stop = Some(Stop::Done);
        }
        "usage" if event.get("input").is_some_and(Value::is_u64) => {
            said.usage = Usage {
                input: number(event, "input"),
                cached: number(event, "cached"),
                output: number(event, "output"),
                reasoning: number(event, "reasoning"),
            };
            text(event, "model").clone_into(&mut said.model);
        }
        _ => return false,
    }
    said.events += 1;
    true
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
