//! The JSON objects: one object each, `"version": 1`, snake_case, times as RFC 3339, paths relative to the repository.
//!
//! Invariant: a key that a run or a finding can have is always there, with `null` or an empty value where there is
//! nothing to say, so that readers need no guesses. Renaming or removing a key raises the version.

use serde_json::{Map, Value, json};

use super::FindingHistory;
use crate::domain::{Coverage, Finding, RejectedReport, RunRecord, SCHEMA_VERSION, SuppressedReport};

/// Keys of a run that its record leaves out when there is nothing to say.
const OPTIONAL_RUN_KEYS: [&str; 12] = [
    "triage_bytes",
    "superseded_by",
    "reused_from",
    "carried_over_from",
    "resumed_from",
    "waits_for",
    "finish_note",
    "follow_up_of",
    "cancel_reason",
    "cancel_note",
    "error_class",
    "error_summary",
];

/// As these, of a run that answered no later request.
const RUN_REUSE_KEYS: [&str; 3] = ["last_reused_at", "last_reuse_reason", "last_reuse_head"];

/// A run with every key.
pub fn encode_run(run: &RunRecord) -> Value {
    let mut value = to_object(run);
    for key in OPTIONAL_RUN_KEYS.into_iter().chain(RUN_REUSE_KEYS) {
        value.entry(key).or_insert(Value::Null);
    }
    for key in ["reuse_count", "adopted_count"] {
        value.entry(key).or_insert_with(|| json!(0));
    }
    value.entry("answered_by").or_insert_with(|| json!([]));
    if let Some(Value::Object(timings)) = value.get_mut("phase_timings") {
        for key in ["first_token_ms", "first_finding_ms"] {
            timings.entry(key).or_insert(Value::Null);
        }
    }
    for key in ["paused", "full", "private"] {
        value.entry(key).or_insert_with(|| json!(false));
    }
    if let Some(Value::Object(coverage)) = value.get_mut("coverage") {
        coverage.entry("hunks_left_out").or_insert_with(|| json!(0));
        coverage.remove("files");
        coverage.remove("left_out");
        coverage.remove("carried");
    }
    Value::Object(value)
}

/// A finding with every key.
pub fn encode_finding(finding: &Finding) -> Value {
    let mut value = to_object(finding);
    value.entry("suggestion").or_insert(Value::Null);
    value.entry("pattern").or_insert(Value::Null);
    Value::Object(value)
}

/// Coverage with its lists.
pub fn encode_coverage(coverage: &Coverage) -> Value {
    let mut value = to_object(coverage);
    value.entry("hunks_left_out").or_insert_with(|| json!(0));
    for key in ["files", "left_out", "carried"] {
        value.entry(key).or_insert_with(|| json!([]));
    }
    Value::Object(value)
}

/// A report that was set aside, with every key.
pub fn encode_rejected(rejected: &RejectedReport) -> Value {
    let mut report = to_object(&rejected.report);
    for key in ["severity", "priority", "confidence", "replacement", "replaced"] {
        report.entry(key).or_insert(Value::Null);
    }
    json!({ "report": report, "reason": rejected.reason })
}

/// What `review --wait` and `show RUN` print: `run`, `findings`, `coverage`, `notes`, `rejected`.
pub fn encode_review(
    record: &RunRecord,
    findings: &[Finding],
    covered: &Coverage,
    notes: &[String],
    set_aside: &[RejectedReport],
) -> Value {
    build_versioned([
        ("run", encode_run(record)),
        ("findings", findings.iter().map(encode_finding).collect()),
        ("coverage", encode_coverage(covered)),
        ("notes", json!(notes)),
        ("rejected", set_aside.iter().map(encode_rejected).collect()),
    ])
}

/// What `show FINDING` prints: `finding` and its story.
pub fn encode_finding_with_history(shown: &Finding, story: &FindingHistory) -> Value {
    let [history, place, reported, resolution, undoes, carried] = story.to_json_parts();
    build_versioned([("finding", encode_finding(shown)), history, place, reported, resolution, undoes, carried])
}

/// Reports that were not raised, each with the reason: `finding`, `because`, `reason`.
pub fn encode_held_back(held: &[SuppressedReport]) -> Value {
    let one = |held: &SuppressedReport| json!({ "finding": encode_finding(&held.finding), "because": held.because, "reason": held.reason });
    held.iter().map(one).collect()
}

/// An object with `version` first.
pub fn build_versioned<const N: usize>(parts: [(&str, Value); N]) -> Value {
    let mut object = Map::new();
    object.insert("version".to_owned(), json!(SCHEMA_VERSION));
    object.extend(parts.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Value::Object(object)
}

/// Our own types always encode to objects; anything else would show as an empty one.
fn to_object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
