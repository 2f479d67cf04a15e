//! Encodes the statistics as one JSON object.

use serde_json::{Value, json as value};

use crate::ledger::metrics::{Metrics, MetricsSelection};
use crate::report::json::build_versioned;

/// Encodes the output of `stats --format json`: `since`, `totals`, `runs`, `by_kind`, `by_reviewer`, `series`.
/// Every key is always present; `null` stands for an unknown value.
pub fn encode_stats(metrics: &Metrics, selection: &MetricsSelection) -> Value {
    let mut runs = value!(metrics.runs);
    for run in runs.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(timings)) = run.get_mut("phase_timings") {
            for key in ["first_token_ms", "first_finding_ms"] {
                timings.entry(key).or_insert(Value::Null);
            }
        }
    }
    build_versioned([
        ("since", value!(selection.since)),
        ("totals", value!(metrics.totals)),
        ("runs", runs),
        ("by_kind", value!(metrics.by_kind)),
        ("by_reviewer", value!(metrics.by_reviewer)),
        ("series", value!(metrics.series)),
    ])
}
