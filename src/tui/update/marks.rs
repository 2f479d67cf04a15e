//! Marks findings: one by one, a range, or all that are listed.

use super::super::app::App;
use super::go_to_row;
use crate::store::FindingRow;

/// Marks or unmarks the selected finding and the ones below it, `times` in all.
pub fn toggle_marks(app: &mut App, times: usize) {
    commit_mark_range(app);
    app.finding_list.mark_range_start = None;
    for _ in 0..times.min(app.finding_list.rows.len()) {
        let Some(id) = app.selected_finding().map(|finding| finding.id.to_owned()) else { return };
        if !app.finding_list.marks.remove(&id) {
            app.finding_list.marks.insert(id);
        }
        go_to_row(app, app.finding_list.cursor.selected + 1);
    }
}

/// Starts a range at the selected row, or marks the range that was started.
pub fn toggle_mark_range(app: &mut App) {
    app.finding_list.mark_range_start = match app.finding_list.mark_range_start {
        Some(_) => {
            commit_mark_range(app);
            None
        }
        None => Some(app.finding_list.cursor.selected),
    };
}

/// Marks the findings of the range being marked.
pub fn commit_mark_range(app: &mut App) {
    let Some(range) = app.finding_list.mark_range() else { return };
    let ids: Vec<String> = app
        .finding_list
        .rows
        .get(range)
        .unwrap_or_default()
        .iter()
        .map(|index| app.store.view.finding(*index as usize).id.to_owned())
        .collect();
    app.finding_list.marks.extend(ids);
}

/// Marks all listed findings, or none if all are marked. Those that were decided or snoozed just now, and stay in the list so that
/// no row moves, are passed over: a verdict about all is no verdict about them.
pub fn toggle_all_marks(app: &mut App) {
    app.finding_list.mark_range_start = None;
    let list = &app.finding_list;
    let is_asked_for = |row: &FindingRow<'_>| {
        let status = app.current_status(row);
        list.filter.matches_status(status, list.overrides.snoozed.hides(row.id, status))
    };
    let rows = list.rows.iter().map(|index| app.store.view.finding(*index as usize));
    let ids: Vec<String> = rows.filter(is_asked_for).map(|row| row.id.to_owned()).collect();
    if ids.iter().all(|id| list.marks.contains(id)) {
        app.finding_list.marks.clear();
    } else {
        app.finding_list.marks.extend(ids);
    }
}
