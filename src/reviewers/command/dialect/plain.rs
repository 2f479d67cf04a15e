//! Any program that takes a prompt on standard input and writes its answer to standard output, as text.
//!
//! Such a program may write events beside its answer, one per line:
//!
//! - `{"type": "text", "text": ...}`: a message of the answer.
//! - `{"type": "usage", "input": n, "cached": n, "output": n, "reasoning": n, "model": ...}`: the token usage.

use serde_json::Value;

use super::super::transcript::AgentTranscript;
use super::{AgentDialect, AgentEventReader, ProgressSink};
use crate::domain::{StopReason, Usage};
use crate::reviewers::chat::ChatProgress;
use crate::reviewers::json_access::{str_field, u64_field};

/// A program of unknown kind. revdeck adds no arguments to the user's command.
#[derive(Debug)]
pub struct PlainDialect;

impl AgentDialect for PlainDialect {
    fn writes_events(&self) -> bool {
        false
    }

    fn login_advice(&self) -> &'static str {
        "log in with the program itself"
    }

    fn is_event(&self, event: &Value) -> bool {
        match str_field(event, "type") {
            "text" => event.get("text").is_some_and(Value::is_string),
            "usage" => event.get("input").is_some_and(Value::is_u64),
            _ => false,
        }
    }

    fn new_reader(&self) -> Box<dyn AgentEventReader> {
        Box::new(PlainReader)
    }
}

#[derive(Debug)]
struct PlainReader;

impl AgentEventReader for PlainReader {
    fn read_event(&mut self, event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>) {
        match str_field(event, "type") {
            "text" => {
                said.push_message(str_field(event, "text"));
                tell(ChatProgress::Text(str_field(event, "text").to_owned()));
                said.stop = Some(StopReason::Done);
            }
            "usage" => {
                said.usage = Usage {
                    input: u64_field(event, "input"),
                    cached: u64_field(event, "cached"),
                    output: u64_field(event, "output"),
                    reasoning: u64_field(event, "reasoning"),
                    ..Usage::default()
                };
                str_field(event, "model").clone_into(&mut said.model);
            }
            _ => {}
        }
    }
}
