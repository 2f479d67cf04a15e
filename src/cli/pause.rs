//! `revdeck pause`: stops the requests of a run to its model until it is resumed.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::runner::PauseOutcome;

/// Arguments of `pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Run: an id, the beginning of an id, or `latest`
    #[arg(add = ArgValueCandidates::new(complete::list_runs))]
    run: String,
}

/// Runs `revdeck pause`.
///
/// # Errors
///
/// Returns an error if the run is unknown or its reviewer sends no requests to a model.
pub fn run(invocation: &Invocation, arguments: &PauseArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::Smells)?.into_runner();
    let id = resolve_id::resolve_run(&services.store, &arguments.run)?;
    let said = match services.control().pause(&id)? {
        PauseOutcome::Recorded => "pauses: what is being answered still comes in, nothing more is asked",
        PauseOutcome::Already => "is paused already",
        PauseOutcome::Over => "has already ended",
        PauseOutcome::NoTurns => {
            return Err(CliError::usage(format!("the run {id} cannot pause: its reviewer asks no model"))
                .hint(format!("`revdeck cancel {id}` ends it")));
        }
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(CliExitCode::Done)
}
