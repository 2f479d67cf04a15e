//! A finding as Markdown, to paste into a ticket or a prompt.

use crate::domain::{Finding, FindingStatus, text};
use crate::store::FindingRow;

fn place(path: &str, start: u32, end: u32) -> String {
    if end > start { format!("{path}:{start}-{end}") } else { format!("{path}:{start}") }
}

/// All of a finding.
pub fn finding(finding: &Finding, status: FindingStatus) -> String {
    let mut out = format!(
        "**{}: {}**\n\n`{}` · {} · {} · {}\n\n{}\n",
        finding.priority,
        text::one_line(&finding.title),
        text::one_line(&place(&finding.repo_relative_path, finding.line_start, finding.line_end)),
        finding.kind,
        status,
        finding.finding_id,
        text::lines(&finding.explanation, 4),
    );
    if !finding.quoted_code.is_empty() {
        let code = text::lines(&finding.quoted_code, 4);
        // A fence longer than any run of backticks inside.
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        out.push_str(&format!("\n{fence}\n{}\n{fence}\n", code.trim_end()));
    }
    if let Some(suggestion) = &finding.suggestion {
        out.push_str(&format!("\nSuggestion: {}\n", text::lines(&suggestion.text, 4)));
    }
    out
}

/// What a list knows of a finding.
pub fn row(row: &FindingRow<'_>, status: FindingStatus) -> String {
    format!(
        "**{}: {}**\n\n`{}` · {} · {} · {}\n",
        row.priority,
        text::one_line(row.title),
        text::one_line(&place(row.path, row.line_start, row.line_end)),
        row.kind,
        status,
        row.id
    )
}
