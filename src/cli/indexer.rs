//! `revdeck indexer COMMIT` (hidden): reads a tree into the repository's index. Started by `revdeck context`, never by hand.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;

/// Arguments of `indexer`.
#[derive(Debug, Args)]
pub struct IndexerArgs {
    /// The commit, by its whole id
    commit: String,
}

pub fn run(invocation: &Invocation, arguments: &IndexerArgs) -> Result<CliExitCode, CliError> {
    let (runner, _) = invocation.open_session(RequiredAssets::None)?.into_runner();
    runner.run_indexer(&arguments.commit);
    Ok(CliExitCode::Done)
}
