//! `revdeck knowledge stats`: prints the number of patterns and their success rates by language.

use clap::Args;
use serde_json::Value;

use super::{load_look, pattern_output};
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::builtin_patterns;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::totals::KnowledgeTotals;
use crate::report::{TextStyle, TextTable, json};

/// Arguments of `knowledge stats`.
#[derive(Debug, Args)]
pub struct KnowledgeStatsArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge stats`.
///
/// # Errors
///
/// Returns an error if the cache cannot be read.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeStatsArgs,
) -> Result<CliExitCode, CliError> {
    let look = load_look(invocation)?;
    let (mut all, mut languages) = (KnowledgeTotals::default(), Vec::new());
    for language in builtin_patterns::languages() {
        let figures = KnowledgeTotals::from_language(&cache.load_language(language)?, look.now);
        all.merge(&figures);
        languages.push((language.name(), figures));
    }
    if arguments.format == PlainFormat::Json {
        let languages: Vec<Value> =
            languages.iter().map(|(name, figures)| pattern_output::totals_to_json(figures, Some(name))).collect();
        output::print_json(&json::build_versioned([
            ("totals", pattern_output::totals_to_json(&all, None)),
            ("languages", languages.into()),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let mut table = TextTable::default();
    let numbers = ["patterns", "learned", "base", "imported", "used", "watched", "muted", "forgotten", "kinds lowered"];
    let head = ["language"].into_iter().chain(numbers).chain(["outcomes"]);
    table.push_row(head.map(|name| (TextStyle::Faint, name)));
    for (name, figures) in languages.iter().map(|(name, figures)| (*name, figures)).chain([("all", &all)]) {
        let numbers = [
            figures.patterns,
            figures.learned,
            figures.base,
            figures.imported,
            figures.used,
            figures.watched,
            figures.muted,
            figures.forgotten,
            figures.kinds,
        ];
        let (rate, bound) = figures.rates();
        let mut cells = vec![name.to_owned()];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(pattern_output::format_rate(figures.successes, figures.failures, rate, bound));
        table.push_row(cells.iter().map(|cell| (TextStyle::Plain, cell.as_str())));
    }
    output::print(&table.render(&look))?;
    Ok(CliExitCode::Done)
}
