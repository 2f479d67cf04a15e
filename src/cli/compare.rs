//! `revdeck compare`: compares two reviews of one change: two runs, two reviewers, or two prompt sets of one reviewer; or
//! sums up all changes that both have reviewed.

use std::collections::HashMap;
use std::hash::Hash;

use clap::Args;
use clap_complete::ArgValueCandidates;
use jiff::tz::TimeZone;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::resolve_id::resolve_run;
use super::session::{Invocation, Session};
use super::stats::{StatsSince, parse_since};
use super::{complete, output};
use crate::config::{DEFAULT_PROMPT_SET, RequiredAssets};
use crate::domain::{FindingId, Panel, RunFigures, RunId, RunReviewer, RunStatus};
use crate::report::{ComparedRun, ComparisonSum, ReviewSpending, RunComparison};
use crate::runner::find_listed_reports;
use crate::store::{RunRow, Store, StoreView};

/// Long help: definitions of the sums.
const ABOUT_SUMS: &str = "\
Compare two reviews of one change: what both found, what one of them found, what became of it, and what they cost.

With --all or --since, sum up all changes that both reviewers (or both prompt sets) have reviewed, each by its newest completed \
reviews, so that you can choose a model with your own code. A problem counts once, as its newest change has it: found by both or by \
one, then addressed, dismissed, undecided or obsolete. Tokens, cost and time are those of all these reviews; tokens and cost of a \
panel are those of all its members and second opinions. Secrets that revdeck's own search found in the runs of models are left out.

JSON keys: `runs`, `both`, `only_first`, `only_second`; with --all or --since `changes`, `sides`, `both`, `only_first`, \
`only_second` with the numbers `found`, `addressed`, `dismissed`, `undecided`, `obsolete`.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT_SUMS)]
pub struct CompareArgs {
    /// First run: an id, its beginning, or latest; or a reviewer or a panel
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
    /// Sum up all changes that both have reviewed, and not only the latest one
    #[arg(long, conflicts_with = "any")]
    all: bool,
    /// Sum up only reviews requested since then: 90m, 12h, 7d, 4w, a day (2026-11-01) or a time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = parse_since, conflicts_with = "any")]
    since: Option<StatsSince>,
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
    if arguments.all || arguments.since.is_some() {
        return sum_changes(&session, &view, arguments);
    }
    let ids = match (&arguments.first, &arguments.second) {
        (Some(first), Some(second)) => match pair_reviewers(&view, first, second, None)? {
            Some(pairs) => pairs.newest,
            None => {
                refuse_mixed_sides(&view, first, second)?;
                [resolve_run(store, first)?, resolve_run(store, second)?]
            }
        },
        (reviewer, _) => pair_prompt_sets(&view, &arguments.prompt_set, reviewer.as_deref(), None)?.newest,
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
    let stored = StoredRuns::new(store, &view)?;
    let first = stored.read(&rows[0], &ids[0])?;
    let second = stored.read(&rows[1], &ids[1])?;
    let comparison = RunComparison::new(&first, &second);
    match arguments.format {
        PlainFormat::Text => output::print(&comparison.render(&session.look))?,
        PlainFormat::Json => output::print_json(&comparison.encode())?,
    }
    Ok(CliExitCode::Done)
}

/// Prints the sum of all changes that both sides have reviewed.
fn sum_changes(session: &Session, view: &StoreView, arguments: &CompareArgs) -> Result<CliExitCode, CliError> {
    let since = arguments.since.map(|since| since.resolve(session.ambient.now(), &TimeZone::system())).transpose()?;
    let since_ms = since.map(|since| since.as_millisecond());
    let pairs = match (&arguments.first, &arguments.second) {
        (Some(first), Some(second)) => pair_reviewers(view, first, second, since_ms)?.ok_or_else(|| {
            CliError::usage("--all and --since sum up the changes of two reviewers")
                .hint("`revdeck stats --by reviewer` lists those that have reviewed something")
        })?,
        (reviewer, _) => pair_prompt_sets(view, &arguments.prompt_set, reviewer.as_deref(), since_ms)?,
    };
    let mut sum = ComparisonSum::default();
    let stored = StoredRuns::new(&session.store, view)?;
    for [first, second] in std::iter::once(&pairs.newest).chain(&pairs.older) {
        let first = stored.read(&find_row(view, first)?, first)?;
        let second = stored.read(&find_row(view, second)?, second)?;
        sum.add_change(&first, &second);
    }
    match arguments.format {
        PlainFormat::Text => output::print(&sum.render(&session.look))?,
        PlainFormat::Json => output::print_json(&sum.encode())?,
    }
    Ok(CliExitCode::Done)
}

/// Returns the completed runs that were requested since a time in milliseconds, newest first.
fn completed_runs(view: &StoreView, since_ms: Option<i64>) -> impl Iterator<Item = RunRow<'_>> {
    let rows = (0..view.run_count()).map(move |index| view.run(index));
    rows.filter(move |row| {
        row.status == RunStatus::Completed && since_ms.is_none_or(|since_ms| row.created_ms >= since_ms)
    })
}

/// Runs of the two sides, a pair for each change that both have reviewed.
struct RunPairs {
    newest: [RunId; 2],
    /// Pairs of older changes, sorted from new to old.
    older: Vec<[RunId; 2]>,
}

/// Pairs the newest runs of the same change; `None` if the sides have no change in common. Both lists are sorted from new to
/// old.
fn pair_runs<'v, K: Eq + Hash>(
    first: impl Iterator<Item = RunRow<'v>>,
    second: impl Iterator<Item = RunRow<'v>>,
    change: impl Fn(&RunRow<'v>) -> K,
) -> Option<RunPairs> {
    let mut others: HashMap<K, &'v str> = HashMap::new();
    for row in second {
        others.entry(change(&row)).or_insert(row.id);
    }
    let mut pairs = first.filter_map(|row| -> Option<[RunId; 2]> {
        // An older run of the same change finds none.
        let other = others.remove(&change(&row))?;
        Some([row.id.parse().ok()?, other.parse().ok()?])
    });
    Some(RunPairs { newest: pairs.next()?, older: pairs.collect() })
}

/// Returns the name of a reviewer as the runs have it: the name itself, or that of the panel with this name or with these
/// reviewers, separated by commas. `None` if no run has it.
fn find_reviewer(view: &StoreView, name: &str) -> Option<String> {
    let names = [name.to_owned(), format!("{}{}", Panel::PREFIX, name.replace(',', "+"))];
    names.into_iter().find(|name| (0..view.run_count()).any(|index| view.run(index).reviewer == name))
}

/// Returns the option of `review` that asks for a reviewer or a panel, by its name in the runs: `--reviewer sonnet`,
/// `--panel three`, or `--reviewer a,b` for a panel without a table.
fn describe_request(reviewer: &str) -> String {
    match Panel::name_of(reviewer) {
        Some(members) if members.contains('+') => format!("--reviewer {}", members.replace('+', ",")),
        Some(panel) => format!("--panel {panel}"),
        None => format!("--reviewer {reviewer}"),
    }
}

/// Refuses a reviewer beside a run, and a reviewer beside itself.
///
/// # Errors
///
/// Returns an error that says which of the words is what.
fn refuse_mixed_sides(view: &StoreView, first: &str, second: &str) -> Result<(), CliError> {
    let is_reviewer = |name: &str| find_reviewer(view, name).is_some();
    let problem = match (is_reviewer(first), is_reviewer(second)) {
        (false, false) => return Ok(()),
        (true, true) => format!("{first} is compared with another reviewer"),
        (true, false) => format!("{first} is a reviewer, and {second} is none that has reviewed here"),
        (false, true) => format!("{second} is a reviewer, and {first} is none that has reviewed here"),
    };
    Err(CliError::usage(problem)
        .hint("name two runs, which `revdeck runs` lists, or two reviewers, which `revdeck stats --by reviewer` lists"))
}

/// Returns the newest completed runs of two reviewers for each change that both have reviewed, the newest change first.
/// `None` if one of the words is neither a reviewer nor a panel of a run.
///
/// # Errors
///
/// Returns an error if they have no change in common.
fn pair_reviewers(
    view: &StoreView,
    first: &str,
    second: &str,
    since_ms: Option<i64>,
) -> Result<Option<RunPairs>, CliError> {
    let (Some(one), Some(other)) = (find_reviewer(view, first), find_reviewer(view, second)) else { return Ok(None) };
    if one == other {
        return Ok(None);
    }
    let is_panel = |name: &str| Panel::name_of(name).is_some();
    let has_panel = is_panel(&one) || is_panel(&other);
    let runs = |name: &str| {
        let name = name.to_owned();
        completed_runs(view, since_ms).filter(move |row| row.reviewer == name)
    };
    // Who is asked for some kinds only is another sort of reviewer, with which nothing is compared unless there is nothing else.
    let pair_of_one_focus = || {
        pair_runs(runs(&one), runs(&other), |row| {
            [row.scope_hash, row.diff_fingerprint, RunReviewer::focus_of_version(row.policy_version)]
        })
    };
    let pair = || pair_runs(runs(&one), runs(&other), |row| [row.scope_hash, row.diff_fingerprint]);
    pair_of_one_focus().or_else(pair).map(Some).ok_or_else(|| {
        let hint = match has_panel {
            true => "`revdeck review --panel NAME` and `--reviewer NAME` have both look at one change".to_owned(),
            false => format!("`revdeck review --reviewer {first},{second}` has both look at one change"),
        };
        let when = if since_ms.is_some() { " since then" } else { "" };
        CliError::usage(format!("no change was reviewed by both {first} and {second}{when}")).hint(hint)
    })
}

/// Returns the newest completed runs of one reviewer with one model for each change that it has reviewed with two prompt
/// sets, the newest change first. Without a reviewer's name, the members of panels are left out, because their panel stands for
/// them, unless nothing else was reviewed with both: a reviewer may have answered in a panel with one set, and alone with the
/// other.
///
/// # Errors
///
/// Returns an error if these are no two sets, or if no change was reviewed with both.
fn pair_prompt_sets(
    view: &StoreView,
    sets: &[String],
    reviewer: Option<&str>,
    since_ms: Option<i64>,
) -> Result<RunPairs, CliError> {
    let [first, second] = sets else {
        return Err(CliError::usage("--prompt-set names two sets: --prompt-set default,strict"));
    };
    if first == second {
        return Err(CliError::usage(format!("the prompt set {first} is compared with another one")));
    }
    let runs = |set: &str, with_members: bool| {
        let set = Some(set).filter(|set| *set != DEFAULT_PROMPT_SET).map(str::to_owned);
        completed_runs(view, since_ms).filter(move |row| {
            let is_asked_for = match reviewer {
                Some(name) => {
                    row.reviewer == name
                        || Panel::name_of(row.reviewer).is_some_and(|panel| panel == name.replace(',', "+"))
                }
                None => with_members || row.member_of.is_empty(),
            };
            is_asked_for && row.prompt_set() == set.as_deref()
        })
    };
    let pair = |with_members: bool| {
        let (first, second) = (runs(first, with_members), runs(second, with_members));
        pair_runs(first, second, |row| {
            let focus = RunReviewer::focus_of_version(row.policy_version);
            [row.scope_hash, row.diff_fingerprint, row.reviewer, row.model, focus]
        })
    };
    pair(false).or_else(|| pair(true)).ok_or_else(|| {
        let who = reviewer.unwrap_or("any reviewer");
        let named = reviewer.map(|name| find_reviewer(view, name).unwrap_or_else(|| name.to_owned()));
        let hint = format!(
            "`revdeck review {} --prompt-set {first}`, and the same with {second}, review one change with both",
            describe_request(named.as_deref().unwrap_or("NAME"))
        );
        let when = if since_ms.is_some() { " since then" } else { "" };
        CliError::usage(format!("no change was reviewed by {who} with both prompt sets, {first} and {second}{when}"))
            .hint(hint)
    })
}

fn find_row<'a>(view: &'a StoreView, id: &RunId) -> Result<RunRow<'a>, CliError> {
    let index = view.run_index(id.as_str());
    index.map(|index| view.run(index)).ok_or_else(|| CliError::usage(format!("the store no longer has {id}")))
}

/// Store from which the compared runs are read.
struct StoredRuns<'a> {
    store: &'a Store,
    view: &'a StoreView,
    /// Findings of the view that panels list under other ids, see [`Store::list_merged`].
    merged: HashMap<usize, usize>,
    /// Ids on the lists of panels, see [`find_listed_reports`].
    listed: HashMap<(RunId, FindingId), FindingId>,
    /// Figures of all runs, by the indexes of the view.
    figures: Vec<Option<RunFigures>>,
}

impl<'a> StoredRuns<'a> {
    fn new(store: &'a Store, view: &'a StoreView) -> Result<Self, CliError> {
        let (merged, listed) = (store.list_merged(view)?, find_listed_reports(store, view)?);
        Ok(Self { store, view, merged, listed, figures: store.run_figures(view)? })
    }

    /// Returns the tokens and the cost of a review. A panel's are those of its second opinions and of all its members, those
    /// included that another request paid for: without their reviews there is no such list. The cost of a panel of another
    /// machine is not known, for its members are not here.
    fn sum_spending(&self, row: &RunRow<'_>) -> ReviewSpending {
        let members = row.panel_members().map(|(run, _)| run);
        let indexes = std::iter::once(row.id).chain(members).filter_map(|run| self.view.run_index(run));
        let spending = indexes.map(|index| {
            let run = self.view.run(index);
            let figures = self.figures.get(index).and_then(Option::as_ref);
            let is_known = figures.is_none_or(|figures| figures.known_cost().is_some());
            ReviewSpending { tokens: run.tokens, cost: is_known.then_some(run.cost) }
        });
        let spending = spending.fold(ReviewSpending::NOTHING, ReviewSpending::plus);
        let has_unknown_members = Panel::name_of(row.reviewer).is_some() && !row.is_panel();
        ReviewSpending { cost: spending.cost.filter(|_| !has_unknown_members), ..spending }
    }

    fn read(&self, row: &RunRow<'_>, id: &RunId) -> Result<ComparedRun, CliError> {
        let mut findings = match self.store.output(id)? {
            Some(output) => output.findings,
            // A run under way, or one without a result: what its journal has.
            None => self.store.reported_findings(id)?,
        };
        if !self.listed.is_empty() {
            // What was decided about the id itself was decided about the problem of another member.
            for finding in &mut findings {
                if let Some(listed) = self.listed.get(&(id.clone(), finding.finding_id.clone())) {
                    finding.finding_id = listed.clone();
                }
            }
        }
        Ok(ComparedRun::new(self.view, &self.merged, row, findings, self.sum_spending(row)))
    }
}
