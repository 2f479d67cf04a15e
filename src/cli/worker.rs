//! `revdeck worker RUN` (hidden): executes one run to its end. The runner starts it, never a user.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::RunId;
use crate::runner::limit_memory;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Full id of the run
    run: RunId,
}

/// Runs `revdeck worker`.
///
/// # Errors
///
/// Returns an error if the run is unknown or the store fails.
pub fn run(invocation: &Invocation, arguments: &WorkerArgs) -> Result<CliExitCode, CliError> {
    // Before any thread starts.
    limit_memory();
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    services.worker().run_worker(&arguments.run)?;
    Ok(CliExitCode::Done)
}
