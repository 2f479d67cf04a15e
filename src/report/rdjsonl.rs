//! Renders findings as diagnostics for reviewdog (`-f=rdjsonl`): one JSON object on each line.

use serde_json::{Value, json};

use super::export::{ExportLevel, ExportedFinding, FindingExport};
use super::json::to_json_text;
use crate::domain::LineRange;

/// Renders one diagnostic for each standing finding.
pub fn render_rdjsonl(export: &FindingExport) -> String {
    let incomplete = export.incomplete.iter().map(|said| {
        json!({
            "message": format!("The review is incomplete: {said}"),
            "location": { "path": export.place() },
            "severity": "ERROR",
            "source": { "name": "revdeck" },
            "code": { "value": "INCOMPLETE_REVIEW" },
        })
    });
    let lines = incomplete.chain(export.standing().map(encode_diagnostic));
    lines.map(|line| format!("{}\n", to_json_text(&line))).collect()
}

fn encode_diagnostic(exported: &ExportedFinding) -> Value {
    let finding = &exported.finding;
    let severity = match ExportLevel::from(finding.priority) {
        ExportLevel::Error => "ERROR",
        ExportLevel::Warning => "WARNING",
        ExportLevel::Note => "INFO",
    };
    let mut diagnostic = json!({
        "message": exported.message(),
        "location": { "path": finding.repo_relative_path, "range": encode_range(finding.lines()) },
        "severity": severity,
        "source": { "name": "revdeck" },
        "code": { "value": finding.kind },
    });
    if let Some(suggestion) = &finding.suggestion
        && let Some(text) = &suggestion.replacement
    {
        let range = encode_range(suggestion.lines.unwrap_or(finding.lines()));
        diagnostic["suggestions"] = json!([{ "range": range, "text": text }]);
    }
    diagnostic
}

/// Encodes whole lines: a range without columns includes its last line.
fn encode_range(lines: LineRange) -> Value {
    json!({ "start": { "line": lines.start }, "end": { "line": lines.end } })
}
