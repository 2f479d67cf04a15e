//! Projects stored records to a ledger of bounded size, and computes [`metrics`]. No IO, no clock; only `domain` is
//! imported.
//!
//! Invariants:
//! - Without anything to say, the ledger has not one byte. It never exceeds its limit.
//! - The text is always well-formed XML, one element per line. An element is included completely or not at all.
//! - There are no diffs, no bodies and no history. Text from code and models is data: masked, escaped, on one line.

mod memory;
pub(crate) mod metrics;
mod render;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub use memory::SessionMemory;

pub use crate::domain::LedgerFormat;
use crate::domain::{FindingId, FindingStatus, Kind, LedgerForm, Priority, RunId, RunStatus, Time};
use render::LedgerRenderer;

/// Maximum size of a ledger in tokens. A higher limit counts as this one.
pub const MAX_LEDGER_TOKENS: usize = 1200;

/// Maximum number of findings that a ledger considers. Some 30 fit into the largest ledger; the others are only counted.
pub const MAX_CANDIDATES: usize = 240;

/// Number of findings that a session was told about from which further findings wait for room. A repository with thousands
/// of old findings would otherwise cost a whole ledger at every turn. Own choice: about ten ledgers.
const MAX_TOLD_IN_TURNS: usize = 60;

/// Minimum size of a ledger in tokens; the frame alone takes about 40.
const MIN_LEDGER_TOKENS: usize = 20;

/// Way in which the reader of a ledger looks up details. The ledger names it word for word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DetailsCall {
    /// The command `revdeck details`.
    #[default]
    Shell,
    /// The tool `auto_review_details` of the MCP server.
    McpTool,
}

/// Records from which a ledger is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerView<'a> {
    /// The repository's name.
    pub repo: String,
    /// Runs of this worktree, in any order.
    pub runs: Vec<LedgerRun>,
    /// Undecided findings that apply to this worktree and are urgent enough, in any order.
    pub findings: Vec<LedgerFinding<'a>>,
    /// Number of further findings like these, which are less important than all of `findings`.
    pub beyond: usize,
    /// True if this worktree has an undecided finding of any priority.
    pub has_undecided: bool,
}

/// Run with the fields that a ledger needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRun {
    pub id: RunId,
    pub status: RunStatus,
    pub created_at: Time,
    /// Time of the last recorded activity.
    pub last_activity: Time,
    /// Commit of the snapshot.
    pub snapshot: String,
    /// Freshness from `policy::derive_freshness`.
    pub freshness: String,
    /// Short description of the scope, such as `4 files`.
    pub scope: String,
    /// Gaps of a completed run, such as `139 of 1,168 hunks reviewed (turn limit)`; empty without gaps.
    pub incomplete: String,
    /// Number of reported findings.
    pub findings: u32,
    /// State of the result's delivery to an assistant.
    pub surfaced: SurfacedState,
    pub summary: String,
}

/// State of a delivery to an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SurfacedState {
    Yes,
    No,
}

/// Finding with the fields that a ledger needs. Texts are borrowed, because there may be very many findings and few
/// fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerFinding<'a> {
    pub id: Cow<'a, str>,
    /// Id of the run that reported it last, for a call that asks for its details.
    pub run: Cow<'a, str>,
    pub status: FindingStatus,
    pub priority: Priority,
    pub kind: Kind,
    pub path: Cow<'a, str>,
    pub line: u32,
    pub title: Cow<'a, str>,
    /// True if it stands in a file of the change that is being made now.
    pub in_change: bool,
    /// Time at which a run first reported it, in milliseconds since 1970.
    pub reported_ms: i64,
}

impl LedgerFinding<'_> {
    /// Compares by importance: priority, danger, whether it stands in the present change, age (newest first).
    fn weight(&self) -> impl Ord + '_ {
        let rank = FindingRank::new(self.priority, self.kind, self.in_change, self.reported_ms);
        (rank, &self.path, self.line, &self.id)
    }
}

/// Importance of a finding in a ledger; the smallest is the most important.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingRank {
    priority: Priority,
    danger: Danger,
    outside_change: bool,
    reported_ms: Reverse<i64>,
}

impl FindingRank {
    /// Ranks a finding by priority, then the danger of its kind, then whether it stands in the present change, then
    /// its age (newest first).
    pub fn new(priority: Priority, kind: Kind, in_change: bool, reported_ms: i64) -> Self {
        let reported_ms = Reverse(reported_ms);
        Self { priority, danger: Danger::from_kind(kind), outside_change: !in_change, reported_ms }
    }
}

/// Danger of a kind of finding, most dangerous first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Danger {
    /// Security and correctness.
    Harmful,
    /// May be serious in one place and harmless in another: secrets in code, races, ignored errors.
    Doubtful,
    /// Other classes of defects.
    Defect,
    /// Smells.
    Smell,
}

impl Danger {
    fn from_kind(kind: Kind) -> Self {
        match kind {
            kind if kind.is_never_hidden() => Self::Harmful,
            kind if kind.is_never_lowered() => Self::Doubtful,
            kind if kind.is_smell() => Self::Smell,
            _ => Self::Defect,
        }
    }
}

/// Circumstances of the reader, and the functions that the projection borrows from other rooms.
#[derive(Clone, Copy)]
pub struct LedgerWorld<'a> {
    pub now: Time,
    pub format: LedgerFormat,
    pub details: DetailsCall,
    /// Earlier ledgers of the reader's session; `None` for a reader who forgets.
    pub memory: Option<&'a SessionMemory>,
    /// Counts the tokens of a text, or more.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Replaces secrets in a text.
    pub mask: &'a dyn Fn(&str) -> String,
    /// Returns the ids of the findings that any session was told about; asked only if it matters.
    pub told_to_any: &'a dyn Fn() -> BTreeSet<String>,
}

/// Ledger for an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    pub text: String,
    /// Number of tokens by the caller's counter.
    pub tokens: usize,
    pub form: LedgerForm,
    /// Ended run whose result the ledger reports.
    pub run: Option<RunId>,
    /// Findings that the ledger names.
    pub surfaced: Vec<FindingId>,
    /// Most important findings that did not fit, at most [`MAX_LISTED_OMISSIONS`].
    pub omitted: Vec<FindingId>,
    /// Number of elements that did not fit.
    pub left_out: usize,
    /// Hash of what the reader's session knows now; see [`SessionMemory::state`].
    pub state: String,
}

/// Maximum number of omitted findings that a ledger lists; more would not help a reader of the preview.
pub const MAX_LISTED_OMISSIONS: usize = 10;

/// Builds the ledger that a coding assistant receives, with at most `cap` tokens. `None` if there is nothing to say or
/// no room for it.
pub fn project_ledger(view: &LedgerView<'_>, world: &LedgerWorld<'_>, cap: usize) -> Option<Ledger> {
    let cap = cap.min(MAX_LEDGER_TOKENS);
    let active = view.runs.iter().filter(|run| !run.status.is_terminal()).max_by_key(|run| {
        // A working run comes first, then the newest.
        (run.status.is_working(), run.created_at, &run.id)
    });
    let latest = select_latest_run(view);
    let findings = rank_findings(view);
    if (active.is_none() && latest.is_none() && findings.is_empty()) || cap < MIN_LEDGER_TOKENS {
        return None;
    }
    let renderer = LedgerRenderer::new(view, world);
    let head: Vec<(String, Option<&RunId>)> = active
        .map(|run| (renderer.active_run(run), None))
        .into_iter()
        .chain(latest.map(|run| (renderer.latest_run(run), Some(&run.id))))
        .collect();
    let frame = LedgerFrame { renderer: &renderer, head: &head, cap, count: world.count };
    let mut page = frame.fill(&findings);
    let told = |finding: &LedgerFinding<'_>| world.memory.is_some_and(|memory| memory.contains(finding));
    // All that fits is known: findings take the places that this session was not told about, and that are in the present
    // change or that nobody was told about.
    if world.memory.is_some_and(|memory| memory.told.len() < MAX_TOLD_IN_TURNS)
        && page.kept_findings < findings.len()
        && findings[..page.kept_findings].iter().all(|finding| told(finding))
    {
        let told_to_any = (world.told_to_any)();
        let is_due = |finding: &LedgerFinding<'_>| {
            !told(finding) && (finding.in_change || !told_to_any.contains(finding.id.as_ref()))
        };
        let (mut first, rest): (Vec<_>, Vec<_>) = findings.iter().copied().partition(|finding| is_due(finding));
        if !first.is_empty() {
            first.extend(rest);
            page = frame.fill(&first);
            return finish_ledger(view, &first, page, latest, world);
        }
    }
    let standing: Vec<&LedgerFinding> = findings.iter().copied().filter(|finding| told(finding)).collect();
    if let Some(memory) = world.memory
        && findings[..page.kept_findings].iter().all(|finding| told(finding))
        && memory.covers(latest, &standing)
    {
        let text = renderer.unchanged(standing.len(), active);
        let tokens = (world.count)(&text);
        return (tokens <= cap).then(|| Ledger {
            text,
            tokens,
            form: LedgerForm::Unchanged,
            run: None,
            surfaced: Vec::new(),
            omitted: Vec::new(),
            left_out: 0,
            state: memory.state.clone(),
        });
    }
    finish_ledger(view, &findings, page, latest, world)
}

/// Returns the findings by importance. More than [`MAX_CANDIDATES`] are cut.
fn rank_findings<'v, 'a>(view: &'v LedgerView<'a>) -> Vec<&'v LedgerFinding<'a>> {
    let mut findings: Vec<&LedgerFinding> =
        view.findings.iter().filter(|finding| finding.status.is_undecided()).collect();
    if findings.len() > MAX_CANDIDATES {
        findings.select_nth_unstable_by(MAX_CANDIDATES, |a, b| a.weight().cmp(&b.weight()));
        findings.truncate(MAX_CANDIDATES);
    }
    findings.sort_by(|a, b| a.weight().cmp(&b.weight()));
    findings
}

/// Frame of a ledger: its runs, and the room for findings.
struct LedgerFrame<'a> {
    renderer: &'a LedgerRenderer<'a>,
    /// Elements of runs in order of importance, with the ended run that an element reports.
    head: &'a [(String, Option<&'a RunId>)],
    cap: usize,
    count: &'a dyn Fn(&str) -> usize,
}

/// As many elements as fit, in order of importance.
struct FilledPage<'a> {
    /// Text with its tokens; `None` if not even the first element fits.
    text: Option<(String, usize)>,
    /// Number of elements of runs.
    kept_runs: usize,
    kept_findings: usize,
    run: Option<&'a RunId>,
}

impl<'a> LedgerFrame<'a> {
    /// Adds whole elements until the next one does not fit.
    fn fill(&self, findings: &[&LedgerFinding<'_>]) -> FilledPage<'a> {
        let mut page = FilledPage { text: None, kept_runs: 0, kept_findings: 0, run: None };
        let mut elements: Vec<String> = Vec::new();
        for index in 0..self.head.len() + findings.len() {
            let (element, run) = match self.head.get(index) {
                Some((element, run)) => (element.clone(), *run),
                None => (self.renderer.finding(findings[index - self.head.len()]), None),
            };
            elements.push(element);
            let text = self.renderer.page(&elements);
            let tokens = (self.count)(&text);
            if tokens > self.cap {
                break;
            }
            page.text = Some((text, tokens));
            page.run = page.run.or(run);
            if index < self.head.len() {
                page.kept_runs += 1;
            } else {
                page.kept_findings += 1;
            }
        }
        page
    }
}

fn finish_ledger(
    view: &LedgerView<'_>,
    findings: &[&LedgerFinding<'_>],
    page: FilledPage<'_>,
    latest: Option<&LedgerRun>,
    world: &LedgerWorld<'_>,
) -> Option<Ledger> {
    let (text, tokens) = page.text?;
    let (kept, omitted) = findings.split_at(page.kept_findings);
    let ids = |findings: &[&LedgerFinding<'_>], limit: usize| {
        findings.iter().filter_map(|finding| finding.id.parse().ok()).take(limit).collect::<Vec<FindingId>>()
    };
    let known: Vec<&LedgerFinding> = findings
        .iter()
        .enumerate()
        .filter(|(at, finding)| *at < kept.len() || world.memory.is_some_and(|memory| memory.contains(finding)))
        .map(|(_, finding)| *finding)
        .collect();
    let runs = usize::from(latest.is_some()) + usize::from(view.runs.iter().any(|run| !run.status.is_terminal()));
    Some(Ledger {
        text,
        tokens,
        form: LedgerForm::Whole,
        run: page.run.cloned(),
        surfaced: ids(kept, usize::MAX),
        omitted: ids(omitted, MAX_LISTED_OMISSIONS),
        left_out: runs - page.kept_runs
            + omitted.len()
            + view.findings.len().saturating_sub(findings.len())
            + view.beyond,
        state: match world.memory {
            Some(memory) => memory.next_state(latest, &known),
            None => SessionMemory::default().next_state(latest, &known),
        },
    })
}

/// Returns the newest ended run, if its result still matters. Skipped runs do not count. A run without
/// undecided findings matters only if it failed, was lost or is incomplete, or if it is current and was not surfaced yet.
fn select_latest_run<'a>(view: &'a LedgerView<'_>) -> Option<&'a LedgerRun> {
    let newest = view
        .runs
        .iter()
        .filter(|run| run.status.is_terminal() && run.status != RunStatus::Skipped)
        .max_by_key(|run| (run.created_at, &run.id))?;
    let news = newest.surfaced == SurfacedState::No && newest.freshness == "current";
    let broken = matches!(newest.status, RunStatus::Failed | RunStatus::Lost) || !newest.incomplete.is_empty();
    ((newest.findings > 0 && view.has_undecided) || news || broken).then_some(newest)
}

#[cfg(test)]
mod tests;
