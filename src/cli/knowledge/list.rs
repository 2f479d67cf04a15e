//! `revdeck knowledge list`: lists patterns and the kinds that are counted.

use clap::Args;
use serde_json::Value;

use super::{format_kind_name, load_look, parse_language, pattern_output};
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::builtin_patterns;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::{Pattern, PatternOrigin, PatternStance};
use crate::knowledge::rank::{self, PatternState};
use crate::report::{TextStyle, TextTable, json};
use crate::syntax::language::Language;

/// Arguments of `knowledge list`.
#[derive(Debug, Args)]
pub struct KnowledgeListArgs {
    /// Show only patterns of this language
    #[arg(long, value_name = "NAME", value_parser = parse_language)]
    language: Option<Language>,
    /// Show only patterns of this origin: learned, base or imported
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<PatternOrigin>,
    /// Show only this stance: mistake or false_alarm
    #[arg(long, value_name = "STANCE")]
    stance: Option<PatternStance>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge list`.
///
/// # Errors
///
/// Returns an error if the cache cannot be read.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeListArgs,
) -> Result<CliExitCode, CliError> {
    let look = load_look(invocation)?;
    let asked = |pattern: &Pattern| {
        arguments.origin.is_none_or(|origin| origin == pattern.origin)
            && arguments.stance.is_none_or(|stance| stance == pattern.stance)
    };
    // Counted kinds are always learned on this machine and about false alarms.
    let with_kinds = arguments.origin.is_none_or(|origin| origin == PatternOrigin::Learned)
        && arguments.stance.is_none_or(|stance| stance == PatternStance::FalseAlarm);
    let (mut patterns, mut kinds) = (Vec::new(), Vec::new());
    for language in
        builtin_patterns::languages().filter(|language| arguments.language.is_none_or(|only| only == *language))
    {
        let known = cache.load_language(language)?;
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
        let patterns: Vec<Value> =
            patterns.iter().map(|pattern| pattern_output::pattern_to_json(pattern, look.now)).collect();
        let kinds: Vec<Value> =
            kinds.iter().map(|(language, kind, tally)| pattern_output::kind_to_json(*language, *kind, tally)).collect();
        output::print_json(&json::build_versioned([("patterns", patterns.into()), ("kinds", kinds.into())]))?;
        return Ok(CliExitCode::Done);
    }
    let mut table = TextTable::default();
    for pattern in &patterns {
        let standing = rank::assess_pattern(pattern, look.now);
        let state = standing.state(pattern);
        let paint = if state == PatternState::Used { TextStyle::Good } else { TextStyle::Faint };
        table.push_row([
            (TextStyle::Strong, pattern.id.as_str()),
            (TextStyle::Plain, pattern.language.as_str()),
            (TextStyle::Faint, pattern.origin.word()),
            (paint, state.label()),
            (TextStyle::Plain, &format!("{:.2}", standing.confidence)),
            (TextStyle::Plain, &format!("{}x", pattern.times_seen())),
            (TextStyle::Faint, if pattern.stance == PatternStance::FalseAlarm { "false alarm" } else { "" }),
            (TextStyle::Plain, &pattern_output::format_forms(pattern)),
        ]);
    }
    for (language, kind, tally) in &kinds {
        let (paint, state) = match tally.lowering_dismissals() {
            _ if tally.muted => (TextStyle::Faint, "muted"),
            Some(_) => (TextStyle::Good, "used"),
            None => (TextStyle::Faint, "watched"),
        };
        table.push_row([
            (TextStyle::Strong, format_kind_name(*language, *kind).as_str()),
            (TextStyle::Plain, language.name()),
            (TextStyle::Faint, PatternOrigin::Learned.word()),
            (paint, state),
            (TextStyle::Plain, ""),
            (TextStyle::Plain, &format!("{}x", tally.dismissed)),
            (TextStyle::Faint, "kind"),
            (TextStyle::Plain, &format!("{} dismissed, {} addressed", tally.dismissed, tally.addressed)),
        ]);
    }
    match table.is_empty() {
        true => output::print("no such patterns: `revdeck knowledge learn --history 500` learns from your fixes\n")?,
        false => output::print(&table.render(&look))?,
    }
    Ok(CliExitCode::Done)
}
