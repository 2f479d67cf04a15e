//! Encodes the statistics as one JSON object.

use serde::Serialize;

use crate::domain::{SCHEMA_VERSION, Time};
use crate::ledger::metrics::{
    KindMetrics, Metrics, MetricsSelection, MetricsSeries, MetricsTotals, ReviewerMetrics, RunMetrics, Worth,
};

/// Output of `stats --format json`. Every key is always present; `null` stands for an unknown value.
///
/// It is serialized without a tree of values in between, which for 10,000 runs would take most of the command's time.
#[derive(Debug, Serialize)]
pub struct StatsDocument<'a> {
    version: u32,
    since: Option<Time>,
    totals: &'a MetricsTotals,
    runs: &'a [RunMetrics],
    by_kind: &'a [KindMetrics],
    by_reviewer: &'a [ReviewerMetrics],
    series: &'a MetricsSeries,
    worth: &'a Worth,
}

/// Encodes the statistics of a selection.
pub fn encode_stats<'a>(metrics: &'a Metrics, selection: &MetricsSelection) -> StatsDocument<'a> {
    let Metrics { totals, runs, by_kind, by_reviewer, series, worth } = metrics;
    StatsDocument { version: SCHEMA_VERSION, since: selection.since, totals, runs, by_kind, by_reviewer, series, worth }
}
