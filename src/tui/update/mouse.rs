//! Executes clicks, drags and the wheel of the mouse: the part of the screen under the pointer decides.

use ratatui::layout::Position;

use super::super::app::{App, FindingListLine, HeldPart, NoticeLevel, Pane, RunListLine};
use super::super::bars;
use super::super::diff;
use super::super::draw::{hinted_key_at, plain_row_at};
use super::super::input::{MouseEvent, MouseKind};
use super::super::keymap::{Action, KeyContext};
use super::super::layout::{ScreenPart, share_of};
use super::super::message::{AppCommand, Tab};
use super::super::views::{self, KeyPress};
use super::{folds, keys};

/// Rows that a step of the wheel scrolls.
const WHEEL_ROWS: isize = 3;

/// Handles an event of the mouse.
pub fn handle_mouse(app: &mut App, event: MouseEvent, commands: &mut Vec<AppCommand>) {
    let MouseEvent { kind, column, row } = event;
    match kind {
        // Reports that were on their way when the mouse was switched off.
        _ if !app.pointer.is_on => {}
        MouseKind::Press => {
            let is_double = app.pointer.press(app.now, column, row);
            // The release of another press may have been lost.
            app.pointer.held = None;
            press(app, (column, row), is_double, commands);
        }
        MouseKind::Drag => drag(app, (column, row)),
        MouseKind::Release => app.pointer.held = None,
        MouseKind::WheelUp => scroll(app, (column, row), -WHEEL_ROWS, commands),
        MouseKind::WheelDown => scroll(app, (column, row), WHEEL_ROWS, commands),
    }
}

/// Switches the mouse off or on, and says what is different.
pub fn toggle_mouse(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.pointer.is_on = !app.pointer.is_on;
    app.pointer.held = None;
    let key = app.keymap.key_text(KeyContext::Global, Action::Mouse);
    let said = match app.pointer.is_on {
        true => format!("the mouse is on; Shift selects text, {key} switches it off"),
        false => format!("the mouse is off: the terminal selects text; {key} switches it on"),
    };
    app.show_notice(NoticeLevel::Info, said);
    commands.push(AppCommand::SetMouse(app.pointer.is_on));
}

fn press(app: &mut App, (column, row): (u16, u16), is_double: bool, commands: &mut Vec<AppCommand>) {
    let layout = app.layout();
    if layout.too_small {
        return;
    }
    let part = layout.part_at(column, row);
    app.count = None;
    if app.pending_keys.is_some() {
        // The hints of a sequence stand in place of the footer and the message line.
        match hinted_key_at(app, &layout, Position::new(column, row)) {
            Some(key) => return keys::handle_key(app, key, commands),
            None => app.pending_keys = None,
        }
        if part == ScreenPart::Footer {
            return;
        }
    }
    if part == ScreenPart::Footer {
        if let Some(sequence) = bars::footer_key_at(app, column) {
            sequence.keys().iter().for_each(|key| keys::handle_key(app, *key, commands));
        }
        return;
    }
    if views::handle_click(app, (column, row), is_double, commands) {
        return;
    }
    app.notice = None;
    match part {
        ScreenPart::Divider => app.pointer.held = Some(HeldPart::Divider),
        ScreenPart::Title(Pane::Detail) => {
            keys::focus_pane(app, Pane::Detail, commands);
            if let Some(tab) = bars::tab_at(app, &layout, column) {
                show_tab(app, tab);
            }
        }
        ScreenPart::Title(pane) => {
            keys::focus_pane(app, pane, commands);
            app.pointer.held = Some(HeldPart::TopOf(pane));
        }
        ScreenPart::Body(Pane::Detail, row) => press_page(app, row, is_double, commands),
        ScreenPart::Body(pane, row) => {
            keys::focus_pane(app, pane, commands);
            if let Some(at) = row_at(app, pane, usize::from(row)) {
                keys::go_to_row(app, at);
                if is_double {
                    keys::open_selected(app, commands);
                }
            }
        }
        ScreenPart::Notice | ScreenPart::Footer | ScreenPart::Elsewhere => {}
    }
}

/// Returns the row of a list at a line of its pane; `None` for the header of a group, and below the list.
fn row_at(app: &App, pane: Pane, line: usize) -> Option<usize> {
    if app.display.plain {
        return plain_row_at(app, pane, line);
    }
    match pane {
        Pane::Runs => match app.run_list.line(app.run_list.cursor.offset + line)? {
            RunListLine::Run(at) | RunListLine::Fold(at) => Some(at),
            RunListLine::Branch(_) => None,
        },
        Pane::Files => Some(app.file_list.cursor.offset + line).filter(|at| *at < app.file_list.row_count()),
        Pane::Findings | Pane::Detail => match app.finding_list.line(app.finding_list.cursor.offset + line)? {
            FindingListLine::Finding { at, .. } => Some(at),
            FindingListLine::Header(_) => None,
        },
    }
}

/// Focuses the page; a click on the title of a fold goes there, a double click folds or unfolds it.
fn press_page(app: &mut App, row: u16, is_double: bool, commands: &mut Vec<AppCommand>) {
    keys::focus_pane(app, Pane::Detail, commands);
    let height = app.layout().body(Pane::Detail).map_or(0, |body| body.height);
    let Some(row) = row.checked_sub(app.status_rows(height)) else { return };
    if diff::is_shown(app) {
        app.detail.diff.press_row(app.detail.diff.top() + usize::from(row));
        if is_double {
            diff::run_action(app, Action::Open, None, commands);
        } else {
            app.pointer.held = Some(HeldPart::DiffLine);
        }
        return;
    }
    let line = app.detail.scroll + usize::from(row);
    if folds::select_fold_at(app, line) && is_double {
        folds::toggle_fold(app);
    }
}

fn show_tab(app: &mut App, tab: Tab) {
    if app.detail.tab != tab {
        app.detail.tab = tab;
        app.detail.scroll = 0;
    }
}

/// Moves the edge that the button holds to the pointer, or marks the lines up to it. A title moves where the lists stand one
/// below the other.
fn drag(app: &mut App, (column, row): (u16, u16)) {
    let Some(held) = app.pointer.held else { return };
    let layout = app.layout();
    match (held, layout.stacked_rows()) {
        (HeldPart::Divider, _) => app.panes.dragged.divider = share_of(column, app.display.columns),
        (HeldPart::TopOf(Pane::Findings), Some(rows)) => {
            let (Some(runs), Some(findings)) = (layout.pane(Pane::Runs), layout.pane(Pane::Findings)) else { return };
            let gap = findings.title.y.saturating_sub(runs.body.bottom());
            app.panes.dragged.runs = share_of(row.saturating_sub(runs.title.y + gap), rows);
        }
        (HeldPart::TopOf(Pane::Files), Some(rows)) => {
            let Some(files) = layout.pane(Pane::Files) else { return };
            app.panes.dragged.files = share_of(files.body.bottom().saturating_sub(row), rows);
        }
        (HeldPart::DiffLine, _) => return drag_over_lines(app, row),
        (HeldPart::TopOf(_), _) => return,
    }
    super::scroll_to_selection(app);
}

/// Marks the lines of the diff from the pressed one to the pointer; above and below the diff, it scrolls.
fn drag_over_lines(app: &mut App, row: u16) {
    let Some(body) = app.layout().body(Pane::Detail).filter(|_| app.views.is_empty() && diff::is_shown(app)) else {
        return;
    };
    let first = body.y + app.status_rows(body.height);
    let shown = &mut app.detail.diff;
    let to = match row.checked_sub(first) {
        None => shown.top().saturating_sub(1),
        Some(_) if row >= body.bottom() => shown.top() + shown.height(),
        Some(below) => shown.top() + usize::from(below),
    };
    shown.drag_to(to);
}

/// Scrolls the pane under the pointer, or the view in front, which gets the key for a step up or down. Behind a prompt only the
/// page scrolls: a list would take its selection along, away from the finding that the prompt may be about.
fn scroll(app: &mut App, (column, row): (u16, u16), by: isize, commands: &mut Vec<AppCommand>) {
    if let Some((place, context)) = app.views.find_wheel_target() {
        let action = if by < 0 { Action::Up } else { Action::Down };
        // The help takes the keys of the panes.
        let in_context = if context == KeyContext::Help { KeyContext::Global } else { context };
        let keys = app.keymap.key_of(in_context, action).map(|sequence| sequence.keys());
        let Some(key) = keys.and_then(|keys| keys.last()).copied() else { return };
        let steps = if context == KeyContext::Menu { 1 } else { by.unsigned_abs() };
        for _ in 0..steps {
            views::handle_key_at(app, place, KeyPress { key, action: Some(action) }, commands);
        }
        return;
    }
    let (ScreenPart::Body(pane, _) | ScreenPart::Title(pane)) = app.layout().part_at(column, row) else { return };
    let height = app.pane_height(pane);
    match pane {
        Pane::Runs | Pane::Findings | Pane::Files if !app.views.is_empty() => {}
        Pane::Runs => app.run_list.scroll(by, height),
        Pane::Findings => app.finding_list.scroll(by, height),
        Pane::Files => app.file_list.cursor.scroll(by, app.file_list.row_count(), height),
        Pane::Detail if diff::is_shown(app) => app.detail.diff.scroll_by(by),
        Pane::Detail => {
            app.detail.scroll = app.detail.scroll.saturating_add_signed(by);
            super::clamp_scroll(app);
        }
    }
}
