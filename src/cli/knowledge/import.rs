//! `revdeck knowledge import`: merges an export into the knowledge cache.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::current_time;
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::text::format_count;
use crate::knowledge::cache::{KnowledgeCache, MergeSummary};
use crate::knowledge::exchange;
use crate::report::json;

/// Arguments of `knowledge import`.
#[derive(Debug, Args)]
pub struct KnowledgeImportArgs {
    /// File that `revdeck knowledge export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge import`.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is not an export.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeImportArgs,
) -> Result<CliExitCode, CliError> {
    let imported = exchange::import_patterns(cache, &arguments.file, current_time(invocation)?)?;
    let refused: usize = imported.refused.values().sum();
    if arguments.format == PlainFormat::Json {
        output::print_json(&json::build_versioned([("imported", json!(imported))]))?;
        return Ok(CliExitCode::Done);
    }
    let MergeSummary { new, more, unchanged, forgotten, evicted } = imported.merged;
    let mut said = format!("{} new, {more} with more counts, {unchanged} as they were\n", format_count(new, "pattern"));
    for (number, what) in
        [(forgotten, "forgotten before, and stayed so"), (evicted, "taken out to make room: the least useful")]
    {
        if number > 0 {
            said.push_str(&format!("{} {what}\n", format_count(number, "pattern")));
        }
    }
    output::print(&said)?;
    if refused > 0 {
        let reasons: Vec<String> = imported.refused.iter().map(|(reason, times)| format!("{reason} {times}")).collect();
        output::print_note(&format!(
            "warning: {} refused, by what was wrong with them: {}",
            format_count(refused, "pattern"),
            reasons.join(", ")
        ));
    }
    Ok(CliExitCode::Done)
}
