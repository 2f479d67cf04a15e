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
        let message = error.to_string();
        match error {
            RunnerError::Git(error) => error.into(),
            RunnerError::Store(error) => error.into(),
            RunnerError::UnknownReviewer { .. } => {
                Self::usage(message).hint("`revdeck config show` lists the reviewers of your settings")
            }
            RunnerError::MissingKey(missing) => Self::usage(message).hint(missing.hint()),
            RunnerError::Limits(_) => Self::usage(message).hint("`revdeck config path` says where smells.toml is"),
            RunnerError::EngineStuck { .. } => Self::internal(message),
            RunnerError::Unkillable { .. } => Self::failed(message),
            RunnerError::Unsettled { .. } => Self::failed(message)
                .hint("the run waits in the store; once the store can be written, `revdeck runs` goes on with it"),
            RunnerError::WatchedElsewhere { .. } => Self::failed(message),
            RunnerError::WatcherStays { watcher } => match watcher {
                Some(pid) => Self::failed(message).hint(format!("`kill -9 {pid}` ends it; nothing is lost")),
                None => Self::failed(message),
            },
            RunnerError::Config(error) => error.into(),
            RunnerError::Fix(error) => match error.hint() {
                Some(hint) => Self::usage(message).hint(hint),
                None => Self::usage(message),
            },
            RunnerError::Reviewer(error) if error.class == crate::domain::ErrorClass::Configuration => {
                Self::usage(message)
            }
            RunnerError::Reviewer(_) => Self::failed(message).hint("`revdeck doctor` says what the reviewer lacks"),
            RunnerError::Spawn { .. } => {
                Self::failed(message).hint("the run waits in the store; the next `revdeck review` starts it")
            }
        }
    }
}
