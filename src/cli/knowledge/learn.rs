//! `revdeck knowledge learn`: what the history of a repository teaches.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::now;
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::config::{Loaded, Texts};
use crate::domain::text::count;
use crate::git::Repo;
use crate::knowledge::cache::{Cache, Learned, Observation};
use crate::knowledge::mine;
use crate::knowledge::pattern::{Evidence, Stance};
use crate::report::json;

/// Edits of a history that are counted together, before the least useful go: of some 40,000 fixes. Own: some hundred
/// megabytes.
const AT_ONCE: usize = 100_000;

/// Arguments of `knowledge learn`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Look at so many of the newest commits; without it only decisions about findings are read, as workers do by the way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    history: Option<u32>,
    /// Of the repository in this folder, instead of the current one
    #[arg(long, value_name = "FOLDER")]
    repo: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let folder = arguments.repo.clone().map_or_else(Invocation::here, Ok)?;
    let repo = Repo::discover(&folder)?;
    let loaded = invocation.settings(Some(&repo.root()), Texts::None)?;
    if !loaded.settings.learning.enabled {
        return Err(refusal(&loaded));
    }
    let Some(history) = arguments.history else { return decisions(invocation, &repo, cache, arguments.format) };
    let now = now(invocation)?;
    let (mut observations, mut learned, mut done) = (Vec::new(), Learned::default(), Ok(()));
    let mined = mine::fixes(&repo, history as usize, &mut |mined| {
        observations.push(Observation {
            language: mined.language,
            stance: Stance::Mistake,
            kind: mined.edit.edit.usual_kind(),
            broken: mined.edit.broken,
            fixed: mined.edit.fixed,
            edit: mined.edit.edit,
            evidence: Evidence::History,
            source: mined.commit,
            at: mined.at,
        });
        if observations.len() < AT_ONCE {
            return ControlFlow::Continue(());
        }
        done = cache.learn(&observations, now).map(|more| learned += more);
        observations.clear();
        // Where nothing can be kept nothing more is read.
        if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    done?;
    learned += cache.learn(&observations, now)?;
    match arguments.format {
        PlainFormat::Json => output::print_json(&json::versioned([
            ("commits", json!(mined.commits)),
            ("fixes", json!(mined.fixes)),
            ("edits", json!(mined.edits)),
            ("learned", json!(learned)),
        ]))?,
        PlainFormat::Text => {
            let [commits, fixes, edits] = [(mined.commits, "commit"), (mined.fixes, "fix"), (mined.edits, "edit")]
                .map(|(number, what)| count(number, what));
            let read = format!("{commits} read, {fixes} among them with {edits} to learn from");
            output::print(&in_words(&read, learned))?;
        }
    }
    Ok(Exit::Done)
}

/// Reads what was decided about findings.
fn decisions(invocation: &Invocation, repo: &Repo, cache: &Cache, format: PlainFormat) -> Result<Exit, CliError> {
    let runner = invocation.runner_at(&repo.root(), Texts::None)?;
    let (mut findings, mut learned) = (0, Learned::default());
    loop {
        let taught = runner.learn(cache)?;
        findings += taught.findings;
        learned += taught.learned;
        if !taught.more {
            break;
        }
    }
    match format {
        PlainFormat::Json => {
            output::print_json(&json::versioned([("findings", json!(findings)), ("learned", json!(learned))]))?;
        }
        PlainFormat::Text => {
            let read = format!("decisions about {} read", count(findings, "finding"));
            output::print(&in_words(&read, learned))?;
        }
    }
    Ok(Exit::Done)
}

fn in_words(read: &str, learned: Learned) -> String {
    let Learned { new, again, counted, forgotten, too_much, refused, evicted } = learned;
    let mut said = format!("{read}: {} new, {again} seen again, {counted} counted before\n", count(new, "pattern"));
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

/// Who has turned it off, and how it is turned on.
fn refusal(loaded: &Loaded) -> CliError {
    let setting = loaded.shown.iter().find(|setting| setting.key == "learning.enabled");
    let place = setting.and_then(|setting| setting.origin.place()).map(|place| format!(" by {place}"));
    CliError::usage(format!("learning is off{}", place.unwrap_or_default()))
        .hint("learning.enabled = true in your settings turns it on, where the repository does not say otherwise")
}
