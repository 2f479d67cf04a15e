//! `revdeck indexer COMMIT` (hidden): reads a tree into the repository's index. Started by `revdeck context`, never by hand.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use crate::config::Texts;

/// Arguments of `indexer`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The commit, by its whole id
    commit: String,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let (runner, _) = invocation.session(Texts::None)?.into_runner();
    runner.work_on_index(&arguments.commit);
    Ok(Exit::Done)
}
