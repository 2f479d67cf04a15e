//! Prints what became of the findings.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::domain::FindingId;
use crate::domain::text::{format_count, sanitize_line, sanitize_lines};
use crate::publish::{PublishReport, SkippedFinding, SummaryOutcome};
use crate::report::json;

/// Maximum number of findings that the text names with the same reason; JSON names all.
const MAX_NAMED: usize = 5;

/// Report with what it is about.
#[derive(Debug)]
pub struct PublishOutcome<'a> {
    pub change: String,
    pub head: &'a str,
    pub dry_run: bool,
    pub report: &'a PublishReport,
}

/// Numbers of comments; the summary counts like any other comment.
struct CommentCounts {
    posted: usize,
    updated: usize,
    resolved: usize,
    already_there: usize,
    failed: usize,
    skipped: usize,
}

impl PublishOutcome<'_> {
    fn count(&self) -> CommentCounts {
        let report = self.report;
        let summary = |wanted: SummaryOutcome| usize::from(report.summary == wanted);
        CommentCounts {
            posted: report.posted.len() + summary(SummaryOutcome::Posted),
            updated: summary(SummaryOutcome::Updated),
            resolved: report.resolved.len(),
            already_there: report.already.len() + summary(SummaryOutcome::Unchanged),
            failed: report.failed.len() + summary(SummaryOutcome::Failed),
            skipped: report.skipped.len(),
        }
    }

    /// Renders lines for a person.
    pub fn to_text(&self) -> String {
        let (report, counts) = (self.report, self.count());
        let mut text = String::new();
        for request in &report.requests {
            let body = request.body.as_ref().and_then(|body| serde_json::to_string_pretty(body).ok());
            // Line ends inside of strings are escaped by JSON, so each line is one of the layout.
            let body: Vec<Cow<'_, str>> =
                body.iter().flat_map(|body| body.lines()).map(json::escape_json_text).collect();
            text.push_str(&format!("{} {}\n{}\n\n", request.method, request.url, body.join("\n")));
        }
        let short: String = self.head.chars().take(7).collect();
        let sent = if self.dry_run { ", dry run: nothing was sent" } else { "" };
        text.push_str(&format!("{} at {short}{sent}\n", sanitize_line(&self.change)));
        let would = if self.dry_run { "would be: " } else { "" };
        text.push_str(&format!(
            "{would}posted {}, updated {}, resolved {}, already there {}, failed {}, skipped {}\n",
            counts.posted, counts.updated, counts.resolved, counts.already_there, counts.failed, counts.skipped
        ));
        if !report.removed.is_empty() {
            let removed = format_count(report.removed.len(), "second comment");
            text.push_str(&format!("{would}removed {removed} about the same finding\n"));
        }
        let listed = format_count(report.summarized.len(), "finding");
        text.push_str(would);
        text.push_str(&match report.summary {
            SummaryOutcome::None => "no summary: nothing to say\n".to_owned(),
            SummaryOutcome::Posted => format!("summary posted, with {listed}\n"),
            SummaryOutcome::Updated => format!("summary updated, with {listed}\n"),
            SummaryOutcome::Unchanged => format!("summary unchanged, with {listed}\n"),
            SummaryOutcome::Failed => {
                let reason = report.summary_failure.as_deref().unwrap_or_default();
                format!("summary failed: {}\n", sanitize_lines(reason, 4))
            }
        });
        push_reasons(&mut text, "failed", &report.failed);
        push_reasons(&mut text, "skipped", &report.skipped);
        text
    }

    /// Encodes the report.
    pub fn to_json(&self) -> Value {
        let (report, counts) = (self.report, self.count());
        let ids = |list: &[FindingId]| Value::from(list.iter().map(FindingId::as_str).collect::<Vec<_>>());
        let reasons = |list: &[SkippedFinding]| {
            let row = |row: &SkippedFinding| json!({ "finding_id": row.finding, "reason": row.reason });
            Value::from(list.iter().map(row).collect::<Vec<_>>())
        };
        let summary = match report.summary {
            SummaryOutcome::None => "none",
            SummaryOutcome::Posted => "posted",
            SummaryOutcome::Updated => "updated",
            SummaryOutcome::Unchanged => "unchanged",
            SummaryOutcome::Failed => "failed",
        };
        let requests = report.requests.iter().map(
            |request| json!({ "method": request.method.as_str(), "url": request.url.as_str(), "body": request.body }),
        );
        let mut parts = vec![
            ("change", json!(self.change)),
            ("head", json!(self.head)),
            ("dry_run", json!(self.dry_run)),
            (
                "counts",
                json!({
                    "posted": counts.posted, "updated": counts.updated, "resolved": counts.resolved,
                    "already_there": counts.already_there, "failed": counts.failed, "skipped": counts.skipped,
                    "removed": report.removed.len(),
                }),
            ),
            ("summary", json!(summary)),
            ("summary_failure", json!(report.summary_failure)),
            ("posted", ids(&report.posted)),
            ("already_there", ids(&report.already)),
            ("in_summary", ids(&report.summarized)),
            ("resolved", ids(&report.resolved)),
            ("removed", ids(&report.removed)),
            ("failed", reasons(&report.failed)),
            ("skipped", reasons(&report.skipped)),
        ];
        if self.dry_run {
            parts.push(("requests", Value::from(requests.collect::<Vec<_>>())));
        }
        json::build_versioned(parts)
    }
}

/// Adds a line for each reason, with the findings it applies to.
fn push_reasons(text: &mut String, word: &str, rows: &[SkippedFinding]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        match reasons.iter_mut().find(|(reason, _)| *reason == row.reason) {
            Some((_, ids)) => ids.push(row.finding.as_str()),
            None => reasons.push((&row.reason, vec![row.finding.as_str()])),
        }
    }
    for (reason, ids) in reasons {
        let more = match ids.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = ids.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("  {word}: {}: {named}{more}\n", sanitize_line(reason)));
    }
}
