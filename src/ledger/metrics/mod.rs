//! Computes metrics from records: the runs, their cost and the outcome of their findings.
//!
//! Invariants:
//! - Pure: only `domain` is imported.
//! - An unknown value is `None` and never 0.
//! - A finding counts once in the totals, and once for each kind, reviewer and run that reported it.
//! - Sums over runs are the sums of their records.

mod precision;
mod series;

pub(crate) use precision::Precision;
pub(crate) use series::{MetricsSeries, SeriesPoint, Step};

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::domain::{
    Actor, CancelReason, ErrorClass, FindingStatus, Kind, LedgerDelivery, PhaseTimings, ReviewerUsage, RunId,
    RunRecord, RunStatus, Scope, Source, Time, Usage,
};

/// Records from which metrics are computed.
#[derive(Debug, Clone, Copy)]
pub struct MetricsInput<'a> {
    /// Newest first.
    pub runs: &'a [RunRecord],
    pub findings: &'a [FindingFact<'a>],
    pub handed: &'a [LedgerDelivery],
}

/// Finding with the fields that metrics need.
#[derive(Debug, Clone, Copy)]
pub struct FindingFact<'a> {
    pub id: &'a str,
    pub first_run: &'a str,
    pub last_run: &'a str,
    pub kind: Kind,
    pub status: FindingStatus,
    /// Actor that set the status, and the time. `None` if nobody has.
    pub decided: Option<(Actor, Time)>,
}

/// Selection of the runs to count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSelection {
    /// Only runs requested at this time or later.
    pub since: Option<Time>,
    /// Only this run.
    pub run: Option<RunId>,
}

impl MetricsSelection {
    fn contains(&self, run: &RunRecord) -> bool {
        self.since.is_none_or(|since| run.created_at >= since)
            && self.run.as_ref().is_none_or(|wanted| run.run_id == *wanted)
    }
}

/// All metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metrics {
    pub totals: MetricsTotals,
    /// Newest first.
    pub runs: Vec<RunMetrics>,
    /// Kinds with most findings first.
    pub by_kind: Vec<KindMetrics>,
    /// Sorted by name.
    pub by_reviewer: Vec<ReviewerMetrics>,
    pub series: MetricsSeries,
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
                match finding.decided {
                    Some((Actor::Engine, _)) => self.confirmed += 1,
                    _ => self.claimed += 1,
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
    /// Run that a skipped duplicate points to, and run from which this run carried over most.
    pub reused_from: Option<RunId>,
    pub carried_over_from: Option<RunId>,
    pub error_class: Option<ErrorClass>,
    /// Time when an assistant first received its result.
    pub surfaced_at: Option<Time>,
    pub findings: OutcomeCounts,
}

/// Metrics of all runs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MetricsTotals {
    /// Number of started reviews: all runs except skipped ones.
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

/// Metrics of the findings of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindMetrics {
    pub kind: Kind,
    pub findings: OutcomeCounts,
    pub precision: Precision,
}

/// Metrics of one reviewer. A run with several reviewers counts for the one that gave most of its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewerMetrics {
    pub reviewer: String,
    pub runs: u32,
    pub tokens_spent: u64,
    pub cost: f64,
    /// Median time of the review of its completed runs, in milliseconds. `None` without one.
    pub review_ms: Option<u64>,
    pub findings: OutcomeCounts,
    pub precision: Precision,
}

/// Computes all metrics of the selected runs. Days are those of `zone`.
pub fn compute_metrics(facts: &MetricsInput<'_>, selection: &MetricsSelection, zone: &TimeZone) -> Metrics {
    let chosen: Vec<&RunRecord> = facts.runs.iter().filter(|run| selection.contains(run)).collect();
    let told = SurfacedItems::from_deliveries(facts.handed);
    let attempts: HashMap<&RunId, u32> = facts.runs.iter().map(|run| (&run.run_id, run.attempt)).collect();
    let mut runs: Vec<RunMetrics> = chosen.iter().map(|run| measure_run(run, &attempts, &told)).collect();
    let reported = pair_runs_with_findings(&chosen, facts.findings);
    let surfaced = |finding: u32| told.findings.contains(facts.findings[finding as usize].id);

    for &(run, finding) in &reported {
        runs[run as usize].findings.count_finding(&facts.findings[finding as usize], surfaced(finding));
    }
    for (metrics, run) in runs.iter_mut().zip(&chosen) {
        // A record may name only a part of very many findings, but it counts all of them.
        metrics.findings.found = metrics.findings.found.max(run.outcome.finding_counts.total());
    }
    let mut distinct: Vec<u32> = reported.iter().map(|(_, finding)| *finding).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut all = OutcomeCounts::default();
    let mut kinds: BTreeMap<Kind, OutcomeCounts> = BTreeMap::new();
    for &finding in &distinct {
        let fact = &facts.findings[finding as usize];
        all.count_finding(fact, surfaced(finding));
        kinds.entry(fact.kind).or_default().count_finding(fact, surfaced(finding));
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
        totals: sum_totals(&runs, all, handed),
        by_kind,
        by_reviewer: group_by_reviewer(&chosen, &runs, &reported, facts.findings, &surfaced),
        series: build_series(&chosen, &distinct, facts.findings, zone),
        runs,
    }
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

/// Returns pairs of the indexes of a run and of a finding that it reported, without duplicates, in order.
fn pair_runs_with_findings(runs: &[&RunRecord], findings: &[FindingFact<'_>]) -> Vec<(u32, u32)> {
    let places = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let run_at: HashMap<&str, u32> =
        runs.iter().enumerate().map(|(at, run)| (run.run_id.as_str(), places(at))).collect();
    let finding_at: HashMap<&str, u32> =
        findings.iter().enumerate().map(|(at, finding)| (finding.id, places(at))).collect();
    let mut pairs = Vec::with_capacity(findings.len() * 2);
    for (at, finding) in findings.iter().enumerate() {
        for run in [finding.first_run, finding.last_run] {
            pairs.extend(run_at.get(run).map(|run| (*run, places(at))));
        }
    }
    for (at, run) in runs.iter().enumerate() {
        let known = run.outcome.finding_digests.iter().filter_map(|id| finding_at.get(id.as_str()));
        pairs.extend(known.map(|finding| (places(at), *finding)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Returns the number of times a run was resumed. Its worker count includes those of the run that it resumed.
fn count_resumes(run: &RunRecord, attempts: &HashMap<&RunId, u32>) -> u32 {
    let before = run.links.resumed_from.as_ref().and_then(|from| attempts.get(from)).copied().unwrap_or(1);
    run.attempt.saturating_sub(before)
}

fn measure_run(run: &RunRecord, attempts: &HashMap<&RunId, u32>, told: &SurfacedItems<'_>) -> RunMetrics {
    let spent = run.usage.tokens.total();
    RunMetrics {
        run_id: run.run_id.clone(),
        status: run.status,
        created_at: run.created_at,
        source: run.source,
        scope: run.subject.scope.clone(),
        reviewer: run.reviewed_by.name.clone(),
        model: run.reviewed_by.model.clone(),
        reasoning_effort: run.reviewed_by.reasoning_effort.clone(),
        answered_by: run.usage.answered_by.clone(),
        attempt: run.attempt,
        resumed: count_resumes(run, attempts),
        phase_timings: run.usage.phase_timings,
        tokens: run.usage.tokens,
        tokens_spent: spent,
        tokens_saved: run.usage.saved_token_estimate,
        cost: (spent == 0 || run.usage.cost > 0.0).then_some(run.usage.cost),
        window_peak: Some(run.usage.window_peak).filter(|peak| *peak > 0),
        follow_ups: run.follow_up_count,
        adopted: run.reuse.adopted_count,
        reused: run.reuse.count.saturating_sub(run.reuse.adopted_count),
        hunks_covered: run.outcome.coverage.hunks_covered,
        hunks_carried: run.outcome.coverage.hunks_carried,
        decision: run.decision.clone(),
        cancel_reason: run.ending.cancel_reason,
        superseded_by: run.links.superseded_by.clone(),
        reused_from: run.links.reused_from.clone(),
        carried_over_from: run.links.carried_over_from.clone(),
        error_class: run.ending.error_class,
        surfaced_at: told.runs.get(&run.run_id).copied(),
        findings: OutcomeCounts::default(),
    }
}

fn sum_totals<'a>(
    runs: &[RunMetrics],
    findings: OutcomeCounts,
    handed: impl Iterator<Item = &'a LedgerDelivery>,
) -> MetricsTotals {
    let mut totals = MetricsTotals { findings, precision: findings.precision(), ..MetricsTotals::default() };
    for run in runs {
        match run.status {
            RunStatus::Completed => totals.completed += 1,
            RunStatus::Failed => totals.failed += 1,
            RunStatus::Cancelled => {
                totals.cancelled += 1;
                if let Some(reason) = run.cancel_reason {
                    *totals.cancelled_by_reason.entry(reason).or_default() += 1;
                }
            }
            RunStatus::Superseded => totals.superseded += 1,
            RunStatus::Skipped => totals.skipped += 1,
            RunStatus::Lost => totals.lost += 1,
            RunStatus::Pending | RunStatus::Snapshotting | RunStatus::Reviewing | RunStatus::Resolving => {
                totals.active += 1;
            }
        }
        totals.launched += u32::from(run.status != RunStatus::Skipped);
        totals.adopted += run.adopted;
        totals.reused += run.reused;
        totals.resumed += run.resumed;
        totals.follow_ups += run.follow_ups;
        totals.hunks_covered += run.hunks_covered;
        totals.hunks_carried += run.hunks_carried;
        totals.tokens += run.tokens;
        totals.tokens_spent = totals.tokens_spent.saturating_add(run.tokens_spent);
        totals.tokens_saved = totals.tokens_saved.saturating_add(run.tokens_saved);
        totals.cost += run.cost.unwrap_or(0.0);
        totals.runs_without_price += u32::from(run.cost.is_none());
    }
    for ledger in handed {
        totals.ledgers += u32::from(ledger.is_text());
        totals.ledger_tokens = totals.ledger_tokens.saturating_add(ledger.tokens);
    }
    totals
}

/// Returns the reviewer that a run counts for: the one with most answers, the last among equals.
fn main_reviewer(run: &RunRecord) -> &str {
    let most = run.usage.answered_by.iter().max_by_key(|answerer| answerer.turns);
    most.map_or(&run.reviewed_by.name, |answerer| &answerer.reviewer)
}

fn group_by_reviewer(
    chosen: &[&RunRecord],
    runs: &[RunMetrics],
    reported: &[(u32, u32)],
    findings: &[FindingFact<'_>],
    surfaced: &dyn Fn(u32) -> bool,
) -> Vec<ReviewerMetrics> {
    let mut table: BTreeMap<&str, ReviewerMetrics> = BTreeMap::new();
    for (run, metrics) in chosen.iter().zip(runs).filter(|(run, _)| run.status != RunStatus::Skipped) {
        let name = main_reviewer(run);
        let reviewer = table.entry(name).or_insert_with(|| ReviewerMetrics {
            reviewer: name.to_owned(),
            runs: 0,
            tokens_spent: 0,
            cost: 0.0,
            review_ms: None,
            findings: OutcomeCounts::default(),
            precision: Precision::default(),
        });
        reviewer.runs += 1;
        reviewer.tokens_spent = reviewer.tokens_spent.saturating_add(metrics.tokens_spent);
        reviewer.cost += metrics.cost.unwrap_or(0.0);
    }
    let completed = chosen.iter().filter(|run| has_review_time(run));
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for run in completed {
        times.entry(main_reviewer(run)).or_default().push(run.usage.phase_timings.review_ms);
    }
    for (name, times) in times {
        table.entry(name).and_modify(|reviewer| reviewer.review_ms = median(times));
    }
    let mut said: Vec<(&str, u32)> =
        reported.iter().map(|(run, finding)| (main_reviewer(chosen[*run as usize]), *finding)).collect();
    said.sort_unstable();
    said.dedup();
    for (name, finding) in said {
        if let Some(reviewer) = table.get_mut(name) {
            reviewer.findings.count_finding(&findings[finding as usize], surfaced(finding));
        }
    }
    let mut all: Vec<ReviewerMetrics> = table.into_values().collect();
    for reviewer in &mut all {
        reviewer.precision = reviewer.findings.precision();
    }
    all
}

fn build_series(runs: &[&RunRecord], distinct: &[u32], findings: &[FindingFact<'_>], zone: &TimeZone) -> MetricsSeries {
    let asked: HashMap<&str, Time> = runs.iter().map(|run| (run.run_id.as_str(), run.created_at)).collect();
    let decided = |finding: &FindingFact<'_>| match finding.status {
        FindingStatus::Addressed | FindingStatus::Dismissed => finding.decided.map(|(_, at)| at),
        _ => None,
    };
    let facts = || distinct.iter().map(|finding| &findings[*finding as usize]);
    let moments = runs.iter().map(|run| run.created_at).chain(facts().filter_map(decided));
    let mut series = MetricsSeries::from_times(moments, zone);
    let mut times: BTreeMap<Time, Vec<u64>> = BTreeMap::new();
    for run in runs {
        if let Some(point) = series.point_at(run.created_at) {
            if has_review_time(run) {
                times.entry(point.start).or_default().push(run.usage.phase_timings.review_ms);
            }
            point.runs += 1;
            point.tokens_spent = point.tokens_spent.saturating_add(run.usage.tokens.total());
            point.tokens_saved = point.tokens_saved.saturating_add(run.usage.saved_token_estimate);
        }
    }
    for finding in facts() {
        if let Some(point) = asked.get(finding.first_run).and_then(|at| series.point_at(*at)) {
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
fn has_review_time(run: &RunRecord) -> bool {
    run.status == RunStatus::Completed && run.source != Source::Import
}

/// Returns the median, the lower one of two; `None` without values.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
