//! Resolution of ids that a user or an assistant writes: a full id or a unique prefix of one.

use super::{Store, StoreError, StoreView};
use crate::domain::text::sanitize_line;
use crate::domain::{FindingId, FixId, RunId};

/// Number of candidates that the error message lists for an ambiguous prefix.
const MAX_LISTED_CANDIDATES: usize = 8;

/// Failure to resolve an id. [`LookupError::hint`] returns a remedy.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No record or several records match.
    #[error("{message}")]
    NoMatch {
        /// Message with the given text, made harmless.
        message: String,
        /// Remedy as a sentence; empty when there is none.
        hint: String,
    },
    /// A record has an id that cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LookupError {
    fn no_match(message: String, hint: impl Into<String>) -> Self {
        Self::NoMatch { message, hint: hint.into() }
    }

    /// Returns a remedy as a sentence; empty when there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::NoMatch { hint, .. } => hint.clone(),
            Self::Damaged(_) => "`revdeck store verify` looks for damage".to_owned(),
            Self::Store(error) => error.hint(),
        }
    }
}

/// Id of a run or of a finding, from an argument that accepts both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOrFinding {
    Run(RunId),
    Finding(FindingId),
}

/// Resolves `given` to a run: an id, a unique prefix of an id (with or without `ar_`), or `latest`.
///
/// # Errors
///
/// Returns an error if no run or several runs match, or if the store cannot be read.
pub fn resolve_run(store: &Store, given: &str) -> Result<RunId, LookupError> {
    if let Ok(id) = given.parse::<RunId>()
        && store.run(&id)?.is_some()
    {
        return Ok(id);
    }
    let view = store.view()?;
    if given == "latest" {
        // A run of another machine has no worktree until it has answered a request here.
        let is_here = |run: &super::RunRow<'_>| !run.is_fix_review() && !run.worktree.is_empty();
        let runs = || (0..view.run_count()).map(|index| view.run(index));
        let newest = runs().find(is_here).or_else(|| runs().find(|run| !run.is_fix_review()));
        return newest.map_or_else(|| Err(not_found("run", given, &view)), |run| parse_id(run.id));
    }
    let prefix = add_prefix("ar_", given).to_uppercase();
    let ids = (0..view.run_count()).map(|index| view.run(index).id);
    pick_unique("run", given, &view, ids.filter(|id| starts_with(id, &prefix)))
}

/// Resolves `given` to a finding: an id or a unique prefix of an id (with or without `f_`).
///
/// # Errors
///
/// Returns an error if no finding or several findings match, or if the store cannot be read.
pub fn resolve_finding(store: &Store, given: &str) -> Result<FindingId, LookupError> {
    let view = store.view()?;
    match resolve_finding_in(&view, given) {
        Err(LookupError::NoMatch { message, hint }) => Err(match find_lost_finding(store, &view, given)? {
            Some((run, finding)) => LookupError::Damaged(format!(
                "the finding {finding} cannot be read: the result of its run {run} is damaged or missing"
            )),
            None => LookupError::NoMatch { message, hint },
        }),
        found => found,
    }
}

/// Finds a finding that a run has reported and that is in no readable result.
fn find_lost_finding(store: &Store, view: &StoreView, given: &str) -> Result<Option<(RunId, FindingId)>, StoreError> {
    let prefix = add_prefix("f_", given).to_uppercase();
    if given.is_empty() || prefix.len() <= "f_".len() {
        return Ok(None);
    }
    let is_lost = |id: &&FindingId| starts_with(id.as_str(), &prefix) && view.finding_index(id.as_str()).is_none();
    let lost = store.latest_records()?.into_iter().find_map(|run| {
        let finding = run.outcome.finding_digests.iter().find(is_lost)?.clone();
        Some((run.run_id, finding))
    });
    Ok(lost)
}

/// Resolves `given` like [`resolve_finding`], in a view that is already loaded.
///
/// # Errors
///
/// Returns an error if no finding or several findings match.
pub fn resolve_finding_in(view: &StoreView, given: &str) -> Result<FindingId, LookupError> {
    if let Some(index) = view.finding_index(given) {
        return parse_id(view.finding(index).id);
    }
    let prefix = add_prefix("f_", given).to_uppercase();
    let ids = (0..view.finding_count()).map(|index| view.finding(index).id);
    pick_unique("finding", given, view, ids.filter(|id| starts_with(id, &prefix)))
}

/// Resolves `given` to a fix: an id, a unique prefix of an id (with or without `fx_`), or `latest`.
///
/// # Errors
///
/// Returns an error if no fix or several fixes match, or if the store cannot be read.
pub fn resolve_fix(store: &Store, given: &str) -> Result<FixId, LookupError> {
    let fixes = store.fixes()?;
    if given == "latest"
        && let Some(newest) = fixes.first()
    {
        return Ok(newest.fix_id.clone());
    }
    let prefix = add_prefix("fx_", given).to_uppercase();
    let mut found = fixes.iter().filter(|fix| starts_with(fix.fix_id.as_str(), &prefix));
    match (found.next(), found.next()) {
        (Some(fix), None) if !given.is_empty() => Ok(fix.fix_id.clone()),
        (Some(_), _) => Err(LookupError::no_match(
            format!("{:?} is the beginning of several fix ids", sanitize_line(given)),
            "write more of it; `revdeck fixes` lists them",
        )),
        (None, _) => Err(LookupError::no_match(
            format!("there is no fix {:?} in this repository", sanitize_line(given)),
            "`revdeck fixes` lists them",
        )),
    }
}

/// Resolves `given` to a run or a finding. The prefix `ar_` or `f_` decides; without one, both are searched.
///
/// # Errors
///
/// Returns an error if nothing matches, or both a run and a finding match.
pub fn resolve_run_or_finding(store: &Store, given: &str) -> Result<RunOrFinding, LookupError> {
    let lower = given.to_lowercase();
    if lower.starts_with("ar_") || lower == "latest" {
        return resolve_run(store, given).map(RunOrFinding::Run);
    }
    if lower.starts_with("f_") {
        return resolve_finding(store, given).map(RunOrFinding::Finding);
    }
    match (resolve_run(store, given), resolve_finding(store, given)) {
        (Ok(run), Err(_)) => Ok(RunOrFinding::Run(run)),
        (Err(_), Ok(finding)) => Ok(RunOrFinding::Finding(finding)),
        (Ok(run), Ok(finding)) => Err(LookupError::no_match(
            format!("{given:?} is both the run {run} and the finding {finding}"),
            "write ar_ or f_ before it",
        )),
        (Err(error), Err(_)) => Err(LookupError::no_match(
            format!("there is no run and no finding {:?}", sanitize_line(given)),
            error.hint(),
        )),
    }
}

fn add_prefix(prefix: &str, given: &str) -> String {
    let lower = given.to_lowercase();
    if lower.starts_with(prefix) || prefix.starts_with(&lower) { lower } else { format!("{prefix}{given}") }
}

fn starts_with(id: &str, upper_prefix: &str) -> bool {
    id.get(..upper_prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(upper_prefix))
}

fn pick_unique<'a, T: std::str::FromStr>(
    what: &str,
    given: &str,
    view: &StoreView,
    mut candidates: impl Iterator<Item = &'a str>,
) -> Result<T, LookupError>
where
    T::Err: std::fmt::Display,
{
    let Some(first) = candidates.next() else { return Err(not_found(what, given, view)) };
    let others: Vec<&str> = candidates.collect();
    if given.is_empty() || !others.is_empty() {
        let mut listed: Vec<&str> = vec![first];
        listed.extend(others.iter().take(MAX_LISTED_CANDIDATES - 1));
        let more = (others.len() + 1).saturating_sub(listed.len());
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        return Err(LookupError::no_match(
            format!(
                "{:?} is the beginning of several {what} ids:\n  {}{more}",
                sanitize_line(given),
                listed.join("\n  ")
            ),
            "write more of it",
        ));
    }
    parse_id(first)
}

fn parse_id<T: std::str::FromStr>(text: &str) -> Result<T, LookupError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| LookupError::Damaged(error.to_string()))
}

fn not_found(what: &str, given: &str, view: &StoreView) -> LookupError {
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
    let message = format!("there is no {what} {:?} in this repository", sanitize_line(given));
    let hint = match known.is_empty() {
        true => format!("there are no {what}s yet: `revdeck review` makes a start"),
        false => format!("{list} lists them; the newest: {}", known.join(", ")),
    };
    LookupError::no_match(message, hint)
}
