//! `revdeck resume`: continues a paused run.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::runner::PauseOutcome;

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Run: an id, the beginning of an id, or `latest`
    #[arg(add = ArgValueCandidates::new(complete::list_runs))]
    run: String,
}

/// Runs `revdeck resume`.
///
/// # Errors
///
/// Returns an error if the run is unknown.
pub fn run(invocation: &Invocation, arguments: &ResumeArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::Smells)?.into_runner();
    let id = resolve_id::resolve_run(&services.store, &arguments.run)?;
    let said = match services.control().resume(&id)? {
        PauseOutcome::Recorded => "goes on",
        PauseOutcome::Already | PauseOutcome::NoTurns => "is not paused",
        PauseOutcome::Over => "has already ended",
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(CliExitCode::Done)
}
