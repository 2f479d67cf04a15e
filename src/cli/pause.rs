//! `revdeck pause`: a run asks its model for nothing until it is resumed.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use super::{output, resolve};
use crate::config::Texts;
use crate::runner::Pausing;

/// Arguments of `pause`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its id, the beginning of it, or `latest`
    run: String,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let (runner, _) = invocation.reading_session(Texts::Smells)?.into_runner();
    let id = resolve::run(&runner.store, &arguments.run)?;
    let said = match runner.pause(&id)? {
        Pausing::Recorded => "pauses: what is being answered still comes in, nothing more is asked",
        Pausing::Already => "is paused already",
        Pausing::Over => "has already ended",
        Pausing::NoTurns => {
            return Err(CliError::usage(format!("the run {id} cannot pause: its reviewer asks no model"))
                .hint(format!("`revdeck cancel {id} --reason TEXT` ends it")));
        }
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(Exit::Done)
}
