//! Errors of a call, with the next step of the assistant.

use crate::config::ConfigError;
use crate::git::GitError;
use crate::runner::RunnerError;
use crate::store::StoreError;
use crate::store::id_lookup::LookupError;

/// Failure of a call. The client shows it to the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    /// Message that names the thing and the cause.
    pub message: String,
    /// Next step; `None` if there is none.
    pub hint: Option<String>,
}

impl ToolFailure {
    /// Creates a failure without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Sets the next step.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns message and hint as a text.
    pub fn to_text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<StoreError> for ToolFailure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<GitError> for ToolFailure {
    fn from(error: GitError) -> Self {
        Self { message: error.to_string(), hint: error.hint() }
    }
}

impl From<ConfigError> for ToolFailure {
    fn from(error: ConfigError) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<RunnerError> for ToolFailure {
    fn from(error: RunnerError) -> Self {
        Self { message: error.to_string(), hint: error.hint() }
    }
}

impl From<LookupError> for ToolFailure {
    fn from(error: LookupError) -> Self {
        let hint = match &error {
            LookupError::NoMatch { .. } => "list_runs and list_findings return the ids".to_owned(),
            LookupError::Damaged(_) | LookupError::Store(_) => error.hint(),
        };
        Self::new(error.to_string()).hint(hint)
    }
}
