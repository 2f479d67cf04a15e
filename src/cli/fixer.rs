//! `revdeck fixer FIX` (hidden): makes one fix. Started by the runner, never by hand.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::FixId;

/// Arguments of `fixer`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The fix, by its whole id
    fix: FixId,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let (runner, _) = invocation.session(Texts::Smells)?.into_runner();
    runner.work_on_fix(&arguments.fix)?;
    Ok(Exit::Done)
}
