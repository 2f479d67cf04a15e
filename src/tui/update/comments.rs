//! Handles comments, the findings that the user writes: in the diff, at a finding, and again where one is selected.

use super::super::app::{App, NoticeLevel};
use super::super::diff;
use super::super::keymap::{Action, KeyContext};
use super::super::message::{AppCommand, DetailSubject, TriageOrder, UserVerdict};
use super::super::page_data::PageData;
use super::super::views::comment::{CommentPlace, CommentView};
use super::triage::{request_verdict, undo_or_redo};
use crate::domain::{FindingId, FindingStatus, LineRange, Priority};
use crate::runner::{OWN_REVIEWER, WrittenComment};
use crate::store::triage::UndoOutcome;

/// Reason with which a comment is dismissed that its author takes back.
pub(super) const WITHDRAWN: &str = "withdrawn";

/// Opens the editor of a comment about the line at the cursor of the diff, or about the marked range; without a diff, about
/// the line of the selected finding.
pub fn write_comment(app: &mut App) {
    let Some((path, line)) = diff::source_at_cursor(app) else {
        if let DetailSubject::Finding(finding) = &app.detail.subject {
            let (finding, is_code_lost) = (finding.clone(), shows_quoted_code(app));
            return comment_on_finding(app, &finding, is_code_lost);
        }
        if open_refused(app) {
            return;
        }
        let key = app.keymap.key_of(KeyContext::Detail, Action::Diff);
        let how = key.map_or_else(String::new, |key| format!("; {key} opens it"));
        return app.show_notice(NoticeLevel::Info, format!("a comment is written on a line of the diff{how}"));
    };
    if open_refused(app) {
        return;
    }
    let pane = &app.detail.diff;
    let run = pane.page().run.clone();
    if pane.page().files.iter().any(|file| file.path == path && file.is_unstored) {
        return app
            .show_notice(NoticeLevel::Info, "no comment here: the snapshot of this review does not have the file");
    }
    let place = match (pane.has_range(), pane.marked_lines()) {
        (true, None) => return app.show_notice(NoticeLevel::Info, "the range does not reach this row"),
        (true, Some((_, lines))) => CommentPlace { run, path, lines, removed: None },
        (false, _) => {
            CommentPlace { run, path, lines: LineRange::new(line, line), removed: diff::removed_line_at_cursor(app) }
        }
    };
    open_editor(app, CommentView::new(place));
}

/// Opens the editor of a comment, with the text that was left there before.
fn open_editor(app: &mut App, comment: CommentView) {
    let comment = comment.with_draft(&app.comments);
    app.views.open(comment);
}

/// Opens the editor of a comment about the first line of a finding, or says why there is none. `is_code_lost` says that the
/// snapshot with its code is known to be gone.
pub fn comment_on_finding(app: &mut App, finding: &str, is_code_lost: bool) {
    if open_refused(app) {
        return;
    }
    match find_place(app, finding, is_code_lost) {
        Ok(place) => open_editor(app, CommentView::new(place)),
        Err(reason) => app.show_notice(NoticeLevel::Info, format!("no comment here: {reason}")),
    }
}

/// Returns the first line of a finding in the snapshot of the run that saw it last.
///
/// # Errors
///
/// Returns the reason if the line is not there.
fn find_place(app: &App, finding: &str, is_code_lost: bool) -> Result<CommentPlace, &'static str> {
    let view = &app.store.view;
    let index = view.finding_index(finding).ok_or("the store no longer has the finding")?;
    let row = view.finding(index);
    if app.current_status(&row) == FindingStatus::Obsolete {
        return Err("the code of the finding is gone");
    }
    if row.line_start == 0 {
        return Err("the finding is about no line");
    }
    if is_code_lost {
        return Err("the snapshot with its code is no longer kept");
    }
    let run = view.locating_run(index).map(|run| view.run(run).id.to_owned());
    let run = run.ok_or("the store no longer has the run that saw the finding")?;
    let lines = LineRange::new(row.line_start, row.line_start);
    Ok(CommentPlace { run, path: row.path.to_owned(), lines, removed: None })
}

/// Returns true if the shown page of a finding has quoted code, because the snapshot is gone.
fn shows_quoted_code(app: &App) -> bool {
    let shown = app.detail.page.as_ref().filter(|(subject, ..)| *subject == app.detail.subject);
    matches!(shown.map(|(.., page)| &**page), Some(PageData::Finding(page)) if page.code.note.is_some())
}

/// Opens the editor of the comment that the store refused while another window was open. Returns false if there is none.
fn open_refused(app: &mut App) -> bool {
    let Some(refused) = app.comments.refused.take() else { return false };
    app.views.open(refused);
    true
}

/// Opens the editor of the comment at the cursor of the diff, else of the selected finding, with its text.
pub fn rewrite_comment(app: &mut App) {
    if !app.comments.sent.is_empty() {
        return app.show_notice(NoticeLevel::Info, "the last comment is being stored");
    }
    let at_cursor = diff::findings_at_cursor(app);
    let own = at_cursor.iter().find(|id| app.is_own_comment(id)).or(at_cursor.first());
    let selected = match (own, &app.detail.subject) {
        (Some(id), _) => (*id).to_owned(),
        (None, DetailSubject::Finding(id)) => id.clone(),
        _ => return app.show_notice(NoticeLevel::Info, "no finding is selected"),
    };
    let view = &app.store.view;
    let Some(index) = view.finding_index(&selected) else { return };
    let row = view.finding(index);
    if !app.is_own_comment(&selected) {
        return app.show_notice(NoticeLevel::Info, "only findings that you wrote can be rewritten; i writes a note");
    }
    if !app.current_status(&row).is_undecided() {
        return app.show_notice(NoticeLevel::Info, "it is decided: open it again first");
    }
    let (priority, locating) = (row.priority, view.locating_run(index).map(|run| view.run(run).id.to_owned()));
    let found = match app.detail.page.as_ref().map(|(_, _, page)| &**page) {
        Some(PageData::Diff(page)) => page.files.iter().find_map(|file| {
            let finding = file.findings.iter().find(|finding| finding.id == selected)?;
            let place =
                CommentPlace { run: page.run.clone(), path: file.path.clone(), lines: finding.lines, removed: None };
            Some((place, finding.title.clone(), finding.explanation.clone()))
        }),
        page => page.and_then(|page| match page {
            PageData::Finding(page) if page.finding.finding_id.as_str() == selected => {
                let finding = &page.finding;
                let place = CommentPlace {
                    run: locating?,
                    path: finding.repo_relative_path.clone(),
                    lines: finding.lines(),
                    removed: None,
                };
                Some((place, finding.title.clone(), finding.explanation.clone()))
            }
            _ => None,
        }),
    };
    let (Some((place, title, explanation)), Ok(finding)) = (found, selected.parse()) else {
        return app.show_notice(NoticeLevel::Info, "its text is on the first tab, and is not read yet");
    };
    let sign = if priority == Priority::P2 { String::new() } else { format!("{priority} ") };
    let text = format!("{sign}{title}\n{explanation}");
    open_editor(app, CommentView::rewriting(finding, place, text.trim_end()));
}

impl App {
    /// Returns true for a finding that the user wrote.
    pub fn is_own_comment(&self, id: &str) -> bool {
        let view = &self.store.view;
        let reported = view.finding_index(id).and_then(|index| view.run_index(view.finding(index).last_run));
        reported.is_some_and(|run| view.run(run).reviewer == OWN_REVIEWER)
    }
}

/// Takes a comment back: it is dismissed, which an undo can undo.
pub fn withdraw_comment(app: &mut App, finding: FindingId, commands: &mut Vec<AppCommand>) {
    let last = app.decisions.last.clone();
    let verdict = UserVerdict { status: FindingStatus::Dismissed, reason: WITHDRAWN.to_owned() };
    request_verdict(app, vec![finding], verdict, commands);
    // It is no verdict to repeat.
    app.decisions.last = last;
}

/// Takes back the comment that was written after the last other step; one that it replaced is open again. Returns false if
/// there is none.
pub fn undo_comment(app: &mut App, commands: &mut Vec<AppCommand>) -> bool {
    let Some((finding, replaced)) = app.comments.last_written.take() else { return false };
    // With another comment open again, the store has two steps to undo.
    app.comments.withdrawn = Some(finding.clone()).filter(|_| replaced.is_none());
    withdraw_comment(app, finding, commands);
    if let Some(finding) = replaced {
        request_verdict(app, vec![finding], UserVerdict::without_reason(FindingStatus::Open), commands);
    }
    true
}

/// Brings the comment back that the last step, an undo, has withdrawn: for the store, that was a decision, which is undone.
/// Returns false if the last step was another one.
pub fn redo_comment(app: &mut App, commands: &mut Vec<AppCommand>) -> bool {
    let is_withdrawn = app.comments.withdrawn.take().is_some();
    if is_withdrawn {
        undo_or_redo(app, TriageOrder::Undo, commands);
    }
    is_withdrawn
}

/// Forgets a withdrawal that the store did not record: undoing its last decision would not bring the comment back.
pub(super) fn check_withdrawal(app: &mut App, result: &Result<UndoOutcome, String>) {
    let is_recorded = |finding: &FindingId| match result {
        Ok(UndoOutcome::Decided(lines)) => lines.iter().any(|line| line.finding_id == *finding),
        _ => false,
    };
    app.comments.withdrawn = app.comments.withdrawn.take().filter(is_recorded);
}

/// Forgets what the last step was about if one of these commands is another step.
pub(super) fn forget_last_step(app: &mut App, commands: &[AppCommand]) {
    if commands.iter().any(is_undone_first) {
        app.comments.last_written = None;
    }
    let is_step = |command: &AppCommand| is_undone_first(command) || matches!(command, AppCommand::WriteFinding { .. });
    let withdraws = |finding: &FindingId| commands.iter().any(|command| is_withdrawal_of(command, finding));
    if commands.iter().any(is_step) {
        app.comments.withdrawn = app.comments.withdrawn.take().filter(withdraws);
    }
}

fn is_withdrawal_of(command: &AppCommand, finding: &FindingId) -> bool {
    match command {
        AppCommand::Triage(TriageOrder::Set { findings, verdict }) => {
            verdict.reason == WITHDRAWN && findings.as_slice() == std::slice::from_ref(finding)
        }
        _ => false,
    }
}

/// Returns true for a step that the next undo takes back before any comment.
fn is_undone_first(command: &AppCommand) -> bool {
    use AppCommand as C;
    matches!(command, C::Triage(_) | C::RateFindings { .. } | C::SnoozeFindings { .. } | C::Fix(_))
}

/// Says that a comment was stored, or opens its editor again with the reason why not.
pub fn apply_written(app: &mut App, result: Result<WrittenComment, String>) {
    let sent = app.comments.sent.pop_front();
    // An error of git would tell nobody the reason.
    let is_gone = app.store.gone_repository.is_some();
    let result = result.map_err(|error| if is_gone { "the repository is gone".to_owned() } else { error });
    match (result, sent) {
        (Ok(written), sent) => {
            app.detail.diff.clear_range();
            app.detail.stale = true;
            app.comments.withdrawn = None;
            let place = sent.as_ref().map_or_else(String::new, |sent| format!(" at {}", sent.name_place()));
            match written.trouble {
                None => app.show_notice(NoticeLevel::Success, format!("comment written{place}")),
                Some(trouble) => app.show_notice(NoticeLevel::Error, format!("comment written{place}, but {trouble}")),
            }
            let replaced = sent.and_then(|sent| sent.rewrites().cloned());
            // The same finding with other details has nothing older to go back to.
            let is_the_same = replaced.as_ref() == Some(&written.finding);
            app.comments.last_written = (!is_the_same).then_some((written.finding, replaced));
        }
        (Err(error), Some(sent)) if !app.views.has_window() => {
            app.notice = None;
            app.views.open(sent.with_error(&error));
        }
        (Err(error), sent) => {
            let key = app.keymap.key_of(KeyContext::Detail, Action::Comment).map(ToString::to_string);
            let again = key.filter(|_| sent.is_some()).map_or_else(String::new, |key| format!("; {key} has its text"));
            app.show_notice(NoticeLevel::Error, format!("no comment was written: {error}{again}"));
            app.comments.refused = sent.map(|sent| sent.with_error(&error));
        }
    }
}
