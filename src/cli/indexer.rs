//! `revdeck indexer COMMIT` (hidden): indexes the tree of a commit and reads its history. `revdeck context` starts it,
//! never a user.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::context::read_ahead::ContextSources;
use crate::runner::limit_memory;

/// Arguments of `indexer`.
#[derive(Debug, Args)]
pub struct IndexerArgs {
    /// Full id of the commit
    commit: String,
    /// Full id of the commit whose history is read [default: COMMIT]
    #[arg(long, value_name = "COMMIT")]
    history: Option<String>,
}

/// Runs `revdeck indexer`.
///
/// # Errors
///
/// Returns an error outside of a repository.
pub fn run(invocation: &Invocation, arguments: &IndexerArgs) -> Result<CliExitCode, CliError> {
    // Before any thread starts.
    limit_memory();
    let (services, _) = invocation.open_session(RequiredAssets::None)?.into_runner();
    let history = arguments.history.as_ref().unwrap_or(&arguments.commit).clone();
    services.indexer().run_indexer(&ContextSources { tree: arguments.commit.clone(), history });
    Ok(CliExitCode::Done)
}
