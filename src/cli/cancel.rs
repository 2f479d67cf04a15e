//! `revdeck cancel`: end a run, with the reason on record.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use super::{output, resolve};
use crate::config::Texts;
use crate::runner::Cancelled;

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its id, the beginning of it, or `latest`
    run: String,
    /// Why; it is kept with the run
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    if arguments.reason.trim().is_empty() {
        return Err(CliError::usage("the reason is empty").hint("write --reason TEXT: it is kept with the run"));
    }
    let (runner, _) = invocation.reading_session(Texts::Smells)?.into_runner();
    let id = resolve::run(&runner.store, &arguments.run)?;
    let said = match runner.cancel(&id, arguments.reason.trim())? {
        Cancelled::BeforeStart => "cancelled before it began",
        Cancelled::ByWorker => "cancelled",
        Cancelled::Killed => "cancelled; its worker did not answer and was ended",
        Cancelled::AlreadyOver => {
            let status = runner.store.run(&id)?.map_or(String::new(), |run| format!(": it is {}", run.status));
            output::print(&format!("{id}  has already ended{status}\n"))?;
            return Ok(Exit::Done);
        }
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(Exit::Done)
}
