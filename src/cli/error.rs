//! Conversion of errors of all modules into a message, a hint and an exit code.

use std::process::ExitCode;

use color_eyre::eyre::Report;

use super::crash_report;
use crate::config::ConfigError;
use crate::git::GitError;
use crate::git::hooks::HookError;
use crate::knowledge::error::KnowledgeError;
use crate::runner::{LearnError, RunnerError};
use crate::store::StoreError;
use crate::store::id_lookup::LookupError;

/// Exit code of the process. The numbers are a contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliExitCode {
    Done = 0,
    /// A finding is as urgent as `--fail-on` or more urgent.
    Findings = 1,
    /// Usage or configuration error, or not in a git repository.
    Usage = 2,
    /// The run or the command did not complete. Scripts must not read this as "no findings".
    Incomplete = 3,
    Interrupted = 130,
}

impl From<CliExitCode> for ExitCode {
    fn from(exit: CliExitCode) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Failure of a command, ready to be printed.
#[derive(Debug)]
pub struct CliError {
    /// One or more lines. They may contain control characters; [`super::output::print_error`] removes these.
    pub message: String,
    pub hint: Option<String>,
    pub exit: CliExitCode,
    /// Report of an internal error, with how to report it; `None` for expected errors.
    pub report: Option<Report>,
}

impl CliError {
    /// Creates a usage or configuration error (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: CliExitCode::Usage, report: None }
    }

    /// Creates an error for an operation that failed (exit code 3).
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: CliExitCode::Incomplete, report: None }
    }

    /// Returns a failure that only a fault of revdeck can cause.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let report = crash_report::internal_error(&message);
        Self { message, hint: None, exit: CliExitCode::Incomplete, report: Some(report) }
    }

    /// Sets the hint, which is printed below the message.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string()).hint(error.hint())
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        let exit = match error {
            // The repository or the disk failed; the arguments were right.
            GitError::Blocking { .. }
            | GitError::Index { .. }
            | GitError::NoGit { .. }
            | GitError::Io { .. }
            | GitError::Git { .. }
            | GitError::Remote { .. }
            | GitError::RefusedRef { .. }
            | GitError::NotPacked { .. }
            | GitError::Unsigned { .. }
            | GitError::PartialClone { .. } => CliExitCode::Incomplete,
            _ => CliExitCode::Usage,
        };
        Self { message: error.to_string(), hint: error.hint(), exit, report: None }
    }
}

impl From<HookError> for CliError {
    fn from(error: HookError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            HookError::Git(error) => error.into(),
            HookError::NoGit { .. } | HookError::Refused { .. } | HookError::Io { .. } => {
                Self { message, hint, exit: CliExitCode::Incomplete, report: None }
            }
            _ => Self { message, hint, exit: CliExitCode::Usage, report: None },
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::NoRun { .. } => CliExitCode::Usage,
            _ => CliExitCode::Incomplete,
        };
        Self { message: error.to_string(), hint: Some(error.hint()), exit, report: None }
    }
}

impl From<LookupError> for CliError {
    fn from(error: LookupError) -> Self {
        let exit = match error {
            LookupError::Store(error) => return error.into(),
            LookupError::NoMatch { .. } => CliExitCode::Usage,
            LookupError::Damaged(_) => CliExitCode::Incomplete,
        };
        let hint = Some(error.hint()).filter(|hint| !hint.is_empty());
        Self { message: error.to_string(), hint, exit, report: None }
    }
}

impl From<KnowledgeError> for CliError {
    fn from(error: KnowledgeError) -> Self {
        let exit = match error {
            KnowledgeError::Import { .. } | KnowledgeError::NoPattern { .. } => CliExitCode::Usage,
            KnowledgeError::Store(_) | KnowledgeError::Damaged { .. } => CliExitCode::Incomplete,
        };
        Self { message: error.to_string(), hint: Some(error.hint()), exit, report: None }
    }
}

impl From<LearnError> for CliError {
    fn from(error: LearnError) -> Self {
        match error {
            LearnError::Store(error) => error.into(),
            LearnError::Knowledge(error) => error.into(),
        }
    }
}

impl From<RunnerError> for CliError {
    fn from(error: RunnerError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        let exit = match error {
            RunnerError::Git(error) => return error.into(),
            RunnerError::Store(error) => return error.into(),
            RunnerError::Config(error) => return error.into(),
            RunnerError::EngineStuck { .. } => return Self::internal(message),
            RunnerError::UnknownReviewer { .. }
            | RunnerError::UnknownPanel { .. }
            | RunnerError::MissingKey(_)
            | RunnerError::Limits(_)
            | RunnerError::Fix(_)
            | RunnerError::Ask(_) => CliExitCode::Usage,
            RunnerError::Reviewer(error) if error.class == crate::domain::ErrorClass::Configuration => {
                CliExitCode::Usage
            }
            RunnerError::Unkillable { .. }
            | RunnerError::Unsettled { .. }
            | RunnerError::NotReviewed { .. }
            | RunnerError::WatchedElsewhere { .. }
            | RunnerError::WatcherStays { .. }
            | RunnerError::Reviewer(_)
            | RunnerError::Spawn { .. } => CliExitCode::Incomplete,
        };
        Self { message, hint, exit, report: None }
    }
}
