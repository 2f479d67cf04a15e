//! Checks, before anything is queued, that the API key of a reviewer can be had.

use crate::config::{ApiKeySource, ReviewerKind, ReviewerSettings};
use crate::runner::{BUILTIN_REVIEWER, ReviewerAccess, RunnerError};

/// A reviewer whose key cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reviewer}{} has no API key: the variable {variable} is not set",
    .fallback_of.as_ref().map_or(String::new(), |main| format!(", the fallback of {main},")))]
pub struct MissingKey {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// The reviewer whose work it would take over; `None` for the reviewer that was asked for.
    pub fallback_of: Option<String>,
    /// Environment variable that should hold the key.
    pub variable: String,
}

impl MissingKey {
    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        let Self { reviewer, variable, .. } = self;
        let source = format!(
            "put the key into the environment (export {variable}=...), or name another source in [reviewers.{reviewer}]: \
             api_key_env or api_key_cmd"
        );
        match &self.fallback_of {
            Some(main) => format!("{source}; or take `fallback` out of [reviewers.{main}]"),
            None => source,
        }
    }
}

impl ReviewerAccess<'_> {
    /// Checks that the environment has the keys of a reviewer and of its fallbacks, so that none of them is found
    /// missing after something was paid. A command that prints a key is not run, because it may ask its user for a
    /// password.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or a variable that should hold a key is not set or empty.
    pub(in crate::runner) fn check_key(&self, name: &str) -> Result<(), RunnerError> {
        if let Some(panel) = self.find_panel(name)? {
            // A member whose review exists needs no key: each is checked where it is requested.
            let missing = panel.reviewers.iter().map(|name| self.check_key(name)).collect::<Vec<_>>();
            return if missing.iter().all(Result::is_err) { missing.into_iter().collect() } else { Ok(()) };
        }
        let (mut reviewer, mut fallback_of) = (name, None);
        // The settings have no cycle of fallbacks, and `builtin` is none.
        while reviewer != BUILTIN_REVIEWER {
            let settings = self.model_settings(reviewer)?;
            if let Some(variable) = find_unset_variable(settings) {
                let (reviewer, variable) = (reviewer.to_owned(), variable.to_owned());
                return Err(MissingKey { reviewer, fallback_of, variable }.into());
            }
            let Some(next) = settings.fallback.as_deref() else { break };
            fallback_of = Some(reviewer.to_owned());
            reviewer = next;
        }
        Ok(())
    }

    /// Checks that the environment has the key of a reviewer itself, for a request that goes to no fallback.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or the variable that should hold the key is not set or empty.
    pub(in crate::runner) fn check_own_key(&self, name: &str) -> Result<(), RunnerError> {
        let Some(variable) = find_unset_variable(self.model_settings(name)?) else { return Ok(()) };
        Err(MissingKey { reviewer: name.to_owned(), fallback_of: None, variable: variable.to_owned() }.into())
    }
}

/// Returns the variable that should hold the key of a reviewer and does not.
fn find_unset_variable(settings: &ReviewerSettings) -> Option<&str> {
    if matches!(settings.kind, ReviewerKind::Builtin | ReviewerKind::Command) {
        return None;
    }
    let is_unset =
        |variable: &str| std::env::var_os(variable).is_none_or(|key| key.to_string_lossy().trim().is_empty());
    match settings.key_source() {
        ApiKeySource::Variable(variable) if is_unset(variable) => Some(variable),
        ApiKeySource::Variable(_) | ApiKeySource::Command(_) | ApiKeySource::None => None,
    }
}
