//! `revdeck worker RUN` (hidden): executes one run to its end. Started by the runner, never by hand.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::RunId;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run, by its whole id
    run: RunId,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let (runner, _) = invocation.session(Texts::Smells)?.into_runner();
    runner.work(&arguments.run)?;
    Ok(Exit::Done)
}
