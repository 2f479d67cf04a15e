//! `revdeck keep -- PROGRAM ARGUMENTS` (hidden): runs a review program and kills it when the worker at the other end of
//! standard input is gone. A worker starts it, never a user.

use std::ffi::OsString;

use clap::Args;

use super::error::{CliError, CliExitCode};

/// Arguments of `keep`.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Program and its arguments
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

/// Runs `revdeck keep`.
///
/// # Errors
///
/// Returns an error if the program cannot be started or no worker is at the other end.
#[cfg(unix)]
pub fn run(arguments: &KeepArgs) -> Result<CliExitCode, CliError> {
    match crate::reviewers::command::supervisor::supervise(&arguments.words) {
        Ok(()) => Ok(CliExitCode::Done),
        Err(error) => Err(CliError::usage(format!("only a worker starts this: {error}"))),
    }
}

/// Runs `revdeck keep`.
///
/// # Errors
///
/// Returns an error if the program cannot be started or no worker is at the other end.
#[cfg(not(unix))]
pub fn run(_: &KeepArgs) -> Result<CliExitCode, CliError> {
    Err(CliError::usage("programs as reviewers need Linux or macOS".to_owned()))
}
