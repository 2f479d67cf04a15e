//! Applies new data: the view, filtered rows, the files of a run. Selections are restored by id and keep their
//! position on the screen.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::app::{App, FilterStep, NoticeLevel, OpeningLook, Pane};
use super::super::diff;
use super::super::empty_list::{EmptyList, explain_empty_list};
use super::super::filter::{DEFAULT, FilterOverrides, FindingFilter};
use super::super::filter_terms::{TermKind, close_quote, quote, split_terms};
use super::super::finding_order::{FindingArrangement, ListedFindings};
use super::super::keymap::Action;
use super::super::message::{AppCommand, DetailSubject, FileListRow, FileListState, Tab};
use super::super::request_counter::RequestCounter;
use super::announce;
use super::runs::{position_of_run, rebuild_runs};
use crate::config::FileOrder;
use crate::domain::{FindingStatus, RunStatus, Time};
use crate::runner::SnoozedFindings;
use crate::store::{StoreView, TeamStatus};

/// Up to this number of findings, filtering here is faster than a request to the filter thread.
pub(super) const MAX_INLINE_FILTER_FINDINGS: usize = 4_000;

/// Applies a new view of the store: runs at once, findings after filtering.
pub fn apply_view(app: &mut App, view: Arc<StoreView>, written: u64, commands: &mut Vec<AppCommand>) {
    app.store.trouble = (!view.notices.is_empty()).then(|| view.notices.join(" · "));
    // The view contains every decision stored before it was read.
    if written >= app.decisions.written && !app.finding_list.overrides.statuses.is_empty() {
        Arc::make_mut(&mut app.finding_list.overrides).statuses.clear();
    }
    if app.opening != OpeningLook::Unknown && app.store.view.finding_count() == 0 && view.finding_count() > 0 {
        welcome_first_finding(app);
    }
    if view.complete && app.opening == OpeningLook::Unknown {
        if view.run_count() == 0 {
            app.panes.focus = Pane::Runs;
            app.panes.list = Pane::Runs;
        }
        app.opening = OpeningLook::Asked;
        commands.push(AppCommand::ReviewOnOpen);
    }
    app.store.next_view = Some(view);
    request_filter(app, commands);
}

/// Says where the first findings of a repository are.
fn welcome_first_finding(app: &mut App) {
    let (action, effect) = match app.panes.focus {
        Pane::Findings => (Action::Open, "opens it"),
        Pane::Runs | Pane::Files | Pane::Detail => (Action::Findings, "goes to the findings"),
    };
    if let Some(key) = app.keymap.key_of(app.key_context(), action).map(ToString::to_string) {
        app.append_notice(NoticeLevel::Success, format!("the first finding is here: {key} {effect}"));
    }
}

/// Filters the findings of the view that was read last; view and rows are replaced together.
fn request_filter(app: &mut App, commands: &mut Vec<AppCommand>) {
    // The answer replaces those to earlier requests, so that one about the shown view would take the next one away.
    let view = Arc::clone(app.store.next_view.as_ref().unwrap_or(&app.store.view));
    let serial = app.finding_list.filter_requests.begin();
    let query = app.finding_list.query();
    if view.finding_count() <= MAX_INLINE_FILTER_FINDINGS {
        let listed = query.list(&view);
        apply_filtered(app, serial, view, listed, commands);
    } else {
        commands.push(AppCommand::Filter { serial, view, query });
    }
}

/// Sorts and groups the list anew.
pub fn rearrange(app: &mut App, arrangement: FindingArrangement, commands: &mut Vec<AppCommand>) {
    app.finding_list.arrangement = arrangement;
    app.finding_list.mark_range_start = None;
    request_filter(app, commands);
}

/// Applies which findings are snoozed; those that were snoozed just now stay in the list.
pub fn apply_snoozed(app: &mut App, snoozed: Arc<SnoozedFindings>, commands: &mut Vec<AppCommand>) {
    Arc::make_mut(&mut app.finding_list.overrides).snoozed = snoozed;
    app.detail.stale |= matches!(app.detail.subject, DetailSubject::Finding(_));
    request_filter(app, commands);
}

/// Applies the state of the exchange with the team, and follows a team that was joined since.
pub fn apply_team(app: &mut App, team: Option<TeamStatus>, commands: &mut Vec<AppCommand>) {
    let disputed = team.as_ref().map(|team| team.disputed.clone()).unwrap_or_default();
    let joined_at = |team: &TeamStatus| team.joined_at;
    if team.is_some() && team.as_ref().map(joined_at) != app.store.team.as_ref().map(joined_at) {
        commands.push(AppCommand::FollowTeam);
    }
    app.store.team = team;
    if *app.finding_list.overrides.disputed != disputed {
        Arc::make_mut(&mut app.finding_list.overrides).disputed = Arc::new(disputed);
        app.detail.stale |= matches!(app.detail.subject, DetailSubject::Finding(_));
        request_filter(app, commands);
    }
}

/// Brings the findings back whose snooze is over.
pub fn expire_snoozes(app: &mut App, commands: &mut Vec<AppCommand>) {
    let Ok(now) = Time::from_millisecond(app.now) else { return };
    if app.finding_list.overrides.snoozed.next_wake().is_some_and(|at| at <= now) {
        let mut left = (*app.finding_list.overrides.snoozed).clone();
        left.expire(now);
        apply_snoozed(app, Arc::new(left), commands);
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
    request_filter(app, commands);
}

/// Applies the list of findings that a run reported, if the filter still names the run.
pub fn apply_reported(app: &mut App, run: String, findings: Vec<String>, commands: &mut Vec<AppCommand>) {
    if app.finding_list.filter.named_runs().any(|named| named == run) {
        Arc::make_mut(&mut app.finding_list.overrides).reported.insert(run, findings);
        request_filter(app, commands);
        notify_if_empty(app);
    }
}

/// Replaces view and rows, unless a newer result was already applied.
pub fn apply_filtered(
    app: &mut App,
    serial: u64,
    view: Arc<StoreView>,
    listed: ListedFindings,
    commands: &mut Vec<AppCommand>,
) {
    if !app.finding_list.filter_requests.accept(serial) {
        return;
    }
    let same_view = Arc::ptr_eq(&view, &app.store.view);
    let run = app.selected_run().map(|run| run.id.to_owned());
    let shown_before = finding_page_key(app);
    let is_run_active_before = is_page_of_active_run(app);
    let line = app.finding_list.selected_line();
    if !same_view {
        announce::announce_changes(app, &view, commands);
    }
    // Until the whole store is read, the list stays at its most important finding.
    let is_at_start = !app.store.view.complete && app.finding_list.cursor.selected == 0;
    let at = if is_at_start { 0 } else { find_new_position(app, &view, &listed.rows) };
    app.store.next_view = app.store.next_view.take().filter(|next| !Arc::ptr_eq(next, &view));
    app.store.view = view;
    app.finding_list.set_rows(listed);
    app.file_list.outdate_findings();
    let height = app.pane_height(Pane::Findings);
    app.finding_list.select_on_line(at, line, height);
    if let Some(id) = app.finding_list.awaited.take() {
        show_selected_finding(app, &id);
    }
    if !same_view {
        let mut marks = std::mem::take(&mut app.finding_list.marks);
        marks.retain(|id| app.store.view.finding_index(id).is_some());
        app.finding_list.marks = marks;
        rebuild_runs(app, run.as_deref());
        let same_finding = shown_before == finding_page_key(app);
        mark_stale_detail(app, same_finding);
        // The marks of the diff follow new findings and decisions. A run may have gone from its first state to its end meanwhile.
        app.detail.stale |= diff::is_shown(app) || is_run_active_before;
        if serial == RequestCounter::FIRST {
            set_first_focus(app);
        }
    }
}

/// Maximum number of rows that are tried for a finding that left the list.
const MAX_TRIED_NEIGHBOURS: usize = 100;

/// Returns the position of the selected finding in the new `rows` of `view`. If it left the list, returns that of the
/// next finding that did not, else of the previous one.
fn find_new_position(app: &App, view: &StoreView, rows: &[u32]) -> usize {
    let old = &app.finding_list;
    let position = |at: usize| {
        let id = app.store.view.finding(*old.rows.get(at)? as usize).id;
        let index = u32::try_from(view.finding_index(id)?).ok()?;
        rows.iter().position(|row| *row == index)
    };
    let from = old.cursor.selected;
    let after = from..(from + MAX_TRIED_NEIGHBOURS).min(old.rows.len());
    let before = (from.saturating_sub(MAX_TRIED_NEIGHBOURS)..from.min(old.rows.len())).rev();
    after.chain(before).find_map(position).unwrap_or(from).min(rows.len().saturating_sub(1))
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

/// Selects a run, for example the answer to a request.
pub fn select_run(app: &mut App, id: &str) {
    let Some(index) = app.store.view.run_index(id) else {
        // The store has the run; the view does not have it yet.
        app.run_list.awaited = Some(id.to_owned());
        return;
    };
    let Some(at) = position_of_run(app, index) else { return };
    let height = app.pane_height(Pane::Runs);
    app.run_list.select(at, height);
}

/// Selects a finding. If the filter hides it, it is listed until the filter changes.
pub fn select_finding(app: &mut App, id: &str, commands: &mut Vec<AppCommand>) {
    if show_selected_finding(app, id) || app.finding_by_id(id).is_none() {
        return;
    }
    pin_finding(Arc::make_mut(&mut app.finding_list.overrides), id);
    app.finding_list.awaited = Some(id.to_owned());
    request_filter(app, commands);
}

/// Selects the row of a finding. Returns false if it is not listed.
fn show_selected_finding(app: &mut App, id: &str) -> bool {
    let Some(index) = app.store.view.finding_index(id) else { return false };
    let Some(at) = app.finding_list.position_of(index) else { return false };
    let height = app.pane_height(Pane::Findings);
    app.finding_list.select(at, height);
    true
}

/// Marks the page as stale if the new view may change it.
fn mark_stale_detail(app: &mut App, same_finding: bool) {
    let stale = match (&app.detail.page, app.detail.tab) {
        (None, _) => false,
        (Some(_), Tab::Ledger) => true,
        (Some((DetailSubject::Finding(_), ..)), Tab::Page | Tab::Diff) => !same_finding || is_showing_active_run(app),
        (Some((DetailSubject::Run(_) | DetailSubject::File { .. }, ..)), _) => {
            is_page_of_active_run(app) || is_showing_active_run(app)
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
        // Findings of other runs are counted, too.
        let totals = &app.finding_list.totals;
        let counted = (app.store.view.finding_count(), totals.undecided, totals.undecided_files);
        let is_counted = std::mem::replace(&mut app.file_list.counted, counted) == counted;
        if live || !is_counted || app.file_list.files().iter().any(|file| file.state == FileListState::Waiting) {
            app.file_list.outdate_run();
        }
    }
}

/// Returns true if the page is about a run, or a file of one, that has not ended in the view, or that the view does not have.
fn is_page_of_active_run(app: &App) -> bool {
    let Some((DetailSubject::Run(run) | DetailSubject::File { run, .. }, ..)) = &app.detail.page else { return false };
    let view = &app.store.view;
    view.run_index(run).is_none_or(|index| !view.run_status(index).is_terminal())
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
    let selected = app.file_list.path_at(app.file_list.cursor.selected).map(str::to_owned);
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
        .map(|(path, counts)| FileListRow { counts, ..FileListRow::new(path, FileListState::Unknown) })
        .collect();
    app.file_list.run = run.to_owned();
    set_files(app, rows, if known_before { selected } else { None });
}

/// Applies the files of a run from its output.
pub fn apply_files(app: &mut App, run: &str, files: Option<Vec<FileListRow>>) {
    if app.file_list.wanted_run() != Some(run) {
        return;
    }
    let Some(mut files) = files else { return set_files_from_view(app, run) };
    if app.chosen_run() == Some(run) {
        count_reported(&app.store.view, run, &mut files);
    }
    let selected = app.file_list.path_at(app.file_list.cursor.selected).filter(|_| app.file_list.run == run);
    let selected = selected.map(str::to_owned);
    app.file_list.run = run.to_owned();
    set_files(app, files, selected);
}

/// Counts only the findings that a run reported, as the list of findings narrowed to it has them. Without its result, the
/// counts stay.
fn count_reported(view: &StoreView, run: &str, files: &mut Vec<FileListRow>) {
    let Some(index) = view.run_index(run) else { return };
    let mut counts: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
    for finding in view.reported_findings(index).map(|finding| view.finding(finding)) {
        counts.entry(finding.path).or_default()[finding.priority.index()] += 1;
    }
    if counts.is_empty() && view.run(index).counts != [0; 4] {
        return;
    }
    for file in files.iter_mut() {
        file.counts = counts.remove(file.path.as_str()).unwrap_or_default();
    }
    // Files that were renamed since the run.
    let unknown = |path| FileListRow::new(path, FileListState::Unknown);
    files.extend(counts.into_iter().map(|(path, counts)| FileListRow { counts, ..unknown(path) }));
}

/// Replaces the files; the selected one stays selected if it is among them.
pub(super) fn set_files(app: &mut App, files: Vec<FileListRow>, selected: Option<String>) {
    app.file_list.set_files(files);
    let at = selected.and_then(|path| app.file_list.position_of(&path));
    let (rows, height) = (app.file_list.row_count(), app.pane_height(Pane::Files));
    match at {
        Some(at) => app.file_list.cursor.select_in_place(at, rows, height),
        None => app.file_list.cursor.select(0, rows, height),
    }
}

/// Arranges the files anew; the selected file stays selected.
pub fn arrange_files(app: &mut App, order: FileOrder) {
    let selected = app.selected_file().map(|file| file.path.clone());
    app.file_list.set_order(order);
    let at = selected.and_then(|path| app.file_list.position_of(&path)).unwrap_or(0);
    let (rows, height) = (app.file_list.row_count(), app.pane_height(Pane::Files));
    app.file_list.cursor.select(at, rows, height);
}

/// Lists the files that the selected row stands for, or folds them into it. Returns false if it is the row of a file.
pub fn toggle_files(app: &mut App) -> bool {
    let selected = app.file_list.cursor.selected;
    if !app.file_list.toggle_fold(selected) {
        return false;
    }
    let (rows, height) = (app.file_list.row_count(), app.pane_height(Pane::Files));
    app.file_list.cursor.select(selected, rows, height);
    true
}

/// Marks the finding of the detail as seen, when another one is selected.
pub fn mark_seen(app: &mut App) {
    let DetailSubject::Finding(id) = &app.detail.subject else { return };
    let Some(index) = app.store.view.finding_index(id) else { return };
    if app.is_new(index, &app.store.view.finding(index)) {
        let id = id.clone();
        Arc::make_mut(&mut app.finding_list.overrides).seen.insert(id);
    }
}

/// Filters the list for all findings of a run, with any status. The list of files shows the same run.
pub fn show_run(app: &mut App, run: &str, commands: &mut Vec<AppCommand>) {
    let terms = terms_without(app, &[TermKind::Run, TermKind::Path, TermKind::Status]);
    narrow(app, format!("{terms}run:{run}"), commands);
}

/// Filters the list for the findings of a file and keeps the other terms; after a run filter, only undecided
/// findings.
pub fn show_path(app: &mut App, path: &str, commands: &mut Vec<AppCommand>) {
    let status = if app.finding_list.filter.lists_whole_runs() { format!("{DEFAULT} ") } else { String::new() };
    let run = match app.chosen_run() {
        Some(run) => format!(" run:{run}"),
        None => String::new(),
    };
    let path = quote(path);
    let text = format!("{status}{}path:{path}{run}", terms_without(app, &[TermKind::Run, TermKind::Path]));
    narrow(app, text, commands);
    notify_if_empty(app);
}

/// Replaces the filter, and remembers the former one for [`widen`].
fn narrow(app: &mut App, filter: String, commands: &mut Vec<AppCommand>) {
    let before = std::mem::replace(&mut app.finding_list.filter_text, filter.clone());
    if before != filter {
        app.finding_list.narrowed.push(FilterStep { before, after: filter });
    }
    refilter(app, commands);
}

/// Takes back the last choice of a run or a file, else the filter. Returns false if the list is not narrowed.
pub fn widen(app: &mut App, commands: &mut Vec<AppCommand>) -> bool {
    let list = &mut app.finding_list;
    if list.filter_text == DEFAULT {
        list.narrowed.clear();
        return false;
    }
    // A filter that was typed since has no step of its own.
    let step = list.narrowed.pop().filter(|step| step.after == list.filter_text);
    list.filter_text = match step {
        Some(step) => step.before,
        None => {
            list.narrowed.clear();
            DEFAULT.to_owned()
        }
    };
    refilter(app, commands);
    true
}

/// Returns the filter terms of other kinds than these, each followed by a space, so that others can follow them.
fn terms_without(app: &App, kinds: &[TermKind]) -> String {
    let terms = split_terms(&app.finding_list.filter_text).into_iter();
    let kept = terms.filter(|term| TermKind::from_term(term).is_none_or(|kind| !kinds.contains(&kind)));
    kept.map(|term| format!("{} ", close_quote(term))).collect()
}

/// Says why the list is empty, if it is, and which key widens it again.
fn notify_if_empty(app: &mut App) {
    if app.finding_list.rows.is_empty() && !app.finding_list.filter_requests.is_waiting() {
        let EmptyList { headline, .. } = explain_empty_list(app);
        let dot = app.display.glyphs.dot;
        app.show_notice(NoticeLevel::Info, format!("{headline} {dot} Esc takes the filter back"));
    }
}

/// Pins a finding that was decided just now, so that it stays visible although the filter excludes it.
pub fn pin_finding(known: &mut FilterOverrides, id: &str) {
    known.pinned.insert(id.to_owned());
}
