//! Ids as people type them: whole, or a prefix that only one has.

use super::error::CliError;
use crate::domain::text::one_line;
use crate::domain::{FindingId, FixId, RunId};
use crate::store::{Store, View};

/// Candidates that are listed when a prefix is ambiguous.
const LISTED: usize = 8;

/// What an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Run(RunId),
    Finding(FindingId),
}

/// The run that `given` names: an id, a unique prefix of one (with or without `ar_`), or `latest`.
pub fn run(store: &Store, given: &str) -> Result<RunId, CliError> {
    if let Ok(id) = given.parse::<RunId>()
        && store.run(&id)?.is_some()
    {
        return Ok(id);
    }
    let view = store.view()?;
    if given == "latest" {
        let newest = (0..view.run_count()).map(|index| view.run(index)).find(|run| !run.is_of_a_fix());
        return newest.map_or_else(|| Err(nothing("run", given, &view)), |run| id(run.id));
    }
    let prefix = with_prefix("ar_", given).to_uppercase();
    let ids = (0..view.run_count()).map(|index| view.run(index).id);
    pick("run", given, &view, ids.filter(|id| starts_with(id, &prefix)))
}

/// The finding that `given` names.
pub fn finding(store: &Store, given: &str) -> Result<FindingId, CliError> {
    let view = store.view()?;
    finding_in(&view, given)
}

/// As [`finding`], in a view that is at hand.
pub fn finding_in(view: &View, given: &str) -> Result<FindingId, CliError> {
    if let Some(index) = view.finding_index(given) {
        return id(view.finding(index).id);
    }
    let prefix = with_prefix("f_", given).to_uppercase();
    let ids = (0..view.finding_count()).map(|index| view.finding(index).id);
    pick("finding", given, view, ids.filter(|id| starts_with(id, &prefix)))
}

/// The fix that `given` names: an id, a unique prefix of one, or `latest`.
pub fn fix(store: &Store, given: &str) -> Result<FixId, CliError> {
    let fixes = store.fixes()?;
    if given == "latest"
        && let Some(newest) = fixes.first()
    {
        return Ok(newest.fix_id.clone());
    }
    let prefix = with_prefix("fx_", given).to_uppercase();
    let mut found = fixes.iter().filter(|fix| starts_with(fix.fix_id.as_str(), &prefix));
    match (found.next(), found.next()) {
        (Some(fix), None) if !given.is_empty() => Ok(fix.fix_id.clone()),
        (Some(_), _) => Err(CliError::usage(format!("{:?} is the beginning of several fix ids", one_line(given)))
            .hint("write more of it; `revdeck fixes` lists them")),
        (None, _) => Err(CliError::usage(format!("there is no fix {:?} in this repository", one_line(given)))
            .hint("`revdeck fixes` lists them")),
    }
}

/// A run or a finding, told apart by its prefix; without one, whatever matches.
pub fn either(store: &Store, given: &str) -> Result<Named, CliError> {
    let lower = given.to_lowercase();
    if lower.starts_with("ar_") || lower == "latest" {
        return run(store, given).map(Named::Run);
    }
    if lower.starts_with("f_") {
        return finding(store, given).map(Named::Finding);
    }
    match (run(store, given), finding(store, given)) {
        (Ok(run), Err(_)) => Ok(Named::Run(run)),
        (Err(_), Ok(finding)) => Ok(Named::Finding(finding)),
        (Ok(run), Ok(finding)) => {
            Err(CliError::usage(format!("{given:?} is both the run {run} and the finding {finding}"))
                .hint("write ar_ or f_ before it"))
        }
        (Err(error), Err(_)) => Err(CliError::usage(format!("there is no run and no finding {:?}", one_line(given)))
            .hint(error.hint.unwrap_or_default())),
    }
}

fn with_prefix(prefix: &str, given: &str) -> String {
    let lower = given.to_lowercase();
    if lower.starts_with(prefix) || prefix.starts_with(&lower) { lower } else { format!("{prefix}{given}") }
}

fn starts_with(id: &str, upper_prefix: &str) -> bool {
    id.get(..upper_prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(upper_prefix))
}

fn pick<'a, T: std::str::FromStr>(
    what: &str,
    given: &str,
    view: &View,
    mut candidates: impl Iterator<Item = &'a str>,
) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    let Some(first) = candidates.next() else { return Err(nothing(what, given, view)) };
    let others: Vec<&str> = candidates.collect();
    if given.is_empty() || !others.is_empty() {
        let mut listed: Vec<&str> = vec![first];
        listed.extend(others.iter().take(LISTED - 1));
        let more = (others.len() + 1).saturating_sub(listed.len());
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        return Err(CliError::usage(format!(
            "{:?} is the beginning of several {what} ids:\n  {}{more}",
            one_line(given),
            listed.join("\n  ")
        ))
        .hint("write more of it"));
    }
    id(first)
}

fn id<T: std::str::FromStr>(text: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error: T::Err| CliError::failed(error.to_string()).hint("`revdeck store verify` looks for damage"))
}

fn nothing(what: &str, given: &str, view: &View) -> CliError {
    let (known, list) = match what {
        "run" => (
            (0..view.run_count().min(3)).map(|index| view.run(index).id.to_owned()).collect::<Vec<_>>(),
            "`revdeck runs`",
        ),
        _ => (
            (0..view.finding_count().min(3)).map(|index| view.finding(index).id.to_owned()).collect(),
            "`revdeck findings`",
        ),
    };
    let error = CliError::usage(format!("there is no {what} {:?} in this repository", one_line(given)));
    if known.is_empty() {
        error.hint(format!("there are no {what}s yet: `revdeck review` makes a start"))
    } else {
        error.hint(format!("{list} lists them; the newest: {}", known.join(", ")))
    }
}
