//! Programs as reviewers where there are no process groups and no sockets to keep them by.

use super::Program;
use crate::domain::{ChatRequest, ErrorClass, Response};
use crate::provider::chat::{Chat, ChatError, Tools, Watch};

/// Says that it cannot.
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
