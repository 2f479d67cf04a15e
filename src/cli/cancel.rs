//! `revdeck cancel`: end a run, with the reason on record.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{output, resolve_id};
use crate::config::RequiredAssets;
use crate::runner::CancelOutcome;

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The run: its id, the beginning of it, or `latest`
    run: String,
    /// Why; it is kept with the run
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub fn run(invocation: &Invocation, arguments: &CancelArgs) -> Result<CliExitCode, CliError> {
    if arguments.reason.trim().is_empty() {
        return Err(CliError::usage("the reason is empty").hint("write --reason TEXT: it is kept with the run"));
    }
    let (runner, _) = invocation.open_reading_session(RequiredAssets::Smells)?.into_runner();
    let id = resolve_id::resolve_run(&runner.store, &arguments.run)?;
    let said = match runner.cancel(&id, arguments.reason.trim())? {
        CancelOutcome::BeforeStart => "cancelled before it began",
        CancelOutcome::ByWorker => "cancelled",
        CancelOutcome::Killed => "cancelled; its worker did not answer and was ended",
        CancelOutcome::AlreadyOver => {
            let status = runner.store.run(&id)?.map_or(String::new(), |run| format!(": it is {}", run.status));
            output::print(&format!("{id}  has already ended{status}\n"))?;
            return Ok(CliExitCode::Done);
        }
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(CliExitCode::Done)
}
