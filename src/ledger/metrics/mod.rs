//! Computes metrics from records: the runs, their cost and the outcome of their findings.
//!
//! Invariants:
//! - Pure: only `domain` is imported.
//! - An unknown value is `None` and never 0.
//! - A finding counts once in the totals, and once for each kind, reviewer and run that reported it.
//! - Sums over runs are the sums of their records.
//! - A comment of the user and an import are no reviews: they count neither as launched nor by their ending. Their findings
//!   count.

mod precision;
mod reports;
mod series;
mod worth;

pub(crate) use precision::Precision;
pub(crate) use series::{MetricsSeries, SeriesPoint, Step};
#[cfg(test)]
pub(crate) use worth::DismissalCounts;
pub(crate) use worth::{
    MIN_STEERING_DECISIONS, MisjudgedKind, Worth, WorthRow, list_kind_records, list_misjudged_kinds,
};

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::tz::TimeZone;
use serde::Serialize;

use self::reports::{ReportedFindings, for_each_row};
use self::worth::compute_worth;
use crate::domain::{
    Actor, CancelReason, ErrorClass, FindingDecision, FindingStatus, Kind, LedgerDelivery, Panel, PhaseTimings,
    ReviewerShare, ReviewerUsage, RunFigures, RunId, RunStatus, Scope, Source, Time, Usage, find_replacement,
};

/// Records from which metrics are computed.
#[derive(Debug, Clone, Copy)]
pub struct MetricsInput<'a> {
    /// Newest first.
    pub runs: &'a [RunFigures],
    pub findings: &'a [FindingFact<'a>],
    /// Indexes of a run and of a finding that it reported or carried over, each pair once.
    pub reports: &'a [(u32, u32)],
    /// Indexes of a run and of a finding that revdeck's own search for secrets found there. These count for no reviewer, and no
    /// pair is in both lists.
    pub scanned: &'a [(u32, u32)],
    pub handed: &'a [LedgerDelivery],
}

/// Finding with the fields that metrics need.
#[derive(Debug, Clone, Copy)]
pub struct FindingFact<'a> {
    pub id: &'a str,
    /// Index of the run that reported it first. `None` if the run is not on record.
    pub first_run: Option<u32>,
    pub kind: Kind,
    /// Name of the language of its file; empty for a file of another kind.
    pub language: &'a str,
    pub status: FindingStatus,
    /// Disposition that set the status. `None` if nobody has decided.
    pub decided: Option<FindingDecision>,
}

impl FindingFact<'_> {
    /// Returns true for an addressed finding whose fix a later review saw.
    fn is_confirmed(&self) -> bool {
        self.status == FindingStatus::Addressed && self.decided.is_some_and(|decision| decision.actor == Actor::Engine)
    }
}

/// Selection of the runs to count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSelection {
    /// Only runs requested at this time or later.
    pub since: Option<Time>,
    /// Only this run.
    pub run: Option<RunId>,
    /// Time on this machine. An event that is more than a day later has no place in the series, because some clock was wrong; it
    /// counts elsewhere. `None` if all have a place.
    pub now: Option<Time>,
}

/// How far an event may be ahead of the clock of this machine so that it has a place in the series: a day, in milliseconds. A clock
/// that takes the time of its zone for UTC is ahead by up to 14 hours.
const MAX_AHEAD_MS: i64 = 86_400_000;

impl MetricsSelection {
    /// Returns true if an event at this time has a place in the series.
    fn has_place(&self, at: Time) -> bool {
        self.now.is_none_or(|now| at.as_millisecond() <= now.as_millisecond().saturating_add(MAX_AHEAD_MS))
    }

    fn contains(&self, run: &RunFigures) -> bool {
        self.since.is_none_or(|since| run.created_at >= since)
            && self.run.as_ref().is_none_or(|wanted| run.run_id == *wanted)
    }
}

/// What is computed besides the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsDetail {
    /// Nothing.
    Sums,
    /// Metrics of each run.
    EachRun,
}

/// All metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metrics {
    pub totals: MetricsTotals,
    /// Newest first; empty for [`MetricsDetail::Sums`].
    pub runs: Vec<RunMetrics>,
    /// Kinds with most findings first.
    pub by_kind: Vec<KindMetrics>,
    /// Sorted by name.
    pub by_reviewer: Vec<ReviewerMetrics>,
    pub series: MetricsSeries,
    pub worth: Worth,
}

/// Number of findings by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    pub found: u32,
    /// Named in a ledger to an assistant.
    pub surfaced: u32,
    pub open: u32,
    pub unresolved: u32,
    /// Claimed and confirmed ones.
    pub addressed: u32,
    /// Addressed according to a person or an assistant.
    pub claimed: u32,
    /// Addressed according to a later review.
    pub confirmed: u32,
    pub dismissed: u32,
    pub obsolete: u32,
}

impl OutcomeCounts {
    fn count_finding(&mut self, finding: &FindingFact<'_>, surfaced: bool) {
        self.found += 1;
        self.surfaced += u32::from(surfaced);
        match finding.status {
            FindingStatus::Open => self.open += 1,
            FindingStatus::Unresolved => self.unresolved += 1,
            FindingStatus::Addressed => {
                self.addressed += 1;
                match finding.is_confirmed() {
                    true => self.confirmed += 1,
                    false => self.claimed += 1,
                }
            }
            FindingStatus::Dismissed => self.dismissed += 1,
            FindingStatus::Obsolete => self.obsolete += 1,
        }
    }

    /// Returns the precision of these findings.
    pub fn precision(&self) -> Precision {
        Precision::from_counts(self.addressed, self.dismissed)
    }
}

/// Metrics of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunMetrics {
    pub run_id: RunId,
    pub status: RunStatus,
    pub created_at: Time,
    pub source: Source,
    pub scope: Scope,
    /// Requested reviewer, with model and effort.
    pub reviewer: String,
    pub model: String,
    pub reasoning_effort: String,
    /// Reviewers that answered. Empty for a reviewer without turns.
    pub answered_by: Vec<ReviewerUsage>,
    /// Number of started workers, including those of the run that it resumed.
    pub attempt: u32,
    /// Number of times the run was resumed after its worker or its reviewer failed.
    pub resumed: u32,
    #[serde(serialize_with = "serialize_timings")]
    pub phase_timings: PhaseTimings,
    pub tokens: Usage,
    pub tokens_spent: u64,
    pub tokens_saved: u64,
    /// Cost in US dollars. `None` if tokens were spent but no price is known.
    pub cost: Option<f64>,
    /// Tokens of the largest request. `None` without a request.
    pub window_peak: Option<u64>,
    pub follow_ups: u32,
    /// Later requests that the run answered while it was active (adopted) and after it ended (reused).
    pub adopted: u32,
    pub reused: u32,
    pub hunks_covered: u32,
    pub hunks_carried: u32,
    /// Reason of the decision to start it or not.
    pub decision: String,
    pub cancel_reason: Option<CancelReason>,
    pub superseded_by: Option<RunId>,
    /// Run of the panel that requested this run. At its end, it is also `superseded_by`.
    pub member_of: Option<RunId>,
    /// Run that a skipped duplicate points to, and run from which this run carried over most.
    pub reused_from: Option<RunId>,
    pub carried_over_from: Option<RunId>,
    pub error_class: Option<ErrorClass>,
    /// Time when an assistant first received its result.
    pub surfaced_at: Option<Time>,
    pub findings: OutcomeCounts,
}

impl RunMetrics {
    /// Returns the newer run that replaced this one, see [`find_replacement`].
    pub fn replaced_by(&self) -> Option<&RunId> {
        find_replacement(self.superseded_by.as_ref(), self.member_of.as_ref())
    }
}

/// Metrics of all runs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MetricsTotals {
    /// Number of started reviews: all runs except skipped ones, imports and comments of the user. The numbers of runs by status
    /// leave out the latter two as well.
    pub launched: u32,
    /// Requests answered by an active run.
    pub adopted: u32,
    /// Requests answered by a completed run.
    pub reused: u32,
    pub skipped: u32,
    pub active: u32,
    pub completed: u32,
    pub superseded: u32,
    pub cancelled: u32,
    pub cancelled_by_reason: BTreeMap<CancelReason, u32>,
    pub failed: u32,
    pub lost: u32,
    pub resumed: u32,
    pub follow_ups: u32,
    pub hunks_covered: u32,
    /// Hunks that were not sent again, because an earlier run had covered them unchanged.
    pub hunks_carried: u32,
    pub tokens: Usage,
    pub tokens_spent: u64,
    /// Estimated tokens that further reviews would have cost.
    pub tokens_saved: u64,
    /// Cost in US dollars of the runs whose price is known.
    pub cost: f64,
    pub runs_without_price: u32,
    /// Ledgers delivered to an assistant, and their tokens.
    pub ledgers: u32,
    pub ledger_tokens: u64,
    /// Each finding counts once.
    pub findings: OutcomeCounts,
    pub precision: Precision,
}

impl MetricsTotals {
    /// Returns true if there is nothing to tell: no request, and no finding of a comment or an import.
    pub fn is_empty(&self) -> bool {
        self.launched == 0 && self.skipped == 0 && self.findings.found == 0
    }

    /// Counts a run by its status.
    fn count_status(&mut self, run: &RunFigures) {
        match run.status {
            RunStatus::Completed => self.completed += 1,
            RunStatus::Failed => self.failed += 1,
            RunStatus::Cancelled => {
                self.cancelled += 1;
                if let Some(reason) = run.cancel_reason {
                    *self.cancelled_by_reason.entry(reason).or_default() += 1;
                }
            }
            RunStatus::Superseded => self.superseded += 1,
            RunStatus::Skipped => self.skipped += 1,
            RunStatus::Lost => self.lost += 1,
            RunStatus::Pending | RunStatus::Snapshotting | RunStatus::Reviewing | RunStatus::Resolving => {
                self.active += 1;
            }
        }
        self.launched += u32::from(run.status != RunStatus::Skipped);
    }
}

/// Metrics of the findings of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindMetrics {
    pub kind: Kind,
    pub findings: OutcomeCounts,
    pub precision: Precision,
}

/// Metrics of one reviewer. A run with several reviewers counts for the one that gave most of its answers. The run of a
/// panel reports what its members report; it is no reviewer. It counts as a run of each reviewer that gave second opinions in
/// it, with what that reviewer's answers took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewerMetrics {
    pub reviewer: String,
    /// Number of its reviews; 0 for a tool whose findings were imported, and for the author of comments.
    pub runs: u32,
    pub tokens_spent: u64,
    pub cost: f64,
    /// Median time of the review of its completed runs, in milliseconds. `None` without one.
    pub review_ms: Option<u64>,
    pub findings: OutcomeCounts,
    pub precision: Precision,
}

/// Serializes timings with all of their keys: an unknown time is null.
fn serialize_timings<S: serde::Serializer>(timings: &PhaseTimings, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct AllTimings {
        queued_ms: u64,
        snapshot_ms: u64,
        review_ms: u64,
        resolve_ms: u64,
        first_token_ms: Option<u64>,
        first_finding_ms: Option<u64>,
    }
    let PhaseTimings { queued_ms, snapshot_ms, review_ms, resolve_ms, first_token_ms, first_finding_ms } = *timings;
    AllTimings { queued_ms, snapshot_ms, review_ms, resolve_ms, first_token_ms, first_finding_ms }.serialize(serializer)
}

/// Computes the metrics of the selected runs, with an empty [`Metrics::worth`]: [`measure_worth`] computes it, takes as long and
/// can do so on another thread. Days are those of `zone`.
pub fn compute_metrics(
    facts: &MetricsInput<'_>,
    (selection, detail): (&MetricsSelection, MetricsDetail),
    zone: &TimeZone,
) -> Metrics {
    let reported = ReportedFindings::select(facts, |run| selection.contains(run));
    let told = SurfacedItems::from_deliveries(facts.handed);
    let attempts: HashMap<&RunId, u32> = facts.runs.iter().map(|run| (&run.run_id, run.attempt)).collect();
    let mut runs: Vec<RunMetrics> = match detail {
        MetricsDetail::Sums => Vec::new(),
        MetricsDetail::EachRun => reported.runs.iter().map(|run| measure_run(run, &attempts, &told)).collect(),
    };
    let mut reviewers = ReviewerTable::from_runs(&reported.runs);
    let mut all = OutcomeCounts::default();
    let mut kinds: BTreeMap<Kind, OutcomeCounts> = BTreeMap::new();
    for (fact, reporting) in reported.iter() {
        let surfaced = told.findings.contains(fact.id);
        all.count_finding(fact, surfaced);
        kinds.entry(fact.kind).or_default().count_finding(fact, surfaced);
        if detail == MetricsDetail::EachRun {
            reporting.iter().for_each(|run| runs[*run as usize].findings.count_finding(fact, surfaced));
        }
    }
    for (fact, reporting) in reported.iter_by_reviewers() {
        reviewers.count_finding(fact, reporting, told.findings.contains(fact.id));
    }
    for (metrics, run) in runs.iter_mut().zip(&reported.runs) {
        // The result of a run may be lost, but its record counts all of its findings.
        metrics.findings.found = metrics.findings.found.max(run.finding_counts.total());
    }
    let handed = facts
        .handed
        .iter()
        .filter(|handed| selection.run.is_none() && selection.since.is_none_or(|since| handed.at >= since));
    let mut by_kind: Vec<KindMetrics> = kinds
        .into_iter()
        .map(|(kind, findings)| KindMetrics { kind, findings, precision: findings.precision() })
        .collect();
    by_kind.sort_by_key(|kind| std::cmp::Reverse(kind.findings.found));
    Metrics {
        totals: sum_totals((&reported.runs, &attempts), all, handed),
        by_kind,
        by_reviewer: reviewers.into_rows(),
        series: build_series(&reported, selection, zone),
        worth: Worth::default(),
        runs,
    }
}

/// Computes what reviewers, models, kinds and languages of the selected runs are worth.
pub fn measure_worth(facts: &MetricsInput<'_>, selection: &MetricsSelection) -> Worth {
    compute_worth(&ReportedFindings::select(facts, |run| selection.contains(run)))
}

/// Runs and findings that ledgers told assistants about, with the time for runs.
struct SurfacedItems<'a> {
    runs: HashMap<&'a RunId, Time>,
    findings: HashSet<&'a str>,
}

impl<'a> SurfacedItems<'a> {
    fn from_deliveries(handed: &'a [LedgerDelivery]) -> Self {
        let mut told = Self { runs: HashMap::new(), findings: HashSet::new() };
        for ledger in handed {
            if let Some(run) = &ledger.run_id {
                told.runs.entry(run).or_insert(ledger.at);
            }
            told.findings.extend(ledger.findings.iter().map(|id| id.as_str()));
        }
        told
    }
}

/// Returns the number of times a run was resumed. Its worker count includes those of the run that it resumed.
fn count_resumes(run: &RunFigures, attempts: &HashMap<&RunId, u32>) -> u32 {
    let before = run.resumed_from.as_ref().and_then(|from| attempts.get(from)).copied().unwrap_or(1);
    run.attempt.saturating_sub(before)
}

fn measure_run(run: &RunFigures, attempts: &HashMap<&RunId, u32>, told: &SurfacedItems<'_>) -> RunMetrics {
    RunMetrics {
        run_id: run.run_id.clone(),
        status: run.status,
        created_at: run.created_at,
        source: run.source,
        scope: run.scope.clone(),
        reviewer: run.reviewer.clone(),
        model: run.model.clone(),
        reasoning_effort: run.reasoning_effort.clone(),
        answered_by: run.answered_by.clone(),
        attempt: run.attempt,
        resumed: count_resumes(run, attempts),
        phase_timings: run.phase_timings,
        tokens: run.tokens,
        tokens_spent: run.tokens.total(),
        tokens_saved: run.saved_token_estimate,
        cost: run.known_cost(),
        window_peak: Some(run.window_peak).filter(|peak| *peak > 0),
        follow_ups: run.follow_up_count,
        adopted: run.adopted_count,
        reused: run.reuse_count.saturating_sub(run.adopted_count),
        hunks_covered: run.coverage.hunks_covered,
        hunks_carried: run.coverage.hunks_carried,
        decision: run.decision.clone(),
        cancel_reason: run.cancel_reason,
        superseded_by: run.superseded_by.clone(),
        member_of: run.member_of.clone(),
        reused_from: run.reused_from.clone(),
        carried_over_from: run.carried_over_from.clone(),
        error_class: run.error_class,
        surfaced_at: told.runs.get(&run.run_id).copied(),
        findings: OutcomeCounts::default(),
    }
}

fn sum_totals<'a>(
    (runs, attempts): (&[&RunFigures], &HashMap<&RunId, u32>),
    findings: OutcomeCounts,
    handed: impl Iterator<Item = &'a LedgerDelivery>,
) -> MetricsTotals {
    let mut totals = MetricsTotals { findings, precision: findings.precision(), ..MetricsTotals::default() };
    for run in runs {
        if !run.is_import() {
            totals.count_status(run);
        }
        for (sum, count) in [
            (&mut totals.adopted, run.adopted_count),
            (&mut totals.reused, run.reuse_count.saturating_sub(run.adopted_count)),
            (&mut totals.resumed, count_resumes(run, attempts)),
            (&mut totals.follow_ups, run.follow_up_count),
            (&mut totals.hunks_covered, run.coverage.hunks_covered),
            (&mut totals.hunks_carried, run.coverage.hunks_carried),
        ] {
            // Other machines have made some of the records.
            *sum = sum.saturating_add(count);
        }
        totals.tokens += run.tokens;
        totals.tokens_spent = totals.tokens_spent.saturating_add(run.tokens.total());
        totals.tokens_saved = totals.tokens_saved.saturating_add(run.saved_token_estimate);
        totals.cost += run.known_cost().unwrap_or(0.0);
        totals.runs_without_price += u32::from(run.known_cost().is_none());
    }
    for ledger in handed {
        totals.ledgers += u32::from(ledger.is_text());
        totals.ledger_tokens = totals.ledger_tokens.saturating_add(ledger.tokens);
    }
    totals
}

/// Reviewers of the selected runs with their figures.
struct ReviewerTable {
    rows: Vec<ReviewerMetrics>,
    /// Row of each selected run to which its findings are counted. `None` for a skipped run, and for the run of a panel.
    row_of: Vec<Option<usize>>,
}

impl ReviewerTable {
    fn from_runs(chosen: &[&RunFigures]) -> Self {
        let mut table = Self { rows: Vec::new(), row_of: Vec::with_capacity(chosen.len()) };
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut times: Vec<Vec<u64>> = Vec::new();
        // The last run of each row. In one run, a reviewer may have answered with two models.
        let mut last_runs: Vec<Option<usize>> = Vec::new();
        for (at, run) in chosen.iter().copied().enumerate() {
            let mut row_of_findings = None;
            let is_counted = |share: &ReviewerShare<'_>| {
                run.status != RunStatus::Skipped && Panel::name_of(share.reviewer).is_none()
            };
            for share in run.shares().filter(is_counted) {
                let row = *known.entry(share.reviewer).or_insert(table.rows.len());
                if row == table.rows.len() {
                    times.push(Vec::new());
                    last_runs.push(None);
                    table.rows.push(ReviewerMetrics {
                        reviewer: share.reviewer.to_owned(),
                        runs: 0,
                        tokens_spent: 0,
                        cost: 0.0,
                        review_ms: None,
                        findings: OutcomeCounts::default(),
                        precision: Precision::default(),
                    });
                }
                let is_next_run = last_runs[row].replace(at) != Some(at);
                let reviewer = &mut table.rows[row];
                reviewer.runs += u32::from(is_next_run && !run.is_import());
                reviewer.tokens_spent = reviewer.tokens_spent.saturating_add(share.tokens);
                reviewer.cost += share.cost.unwrap_or(0.0);
                if has_review_time(run) {
                    match times[row].last_mut().filter(|_| !is_next_run) {
                        Some(ms) => *ms = ms.saturating_add(share.review_ms),
                        None => times[row].push(share.review_ms),
                    }
                }
                // A reviewer that gave second opinions on the list of a panel did not report it.
                row_of_findings = Some(row).filter(|_| !run.is_panel());
            }
            table.row_of.push(row_of_findings);
        }
        for (reviewer, times) in table.rows.iter_mut().zip(times) {
            reviewer.review_ms = median(times);
        }
        table
    }

    /// Counts a finding once for each reviewer of the runs that reported it.
    fn count_finding(&mut self, fact: &FindingFact<'_>, reporting: &[u32], surfaced: bool) {
        for_each_row(&self.row_of, reporting, |row| self.rows[row].findings.count_finding(fact, surfaced));
    }

    /// Returns the rows, sorted by name.
    fn into_rows(mut self) -> Vec<ReviewerMetrics> {
        for reviewer in &mut self.rows {
            reviewer.precision = reviewer.findings.precision();
        }
        self.rows.sort_by(|a, b| a.reviewer.cmp(&b.reviewer));
        self.rows
    }
}

fn build_series(reported: &ReportedFindings<'_>, selection: &MetricsSelection, zone: &TimeZone) -> MetricsSeries {
    let decided = |finding: &FindingFact<'_>| match finding.status {
        FindingStatus::Addressed | FindingStatus::Dismissed => {
            finding.decided.map(|decision| decision.at).filter(|at| selection.has_place(*at))
        }
        _ => None,
    };
    let facts = move || reported.iter().map(|(fact, _)| fact);
    let runs = move || reported.runs.iter().filter(move |run| selection.has_place(run.created_at));
    let moments = runs().map(|run| run.created_at).chain(facts().filter_map(decided));
    let mut series = MetricsSeries::from_times(moments, zone);
    let mut times: BTreeMap<Time, Vec<u64>> = BTreeMap::new();
    for run in runs() {
        if let Some(point) = series.point_at(run.created_at) {
            if has_review_time(run) {
                times.entry(point.start).or_default().push(run.phase_timings.review_ms);
            }
            point.runs += u32::from(!run.is_import());
            point.tokens_spent = point.tokens_spent.saturating_add(run.tokens.total());
            point.tokens_saved = point.tokens_saved.saturating_add(run.saved_token_estimate);
        }
    }
    for finding in facts() {
        let first = finding.first_run.and_then(|run| reported.selected(run));
        let first = first.filter(|run| selection.has_place(run.created_at));
        if let Some(point) = first.and_then(|run| series.point_at(run.created_at)) {
            point.findings += 1;
        }
        if let Some(point) = decided(finding).and_then(|at| series.point_at(at)) {
            match finding.status {
                FindingStatus::Addressed => point.addressed += 1,
                _ => point.dismissed += 1,
            }
        }
    }
    series.compute_shares();
    for (start, times) in times {
        if let Some(point) = series.point_at(start) {
            point.review_ms = median(times);
        }
    }
    series
}

/// Returns true for a completed review; an import reviews nothing itself.
fn has_review_time(run: &RunFigures) -> bool {
    run.status == RunStatus::Completed && !run.is_import()
}

/// Returns the median, the lower one of two; `None` without values.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
