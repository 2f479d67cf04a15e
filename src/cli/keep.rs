//! `revdeck keep -- PROGRAM ARGUMENTS` (hidden): runs a program that reviews, and ends it when the worker at the other
//! end of standard input is gone. Started by a worker, never by hand.

use std::ffi::OsString;

use clap::Args;

use super::error::{CliError, CliExitCode};

/// Arguments of `keep`.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// The program and its arguments
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

#[cfg(unix)]
pub fn run(arguments: &KeepArgs) -> Result<CliExitCode, CliError> {
    match crate::reviewers::command::supervisor::supervise(&arguments.words) {
        Ok(()) => Ok(CliExitCode::Done),
        Err(error) => Err(CliError::usage(format!("only a worker starts this: {error}"))),
    }
}

#[cfg(not(unix))]
pub fn run(_: &KeepArgs) -> Result<CliExitCode, CliError> {
    Err(CliError::usage("programs as reviewers need Linux or macOS".to_owned()))
}
