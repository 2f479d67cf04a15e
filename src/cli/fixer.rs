//! `revdeck fixer FIX` (hidden): makes one fix. Started by the runner, never by hand.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::FixId;

/// Arguments of `fixer`.
#[derive(Debug, Args)]
pub struct FixerArgs {
    /// The fix, by its whole id
    fix: FixId,
}

pub fn run(invocation: &Invocation, arguments: &FixerArgs) -> Result<CliExitCode, CliError> {
    let (runner, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    runner.run_fixer(&arguments.fix)?;
    Ok(CliExitCode::Done)
}
