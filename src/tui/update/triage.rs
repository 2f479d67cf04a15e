//! Handles decisions about findings. Only the reply of the store changes what is shown.

use std::sync::Arc;

use super::super::app::{App, NoticeLevel, Pane};
use super::super::diff;
use super::super::keymap::{Action, KeyContext};
use super::super::line_edit::LineEdit;
use super::super::message::{AppCommand, DetailSubject, TriageOrder, TriageOrderItem};
use super::super::views::fix;
use super::super::views::prompt::{InputPromptKind, PromptView};
use super::{data, keys, marks};
use crate::domain::{Disposition, FindingStatus, text};
use crate::store::triage::UndoOutcome;

/// Maximum number of findings that a message names.
const MAX_NAMED_PLACES: usize = 2;

/// Returns the ids of the marked findings in the order of the list, else of the selected one.
pub fn collect_selected(app: &mut App) -> Vec<String> {
    marks::commit_mark_range(app);
    app.finding_list.mark_range_start = None;
    if let Some(id) = diff::finding_at_cursor(app) {
        return vec![id.to_owned()];
    }
    if app.finding_list.marks.is_empty() {
        return match &app.detail.subject {
            DetailSubject::Finding(id) => vec![id.clone()],
            _ => Vec::new(),
        };
    }
    let mut ids: Vec<String> = app.finding_list.marks.iter().cloned().collect();
    ids.sort_by_key(|id| app.store.view.finding_index(id));
    ids
}

/// Returns the marked findings, else the selected one, without those that already have the status.
fn collect_targets(app: &mut App, status: FindingStatus) -> Vec<TriageOrderItem> {
    let ids = collect_selected(app);
    let line = |id: &String| {
        let row = app.finding_by_id(id)?;
        let previous = app.current_status(&row);
        Some(TriageOrderItem { finding: id.parse().ok()?, previous, status, reason: String::new() })
    };
    let lines: Vec<TriageOrderItem> = ids.iter().filter_map(line).collect();
    let before = lines.len();
    let lines: Vec<TriageOrderItem> = lines.into_iter().filter(|line| line.previous != status).collect();
    if lines.is_empty() {
        let what = if before == 0 { "no finding is selected".to_owned() } else { format!("already {status}") };
        app.show_notice(NoticeLevel::Info, what);
    }
    lines
}

fn send_order(app: &mut App, lines: Vec<TriageOrderItem>, commands: &mut Vec<AppCommand>) {
    app.decisions.pending += 1;
    commands.push(AppCommand::Triage(TriageOrder::Set(lines)));
}

/// Requests a status that needs no reason: addressed or open.
pub fn set_status(app: &mut App, status: FindingStatus, commands: &mut Vec<AppCommand>) {
    let lines = collect_targets(app, status);
    if !lines.is_empty() {
        send_order(app, lines, commands);
    }
}

/// Opens the prompt for the reason of a dismissal.
pub fn prompt_reason(app: &mut App) {
    let lines = collect_targets(app, FindingStatus::Dismissed);
    if !lines.is_empty() {
        app.views.open(PromptView::new(InputPromptKind::Reason { lines }, LineEdit::default()));
    }
}

/// Requests the dismissal with a reason.
pub fn dismiss(app: &mut App, mut lines: Vec<TriageOrderItem>, reason: &str, commands: &mut Vec<AppCommand>) {
    for line in &mut lines {
        line.reason = reason.to_owned();
    }
    app.decisions.reasons.retain(|known| known != reason);
    app.decisions.reasons.insert(0, reason.to_owned());
    send_order(app, lines, commands);
}

/// Requests undo or redo. Only the store knows the last decision, because another cockpit or the command line may
/// have decided since.
pub fn undo_or_redo(app: &mut App, order: TriageOrder, commands: &mut Vec<AppCommand>) {
    app.decisions.pending += 1;
    commands.push(AppCommand::Triage(order));
}

/// Describes what was done to which findings: "dismissed 3 findings: a.rs:7, b.rs:9 and 1 more", "undone: a.rs:7 is open
/// again".
fn describe_decision(app: &App, lines: &[Disposition], order: &TriageOrder) -> String {
    let place = |line: &Disposition| match app.finding_by_id(line.finding_id.as_str()) {
        Some(row) => format!("{}:{}", text::sanitize_line(row.path), row.line_start),
        None => line.finding_id.to_string(),
    };
    let mut places: Vec<String> = lines.iter().take(MAX_NAMED_PLACES).map(place).collect();
    if lines.len() > places.len() {
        let last = places.pop().unwrap_or_default();
        places.push(format!("{last} and {} more", lines.len() - MAX_NAMED_PLACES));
    }
    let places = places.join(", ");
    let first = lines.first().map(|line| line.status);
    let status = match first.filter(|first| lines.iter().all(|line| line.status == *first)) {
        Some(FindingStatus::Open) => "open",
        Some(status) => status.word(),
        None => "decided as before",
    };
    let count = text::format_count(lines.len(), "finding");
    match (lines, order) {
        ([_], TriageOrder::Set(_)) => format!("{status} {places}"),
        (_, TriageOrder::Set(_)) => format!("{status} {count}: {places}"),
        ([_], TriageOrder::Undo) => format!("undone: {places} is {status} again"),
        (_, TriageOrder::Undo) => format!("undone: {count} are {status} again: {places}"),
        ([_], TriageOrder::Redo) => format!("redone: {places} is {status}"),
        (_, TriageOrder::Redo) => format!("redone: {count} are {status}: {places}"),
    }
}

/// Applies the reply of the store.
pub fn apply_stored(app: &mut App, order: &TriageOrder, result: Result<UndoOutcome, String>, written: u64) {
    app.decisions.pending = app.decisions.pending.saturating_sub(1);
    let lines = match result {
        Ok(UndoOutcome::Decided(lines)) => lines,
        Ok(UndoOutcome::Fix(fix)) => return fix::confirm_step(app, &fix),
        Ok(UndoOutcome::Nothing) => {
            let what = if *order == TriageOrder::Redo { "redo" } else { "undo" };
            return app.show_notice(NoticeLevel::Info, format!("nothing to {what}"));
        }
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("not stored: {error}")),
    };
    app.decisions.written = app.decisions.written.max(written);
    let decided: Vec<String> = lines.iter().map(|line| line.finding_id.as_str().to_owned()).collect();
    let known = Arc::make_mut(&mut app.finding_list.overrides);
    for line in &lines {
        known.statuses.insert(line.finding_id.as_str().to_owned(), line.status);
        data::pin_finding(known, line.finding_id.as_str());
    }
    let what = describe_decision(app, &lines, order);
    let key = |action| app.keymap.key_of(KeyContext::Global, action).map_or_else(String::new, |key| key.to_string());
    let next = match order {
        TriageOrder::Undo => format!("{} redoes", key(Action::Redo)),
        _ => format!("{} undoes", key(Action::Undo)),
    };
    let dot = app.display.glyphs.dot;
    app.show_notice(NoticeLevel::Success, format!("{what} {dot} {next}"));
    if matches!(order, TriageOrder::Set(_)) {
        // Selects the next finding if the decided one is still selected.
        let here = app.selected_finding().map(|finding| finding.id.to_owned());
        if lines.len() == 1
            && app.panes.focus == Pane::Findings
            && here.as_deref() == lines.first().map(|l| l.finding_id.as_str())
        {
            keys::go_to_row(app, app.finding_list.cursor.selected + 1);
        }
        app.finding_list.marks.clear();
    } else if let Some(at) = lines.first().and_then(|line| {
        let index = app.store.view.finding_index(line.finding_id.as_str())?;
        app.finding_list.position_of(index)
    }) {
        // Selects the finding whose decision was undone or redone.
        if app.panes.list == Pane::Findings {
            let height = app.pane_height(Pane::Findings);
            app.finding_list.select(at, height);
        }
    }
    if matches!(&app.detail.subject, DetailSubject::Finding(id) if decided.iter().any(|other| other == id)) {
        app.detail.stale = true;
    }
}
