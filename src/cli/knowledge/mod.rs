//! `revdeck knowledge`: what reviews have taught, as abstract patterns without a line of anybody's code.
//!
//! Invariant: none of these commands needs a repository but `learn`, which reads its history.

mod evaluate;
mod export;
mod forget;
mod import;
mod learn;
mod list;
mod mute;
mod pattern_output;
mod show;
mod stats;
mod wipe;

use clap::{Args, Subcommand};

use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::knowledge::builtin_patterns;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::Pattern;
use crate::report::TextOptions;
use crate::syntax::language::Language;

/// What the long help says of patterns.
const ABOUT_PATTERNS: &str = "\
What reviews have taught: abstract patterns of mistakes and of false alarms.

A pattern has a broken and a fixed form: keywords, operators and names of the standard library stay, whatever is \
somebody's own is a placeholder such as VARIABLE or STRING, and comments never get in. Patterns come from findings that \
were addressed, from fixes, from dismissals, from history on request, from files of others, and some with revdeck. \
`learning.enabled = false` in the settings, in a repository's .revdeck.toml too, or --no-learning: nothing is learned.

A pattern is used once its confidence is 0.85, or 0.65 when it was seen three times or is curated; from 0.45 it is watched. It is raised \
by findings that are addressed, and lowered by those that are dismissed.

Dismissals count by kind as well: once five findings of a kind, of two files or more, were dismissed in a language and none \
was addressed, new ones are a priority lower. `list` shows the kinds, `forget` and `mute` take them as python/LONG_METHOD; \
they are this machine's own and are not exported.";

/// Arguments of `knowledge`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT_PATTERNS)]
pub struct KnowledgeArgs {
    #[command(subcommand)]
    command: KnowledgeCommand,
}

#[derive(Debug, Subcommand)]
enum KnowledgeCommand {
    /// List the patterns, the most useful of each language first
    List(list::KnowledgeListArgs),
    /// Show one pattern
    Show(show::KnowledgeShowArgs),
    /// Write what was learned as one JSON file that others can import; it holds no code
    Export(export::KnowledgeExportArgs),
    /// Take in what somebody exported; nothing counts twice
    Import(import::KnowledgeImportArgs),
    /// Learn from the commits of a repository that say they fix something
    Learn(learn::KnowledgeLearnArgs),
    /// Take patterns out for good: they are not learned or imported again; begin to count a kind anew
    Forget(forget::KnowledgeForgetArgs),
    /// Keep patterns from being used, or a kind from being lowered
    Mute(mute::KnowledgeMuteArgs),
    /// Have muted patterns or kinds used again
    Unmute(mute::KnowledgeMuteArgs),
    /// How well learned patterns point at buggy lines, on public fixes
    Evaluate(evaluate::KnowledgeEvaluateArgs),
    /// How many patterns there are, and how they have done
    Stats(stats::KnowledgeStatsArgs),
    /// Remove all that was learned, imported, muted and forgotten
    Wipe(wipe::KnowledgeWipeArgs),
}

pub fn run(invocation: &Invocation, arguments: &KnowledgeArgs) -> Result<CliExitCode, CliError> {
    let cache = KnowledgeCache::open(&invocation.paths.knowledge);
    let done = match &arguments.command {
        KnowledgeCommand::List(arguments) => list::run(invocation, &cache, arguments),
        KnowledgeCommand::Show(arguments) => show::run(invocation, &cache, arguments),
        KnowledgeCommand::Evaluate(arguments) => evaluate::run(invocation, arguments),
        KnowledgeCommand::Export(arguments) => export::run(&cache, arguments),
        KnowledgeCommand::Import(arguments) => import::run(invocation, &cache, arguments),
        KnowledgeCommand::Learn(arguments) => learn::run(invocation, &cache, arguments),
        KnowledgeCommand::Forget(arguments) => forget::run(invocation, &cache, arguments),
        KnowledgeCommand::Mute(arguments) => mute::run(invocation, &cache, arguments, MuteAction::Mute),
        KnowledgeCommand::Unmute(arguments) => mute::run(invocation, &cache, arguments, MuteAction::Unmute),
        KnowledgeCommand::Stats(arguments) => stats::run(invocation, &cache, arguments),
        KnowledgeCommand::Wipe(arguments) => wipe::run(&cache, arguments),
    };
    for notice in cache.take_notices() {
        output::print_note(&format!("warning: {notice}"));
    }
    done
}

/// How to print, and the moment: without a repository.
fn load_look(invocation: &Invocation) -> Result<TextOptions, CliError> {
    let loaded = invocation.load_reading_settings(None, RequiredAssets::None)?;
    Ok(session::detect_look(&loaded, current_time(invocation)?))
}

fn current_time(invocation: &Invocation) -> Result<Time, CliError> {
    Ok(invocation.clock_and_ids()?.now())
}

/// What a person names to forget or mute it.
enum PatternOrKind {
    Pattern(Language, PatternId),
    Kind(Language, Kind),
}

/// How a kind of findings of a language is named: `python/LONG_METHOD`.
fn format_kind_name(language: Language, kind: Kind) -> String {
    format!("{}/{kind}", language.name())
}

fn parse_language(name: &str) -> Result<Language, String> {
    builtin_patterns::find_language(name).ok_or_else(|| {
        let names: Vec<&str> = builtin_patterns::languages().map(Language::name).collect();
        format!("the languages are {}", names.join(", "))
    })
}

/// The pattern that `given` names: its id, or a prefix of one that only one has, with or without `k_`. With the language's
/// patterns at hand, one after the other.
fn find_pattern(cache: &KnowledgeCache, given: &str) -> Result<(Language, Pattern), CliError> {
    let prefix = format!("k_{}", given.strip_prefix("k_").unwrap_or(given));
    let mut found = Vec::new();
    for language in builtin_patterns::languages() {
        let patterns = cache.patterns(language)?.into_iter();
        found.extend(patterns.filter(|one| one.id.as_str().starts_with(&prefix)).map(|pattern| (language, pattern)));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CliError::usage(format!("there is no pattern {:?}", sanitize_line(given)))
            .hint("`revdeck knowledge list` lists them; what was forgotten is none")),
        _ => Err(CliError::usage(format!("{:?} is the beginning of several pattern ids", sanitize_line(given)))
            .hint("write more of it; `revdeck knowledge list` lists them")),
    }
}

/// All that is named, in its order.
fn find_targets(cache: &KnowledgeCache, given: &[String]) -> Result<Vec<PatternOrKind>, CliError> {
    let named = |given: &String| match given.split_once('/') {
        Some((language, kind)) => find_kind(cache, language, kind),
        None => find_pattern(cache, given).map(|(language, pattern)| PatternOrKind::Pattern(language, pattern.id)),
    };
    given.iter().map(named).collect()
}

fn find_kind(cache: &KnowledgeCache, language: &str, kind: &str) -> Result<PatternOrKind, CliError> {
    let language = parse_language(language).map_err(CliError::usage)?;
    let counted = cache.load_language(language)?.kinds;
    let kind = kind.to_uppercase().parse().ok().filter(|kind| counted.contains_key(kind)).ok_or_else(|| {
        CliError::usage(format!(
            "no finding of {} was decided about that is of the kind {:?}",
            language.name(),
            sanitize_line(kind)
        ))
        .hint("`revdeck knowledge list` lists the kinds that were counted")
    })?;
    Ok(PatternOrKind::Kind(language, kind))
}
