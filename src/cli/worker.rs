//! `revdeck worker RUN` (hidden): executes one run to its end. Started by the runner, never by hand.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::RunId;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The run, by its whole id
    run: RunId,
}

pub fn run(invocation: &Invocation, arguments: &WorkerArgs) -> Result<CliExitCode, CliError> {
    let (runner, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    runner.run_worker(&arguments.run)?;
    Ok(CliExitCode::Done)
}
