//! `revdeck knowledge export`: writes learned patterns as JSON.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;

use super::parse_language;
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::domain::text::format_count;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::exchange;
use crate::store::files::{self, ExistingPolicy};
use crate::syntax::language::Language;

/// Arguments of `knowledge export`.
#[derive(Debug, Args)]
pub struct KnowledgeExportArgs {
    /// Output file [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Export only patterns of this language
    #[arg(long, value_name = "NAME", value_parser = parse_language)]
    language: Option<Language>,
    /// Output format; only json is accepted
    #[arg(long, value_enum, default_value = "json", value_name = "FORMAT", hide = true)]
    format: PlainFormat,
}

/// Runs `revdeck knowledge export`.
///
/// # Errors
///
/// Returns an error if the cache cannot be read or the file cannot be written.
pub fn run(cache: &KnowledgeCache, arguments: &KnowledgeExportArgs) -> Result<CliExitCode, CliError> {
    if arguments.format == PlainFormat::Text {
        return Err(CliError::usage("an export is JSON").hint("`revdeck knowledge list` shows the patterns as text"));
    }
    let export = exchange::export_patterns(cache, arguments.language)?;
    let Some(path) = &arguments.file else {
        output::print_json(&export)?;
        return Ok(CliExitCode::Done);
    };
    write_export(path, format!("{}\n", output::to_json_text(&export)).as_bytes())?;
    let patterns = export["patterns"].as_array().map_or(0, Vec::len);
    output::print(&format!("{} in {}\n", format_count(patterns, "pattern"), output::format_path(path)))?;
    Ok(CliExitCode::Done)
}

/// Replaces a regular file atomically. Writes directly to anything else, such as a pipe.
fn write_export(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let failed = |error: &dyn Display| CliError::failed(format!("cannot write {}: {error}", path.display()));
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, bytes).map_err(|error| failed(&error));
    }
    // Replace the target of a symbolic link, not the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    files::write_atomically(path, bytes, ExistingPolicy::Replace).map_err(|error| failed(&error))
}
