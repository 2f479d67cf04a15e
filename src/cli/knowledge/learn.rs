//! `revdeck knowledge learn`: learns patterns from decisions about findings or from the history of a repository.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::current_time;
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::config::{LoadedSettings, RequiredAssets};
use crate::domain::text::format_count;
use crate::git::Repo;
use crate::knowledge::cache::{KnowledgeCache, LearningSummary, PatternObservation};
use crate::knowledge::history_mining;
use crate::knowledge::pattern::{PatternEvidence, PatternStance};
use crate::report::json;

/// Number of edits that are merged at once, before the least useful patterns are evicted. They come from about 40,000
/// fixes and take some hundred megabytes.
const EDITS_PER_BATCH: usize = 100_000;

/// Arguments of `knowledge learn`.
#[derive(Debug, Args)]
pub struct KnowledgeLearnArgs {
    /// Learn from fixes among this many newest commits; without it, learn from decisions about findings, as workers do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    history: Option<u32>,
    /// Use the repository in this folder instead of the current one
    #[arg(long, value_name = "FOLDER")]
    repo: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge learn`.
///
/// # Errors
///
/// Returns an error outside of a repository, or if learning is disabled.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeLearnArgs,
) -> Result<CliExitCode, CliError> {
    let folder = arguments.repo.clone().map_or_else(Invocation::current_folder, Ok)?;
    let repo = Repo::discover(&folder)?;
    let loaded = invocation.load_settings(Some(&repo.root()), RequiredAssets::None)?;
    if !loaded.settings.learning.enabled {
        return Err(learning_off_error(&loaded));
    }
    let Some(history) = arguments.history else { return learn_decisions(invocation, &repo, cache, arguments.format) };
    let now = current_time(invocation)?;
    let (mut observations, mut learned, mut done) = (Vec::new(), LearningSummary::default(), Ok(()));
    let mined = history_mining::mine_fixes(&repo, history as usize, &mut |mined| {
        observations.push(PatternObservation {
            language: mined.language,
            stance: PatternStance::Mistake,
            kind: mined.edit.edit.default_kind(),
            broken: mined.edit.broken,
            fixed: mined.edit.fixed,
            edit: mined.edit.edit,
            evidence: PatternEvidence::History,
            source: mined.commit,
            at: mined.at,
        });
        if observations.len() < EDITS_PER_BATCH {
            return ControlFlow::Continue(());
        }
        done = cache.learn(&observations, now).map(|more| learned += more);
        observations.clear();
        // Stop reading history after a write error.
        if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    done?;
    learned += cache.learn(&observations, now)?;
    match arguments.format {
        PlainFormat::Json => output::print_json(&json::build_versioned([
            ("commits", json!(mined.commits)),
            ("fixes", json!(mined.fixes)),
            ("edits", json!(mined.edits)),
            ("learned", json!(learned)),
        ]))?,
        PlainFormat::Text => {
            let [commits, fixes, edits] = [(mined.commits, "commit"), (mined.fixes, "fix"), (mined.edits, "edit")]
                .map(|(number, what)| format_count(number, what));
            let read = format!("{commits} read, {fixes} among them with {edits} to learn from");
            output::print(&format_summary(&read, learned))?;
        }
    }
    Ok(CliExitCode::Done)
}

/// Learns from decisions about findings until none is left.
fn learn_decisions(
    invocation: &Invocation,
    repo: &Repo,
    cache: &KnowledgeCache,
    format: PlainFormat,
) -> Result<CliExitCode, CliError> {
    let services = invocation.open_runner_at(&repo.root(), RequiredAssets::None)?;
    let (mut findings, mut learned) = (0, LearningSummary::default());
    loop {
        let taught = services.learning().learn(cache)?;
        findings += taught.findings;
        learned += taught.learned;
        if !taught.more {
            break;
        }
    }
    match format {
        PlainFormat::Json => {
            output::print_json(&json::build_versioned([("findings", json!(findings)), ("learned", json!(learned))]))?;
        }
        PlainFormat::Text => {
            let read = format!("decisions about {} read", format_count(findings, "finding"));
            output::print(&format_summary(&read, learned))?;
        }
    }
    Ok(CliExitCode::Done)
}

fn format_summary(read: &str, learned: LearningSummary) -> String {
    let LearningSummary { new, again, counted, forgotten, too_much, refused, evicted } = learned;
    let mut said =
        format!("{read}: {} new, {again} seen again, {counted} counted before\n", format_count(new, "pattern"));
    for (number, what) in [
        (forgotten, "not learned: forgotten before"),
        (too_much, "not counted: more of a language cannot be told apart from what was counted before"),
        (refused, "not learned: they would tell something of the code"),
        (evicted, "taken out to make room: the least useful"),
    ] {
        if number > 0 {
            said.push_str(&format!("{number} {what}\n"));
        }
    }
    said
}

/// Creates the error for disabled learning: says which setting disabled it and how to enable it.
fn learning_off_error(loaded: &LoadedSettings) -> CliError {
    let setting = loaded.entries.iter().find(|setting| setting.key == "learning.enabled");
    let place = setting.and_then(|setting| setting.origin.location()).map(|place| format!(" by {place}"));
    CliError::usage(format!("learning is off{}", place.unwrap_or_default()))
        .hint("learning.enabled = true in your settings turns it on, where the repository does not say otherwise")
}
