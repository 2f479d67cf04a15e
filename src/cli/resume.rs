//! `revdeck resume`: a paused run goes on.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use super::{output, resolve};
use crate::config::Texts;
use crate::runner::Pausing;

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its id, the beginning of it, or `latest`
    run: String,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let (runner, _) = invocation.reading_session(Texts::Smells)?.into_runner();
    let id = resolve::run(&runner.store, &arguments.run)?;
    let said = match runner.resume(&id)? {
        Pausing::Recorded => "goes on",
        Pausing::Already | Pausing::NoTurns => "is not paused",
        Pausing::Over => "has already ended",
    };
    output::print(&format!("{id}  {said}\n"))?;
    Ok(Exit::Done)
}
