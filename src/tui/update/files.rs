//! Chooses the files of the list: those of the run to which the findings are narrowed; while the user goes through the runs,
//! those of the selected one; else those of the listed findings, and behind them those of the newest reviews in which nothing
//! is open, unless the filter asks for certain findings.

use std::sync::Arc;

use super::super::app::{App, FileSource, ListedFiles, Pane};
use super::super::filter::FindingFilter;
use super::super::filter_terms::{TermKind, split_terms};
use super::super::message::AppCommand;
use super::data;
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
