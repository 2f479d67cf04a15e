//! Searches the rows of the lists and the lines of the page.

use super::super::app::{App, NoticeLevel, Pane};
use super::super::diff;
use super::super::filter;
use super::go_to_row;
use super::keys::selected_row;
use crate::domain::{Panel, text};

/// Goes to the next row or line that contains the search text; wraps around at the end.
pub fn search_next(app: &mut App, forward: bool, times: usize) {
    if app.search.is_empty() {
        app.show_notice(NoticeLevel::Info, "nothing is searched for");
        return;
    }
    for _ in 0..times.min(1000) {
        if !find_row(app, present_row(app), forward, true) {
            let said = describe_no_match(app);
            app.show_notice(NoticeLevel::Info, said);
            return;
        }
    }
    show_position(app);
}

/// Says which of the rows of a diff with the search text the present one is.
pub fn show_position(app: &mut App) {
    let position = describe_position(app);
    if !position.is_empty() {
        app.show_notice(NoticeLevel::Info, format!("{:?} {position}", app.search));
    }
}

/// Describes which of the rows of a diff with the search text the present one is: `2 of 7`. Empty if it has not the text,
/// or no diff is searched: the titles of the lists show the position.
pub fn describe_position(app: &App) -> String {
    if !is_in_diff(app) {
        return String::new();
    }
    let Some((position, rows)) = diff::find_position(app) else { return String::new() };
    let [position, rows] = [position, rows].map(|number| text::format_thousands(number as u64));
    match app.detail.diff.unread_count() {
        0 => format!("{position} of {rows}"),
        _ => format!("{position} of {rows} in what was read"),
    }
}

/// Returns true if a search goes through the rows of a diff.
pub fn is_in_diff(app: &App) -> bool {
    app.panes.focus == Pane::Detail && diff::is_shown(app)
}

/// Returns the row from which a search goes on: the selected row of the list, the cursor of the diff, the first line of a page.
pub fn present_row(app: &App) -> usize {
    match app.panes.focus {
        Pane::Detail if diff::is_shown(app) => app.detail.diff.cursor(),
        Pane::Detail => app.detail.scroll,
        _ => selected_row(app),
    }
}

/// Says that no row contains the search text, and how many files of a diff are not read yet.
pub fn describe_no_match(app: &App) -> String {
    let unread = if diff::is_shown(app) { app.detail.diff.unread_count() } else { 0 };
    match unread {
        0 => format!("{:?} is not here", app.search),
        _ => format!("{:?} is not in what was read; {} follow", app.search, text::format_count(unread, "file")),
    }
}

/// Searches from row `at`; `beyond` excludes the row itself. Returns true if a row was found.
pub fn find_row(app: &mut App, at: usize, forward: bool, beyond: bool) -> bool {
    if is_in_diff(app) {
        return diff::find_row(app, at, forward, beyond);
    }
    let wanted = app.search.to_lowercase();
    let rows = match app.panes.focus {
        Pane::Runs => app.run_list.entries.len(),
        Pane::Findings => app.finding_list.rows.len(),
        Pane::Files => app.file_list.row_count(),
        Pane::Detail => app.detail.doc.lines.len(),
    };
    let holds = |row: usize| match app.panes.focus {
        Pane::Runs => app.run_list.entries.get(row).is_some_and(|entry| {
            let run = app.store.view.run(entry.index as usize);
            let title = app.run_list.subjects.get(run.id).and_then(|subject| subject.as_ref());
            let title = title.map_or("", |subject| subject.title.as_str());
            let reviewer = Panel::describe_reviewer(run.reviewer);
            [run.scope, run.reviewer, &reviewer, run.branch, run.id, run.status.word(), title]
                .iter()
                .any(|t| filter::contains_ignore_case(t, &wanted))
        }),
        Pane::Findings => app.finding_list.rows.get(row).is_some_and(|index| {
            let finding = app.store.view.finding(*index as usize);
            [finding.title, finding.path, finding.kind.word(), finding.id]
                .iter()
                .any(|t| filter::contains_ignore_case(t, &wanted))
        }),
        Pane::Files => app.file_list.file(row).is_some_and(|file| filter::contains_ignore_case(&file.path, &wanted)),
        Pane::Detail => {
            app.detail.doc.lines.get(row).is_some_and(|line| filter::contains_ignore_case(&line.plain_text(), &wanted))
        }
    };
    let skip = usize::from(beyond);
    let found = (skip..rows + skip)
        .map(|n| if forward { (at + n) % rows.max(1) } else { (at + rows * 2 - n) % rows.max(1) })
        .find(|row| holds(*row));
    if let Some(row) = found {
        go_to_row(app, row);
    }
    found.is_some()
}
