//! `revdeck knowledge`: manages learned patterns, which are abstract and contain no user code.
//!
//! Invariant: only `learn` needs a repository around the current folder. `evaluate` reads the sources that it is given.

#[cfg(feature = "eval")]
mod evaluate;
mod export;
mod forget;
mod import;
mod learn;
mod list;
mod mute;
mod overview;
pub(in crate::cli) mod pattern_output;
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

/// Long help: explanation of patterns.
const ABOUT_PATTERNS: &str = "\
Manage learned patterns: abstract forms of mistakes and of false alarms.

A pattern has a broken form and a fixed form. Keywords, operators and names of the standard library are kept; all \
other names and literals become placeholders such as VARIABLE or STRING; comments are removed. Patterns come from \
addressed findings, applied fixes, dismissals, the history (on request) and imported files; some ship with revdeck. \
`learning.enabled = false` in your settings or in a repository's .revdeck.toml, or --no-learning, disables learning.

A pattern is used once its confidence is 0.85, or 0.65 if it was seen three times or is curated; from 0.45 it is \
watched. Addressed findings raise the confidence, dismissed findings lower it. A fix that failed its check, was dropped or was \
undone lowers it by a third of a dismissal.

Dismissals also count by kind and language: after five dismissed findings in two or more files, and none addressed, \
new findings of the kind are one priority lower. `list` shows the kinds; `forget` and `mute` accept them as \
python/LONG_METHOD. Kinds belong to this machine and are not exported.";

/// Arguments of `knowledge`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT_PATTERNS)]
pub struct KnowledgeArgs {
    #[command(subcommand)]
    command: Option<KnowledgeCommand>,
    #[command(flatten)]
    overview: overview::KnowledgeOverviewArgs,
}

#[derive(Debug, Subcommand)]
enum KnowledgeCommand {
    /// List patterns, the most useful of each language first
    List(list::KnowledgeListArgs),
    /// Show a pattern
    Show(show::KnowledgeShowArgs),
    /// Export patterns as JSON for others to import; the file contains no code
    Export(export::KnowledgeExportArgs),
    /// Import exported patterns; nothing is counted twice
    Import(import::KnowledgeImportArgs),
    /// Learn from decisions about findings, or from commits that fix something
    Learn(learn::KnowledgeLearnArgs),
    /// Delete patterns permanently; restart the count of a kind
    Forget(forget::KnowledgeForgetArgs),
    /// Stop using patterns, or stop lowering the priority of a kind
    Mute(mute::KnowledgeMuteArgs),
    /// Use muted patterns and kinds again
    Unmute(mute::KnowledgeMuteArgs),
    /// Measure on public fixes how well patterns point at buggy lines
    #[cfg(feature = "eval")]
    Evaluate(evaluate::KnowledgeEvaluateArgs),
    /// Show the number of patterns and their success rates
    Stats(stats::KnowledgeStatsArgs),
    /// Delete everything that was learned, imported, muted or forgotten
    Wipe(wipe::KnowledgeWipeArgs),
}

/// Runs `revdeck knowledge`; without a subcommand, it prints an overview.
///
/// # Errors
///
/// Returns the error of the subcommand.
pub fn run(invocation: &Invocation, arguments: &KnowledgeArgs) -> Result<CliExitCode, CliError> {
    let cache = KnowledgeCache::open(&invocation.paths.knowledge);
    let done = run_command(invocation, &cache, arguments);
    for notice in cache.take_notices() {
        output::print_note(&format!("warning: {notice}"));
    }
    done
}

fn run_command(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeArgs,
) -> Result<CliExitCode, CliError> {
    let Some(command) = &arguments.command else { return overview::run(invocation, cache, &arguments.overview) };
    match command {
        KnowledgeCommand::List(arguments) => list::run(invocation, cache, arguments),
        KnowledgeCommand::Show(arguments) => show::run(invocation, cache, arguments),
        #[cfg(feature = "eval")]
        KnowledgeCommand::Evaluate(arguments) => evaluate::run(invocation, arguments),
        KnowledgeCommand::Export(arguments) => export::run(cache, arguments),
        KnowledgeCommand::Import(arguments) => import::run(invocation, cache, arguments),
        KnowledgeCommand::Learn(arguments) => learn::run(invocation, cache, arguments),
        KnowledgeCommand::Forget(arguments) => forget::run(invocation, cache, arguments),
        KnowledgeCommand::Mute(arguments) => mute::run(invocation, cache, arguments, MuteAction::Mute),
        KnowledgeCommand::Unmute(arguments) => mute::run(invocation, cache, arguments, MuteAction::Unmute),
        KnowledgeCommand::Stats(arguments) => stats::run(invocation, cache, arguments),
        KnowledgeCommand::Wipe(arguments) => wipe::run(cache, arguments),
    }
}

/// Returns the text style and the current time. Needs no repository.
fn load_look(invocation: &Invocation) -> Result<TextOptions, CliError> {
    let loaded = invocation.load_reading_settings(None, RequiredAssets::None)?;
    Ok(session::detect_look(&loaded, current_time(invocation)?))
}

fn current_time(invocation: &Invocation) -> Result<Time, CliError> {
    Ok(invocation.clock_and_ids()?.now())
}

/// Target of `forget`, `mute` and `unmute`.
enum PatternOrKind {
    Pattern(Language, PatternId),
    Kind(Language, Kind),
}

/// Formats a kind of findings of a language: `python/LONG_METHOD`.
fn format_kind_name(language: Language, kind: Kind) -> String {
    format!("{}/{kind}", language.name())
}

fn parse_language(name: &str) -> Result<Language, String> {
    builtin_patterns::find_language(name).ok_or_else(|| {
        let names: Vec<&str> = builtin_patterns::languages().map(Language::name).collect();
        format!("the languages are {}", names.join(", "))
    })
}

/// Finds a pattern by its id or a unique prefix of the id, with or without `k_`. Loads the patterns of one language at
/// a time.
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

/// Finds all named patterns and kinds, in the order of the arguments.
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
