//! Marks findings: one by one, a range, or all that are listed.

use super::super::app::App;
use super::go_to_row;

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

pub fn toggle_all_marks(app: &mut App) {
    app.finding_list.mark_range_start = None;
    let all = app
        .finding_list
        .rows
        .iter()
        .all(|index| app.finding_list.marks.contains(app.store.view.finding(*index as usize).id));
    if all {
        app.finding_list.marks.clear();
    } else {
        let ids: Vec<String> =
            app.finding_list.rows.iter().map(|i| app.store.view.finding(*i as usize).id.to_owned()).collect();
        app.finding_list.marks.extend(ids);
    }
}
