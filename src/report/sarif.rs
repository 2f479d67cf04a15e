//! Renders findings as SARIF 2.1.0, the format of code scanning.
//!
//! - A result has the id of its finding as a partial fingerprint, so a finding that moves is the same alert.
//! - A finding that is not raised has a suppression with its reason.
//! - An incomplete review has `executionSuccessful: false` and an error that says what is missing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::export::{ExportLevel, ExportedFinding, FindingExport};
use super::json::to_json_text;
use super::rules::describe_rule;
use crate::domain::{FindingStatus, Kind, LineRange};

/// Address of the schema, for editors.
const SCHEMA_URL: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Name of the fingerprint that holds the finding's id. The number changes if ids are computed in another way.
const FINGERPRINT_NAME: &str = "revdeckFindingId/v1";
/// Name for the root of the repository, as code scanning knows it.
const ROOT_NAME: &str = "%SRCROOT%";

/// Renders the log with one run of the tool `revdeck`.
pub fn render_sarif(export: &FindingExport) -> String {
    // The code of an obsolete finding is gone, so it has no place.
    let shown = || export.findings.iter().filter(|exported| exported.finding.status != FindingStatus::Obsolete);
    let kinds: BTreeSet<Kind> = shown().map(|exported| exported.finding.kind).collect();
    let kinds: Vec<Kind> = kinds.into_iter().collect();
    let results: Vec<Value> = shown().map(|exported| encode_result(exported, &kinds)).collect();
    let notifications: Vec<Value> = export
        .incomplete
        .iter()
        .map(|said| json!({ "level": "error", "message": { "text": format!("The review is incomplete: {said}") } }))
        .collect();
    let log = json!({
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "revdeck",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": kinds.iter().map(|kind| encode_rule(*kind)).collect::<Vec<_>>(),
            } },
            "invocations": [{
                "executionSuccessful": export.incomplete.is_none(),
                "toolExecutionNotifications": notifications,
            }],
            "originalUriBaseIds": { ROOT_NAME: { "description": { "text": "The root of the repository." } } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{}\n", to_json_text(&log))
}

fn encode_rule(kind: Kind) -> Value {
    let rule = describe_rule(kind);
    json!({
        "id": kind,
        "name": rule.title,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.help },
        "help": { "text": rule.help, "markdown": rule.help },
        "defaultConfiguration": { "level": "warning" },
        "properties": { "tags": [rule.tag] },
    })
}

fn encode_result(exported: &ExportedFinding, kinds: &[Kind]) -> Value {
    let finding = &exported.finding;
    let mut region = encode_lines(finding.lines());
    if !finding.quoted_code.is_empty() {
        region["snippet"] = json!({ "text": finding.quoted_code });
    }
    let artifact = encode_artifact(&finding.repo_relative_path);
    let mut result = json!({
        "ruleId": finding.kind,
        "ruleIndex": kinds.iter().position(|kind| *kind == finding.kind),
        "level": ExportLevel::from(finding.priority).word(),
        "message": { "text": exported.message() },
        "locations": [{ "physicalLocation": { "artifactLocation": artifact, "region": region } }],
        "partialFingerprints": { FINGERPRINT_NAME: finding.finding_id },
        "properties": {
            "priority": finding.priority,
            "severity": finding.severity,
            "confidence": finding.confidence,
            "status": finding.status,
        },
    });
    let dismissed = finding.status == FindingStatus::Dismissed;
    if let Some(reason) = exported.suppressed.as_deref().or(dismissed.then_some("dismissed")) {
        result["suppressions"] = json!([{ "kind": "external", "status": "accepted", "justification": reason }]);
    }
    result["fixes"] = encode_fixes(exported);
    if let Some(object) = result.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    result
}

/// Encodes the exact replacement of a suggestion; null if there is none.
fn encode_fixes(exported: &ExportedFinding) -> Value {
    let finding = &exported.finding;
    let Some(suggestion) = &finding.suggestion else { return Value::Null };
    let Some(replacement) = &suggestion.replacement else { return Value::Null };
    let lines = suggestion.lines.unwrap_or(finding.lines());
    let mut deleted = encode_lines(lines);
    if replacement.is_empty() {
        // Without the line end, an empty line would stay.
        deleted = json!({
            "startLine": lines.start, "startColumn": 1, "endLine": lines.end.saturating_add(1), "endColumn": 1,
        });
    }
    json!([{
        "description": { "text": suggestion.text },
        "artifactChanges": [{
            "artifactLocation": encode_artifact(&finding.repo_relative_path),
            "replacements": [{
                "deletedRegion": deleted,
                "insertedContent": { "text": replacement.trim_end_matches('\n') },
            }],
        }],
    }])
}

/// Encodes whole lines. Records of other machines may have invalid lines, which the schema does not allow.
fn encode_lines(lines: LineRange) -> Value {
    json!({ "startLine": lines.start.max(1), "endLine": lines.end.max(lines.start).max(1) })
}

fn encode_artifact(path: &str) -> Value {
    json!({ "uri": encode_uri(path), "uriBaseId": ROOT_NAME })
}

/// Encodes a path as a relative reference: letters, digits and `-._~/` stay, other bytes become `%XX`.
fn encode_uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
