//! `revdeck knowledge list`.

use clap::Args;
use serde_json::Value;

use super::{look, parse_language, told};
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::base;
use crate::knowledge::cache::Cache;
use crate::knowledge::pattern::{Origin, Pattern, Stance};
use crate::knowledge::rank::{self, State};
use crate::provider::builtin::language::Language;
use crate::report::{Paint, Table, json};

/// Arguments of `knowledge list`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only of this language
    #[arg(long, value_name = "NAME", value_parser = parse_language)]
    language: Option<Language>,
    /// Only learned, base or imported ones
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<Origin>,
    /// Only mistake or false_alarm
    #[arg(long, value_name = "STANCE")]
    stance: Option<Stance>,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let look = look(invocation)?;
    let asked = |pattern: &Pattern| {
        arguments.origin.is_none_or(|origin| origin == pattern.origin)
            && arguments.stance.is_none_or(|stance| stance == pattern.stance)
    };
    let mut patterns = Vec::new();
    for language in base::languages().filter(|language| arguments.language.is_none_or(|only| only == *language)) {
        let mut of_language = cache.patterns(language)?;
        of_language.retain(asked);
        of_language.sort_by(|a, b| {
            rank::usefulness(b, look.now).total_cmp(&rank::usefulness(a, look.now)).then_with(|| a.id.cmp(&b.id))
        });
        patterns.append(&mut of_language);
    }
    if arguments.format == PlainFormat::Json {
        let patterns: Vec<Value> = patterns.iter().map(|pattern| told::pattern(pattern, look.now)).collect();
        output::print_json(&json::versioned([("patterns", patterns.into())]))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::default();
    for pattern in &patterns {
        let standing = rank::standing(pattern, look.now);
        let state = standing.state(pattern);
        let paint = if state == State::Used { Paint::Good } else { Paint::Faint };
        table.row([
            (Paint::Strong, pattern.id.as_str()),
            (Paint::Plain, pattern.language.as_str()),
            (Paint::Faint, pattern.origin.word()),
            (paint, state.words()),
            (Paint::Plain, &format!("{:.2}", standing.confidence)),
            (Paint::Plain, &format!("{}x", pattern.seen())),
            (Paint::Faint, if pattern.stance == Stance::FalseAlarm { "false alarm" } else { "" }),
            (Paint::Plain, &told::forms(pattern)),
        ]);
    }
    match table.is_empty() {
        true => output::print("no such patterns: `revdeck knowledge learn --history 500` learns from your fixes\n")?,
        false => output::print(&table.render(&look))?,
    }
    Ok(Exit::Done)
}
