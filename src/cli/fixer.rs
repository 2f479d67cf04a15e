//! `revdeck fixer FIX` (hidden): creates one fix. The runner starts it, never a user.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::FixId;

/// Arguments of `fixer`.
#[derive(Debug, Args)]
pub struct FixerArgs {
    /// Full id of the fix
    fix: FixId,
}

/// Runs `revdeck fixer`.
///
/// # Errors
///
/// Returns an error if the fix is unknown or the store fails.
pub fn run(invocation: &Invocation, arguments: &FixerArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    services.fixer().run_fixer(&arguments.fix)?;
    Ok(CliExitCode::Done)
}
