//! A placeholder for [`Agent`] on systems without process groups and sockets, which the supervisor needs.

use super::Program;
use crate::domain::{ChatRequest, ChatResponse, ErrorClass};
use crate::reviewers::chat::{Chat, ChatError, ChatObserver, ToolSupport};

/// An agent that answers every request with an error.
#[derive(Debug)]
pub struct Agent {
    name: String,
}

impl Agent {
    pub(super) fn new(program: Program) -> Self {
        Self { name: program.name }
    }
}

impl Chat for Agent {
    fn respond(&mut self, _: &ChatRequest, _: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
        let summary = format!("{}: programs as reviewers need Linux or macOS; use a reviewer over HTTP", self.name);
        Err(ChatError::new(ErrorClass::Configuration, summary))
    }

    fn tool_support(&self) -> ToolSupport {
        ToolSupport::None
    }
}
