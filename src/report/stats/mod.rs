//! Gathers the statistics of a store and describes them in words; [`text`] renders them as text, [`json`] as
//! JSON.
//!
//! - Each file of the store is read once. No journal of a single run is read, except that of the selected run.

mod json;
mod text;
mod worth_text;

pub(crate) use json::encode_stats;
pub(crate) use text::{MIN_TELLING_DECISIONS, describe_span, join_parts, render_stats};
pub(crate) use worth_text::{WorthGrouping, describe_misjudged, describe_worth, render_worth, split_bar};

use jiff::tz::TimeZone;

use super::figures::{format_brief, format_dollars, format_millis, format_percent, format_short_count, resample};
use crate::domain::text::format_count;
use crate::domain::{CancelReason, RunFigures};
use crate::ledger::metrics::{
    Metrics, MetricsDetail, MetricsInput, MetricsSelection, MetricsTotals, OutcomeCounts, Precision, SeriesPoint,
    compute_metrics, measure_worth,
};
use crate::parallel;
use crate::review::JournalMetrics;
use crate::runner::StoredReports;
use crate::store::{Store, StoreError, StoreView};

/// Number of findings from which the metrics are computed on two threads.
const MIN_PARALLEL_FINDINGS: usize = 4_096;

/// Reads the store and computes its metrics. Day boundaries are those of `zone`. The view must be complete.
///
/// # Errors
///
/// Returns an error if a file of the store cannot be read.
pub fn gather_metrics(
    store: &Store,
    view: &StoreView,
    (selection, detail): (&MetricsSelection, MetricsDetail),
    zone: &TimeZone,
) -> Result<Metrics, StoreError> {
    let mut records = StoredReports::load(store, view)?;
    for run in records.runs.iter_mut().filter(|run| selection.run.as_ref() == Some(&run.run_id)) {
        fill_from_journal(store, run)?;
    }
    let findings = records.list_facts(view);
    let handed = store.ledger_deliveries()?;
    let StoredReports { runs, reports, scanned, .. } = &records;
    let input = MetricsInput { runs, findings: &findings, reports, scanned, handed: &handed };
    let (metrics, worth) = if findings.len() < MIN_PARALLEL_FINDINGS {
        (compute_metrics(&input, (selection, detail), zone), measure_worth(&input, selection))
    } else {
        parallel::join(|| compute_metrics(&input, (selection, detail), zone), || measure_worth(&input, selection))
    };
    Ok(Metrics { worth, ..metrics })
}

/// Fills timings and answers that the run record lacks from the run's journal. A record lacks them while the run
/// is active, or if an older version wrote it.
fn fill_from_journal(store: &Store, run: &mut RunFigures) -> Result<(), StoreError> {
    let Some(record) = store.run(&run.run_id)? else { return Ok(()) };
    let measured = JournalMetrics::from_journal(&record, &store.read_journal(&run.run_id)?);
    let timings = measured.apply_to_timings(run.phase_timings);
    run.phase_timings.first_token_ms = run.phase_timings.first_token_ms.or(timings.first_token_ms);
    run.phase_timings.first_finding_ms = run.phase_timings.first_finding_ms.or(timings.first_finding_ms);
    if run.answered_by.is_empty() {
        run.answered_by = measured.answered_by;
    }
    Ok(())
}

/// A named line of statistics with its parts.
pub struct StatsFact {
    pub name: &'static str,
    pub parts: Vec<String>,
}

/// Formats `42 launched`; returns `None` for zero.
fn format_unless_zero(n: u32, what: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {what}", format_short_count(u64::from(n))))
}

/// Formats a number of things: `1 hunk`, `12 hunks`; returns `None` for zero.
fn format_things(n: u32, noun: &str) -> Option<String> {
    format_unless_zero(n, &format!("{noun}{}", if n == 1 { "" } else { "s" }))
}

/// Describes the hunks that were carried over: `1 hunk carried over`; `None` if there are none.
fn describe_carried(hunks: u32) -> Option<String> {
    format_things(hunks, "hunk").map(|hunks| format!("{hunks} carried over"))
}

/// Describes all metrics in words, the most informative first. Facts without parts are left out.
pub fn describe_metrics(metrics: &Metrics) -> Vec<StatsFact> {
    let totals = &metrics.totals;
    let mut facts = vec![
        StatsFact { name: "Reviews", parts: describe_reviews(totals) },
        StatsFact { name: "Endings", parts: describe_endings(totals) },
        StatsFact { name: "Tokens", parts: describe_tokens(totals) },
        StatsFact { name: "Findings", parts: describe_outcomes(&totals.findings) },
        StatsFact { name: "Precision", parts: describe_precision(&totals.precision) },
    ];
    facts.retain(|fact| !fact.parts.is_empty());
    facts
}

fn describe_reviews(totals: &MetricsTotals) -> Vec<String> {
    let mut parts = vec![format!("{} launched", format_short_count(u64::from(totals.launched)))];
    parts.extend(format_unless_zero(totals.adopted, "adopted"));
    parts.extend(format_unless_zero(totals.reused, "reused"));
    parts.extend(format_unless_zero(totals.skipped, "skipped"));
    parts.extend(format_unless_zero(totals.resumed, "resumed"));
    parts.extend((totals.follow_ups > 0).then(|| format_count(totals.follow_ups as usize, "follow-up")));
    parts.extend(describe_carried(totals.hunks_carried));
    parts
}

fn describe_endings(totals: &MetricsTotals) -> Vec<String> {
    let mut parts: Vec<String> = format_unless_zero(totals.completed, "completed").into_iter().collect();
    parts.extend(format_unless_zero(totals.active, "on their way"));
    parts.extend(format_unless_zero(totals.superseded, "superseded"));
    // A run that reached its budget was not cancelled by anybody.
    let by_budget = totals.cancelled_by_reason.get(&CancelReason::BudgetExhausted).copied().unwrap_or(0);
    if let Some(cancelled) = format_unless_zero(totals.cancelled.saturating_sub(by_budget), "cancelled") {
        let reasons = totals.cancelled_by_reason.iter().filter(|(reason, _)| **reason != CancelReason::BudgetExhausted);
        let reasons: Vec<String> =
            reasons.map(|(reason, n)| format!("{} {n}", reason.word().replace('_', " "))).collect();
        parts.push(if reasons.is_empty() { cancelled } else { format!("{cancelled} ({})", reasons.join(", ")) });
    }
    let its = if by_budget == 1 { "its" } else { "their" };
    parts.extend(format_unless_zero(by_budget, &format!("ended by {its} budget")));
    parts.extend(format_unless_zero(totals.failed, "failed"));
    parts.extend(format_unless_zero(totals.lost, "lost"));
    parts
}

fn describe_tokens(totals: &MetricsTotals) -> Vec<String> {
    let mut parts = Vec::new();
    if totals.tokens_spent > 0 {
        let tokens = &totals.tokens;
        let mut sorts = vec![format!("{} input", format_brief(tokens.input))];
        sorts.extend((tokens.cached > 0).then(|| format!("{} of it cached", format_brief(tokens.cached))));
        sorts.push(format!("{} output", format_brief(tokens.output)));
        sorts.extend((tokens.reasoning > 0).then(|| format!("{} reasoning", format_brief(tokens.reasoning))));
        parts.push(format!("{} spent ({})", format_brief(totals.tokens_spent), sorts.join(", ")));
        parts.extend((totals.cost > 0.0).then(|| format_dollars(totals.cost)));
        let unpriced = totals.runs_without_price as usize;
        parts.extend((unpriced > 0).then(|| format!("{} without a price", format_count(unpriced, "run"))));
    } else {
        parts.push("none spent".to_owned());
    }
    parts.extend((totals.tokens_saved > 0).then(|| format!("about {} saved", format_brief(totals.tokens_saved))));
    let ledgers = totals.ledgers as usize;
    parts.extend(
        (ledgers > 0)
            .then(|| format!("{} for {}", format_brief(totals.ledger_tokens), format_count(ledgers, "ledger"))),
    );
    parts
}

fn describe_outcomes(fates: &OutcomeCounts) -> Vec<String> {
    let mut parts = vec![format!("{} found", format_short_count(u64::from(fates.found)))];
    parts.extend(format_unless_zero(fates.surfaced, "surfaced"));
    parts.extend(format_unless_zero(fates.open, "open"));
    parts.extend(format_unless_zero(fates.unresolved, "unresolved"));
    if let Some(addressed) = format_unless_zero(fates.addressed, "addressed") {
        parts.push(match fates.confirmed {
            0 => addressed,
            confirmed => format!("{addressed}, {} of them confirmed", format_short_count(u64::from(confirmed))),
        });
    }
    parts.extend(format_unless_zero(fates.dismissed, "dismissed"));
    parts.extend(format_unless_zero(fates.obsolete, "obsolete"));
    parts
}

fn describe_precision(precision: &Precision) -> Vec<String> {
    if precision.share.is_none() {
        return Vec::new();
    }
    let decided = format_short_count(u64::from(precision.decided_count()));
    vec![
        format!("{} of {decided} decided were addressed", format_percent(precision.share)),
        format!("at least {} with 95 % confidence", format_percent(precision.at_least)),
    ]
}

/// One line of the chart over time: a value per column, and the total as text.
pub struct StatsChart {
    pub name: &'static str,
    pub values: Vec<Option<f64>>,
    /// Value of a full cell; `None` means the greatest value.
    pub max: Option<f64>,
    pub total: String,
}

/// Builds the charts over time, each at most `width` columns wide. Charts without any value are left out.
pub fn build_charts(metrics: &Metrics, width: usize) -> Vec<StatsChart> {
    type PointValue = fn(&SeriesPoint) -> u64;
    let (points, totals) = (&metrics.series.points, &metrics.totals);
    let sums: [(&str, PointValue, u64); 4] = [
        ("runs", |point| u64::from(point.runs), u64::from(totals.launched + totals.skipped)),
        ("findings", |point| u64::from(point.findings), points.iter().map(|point| u64::from(point.findings)).sum()),
        ("tokens spent", |point| point.tokens_spent, totals.tokens_spent),
        ("tokens saved", |point| point.tokens_saved, totals.tokens_saved),
    ];
    let mut charts: Vec<StatsChart> = sums
        .into_iter()
        .filter(|(.., total)| *total > 0)
        .map(|(name, value, total)| StatsChart {
            name,
            values: resample(points, width, |points| Some(points.iter().map(value).sum::<u64>() as f64)),
            max: None,
            total: if name.starts_with("tokens") { format_brief(total) } else { format_short_count(total) },
        })
        .collect();
    let shares = resample(points, width, |points| {
        let sum = |value: fn(&SeriesPoint) -> u32| points.iter().map(value).sum();
        Precision::from_counts(sum(|point| point.addressed), sum(|point| point.dismissed)).share
    });
    if shares.iter().any(Option::is_some) {
        let total = format_percent(totals.precision.share);
        charts.push(StatsChart { name: "addressed", values: shares, max: Some(1.0), total });
    }
    // Of several points in a column, the slowest: a column says how long a review may take.
    let times =
        resample(points, width, |points| points.iter().filter_map(|point| point.review_ms).max().map(|ms| ms as f64));
    if let Some(last) = points.iter().rev().find_map(|point| point.review_ms) {
        charts.push(StatsChart { name: "review time", values: times, max: None, total: format_millis(last) });
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_has_no_plural() {
        for (hunks, follow_ups, expected) in [
            (0, 0, "2 launched"),
            (1, 1, "2 launched, 1 follow-up, 1 hunk carried over"),
            (12_345, 2, "2 launched, 2 follow-ups, 12,345 hunks carried over"),
        ] {
            let totals = MetricsTotals { launched: 2, follow_ups, hunks_carried: hunks, ..MetricsTotals::default() };
            assert_eq!(describe_reviews(&totals).join(", "), expected);
        }
    }

    #[test]
    fn a_run_that_its_budget_ended_is_not_cancelled() {
        let ended = |budget: u32, user: u32| {
            let reasons = [(CancelReason::BudgetExhausted, budget), (CancelReason::UserStop, user)];
            let totals = MetricsTotals {
                cancelled: budget + user,
                cancelled_by_reason: reasons.into_iter().filter(|(_, n)| *n > 0).collect(),
                ..MetricsTotals::default()
            };
            describe_endings(&totals).join(", ")
        };
        assert_eq!(ended(1, 0), "1 ended by its budget");
        assert_eq!(ended(2, 1), "1 cancelled (user stop 1), 2 ended by their budget");
        assert_eq!(ended(0, 1), "1 cancelled (user stop 1)");
    }
}
