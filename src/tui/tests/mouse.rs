//! Tests the mouse: clicks, double clicks, drags and the wheel.

use super::diff::of_run;
use super::support::*;
use crate::tui::app::{App, Pane};
use crate::tui::input::{MouseEvent, MouseKind, TerminalInput};
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};
use crate::tui::update;
use crate::tui::views::comment::CommentView;
use crate::tui::views::help::HelpView;
use crate::tui::views::menu::MenuView;
use crate::tui::views::prompt::PromptView;

fn point(app: &mut App, kind: MouseKind, column: u16, row: u16) -> Vec<AppCommand> {
    send(app, AppMessage::Input(TerminalInput::Mouse(MouseEvent { kind, column, row })))
}

pub(super) fn click(app: &mut App, column: u16, row: u16) -> Vec<AppCommand> {
    let mut commands = point(app, MouseKind::Press, column, row);
    commands.extend(point(app, MouseKind::Release, column, row));
    commands
}

/// Returns the cell at which a text begins on the screen.
pub(super) fn find(app: &App, text: &str) -> (u16, u16) {
    let screen = screen(app);
    let place = screen.lines().enumerate().find_map(|(row, line)| {
        let byte = line.find(text)?;
        Some((unicode_width::UnicodeWidthStr::width(&line[..byte]) as u16, row as u16))
    });
    place.unwrap_or_else(|| panic!("no {text:?} on the screen:\n{screen}"))
}

fn body(app: &App, pane: Pane) -> (u16, u16) {
    let body = app.layout().body(pane).expect("the pane is in sight");
    (body.x, body.y)
}

#[test]
fn a_click_selects_a_row_and_focuses_its_pane() {
    let mut app = showing(160, 48, view());
    let (x, y) = body(&app, Pane::Findings);
    // Two groups with their headers stand above the third finding.
    click(&mut app, x + 3, y + 5);
    assert_eq!((app.panes.focus, app.finding_list.cursor.selected), (Pane::Findings, 2));
    click(&mut app, x + 3, y + 4);
    assert_eq!(app.finding_list.cursor.selected, 2, "a header is no row");
    let (x, y) = body(&app, Pane::Runs);
    // The first run has a line of folded runs.
    click(&mut app, x, y + 2);
    assert_eq!((app.panes.focus, app.run_list.cursor.selected), (Pane::Runs, 1));
    assert!(matches!(app.detail.subject, DetailSubject::Run(_)), "the page follows");
    let (x, y) = body(&app, Pane::Findings);
    click(&mut app, x, y + 12);
    assert_eq!((app.panes.focus, app.finding_list.cursor.selected), (Pane::Findings, 2), "there is no such row");
}

#[test]
fn a_double_click_opens_and_two_slow_clicks_do_not() {
    let mut app = showing(80, 24, view());
    let (x, y) = body(&app, Pane::Findings);
    for (pause, opens) in [(100, true), (2_000, false)] {
        app.panes.focus = Pane::Findings;
        let mut now = app.now + 10_000;
        for _ in 0..2 {
            now += pause;
            let event = MouseEvent { kind: MouseKind::Press, column: x + 1, row: y + 1 };
            update(&mut app, now, AppMessage::Input(TerminalInput::Mouse(event)));
        }
        assert_eq!(app.panes.focus == Pane::Detail, opens, "after {pause} ms");
    }
}

#[test]
fn clicks_on_tabs_titles_and_keys_of_the_footer_work() {
    let mut app = showing(160, 48, view());
    let (x, y) = find(&app, "Diff");
    click(&mut app, x + 1, y);
    assert_eq!((app.panes.focus, app.detail.tab), (Pane::Detail, Tab::Diff));
    let (x, y) = find(&app, "Files");
    click(&mut app, x, y);
    assert_eq!(app.panes.focus, Pane::Files);
    let (x, y) = find(&app, "? help");
    click(&mut app, x + 3, y);
    assert!(app.views.front_as::<HelpView>().is_some());
    let commands = {
        press(&mut app, "Esc");
        let (x, y) = find(&app, "q quit");
        click(&mut app, x, y)
    };
    assert!(commands.iter().any(|command| matches!(command, AppCommand::Quit(None))));
}

#[test]
fn the_wheel_scrolls_the_pane_under_the_pointer_and_leaves_the_focus() {
    let mut app = showing(160, 48, many(500));
    press(&mut app, "1");
    let (x, y) = body(&app, Pane::Findings);
    point(&mut app, MouseKind::WheelDown, x, y);
    point(&mut app, MouseKind::WheelDown, x, y);
    assert_eq!((app.panes.focus, app.finding_list.cursor.offset), (Pane::Runs, 6));
    // The header of the group is the first of the six lines above.
    assert_eq!(app.finding_list.cursor.selected, 5, "the selection stays on the screen");
    point(&mut app, MouseKind::WheelUp, x, y);
    assert_eq!((app.finding_list.cursor.offset, app.finding_list.cursor.selected), (3, 5));
    send(&mut app, AppMessage::Resized { columns: 160, rows: 20 });
    press(&mut app, "?");
    let before = screen(&app);
    point(&mut app, MouseKind::WheelDown, 50, 9);
    assert_ne!(screen(&app), before, "the help scrolls");
}

#[test]
fn the_wheel_in_a_prompt_scrolls_the_page_behind_and_never_edits_or_chooses() {
    let typed = |app: &App| {
        let prompt = app.views.front_as::<PromptView>().expect("the prompt");
        (prompt.line.clone(), prompt.choice, prompt.kind.clone())
    };
    for keys in ["f", "/", "x", "i", "Z", "P", "W"] {
        let mut app = showing(160, 14, view());
        let subject = app.detail.subject.clone();
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(1, 3) });
        press(&mut app, keys);
        let before = typed(&app);
        let (x, y) = body(&app, Pane::Detail);
        for (kind, is_scrolled) in [(MouseKind::WheelDown, true), (MouseKind::WheelUp, false)] {
            point(&mut app, kind, x + 1, y + 1);
            assert_eq!(typed(&app), before, "{keys}: {kind:?}");
            assert_eq!(app.detail.scroll > 0, is_scrolled, "{keys}: {kind:?}");
        }
        let selected = app.finding_list.cursor;
        let (x, y) = body(&app, Pane::Findings);
        point(&mut app, MouseKind::WheelDown, x + 1, y + 1);
        assert_eq!((typed(&app), app.finding_list.cursor), (before, selected), "{keys}: over a list");
    }
    // A comment keeps its cursor.
    let mut app = of_run(160, 48);
    press(&mut app, "] h c");
    type_text(&mut app, "the title");
    press(&mut app, "Ctrl-j");
    type_text(&mut app, "the text");
    let written = |app: &App| app.views.front_as::<CommentView>().cloned();
    let before = written(&app);
    assert!(before.is_some(), "{}", screen(&app));
    point(&mut app, MouseKind::WheelUp, 120, 40);
    assert_eq!(written(&app), before);
    // In front of a view in place of the panes, the wheel scrolls that.
    let mut app = showing(160, 48, view());
    press(&mut app, "t 5");
    let before = typed(&app);
    point(&mut app, MouseKind::WheelDown, 40, 20);
    assert_eq!((typed(&app), app.views.len()), (before, 2));
}

#[test]
fn dragging_the_divider_resizes_the_panes_until_the_end_of_the_session() {
    let mut app = showing(160, 48, view());
    let divider = |app: &App| app.layout().divider.expect("a divider").x;
    let row = 20;
    for to in [50, 60, 99, 120] {
        let from = divider(&app);
        point(&mut app, MouseKind::Press, from, row);
        point(&mut app, MouseKind::Drag, to, row + 3);
        point(&mut app, MouseKind::Release, to, row + 3);
        assert_eq!(divider(&app), to);
        let width = app.layout().body(Pane::Detail).expect("the page").width;
        assert_eq!(app.detail.width, width, "the page is laid out for its new width");
    }
    point(&mut app, MouseKind::Drag, 40, row);
    assert_eq!(divider(&app), 120, "the button is not held");
    send(&mut app, AppMessage::Resized { columns: 80, rows: 24 });
    send(&mut app, AppMessage::Resized { columns: 160, rows: 48 });
    assert_eq!(divider(&app), 120, "it is kept");
    let from = divider(&app);
    point(&mut app, MouseKind::Press, from, row);
    point(&mut app, MouseKind::Drag, 0, row);
    assert_eq!(divider(&app), 30, "the lists stay");
    point(&mut app, MouseKind::Drag, 159, row);
    assert_eq!(divider(&app), 130, "the page stays");
}

#[test]
fn dragging_over_lines_of_the_diff_marks_them_as_v_does() {
    let marked = |app: &App| app.detail.diff.marked_lines().map(|(_, lines)| (lines.start, lines.end));
    let mut app = of_run(160, 24);
    let (x, from) = find(&app, "let mut sum");
    let (_, to) = find(&app, "Ok(sum)");
    for (start, end) in [(from, to), (to, from)] {
        point(&mut app, MouseKind::Press, x, start);
        point(&mut app, MouseKind::Drag, x + 3, start);
        assert_eq!(marked(&app), None, "within the line");
        for row in [from + 1, end] {
            point(&mut app, MouseKind::Drag, x + 3, row);
        }
        point(&mut app, MouseKind::Release, x + 3, end);
        assert_eq!(marked(&app), Some((2, 6)), "{}", screen(&app));
        assert!(screen(&app).contains("c comment"), "{}", screen(&app));
    }
    point(&mut app, MouseKind::Drag, x, from + 1);
    assert_eq!(marked(&app), Some((2, 6)), "the button is not held");
    press(&mut app, "c");
    assert!(screen(&app).contains("Comment on total.rs:2-6"), "{}", screen(&app));
    press(&mut app, "Esc");
    assert_eq!(marked(&app), Some((2, 6)));
    // The next click ends it; a range of v goes on to the click.
    click(&mut app, x, from);
    assert_eq!((marked(&app), app.detail.diff.has_range()), (None, false));
    press(&mut app, "v");
    click(&mut app, x, to);
    assert_eq!(marked(&app), Some((2, 6)));
    press(&mut app, "Esc");
    // Below the pane the diff scrolls, and the range goes on.
    point(&mut app, MouseKind::Press, x, from);
    for _ in 0..3 {
        point(&mut app, MouseKind::Drag, x, 23);
    }
    assert!(app.detail.diff.top() > 0 && app.detail.diff.has_range(), "{}", screen(&app));
    press(&mut app, "Esc g");
    // A header begins no range, and nothing begins while a window is open.
    let (x, header) = find(&app, "src/invoice/total.rs  1111");
    point(&mut app, MouseKind::Press, x, header);
    point(&mut app, MouseKind::Drag, x, header + 3);
    assert_eq!(marked(&app), None, "{}", screen(&app));
    point(&mut app, MouseKind::Press, x, from);
    press(&mut app, "c");
    point(&mut app, MouseKind::Drag, x, to);
    assert!(!app.detail.diff.has_range());
}

#[test]
fn a_click_at_the_edge_of_the_diff_does_not_scroll_its_line_away() {
    let mut app = of_run(160, 24);
    let body = app.layout().body(Pane::Detail).expect("the page");
    let before = app.detail.diff.top();
    click(&mut app, body.x + 9, body.bottom() - 1);
    assert_eq!(app.detail.diff.cursor(), before + usize::from(body.height) - 1);
    assert_eq!(app.detail.diff.top(), before, "a second click is at the same line: {}", screen(&app));
}

#[test]
fn dragging_the_title_of_a_list_resizes_it_and_the_list_above() {
    for rows in [24, 48] {
        let mut app = showing(160, rows, view());
        let title = |app: &App, pane| app.layout().pane(pane).expect("in sight").title.y;
        let heights = |app: &App| [Pane::Runs, Pane::Findings, Pane::Files].map(|pane| app.pane_height(pane));
        let all: usize = heights(&app).iter().sum();
        for (pane, by) in [(Pane::Findings, 3_i16), (Pane::Files, -2), (Pane::Findings, -4), (Pane::Files, 1)] {
            let (from, others) = (title(&app, pane), heights(&app));
            let to = from.saturating_add_signed(by);
            point(&mut app, MouseKind::Press, 9, from);
            point(&mut app, MouseKind::Drag, 9, to);
            point(&mut app, MouseKind::Release, 9, to);
            assert_eq!((title(&app, pane), app.panes.focus), (to, pane), "160x{rows}");
            let untouched = if pane == Pane::Findings { 2 } else { 0 };
            assert_eq!(heights(&app)[untouched], others[untouched], "160x{rows}: {pane:?}");
            assert_eq!(heights(&app).iter().sum::<usize>(), all, "160x{rows}");
        }
        for (pane, to) in [(Pane::Findings, 0), (Pane::Findings, rows), (Pane::Files, 0), (Pane::Files, rows)] {
            let from = title(&app, pane);
            point(&mut app, MouseKind::Press, 9, from);
            point(&mut app, MouseKind::Drag, 9, to);
            point(&mut app, MouseKind::Release, 9, to);
            assert!(heights(&app).iter().all(|height| *height >= 3), "160x{rows}: {:?}", heights(&app));
            assert_eq!(heights(&app).iter().sum::<usize>(), all, "160x{rows}");
        }
    }
    // One list stands beside the page, so there is no edge to drag.
    let mut app = showing(100, 30, view());
    let before = screen(&app);
    let row = app.layout().pane(Pane::Findings).expect("in sight").title.y;
    point(&mut app, MouseKind::Press, 9, row);
    point(&mut app, MouseKind::Drag, 9, row + 5);
    assert_eq!(screen(&app), before);
}

#[test]
fn a_menu_is_chosen_from_with_the_mouse() {
    for (columns, rows) in [(160, 48), (30, 9)] {
        let mut app = showing(columns, rows, view());
        press(&mut app, "y");
        let labels: Vec<String> = {
            let menu = app.views.front_as::<MenuView>().expect("the menu");
            menu.items.iter().map(|item| item.label.clone()).collect()
        };
        let (x, y) = find(&app, &labels[1][..8]);
        click(&mut app, x, y);
        assert_eq!(app.views.front_as::<MenuView>().expect("the menu").selected, 1, "{columns}x{rows}");
        let commands = click(&mut app, x, y);
        assert!(app.views.is_empty(), "{columns}x{rows}: a double click chooses");
        assert!(matches!(commands[..], [AppCommand::Copy(_)]), "{columns}x{rows}: {commands:?}");
    }
}

#[test]
fn the_mouse_is_switched_off_and_on() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "F2");
    assert!(matches!(commands[..], [AppCommand::SetMouse(false)]), "{commands:?}");
    assert!(screen(&app).contains("the mouse is off"));
    let (x, y) = body(&app, Pane::Findings);
    click(&mut app, x, y + 3);
    assert_eq!(app.finding_list.cursor.selected, 0, "a late report does nothing");
    assert!(matches!(press(&mut app, "F2")[..], [AppCommand::SetMouse(true)]));
    click(&mut app, x, y + 3);
    assert_eq!(app.finding_list.cursor.selected, 1);
}

#[test]
fn a_click_on_a_reason_dismisses_in_triage_mode() {
    let mut app = showing(160, 48, view());
    press(&mut app, "t");
    let (x, y) = find(&app, "2 false alarm");
    let commands = click(&mut app, x + 3, y);
    let reasons = commands.iter().find_map(|command| match command {
        AppCommand::Triage(crate::tui::message::TriageOrder::Set { verdict, .. }) => Some(verdict.reason.clone()),
        _ => None,
    });
    assert_eq!(reasons.as_deref(), Some("false alarm"));
}

/// Returns the reasons of the requested dismissals.
fn reasons(commands: &[AppCommand]) -> Vec<&str> {
    fn reason(command: &AppCommand) -> Option<&str> {
        match command {
            AppCommand::Triage(crate::tui::message::TriageOrder::Set { verdict, .. }) => Some(verdict.reason.as_str()),
            _ => None,
        }
    }
    commands.iter().filter_map(reason).collect()
}

#[test]
fn a_click_chooses_a_reason_and_a_double_click_dismisses() {
    for (columns, rows) in [(160, 48), (80, 24), (36, 12)] {
        let mut app = showing(columns, rows, view());
        press(&mut app, "x");
        let (x, y) = find(&app, "intended");
        let text = |app: &App| app.views.front_as::<PromptView>().map(|prompt| prompt.line.text().to_owned());
        assert_eq!(reasons(&click(&mut app, x, y)), Vec::<&str>::new(), "{columns}x{rows}");
        assert_eq!(text(&app).as_deref(), Some("intended"), "{columns}x{rows}");
        assert_eq!(reasons(&click(&mut app, x, y)), ["intended"], "{columns}x{rows}");
        assert!(app.views.is_empty());
        // Another reason is typed.
        press(&mut app, "x");
        let (x, y) = find(&app, "other…");
        click(&mut app, x, y);
        click(&mut app, x, y);
        press(&mut app, "2");
        assert_eq!(text(&app).as_deref(), Some("2"), "{columns}x{rows}: a digit is text");
        // Nothing stands above the list.
        let (x, y) = find(&app, "Why dismiss");
        assert_eq!(reasons(&click(&mut app, x, y)), Vec::<&str>::new());
        assert_eq!(text(&app).as_deref(), Some("2"), "{columns}x{rows}");
    }
}

#[test]
fn a_double_click_runs_a_row_of_the_palette_and_the_wheel_moves_in_it() {
    let mut app = showing(160, 48, view());
    press(&mut app, ":");
    let (x, y) = find(&app, "review: choose scope");
    point(&mut app, MouseKind::WheelDown, x, y);
    assert_eq!(app.views.len(), 1);
    let (x, y) = find(&app, "review: choose scope");
    click(&mut app, x, y);
    assert_eq!(app.views.len(), 1, "one click selects");
    click(&mut app, x, y);
    assert!(app.views.front_as::<crate::tui::views::palette::PaletteView>().is_none());
    assert!(screen(&app).contains("reviewer"), "{}", screen(&app));
}

#[test]
fn the_cockpit_is_suspended_from_any_window() {
    for keys in ["", "x", "f", "r", "?", "o", "S", "t", ":"] {
        let mut app = showing(160, 48, view());
        press(&mut app, keys);
        let (views, commands) = (app.views.len(), press(&mut app, "Ctrl-z"));
        assert!(matches!(commands.as_slice(), [AppCommand::Suspend]), "{keys}: {commands:?}");
        assert_eq!(app.views.len(), views, "{keys}");
    }
}

#[test]
fn a_click_on_the_hint_of_a_sequence_presses_its_key() {
    let mut app = showing(160, 48, view());
    press(&mut app, "]");
    let (x, y) = find(&app, "t next tab");
    // Between the pressed keys and the hint, a click ends the sequence and presses nothing.
    click(&mut app, 3, y);
    assert_eq!((app.pending_keys.as_ref(), app.detail.tab), (None, Tab::Page));
    press(&mut app, "]");
    click(&mut app, x + 3, y);
    assert_eq!((app.pending_keys.as_ref(), app.detail.tab), (None, Tab::Diff));
    // A hint of a line above the footer.
    let mut app = showing(40, 12, view());
    press(&mut app, "]");
    let (x, y) = find(&app, "t next tab");
    click(&mut app, x, y);
    assert_eq!((app.pending_keys.as_ref(), app.detail.tab), (None, Tab::Diff));
}
