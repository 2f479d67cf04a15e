//! `revdeck asker FINDING` (hidden): asks the recorded question about one finding. The runner starts it, never a user.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::FindingId;

/// Arguments of `asker`.
#[derive(Debug, Args)]
pub struct AskerArgs {
    /// Full id of the finding
    finding: FindingId,
}

/// Runs `revdeck asker`.
///
/// # Errors
///
/// Returns an error if the store fails.
pub fn run(invocation: &Invocation, arguments: &AskerArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    services.asker().run_asker(&arguments.finding)?;
    Ok(CliExitCode::Done)
}
