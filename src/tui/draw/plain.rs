//! Draws the screen as lines of text for a screen reader: the pane with the focus only, a sentence for each row, no
//! frames and no columns.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::super::app::{App, FileListEntry, NoticeLevel, Pane, RunEntry};
use super::super::bars;
use super::super::diff;
use super::super::layout::ScreenLayout;
use super::super::message::{FileListRow, FileListState};
use super::super::pages::priority_label;
use super::super::panel_runs::describe_origin;
use super::super::theme::Role;
use super::super::views::prompt::PromptView;
use super::header::describe_state;
use super::painter::Painter;
use super::{frame, hints};
use crate::domain::Priority;
use crate::domain::text::format_count;
use crate::store::{FindingRow, RunRow};

/// Draws header, pane, message and footer.
pub fn draw_screen(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    let app = painter.app;
    if !layout.header.is_empty() {
        draw_line(painter, layout.header, &describe_session(app), Role::Normal);
    }
    if app.views.covers_panes() {
        app.views.draw(painter, layout, false);
    } else if let Some(area) = layout.pane(app.panes.focus) {
        draw_line(painter, area.title, &describe_pane(app, area.body), Role::Title);
        draw_rows(painter, area.body);
    }
    let hints = app.sequence_hints();
    if hints.len() < 2 {
        draw_notice(painter, layout.notice);
    }
    match hints.is_empty() {
        true => frame::draw_footer(painter, layout.footer),
        false => hints::draw(painter, layout, &hints),
    }
    app.views.draw(painter, layout, true);
}

/// Returns the cell at which the terminal's cursor stands, so that a screen reader follows it: the cursor of the prompt,
/// the selected row, else the title.
pub fn find_cursor(app: &App, layout: &ScreenLayout, buffer: &Buffer) -> Position {
    let cells = |area: Rect| area.intersection(buffer.area).positions();
    if app.views.front_as::<PromptView>().is_some()
        && let Some(cursor) = cells(layout.notice).find(|at| buffer[*at].modifier.contains(Modifier::REVERSED))
    {
        return cursor;
    }
    let bar = app.display.theme.style(Role::Selected);
    let is_bar = |at: &Position| {
        let cell = &buffer[*at];
        bar.bg.is_none_or(|bg| cell.bg == bg) && cell.modifier.contains(bar.add_modifier)
    };
    let has_bar = bar.bg.is_some() || !bar.add_modifier.is_empty();
    let above_footer = Rect { height: buffer.area.height.saturating_sub(1), ..buffer.area };
    let title = layout.pane(app.panes.focus).map_or(Position::ORIGIN, |area| area.title.as_position());
    cells(above_footer).find(|at| has_bar && is_bar(at)).unwrap_or(title)
}

fn draw_line(painter: &mut Painter<'_>, area: Rect, text: &str, role: Role) {
    painter.draw_text(area.x, area.y, area.width, text, role);
}

/// Describes repository, branch and the state of the reviews.
fn describe_session(app: &App) -> String {
    let (_, state, _) = describe_state(app);
    let branch = if app.session.branch.is_empty() { String::new() } else { format!(", branch {}", app.session.branch) };
    format!("{}{branch}. {state}.", app.session.repository)
}

/// Describes the pane with the focus: its name, the position in it, the filter.
fn describe_pane(app: &App, body: Rect) -> String {
    let place = |selected: usize, rows: usize| match rows {
        0 => "empty".to_owned(),
        rows => format!("{} of {rows}", selected + 1),
    };
    match app.panes.focus {
        Pane::Runs => format!("Runs, {}.", place(app.run_list.cursor.selected, app.run_list.entries.len())),
        Pane::Files => format!("Files, {}.", place(app.file_list.cursor.selected, app.file_list.row_count())),
        Pane::Findings => {
            let list = &app.finding_list;
            let filter =
                if list.filter_text.is_empty() { String::new() } else { format!(", filter {}", list.filter_text) };
            format!("Findings, {}{filter}.", place(list.cursor.selected, list.rows.len()))
        }
        Pane::Detail => {
            let tabs = bars::place_tabs(app, 0, u16::MAX / 2);
            let at = tabs.iter().position(|placed| placed.tab == app.detail.tab).unwrap_or(0);
            let name = tabs.get(at).map_or("", |placed| placed.name);
            let (lines, top) = match diff::is_shown(app) {
                true => (app.detail.diff.row_count(), app.detail.diff.top()),
                false => (app.detail.doc.lines.len(), app.detail.scroll),
            };
            let last = (top + usize::from(body.height)).min(lines);
            format!("{name}, tab {} of {}, lines {} to {last} of {lines}.", at + 1, tabs.len(), (top + 1).min(last))
        }
    }
}

fn draw_rows(painter: &mut Painter<'_>, body: Rect) {
    let app = painter.app;
    if app.panes.focus == Pane::Detail {
        super::detail::draw_body(painter, body);
        return;
    }
    let (cursor, rows) = match app.panes.focus {
        Pane::Runs => (app.run_list.cursor, app.run_list.entries.len()),
        Pane::Files => (app.file_list.cursor, app.file_list.row_count()),
        Pane::Findings | Pane::Detail => (app.finding_list.cursor, app.finding_list.rows.len()),
    };
    let bar = frame::pane_selection_style(painter, app.panes.focus);
    // One line a row, page by page: the headers and fold lines of the other screen are not drawn.
    let height = usize::from(body.height).max(1);
    for (y, at) in (body.y..body.bottom()).zip(cursor.selected / height * height..rows) {
        let line = Rect::new(body.x, y, body.width, 1);
        let is_selected = at == cursor.selected;
        if is_selected {
            painter.fill(line, bar);
            painter.set_overlay_style(Some(bar));
        }
        let sign = if is_selected { ">" } else { " " };
        draw_line(painter, line, &format!("{sign} {}", describe_row(app, at)), Role::Normal);
        painter.set_overlay_style(None);
    }
    if rows == 0 {
        draw_line(painter, body, "Nothing here.", Role::Normal);
    }
}

/// Describes a row of the list with the focus in a sentence.
fn describe_row(app: &App, at: usize) -> String {
    match app.panes.focus {
        Pane::Runs => app.run_list.entries.get(at).map_or(String::new(), |entry| {
            let run = app.store.view.run(entry.index as usize);
            describe_run(app, &run, entry)
        }),
        Pane::Files => match app.file_list.row(at) {
            Some(FileListEntry::File { file, .. }) => describe_file(file),
            Some(FileListEntry::Folder(folder)) => {
                let state = if folder.is_folded { ", folded" } else { "" };
                format!("folder {}, {}{state}", folder.path, format_count(folder.files, "file"))
            }
            Some(FileListEntry::LeftOut(count)) => format!("{} left out", format_count(count, "file")),
            None => String::new(),
        },
        Pane::Findings | Pane::Detail => app.finding_list.rows.get(at).map_or(String::new(), |index| {
            let finding = app.store.view.finding(*index as usize);
            describe_finding(app, &finding, app.is_marked(at, finding.id))
        }),
    }
}

fn describe_finding(app: &App, finding: &FindingRow<'_>, is_marked: bool) -> String {
    let marked = if is_marked { "marked, " } else { "" };
    let disputed = if finding.panel_disputed { " and disputed in a panel" } else { "" };
    format!(
        "{marked}{} {}{disputed}, {}, {} line {}: {}",
        priority_label(finding.priority),
        app.current_status(finding).word(),
        finding.kind.label(),
        finding.path,
        finding.line_start,
        finding.title
    )
}

fn describe_run(app: &App, run: &RunRow<'_>, entry: &RunEntry) -> String {
    let (_, state, _) = app.run_state(run);
    let folded = match entry.folded.describe() {
        folded if folded.is_empty() => folded,
        folded => format!(", {folded}"),
    };
    let sums = run.is_panel().then(|| app.sum_panel(run));
    let counts = sums.map_or(run.counts, |sums| sums.counts);
    let progress = match (sums.filter(|_| !run.status.is_terminal()), entry.member) {
        (Some(sums), _) => format!(", {}", sums.describe_done()),
        (None, Some(decision)) => {
            let turn = app.describe_run_turn(run);
            let turn = if turn.is_empty() { turn } else { format!(", turn {turn}") };
            let origin = describe_origin(decision);
            format!("{turn}, member of the panel above{}{origin}", if origin.is_empty() { "" } else { ", " })
        }
        (None, None) => String::new(),
    };
    let created = app.format_date_or_time(run.created_ms);
    format!(
        "{state}{progress}, {} by {}, {created}, {}{folded}",
        app.name_run(run),
        run.reviewer,
        describe_counts(counts)
    )
}

fn describe_file(file: &FileListRow) -> String {
    let state = match file.state {
        FileListState::LeftOut(why) => format!("left out, {why}"),
        FileListState::Waiting => "waiting".to_owned(),
        FileListState::Covered | FileListState::Unknown => describe_counts(file.counts),
    };
    let viewed = if file.is_viewed { ", viewed" } else { "" };
    format!("{}: {state}{viewed}", file.path)
}

/// Describes the numbers of findings by priority, without zeros.
fn describe_counts(counts: [u32; 4]) -> String {
    let total: u32 = counts.iter().sum();
    if total == 0 {
        return "no findings".to_owned();
    }
    let parts = Priority::ALL.into_iter().filter(|priority| counts[priority.index()] > 0);
    let parts: Vec<String> =
        parts.map(|priority| format!("{} {}", counts[priority.index()], priority_label(priority))).collect();
    format!("{} ({})", format_count(total as usize, "finding"), parts.join(", "))
}

/// Draws the message with a word for its level.
fn draw_notice(painter: &mut Painter<'_>, area: Rect) {
    let Some((level, text)) = painter.app.current_notice().filter(|_| !area.is_empty()) else { return };
    let word = match level {
        NoticeLevel::Success => "Done",
        NoticeLevel::Info => "Note",
        NoticeLevel::Error => "Error",
    };
    let lines = super::super::doc::wrap_words(&format!("{word}: {text}"), usize::from(area.width.saturating_sub(2)));
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        painter.draw_text(1, y, area.width.saturating_sub(2), line, Role::Normal);
    }
}
