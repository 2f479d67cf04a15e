//! `revdeck cancel`: cancels a run and stores the reason.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::policy;
use crate::runner::CancelOutcome;

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Run: an id, the beginning of an id, or `latest`
    #[arg(add = ArgValueCandidates::new(complete::list_runs))]
    run: String,
    /// Reason, stored with the run
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Runs `revdeck cancel`.
///
/// # Errors
///
/// Returns an error if the run is unknown or its worker cannot be stopped.
pub fn run(invocation: &Invocation, arguments: &CancelArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::Smells)?.into_runner();
    let id = resolve_id::resolve_run(&services.store, &arguments.run)?;
    let run = services.store.run(&id)?;
    let is_panel = run.as_ref().is_some_and(|run| run.links.panel.is_some());
    let asked_by = run.map(|run| run.source);
    let actor = invocation.actor()?;
    if !asked_by.is_some_and(|source| policy::may_cancel(actor.actor, source)) {
        actor.require_person("cancel a review that no assistant asked for")?;
    }
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.unwrap_or("from the command line");
    let said = match services.control().cancel(&id, reason)? {
        CancelOutcome::BeforeStart if is_panel => "cancelled, with its members",
        CancelOutcome::BeforeStart => "cancelled before it began",
        CancelOutcome::ByWorker => "cancelled",
        CancelOutcome::Killed => "cancelled; its worker did not answer and was ended",
        CancelOutcome::AlreadyOver => {
            let status = services.store.run(&id)?.map_or(String::new(), |run| format!(": it is {}", run.status));
            output::print(&format!("{id}  has already ended{status}\n"))?;
            return Ok(CliExitCode::Done);
        }
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(CliExitCode::Done)
}
