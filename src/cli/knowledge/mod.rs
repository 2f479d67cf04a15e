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
mod show;
mod stats;
mod told;
mod wipe;

use clap::{Args, Subcommand};

use super::error::{CliError, Exit};
use super::output;
use super::session::{self, Invocation};
use crate::config::Texts;
use crate::domain::text::one_line;
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::knowledge::base;
use crate::knowledge::cache::Cache;
use crate::knowledge::pattern::Pattern;
use crate::provider::builtin::language::Language;
use crate::report::Look;

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
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the patterns, the most useful of each language first
    List(list::Arguments),
    /// Show one pattern
    Show(show::Arguments),
    /// Write what was learned as one JSON file that others can import; it holds no code
    Export(export::Arguments),
    /// Take in what somebody exported; nothing counts twice
    Import(import::Arguments),
    /// Learn from the commits of a repository that say they fix something
    Learn(learn::Arguments),
    /// Take patterns out for good: they are not learned or imported again; begin to count a kind anew
    Forget(forget::Arguments),
    /// Keep patterns from being used, or a kind from being lowered
    Mute(mute::Arguments),
    /// Have muted patterns or kinds used again
    Unmute(mute::Arguments),
    /// How well learned patterns point at buggy lines, on public fixes
    Evaluate(evaluate::Arguments),
    /// How many patterns there are, and how they have done
    Stats(stats::Arguments),
    /// Remove all that was learned, imported, muted and forgotten
    Wipe(wipe::Arguments),
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let cache = Cache::open(&invocation.paths.knowledge);
    let done = match &arguments.command {
        Command::List(arguments) => list::run(invocation, &cache, arguments),
        Command::Show(arguments) => show::run(invocation, &cache, arguments),
        Command::Evaluate(arguments) => evaluate::run(invocation, arguments),
        Command::Export(arguments) => export::run(&cache, arguments),
        Command::Import(arguments) => import::run(invocation, &cache, arguments),
        Command::Learn(arguments) => learn::run(invocation, &cache, arguments),
        Command::Forget(arguments) => forget::run(invocation, &cache, arguments),
        Command::Mute(arguments) => mute::run(invocation, &cache, arguments, MuteAction::Mute),
        Command::Unmute(arguments) => mute::run(invocation, &cache, arguments, MuteAction::Unmute),
        Command::Stats(arguments) => stats::run(invocation, &cache, arguments),
        Command::Wipe(arguments) => wipe::run(&cache, arguments),
    };
    for notice in cache.notices() {
        output::note(&format!("warning: {notice}"));
    }
    done
}

/// How to print, and the moment: without a repository.
fn look(invocation: &Invocation) -> Result<Look, CliError> {
    let loaded = invocation.reading_settings(None, Texts::None)?;
    Ok(session::look(&loaded, now(invocation)?))
}

fn now(invocation: &Invocation) -> Result<Time, CliError> {
    Ok(invocation.ambient()?.now())
}

/// What a person names to forget or mute it.
enum Named {
    Pattern(Language, PatternId),
    Kind(Language, Kind),
}

/// How a kind of findings of a language is named: `python/LONG_METHOD`.
fn name_of_kind(language: Language, kind: Kind) -> String {
    format!("{}/{kind}", language.name())
}

fn parse_language(name: &str) -> Result<Language, String> {
    base::language(name).ok_or_else(|| {
        let names: Vec<&str> = base::languages().map(Language::name).collect();
        format!("the languages are {}", names.join(", "))
    })
}

/// The pattern that `given` names: its id, or a prefix of one that only one has, with or without `k_`. With the language's
/// patterns at hand, one after the other.
fn find(cache: &Cache, given: &str) -> Result<(Language, Pattern), CliError> {
    let prefix = format!("k_{}", given.strip_prefix("k_").unwrap_or(given));
    let mut found = Vec::new();
    for language in base::languages() {
        let patterns = cache.patterns(language)?.into_iter();
        found.extend(patterns.filter(|one| one.id.as_str().starts_with(&prefix)).map(|pattern| (language, pattern)));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CliError::usage(format!("there is no pattern {:?}", one_line(given)))
            .hint("`revdeck knowledge list` lists them; what was forgotten is none")),
        _ => Err(CliError::usage(format!("{:?} is the beginning of several pattern ids", one_line(given)))
            .hint("write more of it; `revdeck knowledge list` lists them")),
    }
}

/// All that is named, in its order.
fn find_all(cache: &Cache, given: &[String]) -> Result<Vec<Named>, CliError> {
    let named = |given: &String| match given.split_once('/') {
        Some((language, kind)) => find_kind(cache, language, kind),
        None => find(cache, given).map(|(language, pattern)| Named::Pattern(language, pattern.id)),
    };
    given.iter().map(named).collect()
}

fn find_kind(cache: &Cache, language: &str, kind: &str) -> Result<Named, CliError> {
    let language = parse_language(language).map_err(CliError::usage)?;
    let counted = cache.known(language)?.kinds;
    let kind = kind.to_uppercase().parse().ok().filter(|kind| counted.contains_key(kind)).ok_or_else(|| {
        CliError::usage(format!(
            "no finding of {} was decided about that is of the kind {:?}",
            language.name(),
            one_line(kind)
        ))
        .hint("`revdeck knowledge list` lists the kinds that were counted")
    })?;
    Ok(Named::Kind(language, kind))
}
