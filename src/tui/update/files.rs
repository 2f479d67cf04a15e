//! Chooses the files of the list: those of the run to which the findings are narrowed; while the user goes through the runs,
//! those of the selected one; else those of the listed findings, and behind them those of the newest reviews in which nothing
//! is open, unless the filter asks for certain findings.

use std::sync::Arc;

use super::super::app::{App, FileSource, ListedFiles, NoticeLevel, Pane};
use super::super::diff;
use super::super::filter::FindingFilter;
use super::super::filter_terms::{TermKind, split_terms};
use super::super::message::{AppCommand, RunFile};
use super::{data, keys};
use crate::domain::{Time, ViewedFile, text};
use crate::masking::mask_shown_name;
use crate::runner::OWN_REVIEWER;
use crate::store::RunRow;

/// Most reviews whose files are listed behind those of findings: what was reviewed lately, read within moments.
const MAX_REVIEWS: usize = 8;
/// Most runs among which those reviews are looked for, so that a long list costs no key press.
const MAX_LOOKBACK: usize = 64;

/// Shows the files that the list should have now, or requests them.
pub fn sync(app: &mut App, commands: &mut Vec<AppCommand>) {
    match app.panes.list {
        Pane::Runs => app.file_list.follows_runs = true,
        Pane::Findings => app.file_list.follows_runs = false,
        // They stay those of the list from which the user came.
        Pane::Files | Pane::Detail => {}
    }
    let selected = app.selected_run().map(|run| run.id).filter(|_| app.file_list.follows_runs);
    match app.chosen_run().or(selected).map(str::to_owned) {
        Some(run) => show_files_of_run(app, run, commands),
        None => show_listed_files(app, commands),
    }
}

/// The files stay until new ones are read; only the first files are taken from the view.
fn show_files_of_run(app: &mut App, run: String, commands: &mut Vec<AppCommand>) {
    let is_chosen = app.chosen_run() == Some(run.as_str());
    if !app.file_list.want_run(&run, is_chosen) {
        return;
    }
    if app.file_list.run.is_empty() {
        data::set_files_from_view(app, &run);
    }
    commands.push(AppCommand::LoadFiles { run });
}

/// Shows the files of few findings at once. Those of many are collected on another thread; the present ones stay until then.
/// If a file was chosen among them, the others stay, so that another one can be, and are counted anew.
fn show_listed_files(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.file_list.has_requested_findings() {
        return;
    }
    let before = filter_before_choice(app).filter(|_| !app.file_list.files().is_empty()).map(FindingFilter::parse);
    if before.is_some()
        && let Some(run) = app.file_list.wanted_run().map(str::to_owned)
    {
        // The files of a run stay, too, and are read again when they may have changed.
        return show_files_of_run(app, run, commands);
    }
    request_reviewed_files(app, commands);
    let source = match before {
        Some(filter) => FileSource::Filter(filter, Arc::clone(&app.finding_list.overrides)),
        None => FileSource::Rows(app.finding_list.rows.clone()),
    };
    let serial = app.file_list.want_findings();
    if source.finding_count(&app.store.view) <= data::MAX_INLINE_FILTER_FINDINGS {
        let listed = source.collect_files(&app.store.view);
        return apply_listed_files(app, serial, listed);
    }
    commands.push(AppCommand::ListFiles { serial, view: Arc::clone(&app.store.view), source });
}

/// Applies the files of the listed findings, unless other ones were wanted since.
pub fn apply_listed_files(app: &mut App, serial: u64, mut listed: ListedFiles) {
    if !app.file_list.awaits_findings(serial) {
        return;
    }
    let adds_reviewed = lists_any_finding(app);
    app.file_list.complete_listed(&mut listed, adds_reviewed);
    let selected = app.file_list.path_at(app.file_list.cursor.selected).map(str::to_owned);
    app.file_list.run.clear();
    app.file_list.newest_runs = listed.newest_runs;
    data::set_files(app, listed.files, selected);
}

/// Marks the selected file as viewed, or takes the mark back. Of a folder it marks all files, or takes all marks back if each
/// has one.
pub fn toggle_viewed(app: &mut App, commands: &mut Vec<AppCommand>) {
    let list = &app.file_list;
    let rows = list.files_at(list.cursor.selected);
    let viewed = rows.iter().any(|row| !row.is_viewed);
    let changed = rows.into_iter().filter(|row| row.is_viewed != viewed);
    let files = changed.map(|row| RunFile { run: list.run_of(&row.path).to_owned(), path: row.path.clone() });
    let files: Vec<RunFile> = files.filter(|file| !file.run.is_empty()).collect();
    if files.is_empty() {
        return app.show_notice(NoticeLevel::Info, "this is for a file or a folder");
    }
    let at = Time::from_millisecond(app.now).unwrap_or_default();
    commands.push(AppCommand::MarkFiles { files, viewed, at });
}

/// Shows the stored marks of files of the list, and goes to the next row after a file was viewed.
pub fn apply_marked(app: &mut App, files: &[RunFile], result: Result<Vec<ViewedFile>, String>) {
    let marks = match result {
        Ok(marks) => marks,
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("not marked as viewed: {error}")),
    };
    // The diff shows the marks, too.
    app.detail.stale |= diff::is_shown(app);
    let text = match (files, marks.as_slice()) {
        ([RunFile { run, path }], [mark]) => {
            app.file_list.set_viewed(run, path, mark.viewed);
            let selected = app.file_list.cursor.selected;
            if mark.viewed && app.panes.focus == Pane::Files && app.file_list.path_at(selected) == Some(path.as_str()) {
                keys::go_to_row(app, selected + 1);
            }
            let path = text::sanitize_line(&mask_shown_name(path)).into_owned();
            if mark.viewed { format!("viewed: {path}") } else { format!("not viewed: {path}") }
        }
        (_, marks) => {
            // One look at the store is cheaper than a change for each file.
            app.file_list.forget_requests();
            let word = if marks.iter().any(|mark| mark.viewed) { "viewed" } else { "not viewed" };
            format!("{word}: {}", text::format_count(marks.len(), "file"))
        }
    };
    app.show_notice(NoticeLevel::Info, text);
}

/// Requests the files of the newest reviews and the viewed files if other reviews are the newest now, if other files have
/// undecided findings, or if a file was marked as viewed since.
fn request_reviewed_files(app: &mut App, commands: &mut Vec<AppCommand>) {
    // The first view of a large store has some of the findings only, and none has a decision that is on its way.
    let is_settled = app.store.view.complete && app.finding_list.overrides.statuses.is_empty();
    if !is_settled {
        return;
    }
    let runs = newest_reviews(app);
    if app.file_list.want_reviewed(&runs, app.finding_list.totals.undecided_files) {
        commands.push(AppCommand::LoadReviewedFiles { runs });
    }
}

/// Lists the newest reviews of this branch, the newest first. Those that were replaced are none.
pub fn list_reviews(app: &App) -> impl Iterator<Item = RunRow<'_>> {
    let listed = app.run_list.entries.iter().filter(|entry| !entry.nested).take(MAX_LOOKBACK);
    listed
        .map(move |entry| app.store.view.run(entry.index as usize))
        .filter(move |run| run.branch == app.session.branch && !run.is_fix_review() && run.reviewer != OWN_REVIEWER)
}

/// Returns the ids of the newest reviews that have ended, the newest first.
fn newest_reviews(app: &App) -> Vec<String> {
    let ended = list_reviews(app).filter(|run| run.status.is_terminal());
    ended.take(MAX_REVIEWS).map(|run| run.id.to_owned()).collect()
}

/// Returns true if the filter, as it was before a file was chosen, asks for nothing but a status: files without findings
/// belong to the list then.
fn lists_any_finding(app: &App) -> bool {
    let filter = filter_before_choice(app).unwrap_or(&app.finding_list.filter_text);
    split_terms(filter).iter().all(|term| TermKind::from_term(term) == Some(TermKind::Status))
}

/// Returns the filter from before the findings were narrowed to a file, or from one file to another; `None` if they were not
/// last.
fn filter_before_choice(app: &App) -> Option<&str> {
    let list = &app.finding_list;
    let mut filter = list.filter_text.as_str();
    for step in list.narrowed.iter().rev() {
        let names_file = split_terms(&step.after).iter().any(|term| TermKind::from_term(term) == Some(TermKind::Path));
        if step.after != filter || !names_file {
            break;
        }
        filter = &step.before;
    }
    (filter != list.filter_text).then_some(filter)
}
