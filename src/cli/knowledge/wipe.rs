//! `revdeck knowledge wipe`: deletes everything that was learned, imported, muted or forgotten.

use clap::Args;

use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::domain::text::format_count;
use crate::knowledge::cache::KnowledgeCache;

/// Arguments of `knowledge wipe`.
#[derive(Debug, Args)]
pub struct KnowledgeWipeArgs {
    /// Confirm the deletion; it cannot be undone
    #[arg(long)]
    yes: bool,
}

/// Runs `revdeck knowledge wipe`.
///
/// # Errors
///
/// Returns an error without `--yes`, or if a file cannot be removed.
pub fn run(cache: &KnowledgeCache, arguments: &KnowledgeWipeArgs) -> Result<CliExitCode, CliError> {
    if !arguments.yes {
        return Err(CliError::usage("this removes all that was learned, imported, muted and forgotten, for good")
            .hint(
                "`revdeck knowledge export FILE` keeps what can be shared; `revdeck knowledge wipe --yes` removes it",
            ));
    }
    let removed = cache.wipe()?;
    output::print(&format!(
        "{} removed: nothing is known but what came with revdeck\n",
        format_count(removed, "file")
    ))?;
    Ok(CliExitCode::Done)
}
