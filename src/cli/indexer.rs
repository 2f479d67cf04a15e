//! `revdeck indexer COMMIT` (hidden): indexes the tree of a commit. `revdeck context` starts it, never a user.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::runner::limit_memory;

/// Arguments of `indexer`.
#[derive(Debug, Args)]
pub struct IndexerArgs {
    /// Full id of the commit
    commit: String,
}

/// Runs `revdeck indexer`.
///
/// # Errors
///
/// Returns an error outside of a repository.
pub fn run(invocation: &Invocation, arguments: &IndexerArgs) -> Result<CliExitCode, CliError> {
    // Before any thread starts.
    limit_memory();
    let (runner, _) = invocation.open_session(RequiredAssets::None)?.into_runner();
    runner.indexer().run_indexer(&arguments.commit);
    Ok(CliExitCode::Done)
}
