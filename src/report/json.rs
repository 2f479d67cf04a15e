//! Encodes runs, findings and coverage as JSON objects: `"version": 1`, snake_case keys, times as RFC 3339, paths
//! relative to the repository.
//!
//! - Every key that a run or a finding can have is always present, with `null` or an empty value if there is
//!   nothing to say. Readers need no guesses.
//! - Renaming or removing a key raises the version.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::FindingHistory;
use crate::domain::text;
use crate::domain::{Coverage, Finding, RejectedReport, RunRecord, SCHEMA_VERSION, SuppressedReport};
use crate::policy::Freshness;

/// Run keys that serialization omits when they are empty.
const OPTIONAL_RUN_KEYS: [&str; 21] = [
    "prompt_set",
    "price_known",
    "reserved_cost",
    "triage_bytes",
    "superseded_by",
    "reused_from",
    "carried_over_from",
    "resumed_from",
    "waits_for",
    "member_of",
    "team",
    "panel",
    "merged_reports",
    "finish_note",
    "follow_up_of",
    "cancel_reason",
    "cancel_note",
    "budget_stop",
    "window_limit",
    "error_class",
    "error_summary",
];

/// Run keys that serialization omits when no later request reused the run.
const RUN_REUSE_KEYS: [&str; 3] = ["last_reused_at", "last_reuse_reason", "last_reuse_head"];

/// Encodes a run with every key and its freshness. The coverage lists (`files`, `left_out`, `carried`) are removed.
pub fn encode_run(run: &RunRecord, freshness: Freshness) -> Value {
    let mut value = to_object(run);
    value.insert("freshness".to_owned(), json!(freshness));
    value.insert("summary".to_owned(), json!(run.summary_with_error()));
    for key in OPTIONAL_RUN_KEYS.into_iter().chain(RUN_REUSE_KEYS) {
        value.entry(key).or_insert(Value::Null);
    }
    for key in ["reuse_count", "adopted_count"] {
        value.entry(key).or_insert_with(|| json!(0));
    }
    for key in ["answered_by", "scanned_findings", "listed_as"] {
        value.entry(key).or_insert_with(|| json!([]));
    }
    if let Some(Value::Object(timings)) = value.get_mut("phase_timings") {
        for key in ["first_token_ms", "first_finding_ms"] {
            timings.entry(key).or_insert(Value::Null);
        }
    }
    if let Some(Value::Object(tokens)) = value.get_mut("tokens") {
        tokens.entry("estimated").or_insert_with(|| json!(false));
    }
    for key in ["paused", "full", "private"] {
        value.entry(key).or_insert_with(|| json!(false));
    }
    if let Some(Value::Object(coverage)) = value.get_mut("coverage") {
        coverage.entry("hunks_left_out").or_insert_with(|| json!(0));
        coverage.remove("files");
        coverage.remove("left_out");
        coverage.remove("carried");
        add_gap_keys(coverage, run.outcome.coverage.is_incomplete());
    }
    value.insert("incomplete".to_owned(), json!(run.is_incomplete()));
    Value::Object(value)
}

/// Adds the keys about gaps. Records of older versions do not say by themselves that they are incomplete.
fn add_gap_keys(coverage: &mut Map<String, Value>, incomplete: bool) {
    coverage.insert("incomplete".to_owned(), json!(incomplete));
    coverage.entry("gaps").or_insert_with(|| json!([]));
}

/// Encodes a finding with every key.
pub fn encode_finding(finding: &Finding) -> Value {
    let mut value = to_object(finding);
    value.entry("suggestion").or_insert(Value::Null);
    value.entry("pattern").or_insert(Value::Null);
    for key in ["voices", "steps", "disputed"] {
        value.entry(key).or_insert_with(|| json!([]));
    }
    value.entry("lowered").or_insert(Value::Null);
    value.entry("symbol").or_insert(Value::Null);
    Value::Object(value)
}

/// Encodes coverage with its lists.
pub fn encode_coverage(coverage: &Coverage) -> Value {
    let mut value = to_object(coverage);
    value.entry("hunks_left_out").or_insert_with(|| json!(0));
    for key in ["files", "left_out", "carried"] {
        value.entry(key).or_insert_with(|| json!([]));
    }
    add_gap_keys(&mut value, coverage.is_incomplete());
    Value::Object(value)
}

/// Encodes a rejected report and the reason, with every key.
pub fn encode_rejected(rejected: &RejectedReport) -> Value {
    let mut report = to_object(&rejected.report);
    for key in ["severity", "priority", "confidence", "replacement", "replaced"] {
        report.entry(key).or_insert(Value::Null);
    }
    json!({ "report": report, "reason": rejected.reason })
}

/// Encodes the output of `review --wait` and `show RUN`: `run`, `findings`, `coverage`, `notes`, `rejected`.
pub fn encode_review(
    record: &RunRecord,
    freshness: Freshness,
    findings: &[Finding],
    covered: &Coverage,
    notes: &[String],
    set_aside: &[RejectedReport],
) -> Value {
    build_versioned([
        ("run", encode_run(record, freshness)),
        ("findings", findings.iter().map(encode_finding).collect()),
        ("coverage", encode_coverage(covered)),
        ("notes", json!(notes)),
        ("rejected", set_aside.iter().map(encode_rejected).collect()),
    ])
}

/// Encodes the output of `show FINDING`: `finding` and the keys of its history.
pub fn encode_finding_with_history(shown: &Finding, story: &FindingHistory) -> Value {
    build_versioned([("finding", encode_finding(shown))].into_iter().chain(story.to_json_parts()))
}

/// Encodes the findings that were held back, each as `finding`, `because`, `reason`.
pub fn encode_held_back(held: &[SuppressedReport]) -> Value {
    let one = |held: &SuppressedReport| json!({ "finding": encode_finding(&held.finding), "because": held.because, "reason": held.reason });
    held.iter().map(one).collect()
}

/// Builds an object whose first key is `version`.
pub fn build_versioned<'a>(parts: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let mut object = Map::new();
    object.insert("version".to_owned(), json!(SCHEMA_VERSION));
    object.extend(parts.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Value::Object(object)
}

/// Serializes a value to a JSON object. Revdeck's types always encode to objects; any other value gives an empty
/// object.
fn to_object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// Encodes JSON on one line and writes every character that a terminal could interpret or display wrongly as
/// `\uXXXX`. Parsers read the same value.
pub fn to_json_text(value: &serde_json::Value) -> String {
    escape_json_text(&value.to_string()).into_owned()
}

/// Encodes a document as JSON on one line, as [`to_json_text`] does, but without a tree of values in between.
///
/// # Errors
///
/// Returns an error if the document cannot be encoded.
pub fn encode_json_text<T: Serialize + ?Sized>(document: &T) -> serde_json::Result<String> {
    let text = serde_json::to_string(document)?;
    let escaped = match escape_json_text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(escaped) => Some(escaped),
    };
    Ok(escaped.unwrap_or(text))
}

/// Writes every character of a JSON text that a terminal could interpret or display wrongly as `\uXXXX`. JSON has such
/// characters only inside strings, so the escape is valid at every position.
pub fn escape_json_text(text: &str) -> Cow<'_, str> {
    // Of ASCII only control characters are unsafe. Most texts are ASCII, and bytes are checked faster than characters.
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) || !text.chars().any(text::is_unsafe) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if text::is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_harmless_and_says_the_same() {
        for hostile in [
            "plain ünïcode 漢字 🦀",
            "\u{9b}2J\u{85}\u{7f}",
            "a\u{202e}b\u{2066}\u{feff}",
            "\u{e0041}",
            "\x1b[2J\n\t\"\\",
        ] {
            let value = json!({ hostile: [hostile, 1, null] });
            let text = to_json_text(&value);
            assert!(!text.chars().any(text::is_unsafe), "{text:?}");
            assert_eq!(encode_json_text(&value).expect("encoded"), text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(value), "{text}");
        }
        assert_eq!(to_json_text(&json!("\u{9b}\u{e0041}")), "\"\\u009b\\udb40\\udc41\"");
    }
}
