//! A placeholder for [`Agent`] on systems without process groups and sockets, which the supervisor needs.

use super::Program;
use crate::domain::{ChatRequest, ErrorClass, Response};
use crate::provider::chat::{Chat, ChatError, Tools, Watch};

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
    fn respond(&mut self, _: &ChatRequest, _: &mut dyn Watch) -> Result<Response, ChatError> {
        let summary = format!("{}: programs as reviewers need Linux or macOS; use a reviewer over HTTP", self.name);
        Err(ChatError::new(ErrorClass::Configuration, summary))
    }

    fn tools(&self) -> Tools {
        Tools::None
    }
}
