//! Applies new data: the view, filtered rows, the files of a run. Selections are restored by id and keep their
//! position on the screen.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::super::app::{App, NoticeLevel, OpeningLook, Pane, RunEntry};
use super::super::filter::{DEFAULT, FilterOverrides, FindingFilter};
use super::super::message::{AppCommand, DetailSubject, FileListRow, FileListState, Tab};
use super::super::request_counter::RequestCounter;
use crate::domain::{FindingStatus, RunStatus};
use crate::store::StoreView;

/// Up to this number of findings, filtering here is faster than a request to the filter thread.
const MAX_INLINE_FILTER_FINDINGS: usize = 4_000;

/// Applies a new view of the store: runs at once, findings after filtering.
pub fn apply_view(app: &mut App, view: Arc<StoreView>, written: u64, commands: &mut Vec<AppCommand>) {
    app.store.trouble = (!view.notices.is_empty()).then(|| view.notices.join(" · "));
    // The view contains every decision stored before it was read.
    if written >= app.decisions.written && !app.finding_list.overrides.statuses.is_empty() {
        Arc::make_mut(&mut app.finding_list.overrides).statuses.clear();
    }
    if view.complete && app.opening == OpeningLook::Unknown {
        if view.run_count() == 0 {
            app.panes.focus = Pane::Runs;
            app.panes.list = Pane::Runs;
        }
        app.opening = OpeningLook::Asked;
        commands.push(AppCommand::ReviewOnOpen);
    }
    request_filter(app, view, commands);
}

/// Filters the findings of `view`; view and rows are replaced together.
fn request_filter(app: &mut App, view: Arc<StoreView>, commands: &mut Vec<AppCommand>) {
    let serial = app.finding_list.filter_requests.begin();
    if view.finding_count() <= MAX_INLINE_FILTER_FINDINGS {
        let rows = app.finding_list.filter.matching_rows(&view, &app.finding_list.overrides);
        apply_filtered(app, serial, view, rows);
    } else {
        commands.push(AppCommand::Filter {
            serial,
            view,
            filter: app.finding_list.filter.clone(),
            overrides: Arc::clone(&app.finding_list.overrides),
        });
    }
}

/// Applies a changed filter and unpins the findings that were kept visible after a decision.
pub fn refilter(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.finding_list.filter = FindingFilter::parse(&app.finding_list.filter_text);
    if !app.finding_list.overrides.pinned.is_empty() {
        Arc::make_mut(&mut app.finding_list.overrides).pinned.clear();
    }
    if !app.finding_list.overrides.reported.is_empty() {
        Arc::make_mut(&mut app.finding_list.overrides)
            .reported
            .retain(|run, _| app.finding_list.filter.named_runs().any(|named| named == run));
    }
    for run in
        app.finding_list.filter.named_runs().filter(|run| !app.finding_list.overrides.reported.contains_key(*run))
    {
        commands.push(AppCommand::LoadReported { run: run.to_owned() });
    }
    app.finding_list.mark_range_start = None;
    request_filter(app, Arc::clone(&app.store.view), commands);
}

/// Applies the list of findings that a run reported, if the filter still names the run.
pub fn apply_reported(app: &mut App, run: String, findings: Vec<String>, commands: &mut Vec<AppCommand>) {
    if app.finding_list.filter.named_runs().any(|named| named == run) {
        let nothing = findings.is_empty();
        Arc::make_mut(&mut app.finding_list.overrides).reported.insert(run, findings);
        request_filter(app, Arc::clone(&app.store.view), commands);
        match nothing && app.finding_list.rows.is_empty() {
            true => app.show_notice(NoticeLevel::Info, "this run has no findings · Esc takes the filter back"),
            false => notify_if_empty(app),
        }
    }
}

/// Replaces view and rows, unless a newer result was already applied.
pub fn apply_filtered(app: &mut App, serial: u64, view: Arc<StoreView>, rows: Vec<u32>) {
    if !app.finding_list.filter_requests.accept(serial) {
        return;
    }
    let selected = app.selected_finding().map(|finding| finding.id.to_owned());
    let same_view = Arc::ptr_eq(&view, &app.store.view);
    let run = app.selected_run().map(|run| run.id.to_owned());
    // If the selected finding left the list, the next listed one is selected.
    let near = selected.as_deref().and_then(|id| view.finding_index(id)).and_then(|index| u32::try_from(index).ok());
    let shown_before = finding_page_key(app);
    app.store.view = view;
    app.finding_list.rows = rows;
    let at = near.map_or(0, |index| app.finding_list.rows.partition_point(|row| *row < index));
    let height = app.pane_height(Pane::Findings);
    app.finding_list.cursor.select_in_place(
        at.min(app.finding_list.rows.len().saturating_sub(1)),
        app.finding_list.rows.len(),
        height,
    );
    if !same_view {
        let mut marks = std::mem::take(&mut app.finding_list.marks);
        marks.retain(|id| app.store.view.finding_index(id).is_some());
        app.finding_list.marks = marks;
        rebuild_runs(app, run.as_deref());
        let same_finding = shown_before == finding_page_key(app);
        mark_stale_detail(app, same_finding);
        if serial == RequestCounter::FIRST {
            set_first_focus(app);
        }
    }
}

/// Returns the facts on which the page of the selected finding depends.
fn finding_page_key(app: &App) -> Option<(String, String, FindingStatus, u32)> {
    let DetailSubject::Finding(id) = &app.detail.subject else { return None };
    let row = app.finding_by_id(id)?;
    Some((row.id.to_owned(), row.last_run.to_owned(), row.status, row.line_start))
}

/// Sets the focus when the first rows arrive: the runs, if no finding is listed.
fn set_first_focus(app: &mut App) {
    if app.finding_list.rows.is_empty() {
        app.panes.focus = Pane::Runs;
        app.panes.list = Pane::Runs;
    }
}

/// Rebuilds the list of runs. Superseded runs stand below the run that replaced them, folded unless opened.
pub fn rebuild_runs(app: &mut App, selected: Option<&str>) {
    let view = &app.store.view;
    app.run_list.active.clear();
    let mut below: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut top = Vec::new();
    for index in 0..view.run_count() {
        let run = view.run(index);
        if !run.status.is_terminal() {
            app.run_list.active.extend(u32::try_from(index).ok());
        }
        match superseding_run(view, index) {
            Some(root) => below.entry(root).or_default().push(index),
            None => top.push(index),
        }
    }
    app.run_list.entries.clear();
    for index in top {
        let nested = below.get(&index).map_or(&[][..], Vec::as_slice);
        let open = !nested.is_empty() && app.run_list.unfolded.contains(view.run(index).id);
        let folded = if open { 0 } else { nested.len() };
        let entry = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        app.run_list.entries.push(RunEntry {
            index: entry(index),
            nested: false,
            folded: entry(folded),
            unfolded: open,
        });
        if open {
            app.run_list.entries.extend(nested.iter().map(|index| RunEntry {
                index: entry(*index),
                nested: true,
                folded: 0,
                unfolded: false,
            }));
        }
    }
    let height = app.pane_height(Pane::Runs);
    // If the selected run was folded away, its replacement is selected.
    let at = selected.and_then(|id| app.store.view.run_index(id)).and_then(|index| {
        position_of_run(app, index)
            .or_else(|| superseding_run(&app.store.view, index).and_then(|root| position_of_run(app, root)))
    });
    app.run_list.cursor.select_in_place(at.unwrap_or(0), app.run_list.entries.len(), height);
    if let Some(id) = app.run_list.awaited.take() {
        select_run(app, &id);
    }
}

fn position_of_run(app: &App, index: usize) -> Option<usize> {
    app.run_list.entries.iter().position(|entry| entry.index as usize == index)
}

/// Returns the run at the end of the chain of superseding runs; `None` if the run was not superseded.
fn superseding_run(view: &StoreView, index: usize) -> Option<usize> {
    let mut at = index;
    for _ in 0..64 {
        let next = view.run(at).superseded_by;
        match view.run_index(next) {
            Some(next) if !view.run(at).superseded_by.is_empty() && next != at => at = next,
            _ => break,
        }
    }
    (at != index).then_some(at)
}

/// Selects a run, for example the answer to a request.
pub fn select_run(app: &mut App, id: &str) {
    let Some(index) = app.store.view.run_index(id) else {
        // The store has the run; the view does not have it yet.
        app.run_list.awaited = Some(id.to_owned());
        return;
    };
    let Some(at) = position_of_run(app, index) else { return };
    let height = app.pane_height(Pane::Runs);
    app.run_list.cursor.select(at, app.run_list.entries.len(), height);
}

/// Marks the page as stale if the new view may change it.
fn mark_stale_detail(app: &mut App, same_finding: bool) {
    let stale = match (&app.detail.page, app.detail.tab) {
        (None, _) => false,
        (Some(_), Tab::Ledger) => true,
        (Some((DetailSubject::Finding(_), ..)), Tab::Page | Tab::Diff) => !same_finding || is_showing_active_run(app),
        (Some((DetailSubject::Run(run) | DetailSubject::File { run, .. }, ..)), _) => {
            let status = app.store.view.run_index(run).map(|index| app.store.view.run(index).status);
            status.is_none_or(|status| !status.is_terminal()) || is_showing_active_run(app)
        }
        (Some(_), Tab::Log) => app.has_active_runs() || is_showing_active_run(app),
        // The patch changes with the fixes, not with the view.
        (Some((DetailSubject::Finding(_), ..)), Tab::Turns | Tab::Context | Tab::Fix)
        | (Some((DetailSubject::Nothing, ..)), _) => false,
    };
    if stale {
        app.detail.stale = true;
    }
    if !app.file_list.run.is_empty() {
        let live = app
            .store
            .view
            .run_index(&app.file_list.run)
            .is_some_and(|index| !app.store.view.run(index).status.is_terminal());
        if live || app.file_list.rows.iter().any(|file| file.state == FileListState::Waiting) {
            app.file_list.requested.clear();
        }
    }
}

/// Returns true if the page was read before its run ended.
fn is_showing_active_run(app: &App) -> bool {
    use super::super::page_data::PageData;
    let status = match app.detail.page.as_ref().map(|(.., loaded)| loaded.as_ref()) {
        Some(PageData::Run(page)) => Some(page.run.status),
        Some(PageData::Turns(page) | PageData::Context(page)) => Some(page.run.status),
        Some(PageData::File(page)) => Some(page.run.status),
        Some(PageData::Log { run, .. }) => run.as_ref().map(|run| run.status),
        Some(PageData::Failed(_)) => return true,
        _ => None,
    };
    status.is_some_and(|status: RunStatus| !status.is_terminal())
}

/// Sets the files of a run from its findings, until the run's output is read.
pub fn set_files_from_view(app: &mut App, run: &str) {
    let known_before = app.file_list.run == run;
    let selected = app.selected_file().map(|file| file.path.clone());
    let mut files: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
    if let Some(wanted) = app.store.view.run_index(run) {
        let view = &app.store.view;
        // Findings are sorted by the run that last reported them.
        let place = |index: usize| view.run_index(view.finding(index).last_run).unwrap_or(usize::MAX);
        let count = view.finding_count();
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if place(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        for index in (low..count).take_while(|index| view.finding(*index).last_run == run) {
            let finding = view.finding(index);
            files.entry(finding.path).or_default()[finding.priority.index()] += 1;
        }
    }
    let rows = files
        .into_iter()
        .map(|(path, counts)| FileListRow { path: path.to_owned(), counts, state: FileListState::Unknown })
        .collect();
    app.file_list.run = run.to_owned();
    set_files(app, rows, if known_before { selected } else { None });
}

/// Applies the files of a run from its output.
pub fn apply_files(app: &mut App, run: &str, files: Option<Vec<FileListRow>>) {
    if run != app.file_list.requested {
        return;
    }
    let Some(files) = files else { return set_files_from_view(app, run) };
    let selected = app.selected_file().filter(|_| app.file_list.run == run).map(|file| file.path.clone());
    app.file_list.run = run.to_owned();
    set_files(app, files, selected);
}

fn set_files(app: &mut App, files: Vec<FileListRow>, selected: Option<String>) {
    let at = selected.and_then(|path| files.iter().position(|file| file.path == path));
    app.file_list.rows = files;
    let height = app.pane_height(Pane::Files);
    match at {
        Some(at) => app.file_list.cursor.select_in_place(at, app.file_list.rows.len(), height),
        None => app.file_list.cursor.select(0, app.file_list.rows.len(), height),
    }
}

/// Filters the list for all findings of a run, with any status.
pub fn show_run(app: &mut App, run: &str, commands: &mut Vec<AppCommand>) {
    let terms = terms_without(app, &["run:", "path:", "status:", "s:"]);
    app.finding_list.filter_text = format!("{terms}run:{run}");
    refilter(app, commands);
}

/// Filters the list for the findings of a file and keeps the other terms; after a run filter, only undecided
/// findings.
pub fn show_path(app: &mut App, path: &str, commands: &mut Vec<AppCommand>) {
    let all_of_a_run = app.finding_list.filter_text.split_whitespace().any(|word| word.starts_with("run:"))
        && !app.finding_list.filter_text.contains("status:");
    let status = if all_of_a_run { format!("{DEFAULT} ") } else { String::new() };
    app.finding_list.filter_text = format!("{status}{}path:{path}", terms_without(app, &["run:", "path:"]));
    refilter(app, commands);
    notify_if_empty(app);
}

/// Returns the filter terms without these prefixes, each followed by a space.
fn terms_without(app: &App, sorts: &[&str]) -> String {
    let terms = app.finding_list.filter_text.split_whitespace();
    terms.filter(|term| !sorts.iter().any(|sort| term.starts_with(sort))).flat_map(|term| [term, " "]).collect()
}

fn notify_if_empty(app: &mut App) {
    if app.finding_list.rows.is_empty() && !app.finding_list.filter_requests.is_waiting() {
        app.show_notice(NoticeLevel::Info, "no finding passes the filter · Esc takes the filter back");
    }
}

/// Pins a finding that was decided just now, so that it stays visible although the filter excludes it.
pub fn pin_finding(known: &mut FilterOverrides, id: &str) {
    known.pinned.insert(id.to_owned());
}
