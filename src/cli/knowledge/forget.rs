//! `revdeck knowledge forget`: deletes patterns permanently, or restarts the count of kinds.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::{PatternOrKind, current_time, find_targets, format_kind_name};
use crate::cli::complete;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::cache::KnowledgeCache;

/// Arguments of `knowledge forget`.
#[derive(Debug, Args)]
pub struct KnowledgeForgetArgs {
    /// Patterns (ids or beginnings of ids) or kinds such as python/LONG_METHOD
    #[arg(value_name = "PATTERN", required = true, add = ArgValueCandidates::new(complete::list_patterns_and_kinds))]
    patterns: Vec<String>,
}

/// Runs `revdeck knowledge forget`.
///
/// # Errors
///
/// Returns an error if a pattern or kind is unknown.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeForgetArgs,
) -> Result<CliExitCode, CliError> {
    let now = current_time(invocation)?;
    let mut said = String::new();
    for named in find_targets(cache, &arguments.patterns)? {
        let line = match named {
            PatternOrKind::Pattern(language, id) => {
                cache.forget(language, std::slice::from_ref(&id), now)?;
                format!("{id}  forgotten: it is neither learned nor imported again\n")
            }
            PatternOrKind::Kind(language, kind) => {
                cache.forget_kind(language, kind, now)?;
                format!("{}  forgotten: its findings are counted anew\n", format_kind_name(language, kind))
            }
        };
        said.push_str(&line);
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}
