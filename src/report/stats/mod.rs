//! The figures of a store: read together here, in words here, as text in [`text`], as JSON in [`json`].
//!
//! Invariant: one pass over each file of the store and no file of a single run, except for the one that is asked about.

mod json;
mod text;

pub use json::json;
pub use text::{TELLING, span, text};

use std::collections::HashSet;

use jiff::tz::TimeZone;

use super::figures::{brief, columns, dollars, percent, whole};
use crate::domain::text::count;
use crate::domain::{FindingId, FindingStatus, RunRecord};
use crate::ledger::metrics::{Facts, Fates, FindingFact, Metrics, Point, Precision, Selection, Totals, measure};
use crate::review::Measured;
use crate::store::{FindingRow, Store, StoreError, View};

/// Reads what the store knows and counts it. Days are those of `zone`.
pub fn gather(store: &Store, view: &View, selection: &Selection, zone: &TimeZone) -> Result<Metrics, StoreError> {
    let mut runs = store.records()?;
    for run in runs.iter_mut().filter(|run| selection.run.as_ref() == Some(&run.run_id)) {
        look_closer(store, run)?;
    }
    let rows = || (0..view.finding_count()).map(|index| view.finding(index));
    let decided: HashSet<&str> = rows().filter(|row| row.status != FindingStatus::Open).map(|row| row.id).collect();
    let said = store.last_said(&decided)?;
    let fact = |row: FindingRow<'_>| {
        let last = row.id.parse::<FindingId>().ok().and_then(|id| said.about(&id)).map(|(_, last)| last);
        (last.map_or(row.status, |last| last.status), last.map(|last| (last.actor, last.at)))
    };
    let findings: Vec<FindingFact<'_>> = rows()
        .map(|row| {
            let (status, decided) = fact(row);
            FindingFact {
                id: row.id,
                first_run: row.first_run,
                last_run: row.last_run,
                kind: row.kind,
                status,
                decided,
            }
        })
        .collect();
    let handed = store.handed()?;
    Ok(measure(&Facts { runs: &runs, findings: &findings, handed: &handed }, selection, zone))
}

/// What the journal of a run tells that its record does not: it has not ended, or an older version wrote it.
fn look_closer(store: &Store, run: &mut RunRecord) -> Result<(), StoreError> {
    let measured = Measured::of(run, &store.read_journal(&run.run_id)?);
    let timings = measured.into_timings(run.phase_timings);
    run.phase_timings.first_token_ms = run.phase_timings.first_token_ms.or(timings.first_token_ms);
    run.phase_timings.first_finding_ms = run.phase_timings.first_finding_ms.or(timings.first_finding_ms);
    if run.answered_by.is_empty() {
        run.answered_by = measured.answered_by;
    }
    Ok(())
}

/// A name and what is said about it, part by part.
pub struct Fact {
    pub name: &'static str,
    pub parts: Vec<String>,
}

/// `42 launched`, unless it is nothing.
fn some(n: u32, what: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {what}", whole(u64::from(n))))
}

/// All together in words, the most telling first.
pub fn facts(metrics: &Metrics) -> Vec<Fact> {
    let totals = &metrics.totals;
    let mut facts = vec![
        Fact { name: "Reviews", parts: reviews(totals) },
        Fact { name: "Endings", parts: endings(totals) },
        Fact { name: "Tokens", parts: tokens(totals) },
        Fact { name: "Findings", parts: fates(&totals.findings) },
        Fact { name: "Precision", parts: precision(&totals.precision) },
    ];
    facts.retain(|fact| !fact.parts.is_empty());
    facts
}

fn reviews(totals: &Totals) -> Vec<String> {
    let mut parts = vec![format!("{} launched", whole(u64::from(totals.launched)))];
    parts.extend(some(totals.adopted, "adopted"));
    parts.extend(some(totals.reused, "reused"));
    parts.extend(some(totals.skipped, "skipped"));
    parts.extend(some(totals.resumed, "resumed"));
    parts.extend((totals.follow_ups > 0).then(|| count(totals.follow_ups as usize, "follow-up")));
    parts.extend(some(totals.hunks_carried, "hunks carried over"));
    parts
}

fn endings(totals: &Totals) -> Vec<String> {
    let mut parts: Vec<String> = some(totals.completed, "completed").into_iter().collect();
    parts.extend(some(totals.active, "on their way"));
    parts.extend(some(totals.superseded, "superseded"));
    if let Some(cancelled) = some(totals.cancelled, "cancelled") {
        let reasons = totals.cancelled_by_reason.iter();
        let reasons: Vec<String> =
            reasons.map(|(reason, n)| format!("{} {n}", reason.word().replace('_', " "))).collect();
        parts.push(if reasons.is_empty() { cancelled } else { format!("{cancelled} ({})", reasons.join(", ")) });
    }
    parts.extend(some(totals.failed, "failed"));
    parts.extend(some(totals.lost, "lost"));
    parts
}

fn tokens(totals: &Totals) -> Vec<String> {
    let mut parts = Vec::new();
    if totals.tokens_spent > 0 {
        let tokens = &totals.tokens;
        let mut sorts = vec![format!("{} input", brief(tokens.input))];
        sorts.extend((tokens.cached > 0).then(|| format!("{} of it cached", brief(tokens.cached))));
        sorts.push(format!("{} output", brief(tokens.output)));
        sorts.extend((tokens.reasoning > 0).then(|| format!("{} reasoning", brief(tokens.reasoning))));
        parts.push(format!("{} spent ({})", brief(totals.tokens_spent), sorts.join(", ")));
        parts.extend((totals.cost > 0.0).then(|| dollars(totals.cost)));
        let unpriced = totals.runs_without_price as usize;
        parts.extend((unpriced > 0).then(|| format!("{} without a price", count(unpriced, "run"))));
    } else {
        parts.push("none spent".to_owned());
    }
    parts.extend((totals.tokens_saved > 0).then(|| format!("about {} saved", brief(totals.tokens_saved))));
    let ledgers = totals.ledgers as usize;
    parts.extend((ledgers > 0).then(|| format!("{} for {}", brief(totals.ledger_tokens), count(ledgers, "ledger"))));
    parts
}

fn fates(fates: &Fates) -> Vec<String> {
    let mut parts = vec![format!("{} found", whole(u64::from(fates.found)))];
    parts.extend(some(fates.surfaced, "surfaced"));
    parts.extend(some(fates.open, "open"));
    parts.extend(some(fates.unresolved, "unresolved"));
    if let Some(addressed) = some(fates.addressed, "addressed") {
        parts.push(match fates.confirmed {
            0 => addressed,
            confirmed => format!("{addressed}, {} of them confirmed", whole(u64::from(confirmed))),
        });
    }
    parts.extend(some(fates.dismissed, "dismissed"));
    parts.extend(some(fates.obsolete, "obsolete"));
    parts
}

fn precision(precision: &Precision) -> Vec<String> {
    if precision.share.is_none() {
        return Vec::new();
    }
    let decided = whole(u64::from(precision.decided()));
    vec![
        format!("{} of {decided} decided were addressed", percent(precision.share)),
        format!("at least {} with 95 % confidence", percent(precision.at_least)),
    ]
}

/// A line of a chart: a value for each column, what fills a cell when no value has to, and the sum in words.
pub struct Chart {
    pub name: &'static str,
    pub values: Vec<Option<f64>>,
    pub most: Option<f64>,
    pub total: String,
}

/// What happened over time, in at most `width` columns; lines in which nothing ever happened are left out.
pub fn charts(metrics: &Metrics, width: usize) -> Vec<Chart> {
    type Value = fn(&Point) -> u64;
    let (points, totals) = (&metrics.series.points, &metrics.totals);
    let sums: [(&str, Value, u64); 4] = [
        ("runs", |point| u64::from(point.runs), u64::from(totals.launched + totals.skipped)),
        ("findings", |point| u64::from(point.findings), points.iter().map(|point| u64::from(point.findings)).sum()),
        ("tokens spent", |point| point.tokens_spent, totals.tokens_spent),
        ("tokens saved", |point| point.tokens_saved, totals.tokens_saved),
    ];
    let mut charts: Vec<Chart> = sums
        .into_iter()
        .filter(|(.., total)| *total > 0)
        .map(|(name, value, total)| Chart {
            name,
            values: columns(points, width, |points| Some(points.iter().map(value).sum::<u64>() as f64)),
            most: None,
            total: if name.starts_with("tokens") { brief(total) } else { whole(total) },
        })
        .collect();
    let shares = columns(points, width, |points| {
        let sum = |value: fn(&Point) -> u32| points.iter().map(value).sum();
        Precision::of(sum(|point| point.addressed), sum(|point| point.dismissed)).share
    });
    if shares.iter().any(Option::is_some) {
        let total = percent(totals.precision.share);
        charts.push(Chart { name: "addressed", values: shares, most: Some(1.0), total });
    }
    charts
}
