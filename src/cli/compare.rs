//! `revdeck compare`: compares two reviews of one change: two runs, two reviewers, or two prompt sets of one reviewer.

use std::collections::HashMap;

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::complete;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::resolve_id::resolve_run;
use super::session::Invocation;
use crate::config::{DEFAULT_PROMPT_SET, RequiredAssets};
use crate::domain::{RunId, RunStatus};
use crate::report::{ComparedRun, RunComparison};
use crate::store::{RunRow, Store, StoreView};

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// First run: an id, its beginning, or latest; or a reviewer
    #[arg(value_name = "RUN", required_unless_present = "prompt_set")]
    first: Option<String>,
    /// Second run; two reviewers are compared by the latest change that both have reviewed
    #[arg(value_name = "RUN", required_unless_present = "prompt_set", conflicts_with = "prompt_set")]
    second: Option<String>,
    /// Compare two prompt sets by the latest change that one reviewer has reviewed with both; default names the prompts
    /// outside of a set. A reviewer may be named before: compare sonnet --prompt-set default,strict
    #[arg(long, value_name = "SET,SET", value_delimiter = ',', add = ArgValueCandidates::new(complete::list_prompt_sets))]
    prompt_set: Vec<String>,
    /// Compare reviews of different changes, too
    #[arg(long)]
    any: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck compare`.
///
/// # Errors
///
/// Returns an error if a run does not exist or has no result, if the runs reviewed different changes, or if the store cannot
/// be read.
pub fn run(invocation: &Invocation, arguments: &CompareArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::Smells)?;
    let store = &session.store;
    let view = store.view()?;
    let ids = match (&arguments.first, &arguments.second) {
        (Some(first), Some(second)) => match find_common_change(&view, first, second)? {
            Some(ids) => ids,
            None => [resolve_run(store, first)?, resolve_run(store, second)?],
        },
        (reviewer, _) => find_change_of_sets(&view, &arguments.prompt_set, reviewer.as_deref())?,
    };
    if ids[0] == ids[1] {
        return Err(CliError::usage("a run is compared with another one").hint("`revdeck runs` lists them"));
    }
    let rows = [find_row(&view, &ids[0])?, find_row(&view, &ids[1])?];
    if rows[0].diff_fingerprint != rows[1].diff_fingerprint && !arguments.any {
        let (first, second) = (rows[0].scope, rows[1].scope);
        return Err(CliError::usage(format!("these runs reviewed different changes: {first} and {second}"))
            .hint("--any compares them all the same"));
    }
    let first = read_run(store, &view, &rows[0], &ids[0])?;
    let second = read_run(store, &view, &rows[1], &ids[1])?;
    let comparison = RunComparison::new(&first, &second);
    match arguments.format {
        PlainFormat::Text => output::print(&comparison.render(&session.look))?,
        PlainFormat::Json => output::print_json(&comparison.encode())?,
    }
    Ok(CliExitCode::Done)
}

/// Returns the newest completed runs of two reviewers that reviewed the same change. `None` if one of the words is no
/// reviewer of a run.
fn find_common_change(view: &StoreView, first: &str, second: &str) -> Result<Option<[RunId; 2]>, CliError> {
    let rows = || (0..view.run_count()).map(|index| view.run(index));
    if first == second || [first, second].iter().any(|name| rows().all(|row| row.reviewer != *name)) {
        return Ok(None);
    }
    let completed = |name: &'_ str| {
        let name = name.to_owned();
        rows().filter(move |row| row.status == RunStatus::Completed && row.reviewer == name)
    };
    // Runs are sorted from new to old.
    let mut changes: HashMap<(&str, &str), &str> = HashMap::new();
    for row in completed(second) {
        changes.entry((row.scope_hash, row.diff_fingerprint)).or_insert(row.id);
    }
    let pair = completed(first).find_map(|row| Some([row.id, changes.get(&(row.scope_hash, row.diff_fingerprint))?]));
    let Some([one, other]) = pair else {
        let hint = format!("`revdeck review --reviewer {first},{second}` has both look at one change");
        return Err(CliError::usage(format!("no change was reviewed by both {first} and {second}")).hint(hint));
    };
    Ok(one.parse().ok().zip(other.parse().ok()).map(|(one, other)| [one, other]))
}

/// Returns the newest completed runs of one reviewer with one model that reviewed the same change with two prompt sets.
/// Without a reviewer's name, the members of panels are left out: their panel stands for them.
fn find_change_of_sets(view: &StoreView, sets: &[String], reviewer: Option<&str>) -> Result<[RunId; 2], CliError> {
    let [first, second] = sets else {
        return Err(CliError::usage("--prompt-set names two sets: --prompt-set default,strict"));
    };
    if first == second {
        return Err(CliError::usage(format!("the prompt set {first} is compared with another one")));
    }
    let completed = |set: &'_ str| {
        let set = Some(set).filter(|set| *set != DEFAULT_PROMPT_SET).map(str::to_owned);
        let rows = (0..view.run_count()).map(|index| view.run(index));
        rows.filter(move |row| {
            row.status == RunStatus::Completed
                && row.prompt_set() == set.as_deref()
                && reviewer.map_or(row.member_of.is_empty(), |name| row.reviewer == name)
        })
    };
    let change = |row: &RunRow<'_>| [row.scope_hash, row.diff_fingerprint, row.reviewer, row.model].map(str::to_owned);
    // Runs are sorted from new to old.
    let mut changes: HashMap<[String; 4], &str> = HashMap::new();
    for row in completed(second) {
        changes.entry(change(&row)).or_insert(row.id);
    }
    let pair = completed(first).find_map(|row| Some([row.id, changes.get(&change(&row))?]));
    if let Some((one, other)) = pair.and_then(|[one, other]| one.parse().ok().zip(other.parse().ok())) {
        return Ok([one, other]);
    }
    let who = reviewer.unwrap_or("any reviewer");
    let hint = format!(
        "`revdeck review --reviewer {} --prompt-set {first}`, and the same with {second}, review one change with both",
        reviewer.unwrap_or("NAME")
    );
    Err(CliError::usage(format!("no change was reviewed by {who} with both prompt sets, {first} and {second}"))
        .hint(hint))
}

fn find_row<'a>(view: &'a StoreView, id: &RunId) -> Result<RunRow<'a>, CliError> {
    let index = view.run_index(id.as_str());
    index.map(|index| view.run(index)).ok_or_else(|| CliError::usage(format!("the store no longer has {id}")))
}

fn read_run(store: &Store, view: &StoreView, row: &RunRow<'_>, id: &RunId) -> Result<ComparedRun, CliError> {
    let findings = match store.output(id)? {
        Some(output) => output.findings,
        // A run under way, or one without a result: what its journal has.
        None => store.reported_findings(id)?,
    };
    Ok(ComparedRun::new(view, row, findings))
}
