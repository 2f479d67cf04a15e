//! `revdeck knowledge list`.

use clap::Args;
use serde_json::Value;

use super::{look, name_of_kind, parse_language, told};
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
    // Kinds are learned here, and only from what was dismissed or not.
    let with_kinds = arguments.origin.is_none_or(|origin| origin == Origin::Learned)
        && arguments.stance.is_none_or(|stance| stance == Stance::FalseAlarm);
    let (mut patterns, mut kinds) = (Vec::new(), Vec::new());
    for language in base::languages().filter(|language| arguments.language.is_none_or(|only| only == *language)) {
        let known = cache.known(language)?;
        if with_kinds {
            kinds.extend(known.kinds.into_iter().map(|(kind, tally)| (language, kind, tally)));
        }
        let mut of_language = known.patterns;
        of_language.retain(asked);
        of_language.sort_by(|a, b| {
            rank::usefulness(b, look.now).total_cmp(&rank::usefulness(a, look.now)).then_with(|| a.id.cmp(&b.id))
        });
        patterns.append(&mut of_language);
    }
    if arguments.format == PlainFormat::Json {
        let patterns: Vec<Value> = patterns.iter().map(|pattern| told::pattern(pattern, look.now)).collect();
        let kinds: Vec<Value> =
            kinds.iter().map(|(language, kind, tally)| told::kind(*language, *kind, tally)).collect();
        output::print_json(&json::versioned([("patterns", patterns.into()), ("kinds", kinds.into())]))?;
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
    for (language, kind, tally) in &kinds {
        let (paint, state) = match tally.lowers() {
            _ if tally.muted => (Paint::Faint, "muted"),
            Some(_) => (Paint::Good, "used"),
            None => (Paint::Faint, "watched"),
        };
        table.row([
            (Paint::Strong, name_of_kind(*language, *kind).as_str()),
            (Paint::Plain, language.name()),
            (Paint::Faint, Origin::Learned.word()),
            (paint, state),
            (Paint::Plain, ""),
            (Paint::Plain, &format!("{}x", tally.dismissed)),
            (Paint::Faint, "kind"),
            (Paint::Plain, &format!("{} dismissed, {} addressed", tally.dismissed, tally.addressed)),
        ]);
    }
    match table.is_empty() {
        true => output::print("no such patterns: `revdeck knowledge learn --history 500` learns from your fixes\n")?,
        false => output::print(&table.render(&look))?,
    }
    Ok(Exit::Done)
}
