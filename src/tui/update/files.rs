//! Chooses the files of the list: those of the run to which the findings are narrowed; while the user goes through the runs,
//! those of the selected one; else those of the listed findings.

use std::sync::Arc;

use super::super::app::{App, FileSource, ListedFiles, Pane};
use super::super::filter::FindingFilter;
use super::super::filter_terms::{TermKind, split_terms};
use super::super::message::AppCommand;
use super::data;

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
pub fn apply_listed_files(app: &mut App, serial: u64, listed: ListedFiles) {
    if !app.file_list.awaits_findings(serial) {
        return;
    }
    let selected = app.file_list.path_at(app.file_list.cursor.selected).map(str::to_owned);
    app.file_list.run.clear();
    app.file_list.newest_runs = listed.newest_runs;
    data::set_files(app, listed.files, selected);
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
