//! Handles decisions about findings. Only the reply of the store changes what is shown.

use std::sync::Arc;

use super::super::app::{App, NoticeLevel, Pane};
use super::super::diff;
use super::super::keymap::{Action, KeyContext};
use super::super::line_edit::LineEdit;
use super::super::message::{AppCommand, DetailSubject, TriageOrder, UserVerdict};
use super::super::views::prompt::{InputPromptKind, PromptView, build_reason_prompt};
use super::super::views::{fix, triage as triage_view};
use super::comments::{self, WITHDRAWN};
use super::{data, marks};
use crate::domain::{
    Actor, Disposition, FindingId, FindingRating, FindingSnooze, FindingStatus, RatingWish, SnoozeEnd, Time, text,
};
use crate::policy::{self, SnoozeSubject};
use crate::report::describe_snooze_end;
use crate::runner::SnoozeWish;
use crate::store::FindingRow;
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

/// Returns the findings for a verdict with a number: that many from the one at hand on, in the order of the diff, else of
/// the list. Further ones that are decided already, or not yet for a reopening, are passed over. `None`, with a notice, while
/// findings are marked: the number and the marks would contradict each other.
fn collect_from_selected(app: &mut App, status: FindingStatus, count: usize) -> Option<Vec<String>> {
    if !app.finding_list.marks.is_empty() || app.finding_list.mark_range_start.is_some() {
        app.show_notice(NoticeLevel::Info, "findings are marked: the key decides those, without a number");
        return None;
    }
    let is_open = |row: &FindingRow<'_>| app.current_status(row).is_undecided();
    let is_meant = |row: &FindingRow<'_>| is_open(row) != status.is_undecided();
    let in_diff = diff::findings_from_cursor(app);
    let list = &app.finding_list;
    let in_list = match app.detail.subject {
        DetailSubject::Finding(_) if in_diff.is_empty() => list.rows.get(list.cursor.selected..).unwrap_or_default(),
        _ => &[],
    };
    let in_list = in_list.iter().map(|index| app.store.view.finding(*index as usize));
    let rows = in_diff.into_iter().filter_map(|id| app.finding_by_id(id)).chain(in_list).enumerate();
    let meant = rows.filter(|(at, row)| *at == 0 || is_meant(row)).take(count);
    Some(meant.map(|(_, row)| row.id.to_owned()).collect())
}

/// Returns the findings for a verdict, without those that already have the status: `count` from the selected one on, else
/// the marked ones, else the selected one.
fn collect_targets(app: &mut App, status: FindingStatus, count: Option<usize>) -> Vec<FindingId> {
    let ids = match count {
        None => collect_selected(app),
        Some(count) => match collect_from_selected(app, status, count) {
            Some(ids) => ids,
            None => return Vec::new(),
        },
    };
    let target = |id: &String| {
        let row = app.finding_by_id(id)?;
        Some((id.parse::<FindingId>().ok()?, app.current_status(&row)))
    };
    let targets: Vec<(FindingId, FindingStatus)> = ids.iter().filter_map(target).collect();
    let selected = targets.len();
    let targets = targets.into_iter().filter(|(_, present)| *present != status);
    let findings: Vec<FindingId> = targets.map(|(finding, _)| finding).collect();
    if findings.is_empty() {
        let what = if selected == 0 { "no finding is selected".to_owned() } else { format!("already {status}") };
        app.show_notice(NoticeLevel::Info, what);
    }
    findings
}

/// Sends a verdict, which [`repeat_last_verdict`] repeats unless it reopens findings.
pub fn request_verdict(app: &mut App, findings: Vec<FindingId>, verdict: UserVerdict, commands: &mut Vec<AppCommand>) {
    if !verdict.status.is_undecided() {
        app.decisions.last = Some(verdict.clone());
    }
    app.decisions.pending += 1;
    // The store may be read again before its answer comes: the rows stay where they are even then.
    let known = Arc::make_mut(&mut app.finding_list.overrides);
    findings.iter().for_each(|finding| data::pin_finding(known, finding.as_str()));
    commands.push(AppCommand::Triage(TriageOrder::Set { findings, verdict }));
}

/// Requests a status that needs no reason, addressed or open, for the marked findings, else for the selected one; with a
/// number, for that many from the selected one on.
pub fn set_status(app: &mut App, status: FindingStatus, count: Option<usize>, commands: &mut Vec<AppCommand>) {
    let findings = collect_targets(app, status, count);
    if !findings.is_empty() {
        request_verdict(app, findings, UserVerdict::without_reason(status), commands);
    }
}

/// Opens the prompt for the reason of a dismissal. `count` is as in [`set_status`].
pub fn prompt_reason(app: &mut App, count: Option<usize>) {
    let findings = collect_targets(app, FindingStatus::Dismissed, count);
    if !findings.is_empty() {
        let prompt = build_reason_prompt(app, findings);
        app.views.open(prompt);
    }
}

/// Requests the status and the reason of the last verdict for the marked findings, else for the selected one. `count` is as
/// in [`set_status`].
pub fn repeat_last_verdict(app: &mut App, count: Option<usize>, commands: &mut Vec<AppCommand>) {
    let Some(verdict) = app.decisions.last.clone() else {
        return app.show_notice(NoticeLevel::Info, "no verdict to repeat yet");
    };
    let findings = collect_targets(app, verdict.status, count);
    if !findings.is_empty() {
        request_verdict(app, findings, verdict, commands);
    }
}

/// Opens the prompt for a note about the selected finding.
pub fn prompt_note(app: &mut App) {
    let id = match &app.detail.subject {
        DetailSubject::Finding(id) => id.parse().ok(),
        _ => None,
    };
    match id {
        Some(finding) => open_note_prompt(app, finding),
        None => app.show_notice(NoticeLevel::Info, "no finding is selected"),
    }
}

/// Opens the prompt for a note about a finding.
pub fn open_note_prompt(app: &mut App, finding: FindingId) {
    app.views.open(PromptView::new(InputPromptKind::Note { finding }, LineEdit::default()));
}

/// Opens the prompt for the end of a snooze of the marked findings, else of the selected one.
pub fn prompt_snooze(app: &mut App) {
    if let Some(findings) = choose_findings(app) {
        open_snooze_prompt(app, findings);
    }
}

/// Returns the marked findings, else the selected one; `None`, with a notice, if there is none.
fn choose_findings(app: &mut App) -> Option<Vec<FindingId>> {
    let findings: Vec<FindingId> = collect_selected(app).iter().filter_map(|id| id.parse().ok()).collect();
    if findings.is_empty() {
        app.show_notice(NoticeLevel::Info, "no finding is selected");
        return None;
    }
    Some(findings)
}

/// Opens the prompt for the end of a snooze. Findings that are snoozed already are offered to come back.
pub fn open_snooze_prompt(app: &mut App, findings: Vec<FindingId>) {
    let is_snoozed = |id: &FindingId| app.finding_list.overrides.snoozed.get(id.as_str()).is_some();
    let offered = if findings.iter().all(is_snoozed) { "off" } else { "3d" };
    let prompt = PromptView::new(InputPromptKind::SnoozeFindings { findings }, LineEdit::with_suggestion(offered));
    app.views.open(prompt);
}

/// Opens the prompt for priority and kind of the marked findings, else of the selected one.
pub fn prompt_rating(app: &mut App) {
    if let Some(findings) = choose_findings(app) {
        open_rating_prompt(app, findings);
    }
}

/// Opens the prompt for priority and kind of findings. Those of a single finding are offered.
pub fn open_rating_prompt(app: &mut App, findings: Vec<FindingId>) {
    let offered = match findings.as_slice() {
        [id] => app.finding_by_id(id.as_str()).map(|row| format!("{} {}", row.priority, row.kind)),
        _ => None,
    };
    let line = offered.map_or_else(LineEdit::default, |offered| LineEdit::with_suggestion(&offered));
    app.views.open(PromptView::new(InputPromptKind::Rate { findings }, line));
}

/// Requests a rating of findings.
pub fn request_rating(findings: &[FindingId], wish: RatingWish, commands: &mut Vec<AppCommand>) {
    commands.push(AppCommand::RateFindings { findings: findings.to_vec(), wish });
}

/// Applies the answer of the store to a rating. The rows change when the store is read again.
pub fn apply_rating(app: &mut App, result: Result<Vec<FindingRating>, String>, commands: &mut Vec<AppCommand>) {
    let lines = match result {
        Ok(lines) if lines.is_empty() => return app.show_notice(NoticeLevel::Info, "nothing changed"),
        Ok(lines) => lines,
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("not stored: {error}")),
    };
    let key = app.keymap.key_text(KeyContext::Global, Action::Undo);
    let what = describe_rating(app, &lines);
    let dot = app.display.glyphs.dot;
    app.show_notice(NoticeLevel::Success, format!("{what} {dot} {key} undoes"));
    app.detail.stale = true;
    app.finding_list.marks.clear();
    let findings: Vec<FindingId> = lines.into_iter().map(|line| line.finding_id).collect();
    triage_view::record_ratings(app, &findings, commands);
}

/// Describes rating lines: "src/a.rs:7 is p1 SECURITY now".
fn describe_rating(app: &App, lines: &[FindingRating]) -> String {
    let rating = lines.first().map(|line| line.rating).unwrap_or_default();
    match lines {
        [line] => format!("{} is {rating} now", name_place(app, &line.finding_id)),
        lines => format!("{} are {rating} now", text::format_count(lines.len(), "finding")),
    }
}

/// Requests the snooze of findings.
///
/// # Errors
///
/// Returns the reason if a finding may not be snoozed so long; nothing is requested then.
pub fn request_snooze(
    app: &mut App,
    findings: &[FindingId],
    wish: SnoozeWish,
    commands: &mut Vec<AppCommand>,
) -> Result<(), String> {
    let now = Time::from_millisecond(app.now).unwrap_or_default();
    let end = match wish {
        SnoozeWish::Off => None,
        SnoozeWish::Until(time) => Some(SnoozeEnd::Time(time)),
        SnoozeWish::FileChange => Some(SnoozeEnd::FileChange { path: String::new(), content: String::new() }),
    };
    for row in findings.iter().filter_map(|id| app.finding_by_id(id.as_str())) {
        let subject = SnoozeSubject { status: app.current_status(&row), priority: row.priority };
        if let Some(end) = &end {
            policy::may_snooze(Actor::User, subject, end, now).map_err(|refusal| refusal.to_string())?;
        }
    }
    let known = Arc::make_mut(&mut app.finding_list.overrides);
    findings.iter().for_each(|id| data::pin_finding(known, id.as_str()));
    commands.push(AppCommand::SnoozeFindings { findings: findings.to_vec(), wish });
    triage_view::record_snoozes(app, findings, end.is_some(), commands);
    Ok(())
}

/// Applies the answer of the store to a snooze. The findings stay in the list until it is filtered again, so that no row
/// moves.
pub fn apply_snooze(app: &mut App, result: Result<Vec<FindingSnooze>, String>, commands: &mut Vec<AppCommand>) {
    triage_view::apply_snooze(app, result.as_ref().ok().map(|lines| !lines.is_empty()), commands);
    let lines = match result {
        Ok(lines) if lines.is_empty() => return app.show_notice(NoticeLevel::Info, "nothing changed"),
        Ok(lines) => lines,
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("not stored: {error}")),
    };
    let ids: Vec<String> = lines.iter().map(|line| line.finding_id.to_string()).collect();
    let known = Arc::make_mut(&mut app.finding_list.overrides);
    ids.iter().for_each(|id| data::pin_finding(known, id));
    let key = app.keymap.key_text(KeyContext::Global, Action::Undo);
    let what = describe_snooze(app, &lines);
    let dot = app.display.glyphs.dot;
    app.show_notice(NoticeLevel::Success, format!("{what} {dot} {key} undoes"));
    select_next_undecided(app, &ids);
    app.finding_list.marks.clear();
}

/// Describes snooze lines: "src/a.rs:7 snoozed until 2026-12-01 00:00".
fn describe_snooze(app: &App, lines: &[FindingSnooze]) -> String {
    let end = describe_snooze_end(lines.first().and_then(|line| line.until.as_ref()), &app.display.zone);
    let place = match lines {
        [line] => name_place(app, &line.finding_id),
        lines => text::format_count(lines.len(), "finding"),
    };
    format!("{place} {end}")
}

/// Selects a finding if it is listed.
pub fn select_finding(app: &mut App, id: &str) {
    let Some(index) = app.store.view.finding_index(id).and_then(|index| u32::try_from(index).ok()) else { return };
    if let Some(at) = app.finding_list.rows.iter().position(|row| *row == index) {
        let height = app.pane_height(Pane::Findings);
        app.finding_list.select(at, height);
    }
}

/// Requests that a note is stored.
pub fn request_note(finding: FindingId, text: &str, commands: &mut Vec<AppCommand>) {
    commands.push(AppCommand::Note { finding, text: text::sanitize_line(text).into_owned() });
}

/// Shows the result of storing a note; the page is read again, because its history shows the note.
pub fn apply_noted(app: &mut App, result: Result<bool, String>) {
    match result {
        Ok(is_new) => {
            app.detail.stale |= matches!(app.detail.subject, DetailSubject::Finding(_));
            let said = if is_new { "the note is stored" } else { "the same note is there already" };
            app.show_notice(NoticeLevel::Success, said);
        }
        Err(error) => app.show_notice(NoticeLevel::Error, format!("not stored: {error}")),
    }
}

/// Requests the dismissal with a reason.
pub fn dismiss(app: &mut App, findings: Vec<FindingId>, reason: &str, commands: &mut Vec<AppCommand>) {
    app.decisions.reasons.retain(|known| known != reason);
    app.decisions.reasons.insert(0, reason.to_owned());
    let verdict = UserVerdict { status: FindingStatus::Dismissed, reason: reason.to_owned() };
    request_verdict(app, findings.clone(), verdict, commands);
    triage_view::record_dismissals(app, &findings, reason, commands);
}

/// Requests undo or redo. Only the store knows the last decision, because another cockpit or the command line may
/// have decided since.
pub fn undo_or_redo(app: &mut App, order: TriageOrder, commands: &mut Vec<AppCommand>) {
    app.decisions.pending += 1;
    commands.push(AppCommand::Triage(order));
}

/// Names a finding by its place; by its id if it is not listed.
pub(super) fn name_place(app: &App, finding: &FindingId) -> String {
    match app.finding_by_id(finding.as_str()) {
        Some(row) => format!("{}:{}", text::sanitize_line(row.path), row.line_start),
        None => finding.to_string(),
    }
}

/// Returns true if the user has taken back comments of their own. One that was just written may not be listed yet.
fn is_withdrawal(app: &App, lines: &[Disposition], order: &TriageOrder) -> bool {
    let is_own = |id: &str| app.finding_by_id(id).is_none() || app.is_own_comment(id);
    matches!(order, TriageOrder::Set { .. })
        && !lines.is_empty()
        && lines.iter().all(|line| line.status == FindingStatus::Dismissed && line.reason == WITHDRAWN)
        && lines.iter().all(|line| is_own(line.finding_id.as_str()))
}

/// Describes what was done to which findings: "dismissed 3 findings: a.rs:7, b.rs:9 and 1 more", "undone: a.rs:7 is open
/// again".
fn describe_decision(app: &App, lines: &[Disposition], order: &TriageOrder) -> String {
    let place = |line: &Disposition| name_place(app, &line.finding_id);
    let mut places: Vec<String> = lines.iter().take(MAX_NAMED_PLACES).map(place).collect();
    if lines.len() > places.len() {
        let last = places.pop().unwrap_or_default();
        places.push(format!("{last} and {} more", lines.len() - MAX_NAMED_PLACES));
    }
    let places = places.join(", ");
    if is_withdrawal(app, lines, order) {
        return format!("comment withdrawn at {places}");
    }
    if *order == TriageOrder::Undo
        && let Some(said) = describe_overruled(lines, &places)
    {
        return said;
    }
    let first = lines.first().map(|line| line.status);
    let count = text::format_count(lines.len(), "finding");
    let status = match first.filter(|first| lines.iter().all(|line| line.status == *first)) {
        Some(FindingStatus::Open) if matches!(order, TriageOrder::Set { .. }) => "reopened",
        Some(status) => status.word(),
        // An undo gives each finding the status that it had.
        None if *order == TriageOrder::Undo => return format!("undone: {count} are as they were: {places}"),
        None => "decided",
    };
    match (lines, order) {
        ([_], TriageOrder::Set { .. }) => format!("{status} {places}"),
        (_, TriageOrder::Set { .. }) => format!("{status} {count}: {places}"),
        ([_], TriageOrder::Undo) => format!("undone: {places} is {status} again"),
        (_, TriageOrder::Undo) => format!("undone: {count} are {status} again: {places}"),
        ([_], TriageOrder::Redo) => format!("redone: {places} is {status}"),
        (_, TriageOrder::Redo) => format!("redone: {count} are {status}: {places}"),
    }
}

/// Describes an undo after which decisions of the team stand: `undone: a.rs:7 stays dismissed, as Bob decided`. `None` if there
/// are none.
fn describe_overruled(lines: &[Disposition], places: &str) -> Option<String> {
    let others = lines.iter().filter(|line| line.team.is_some()).count();
    let decided = lines.iter().find_map(Disposition::describe_team_decision)?;
    let count = |number: usize| text::format_count(number, "finding");
    Some(match lines {
        [line] => {
            let stays = if line.previous == line.status { "stays" } else { "is" };
            format!("undone: {places} {stays} {}, as {decided}", line.status)
        }
        _ if others == lines.len() => format!("undone: {} as others decided: {places}", count(others)),
        _ => format!("undone: {}, {others} of them as others decided: {places}", count(lines.len())),
    })
}

/// Selects the next undecided finding below the selected one if that was decided just now; without one, the selection
/// stays. The decided rows stay in the list, so no other row moves.
fn select_next_undecided(app: &mut App, decided: &[String]) {
    let is_decided_here =
        app.selected_finding().is_some_and(|finding| decided.iter().any(|decided| decided == finding.id));
    if app.panes.list != Pane::Findings || !is_decided_here {
        return;
    }
    let from = app.finding_list.cursor.selected + 1;
    let rows = app.finding_list.rows.get(from..).unwrap_or_default();
    let is_undecided = |index: &u32| app.current_status(&app.store.view.finding(*index as usize)).is_undecided();
    if let Some(next) = rows.iter().position(is_undecided) {
        let height = app.pane_height(Pane::Findings);
        app.finding_list.step_to(from + next, height);
    }
}

/// Applies the reply of the store.
pub fn apply_stored(app: &mut App, order: &TriageOrder, result: Result<UndoOutcome, String>, written: u64) {
    app.decisions.pending = app.decisions.pending.saturating_sub(1);
    comments::check_withdrawal(app, &result);
    let lines = match result {
        Ok(UndoOutcome::Decided(lines)) => lines,
        Ok(UndoOutcome::Fix(fix)) => return fix::confirm_step(app, &fix),
        Ok(UndoOutcome::Snoozed(lines)) => {
            let what = if *order == TriageOrder::Redo { "redone" } else { "undone" };
            let said = describe_snooze(app, &lines);
            return app.show_notice(NoticeLevel::Success, format!("{what}: {said}"));
        }
        Ok(UndoOutcome::Rated(lines)) => {
            let what = if *order == TriageOrder::Redo { "redone" } else { "undone" };
            let said = describe_rating(app, &lines);
            app.detail.stale = true;
            return app.show_notice(NoticeLevel::Success, format!("{what}: {said}"));
        }
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
    let key = |action| app.keymap.key_text(KeyContext::Global, action);
    let next = match order {
        // What others have decided is not overruled by making the own decision again.
        TriageOrder::Undo if lines.iter().any(|line| line.team.is_some()) => String::new(),
        TriageOrder::Undo => format!(" {} {} redoes", app.display.glyphs.dot, key(Action::Redo)),
        // The key that brings the comment back has often just taken it back.
        _ if is_withdrawal(app, &lines, order) => {
            format!(" {} {} brings it back", app.display.glyphs.dot, key(Action::Undo))
        }
        _ => format!(" {} {} undoes", app.display.glyphs.dot, key(Action::Undo)),
    };
    app.show_notice(NoticeLevel::Success, format!("{what}{next}"));
    if matches!(order, TriageOrder::Set { .. }) {
        if !diff::go_to_next_undecided(app, &decided) {
            select_next_undecided(app, &decided);
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
