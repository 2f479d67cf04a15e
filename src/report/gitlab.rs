//! Renders findings as a code quality report of GitLab: a list of issues with a stable fingerprint.

use serde_json::{Value, json};

use super::export::FindingExport;
use super::json::to_json_text;
use crate::domain::{Priority, content_hash};

/// Renders the report. GitLab compares the fingerprints of two reports, so a finding that stays is not new.
pub fn render_gitlab(export: &FindingExport) -> String {
    let mut issues = Vec::new();
    if let Some(said) = &export.incomplete {
        issues.push(json!({
            "description": format!("The review is incomplete: {said}"),
            "check_name": "INCOMPLETE_REVIEW",
            "fingerprint": content_hash([b"incomplete review".as_slice(), export.place().as_bytes()]),
            "severity": "blocker",
            "location": { "path": export.place(), "lines": { "begin": 1, "end": 1 } },
        }));
    }
    for exported in export.standing() {
        let finding = &exported.finding;
        issues.push(json!({
            "description": finding.title,
            "content": { "body": exported.describe() },
            "check_name": finding.kind,
            "fingerprint": finding.finding_id,
            "severity": severity_word(finding.priority),
            "location": {
                "path": finding.repo_relative_path,
                "lines": { "begin": finding.line_start, "end": finding.line_end },
            },
        }));
    }
    format!("{}\n", to_json_text(&Value::Array(issues)))
}

fn severity_word(priority: Priority) -> &'static str {
    match priority {
        Priority::P0 => "blocker",
        Priority::P1 => "critical",
        Priority::P2 => "major",
        Priority::P3 => "minor",
    }
}
