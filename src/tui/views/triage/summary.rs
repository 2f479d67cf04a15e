//! The end of a triage session: a page of what was decided, and a line that says the same.

use super::queue::{TriageItem, TriageQueue, TriageVerdict, VerdictState};
use crate::domain::text;
use crate::tui::app::App;
use crate::tui::doc::{Doc, DocLine};
use crate::tui::pages::NAMES;
use crate::tui::theme::Role;

/// Most decisions that the closing page lists.
const MAX_LISTED_DECISIONS: usize = 500;

/// Describes the session in a line: `triage: 4 addressed, 2 dismissed, 1 later, 13 not decided`.
pub fn build_closing_line(app: &App, queue: &TriageQueue) -> String {
    let counts = queue.counts();
    let left = queue.len() - counts.total().min(queue.len());
    let parts = [
        (counts.addressed, "addressed"),
        (counts.dismissed, "dismissed"),
        (counts.later, "later"),
        (left, "not decided"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let pending =
        if app.decisions.pending > 0 { format!(" {} storing", app.display.glyphs.dot) } else { String::new() };
    format!("triage: {}{pending}", parts.join(", "))
}

/// Builds the closing page: numbers, reasons, and each decision, the last first.
pub fn build_closing_page(app: &App, queue: &TriageQueue, width: usize) -> Doc {
    let mut doc = Doc::default();
    let counts = queue.counts();
    let title = match counts.total() == queue.len() {
        true => format!("All {} looked at", text::format_count(queue.len(), "finding")),
        false => format!("{} of {} looked at", counts.total(), text::format_count(queue.len(), "finding")),
    };
    doc.push(DocLine::styled(Role::Good, &title));
    doc.push_blank();
    if counts.addressed > 0 {
        let patches = match counts.patched {
            0 => String::new(),
            patched => format!(", {patched} by a patch"),
        };
        doc.push_field("addressed", NAMES, Role::Addressed, &format!("{}{patches}", counts.addressed), width);
    }
    if counts.dismissed > 0 {
        let reasons = count_reasons(queue).into_iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        doc.push_field("dismissed", NAMES, Role::Normal, &format!("{}: {reasons}", counts.dismissed), width);
    }
    if counts.later > 0 {
        doc.push_field("later", NAMES, Role::Normal, &counts.later.to_string(), width);
    }
    doc.push_blank();
    for item in queue.decided().rev().take(MAX_LISTED_DECISIONS) {
        doc.lines.extend(build_decision(app, item));
    }
    doc
}

/// Counts the reasons of the stored dismissals, the most frequent first.
fn count_reasons(queue: &TriageQueue) -> Vec<(&str, usize)> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for item in queue.decided() {
        let Some((TriageVerdict::Dismissed(reason), VerdictState::Stored | VerdictState::TakingBack)) = &item.verdict
        else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

/// Builds the line of a decision: `addressed   src/a.rs:7  title`.
fn build_decision(app: &App, item: &TriageItem) -> Option<DocLine> {
    let (verdict, state) = item.verdict.as_ref()?;
    let row = app.finding_by_id(&item.finding)?;
    let (word, role) = match verdict {
        _ if *state == VerdictState::Requested => ("storing", Role::Muted),
        TriageVerdict::Addressed => ("addressed", Role::Addressed),
        TriageVerdict::Patched(_) => ("patched", Role::Addressed),
        TriageVerdict::Dismissed(_) => ("dismissed", Role::Muted),
        TriageVerdict::Later => ("later", Role::Normal),
        TriageVerdict::Snoozed => ("snoozed", Role::Normal),
        TriageVerdict::SnoozeEnded => ("snooze off", Role::Normal),
    };
    let line = DocLine::styled(role, &format!("{word:<NAMES$}"))
        .with_span(Role::Accent, &format!("{}:{}", row.path, row.line_start))
        .with_span(Role::Normal, "  ")
        .with_span(Role::Muted, row.title);
    Some(match verdict {
        TriageVerdict::Dismissed(reason) => line.with_tail(Role::Faint, reason),
        _ => line,
    })
}
