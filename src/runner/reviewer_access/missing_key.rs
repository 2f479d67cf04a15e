//! Checks, before anything is queued, that the API key of a reviewer can be had.

use crate::config::{ApiKeySource, ReviewerKind};
use crate::runner::{BUILTIN_REVIEWER, ReviewerAccess, RunnerError};

/// A reviewer whose key cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reviewer} has no API key: the variable {variable} is not set")]
pub struct MissingKey {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Environment variable that should hold the key.
    pub variable: String,
}

impl MissingKey {
    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        let Self { reviewer, variable } = self;
        format!(
            "put the key into the environment (export {variable}=...), or name another source in [reviewers.{reviewer}]: \
             api_key_env or api_key_cmd"
        )
    }
}

impl ReviewerAccess<'_> {
    /// Checks that the environment has the key of a reviewer. A command that prints a key is not run, because it may
    /// ask its user for a password.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or the variable that should hold its key is not set or empty.
    pub(in crate::runner) fn check_key(&self, name: &str) -> Result<(), RunnerError> {
        if name == BUILTIN_REVIEWER {
            return Ok(());
        }
        let settings = self.model_settings(name)?;
        if matches!(settings.kind, ReviewerKind::Builtin | ReviewerKind::Command) {
            return Ok(());
        }
        match settings.key_source() {
            ApiKeySource::Variable(variable)
                if std::env::var_os(variable).is_none_or(|key| key.to_string_lossy().trim().is_empty()) =>
            {
                Err(MissingKey { reviewer: name.to_owned(), variable: variable.to_owned() }.into())
            }
            ApiKeySource::Variable(_) | ApiKeySource::Command(_) | ApiKeySource::None => Ok(()),
        }
    }
}
