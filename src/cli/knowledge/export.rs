//! `revdeck knowledge export`.

use std::path::PathBuf;

use clap::Args;

use super::parse_language;
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::domain::text::count;
use crate::knowledge::cache::Cache;
use crate::knowledge::exchange;
use crate::provider::builtin::language::Language;

/// Arguments of `knowledge export`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Where to; by default to standard output
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only of this language
    #[arg(long, value_name = "NAME", value_parser = parse_language)]
    language: Option<Language>,
    /// An export is JSON either way
    #[arg(long, value_enum, default_value = "json", value_name = "FORMAT", hide = true)]
    format: PlainFormat,
}

pub fn run(cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    if arguments.format == PlainFormat::Text {
        return Err(CliError::usage("an export is JSON").hint("`revdeck knowledge list` shows the patterns as text"));
    }
    let export = exchange::export(cache, arguments.language)?;
    let Some(path) = &arguments.file else {
        output::print_json(&export)?;
        return Ok(Exit::Done);
    };
    std::fs::write(path, format!("{}\n", output::json_text(&export)))
        .map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))?;
    let patterns = export["patterns"].as_array().map_or(0, Vec::len);
    output::print(&format!("{} in {}\n", count(patterns, "pattern"), output::path(path)))?;
    Ok(Exit::Done)
}
