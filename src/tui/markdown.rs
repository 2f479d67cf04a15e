//! Renders a finding as Markdown for a ticket or a prompt.

use crate::domain::{Finding, FindingStatus, text};
use crate::report::panel;
use crate::store::FindingRow;

fn format_location(path: &str, start: u32, end: u32) -> String {
    if end > start { format!("{path}:{start}-{end}") } else { format!("{path}:{start}") }
}

/// Renders all details of a finding.
pub fn render_finding(finding: &Finding, status: FindingStatus) -> String {
    let mut out = format!(
        "**{}: {}**\n\n`{}` · {} · {} · {}\n\n{}\n",
        finding.priority,
        text::sanitize_line(&finding.title),
        text::sanitize_line(&format_location(&finding.repo_relative_path, finding.line_start, finding.line_end)),
        finding.kind,
        status,
        finding.finding_id,
        text::sanitize_lines(&finding.explanation, 4),
    );
    if !finding.quoted_code.is_empty() {
        let code = text::sanitize_lines(&finding.quoted_code, 4);
        // The fence is longer than any run of backticks in the code.
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        out.push_str(&format!("\n{fence}\n{}\n{fence}\n", code.trim_end()));
    }
    if let Some(suggestion) = &finding.suggestion {
        out.push_str(&format!("\nSuggestion: {}\n", text::sanitize_lines(&suggestion.text, 4)));
    }
    for (number, line) in panel::list_lines(finding).iter().enumerate() {
        let blank = if number == 0 { "\n" } else { "" };
        out.push_str(&format!("{blank}- {line}\n"));
    }
    out
}

/// Renders the facts that a list row has.
pub fn render_row(row: &FindingRow<'_>, status: FindingStatus) -> String {
    format!(
        "**{}: {}**\n\n`{}` · {} · {} · {}\n",
        row.priority,
        text::sanitize_line(row.title),
        text::sanitize_line(&format_location(row.path, row.line_start, row.line_end)),
        row.kind,
        status,
        row.id
    )
}
