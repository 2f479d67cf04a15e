//! Tests every screen at sizes from 20x5 to 500x150, in Unicode and in ASCII.

use insta::assert_snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::support::*;
use crate::domain::Kind;
use crate::store::{FindingRow, StoreViewBuilder};
use crate::tui::app::{App, Pane};
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::message::{AppMessage, DetailSubject, Tab};
use crate::tui::views::ViewReply;
use crate::tui::views::confirm::{ConfirmAction, ConfirmView};
use crate::tui::{draw, glyphs};

/// Keys that open every screen and window from the lists.
const SCREENS: [&str; 22] = [
    "", "1", "3", "l", "z", "l z", "?", "r", "x", "f", "/", "y", "C", "W", "L", "S", "K", "V", "l l", "v j", "Space",
    "t",
];

/// Wide, combining and right-to-left text in names, longer than any column.
const NAMES: [(&str, &str); 4] = [
    (
        "src/漢字かな交じり文の長い名前のファイル/とても長い名前.rs",
        "wide: 漢字かな交じり文が途中で切れてはならない、決して",
    ),
    (
        "src/\u{5e7}\u{5d5}\u{5d1}\u{5e5}/\u{645}\u{644}\u{641}.rs",
        "\u{5e2}\u{5d1}\u{5e8}\u{5d9}\u{5ea} and \u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}",
    ),
    ("e\u{301}\u{302}\u{303}/👩‍👩‍👧‍👦.rs", "combining e\u{301} and a family 👩‍👩‍👧‍👦 and a heart ❤\u{fe0f} of one width"),
    ("a\u{200d}b/ก็.rs", "zero\u{200b}width and ญี่ปุ่น"),
];

fn with_names(columns: u16, rows: u16) -> App {
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for n in 0..40 {
        let (path, title) = NAMES[n as usize % NAMES.len()];
        let id = finding_id(n + 1);
        builder.finding(FindingRow { path, title, kind: Kind::Security, line_start: n, ..finding_row(&id, &run) });
    }
    let mut app = showing(columns, rows, complete(builder));
    let subject = DetailSubject::Finding(finding_id(1));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(1, 1) });
    app
}

fn drawn(app: &App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.display.columns, app.display.rows));
    draw(app, &mut buffer);
    buffer
}

fn row_text(buffer: &Buffer, y: u16) -> String {
    (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect()
}

/// Checks that the keys of help and of the way out are in the footer, unless it lists the keys that may follow a pressed
/// one.
pub fn check_footer(app: &App, buffer: &Buffer, hint: &str) {
    let footer = row_text(buffer, buffer.area.height - 1);
    if app.pending_keys.is_some() {
        return;
    }
    let context = app.key_context();
    let has = |action| {
        let key = app.keymap.key_of(context, action).map(ToString::to_string);
        key.is_some_and(|key| footer.split_whitespace().any(|word| word == key))
    };
    let has_help = has(Action::Help) || has(Action::AskOrHelp);
    let (help, out) = match app.views.front() {
        None => (has_help, has(Action::Quit)),
        // Only windows may lack it: their keys are few, and they are gone soon.
        Some(_) => (context >= KeyContext::Menu || has_help, has(Action::Abort) || has(Action::Back)),
    };
    assert!(help && out, "{hint}: no key for help or no way out in {footer:?}\n{}", super::support::screen(app));
}

#[test]
fn windows_over_wide_letters_keep_their_frames() {
    for columns in 60..124 {
        for keys in ["?", "y", "x", "r"] {
            let mut app = with_names(columns, 24);
            press(&mut app, keys);
            let buffer = drawn(&app);
            // A terminal draws a wide letter over the column behind it.
            for (x, y) in (0..24).flat_map(|y| (0..columns - 1).map(move |x| (x, y))) {
                let is_kept = buffer[(x, y)].symbol().width() < 2 || buffer[(x + 1, y)].symbol() == " ";
                assert!(is_kept, "{keys} at {columns}: {:?}", row_text(&buffer, y));
            }
        }
    }
}

/// Draws a screen and checks its footer.
fn check(app: &App, what: &str) {
    let (columns, rows) = (app.display.columns, app.display.rows);
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(app, &mut buffer);
    check_footer(app, &buffer, &format!("{what} at {columns}x{rows}"));
}

/// Checks that the column beside every pane is blank, so that text never touches a scroll thumb or a rule.
fn check_gaps(app: &App, buffer: &Buffer, hint: &str) {
    if !app.views.is_empty() {
        return;
    }
    let layout = app.layout();
    for area in Pane::ALL.into_iter().filter_map(|pane| layout.pane(pane)) {
        for y in area.body.top()..area.body.bottom() {
            let gap = buffer[(area.body.right(), y)].symbol();
            assert_eq!(gap, " ", "{hint}: {:?} touches what is beside it", row_text(buffer, y));
        }
    }
    if let Some(divider) = layout.divider {
        for y in divider.top()..divider.bottom() {
            let symbol = buffer[(divider.x, y)].symbol();
            let (rule, thumb) = (app.display.glyphs.vertical, app.display.glyphs.thumb);
            assert!(symbol == rule || symbol == thumb, "{hint}: {symbol:?} stands on the divider");
            assert_eq!(buffer[(divider.x + 1, y)].symbol(), " ", "{hint}: the rule is touched");
        }
    }
}

#[test]
fn help_and_reasons_use_all_rows_of_a_small_screen() {
    let rows = |app: &App| -> Vec<String> { screen(app).lines().map(|row| row.trim().to_owned()).collect() };
    let open = |keys: &str| {
        let mut app = showing(20, 5, view());
        press(&mut app, keys);
        app
    };
    for keys in ["?", "? j j"] {
        let shown = rows(&open(keys));
        assert!(shown[1..4].iter().all(|row| !row.is_empty()), "{keys}: {shown:?}");
    }
    // The typed text stands below the title, and the reasons scroll to the chosen one.
    assert_eq!(rows(&open("x"))[2..4], ["1 not worth it", "2 false alarm"]);
    let shown = rows(&open("x Down Down Down"));
    assert!(shown[2].ends_with("2 false alarm") && shown[3].ends_with("3 intended"), "{shown:?}");
    let mut app = showing(80, 24, view());
    press(&mut app, "x");
    let shown = screen(&app);
    let input = shown.lines().position(|line| line.contains("Why dismiss")).unwrap_or_default();
    let first = shown.lines().position(|line| line.contains("1 not worth it")).unwrap_or_default();
    assert_eq!(first, input + 4, "{shown}");
}

#[test]
fn the_footer_of_the_runs_names_no_key_that_does_nothing() {
    let footer = |app: &App| screen(app).lines().last().unwrap_or_default().to_owned();
    let empty = showing(100, 30, complete(StoreViewBuilder::default()));
    assert_eq!(footer(&empty).trim(), "r review   ? help   q quit");
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    assert!(footer(&app).contains("Space unfold"), "{}", footer(&app));
    press(&mut app, "Space");
    assert!(footer(&app).contains("Space fold"), "{}", footer(&app));
    press(&mut app, "Space j");
    assert!(!footer(&app).contains("Space"), "nothing is folded below it: {}", footer(&app));
}

#[test]
fn every_screen_fits_every_size() {
    for (columns, rows) in [
        (20, 5),
        (20, 24),
        (33, 7),
        (39, 9),
        (40, 10),
        (60, 16),
        (79, 24),
        (80, 5),
        (80, 24),
        (100, 30),
        (119, 29),
        (120, 16),
        (160, 48),
        (200, 60),
        (500, 5),
        (500, 150),
    ] {
        for ascii in [false, true] {
            for keys in SCREENS {
                let mut app = with_names(columns, rows);
                if ascii {
                    app.display.glyphs = glyphs::ASCII;
                }
                press(&mut app, keys);
                let (buffer, hint) = (drawn(&app), format!("{columns}x{rows} {keys:?}"));
                check_footer(&app, &buffer, &hint);
                check_gaps(&app, &buffer, &hint);
                let other = buffer.content.iter().find(|cell| ascii && !cell.symbol().is_ascii());
                assert!(other.is_none(), "{hint}: {other:?} with --ascii");
                assert!(!screen(&app).contains("too small"), "{hint}");
            }
        }
    }
}

#[test]
fn every_size_between_shows_the_selected_finding() {
    let mut app = with_names(20, 5);
    press(&mut app, "j j j");
    for step in 0..=240 {
        // From 20x5 to 500x150, and through flat and narrow ones.
        for (columns, rows) in
            [(20 + step * 2, 5 + step * 145 / 240), (20 + step * 2, 5 + step % 30), (20 + step % 90, 5 + step)]
        {
            send(&mut app, AppMessage::Resized { columns, rows });
            let (buffer, hint) = (drawn(&app), format!("{columns}x{rows}"));
            check_footer(&app, &buffer, &hint);
            check_gaps(&app, &buffer, &hint);
            let (cursor, body) = (app.finding_list.cursor, app.layout().body(Pane::Findings).expect("the list"));
            let row = cursor.selected - cursor.offset;
            assert!(row < usize::from(body.height), "{hint}: the selected row is out of sight");
        }
    }
    assert_eq!(app.finding_list.cursor.selected, 3);
}

#[test]
fn the_footer_stays_on_small_screens_under_questions_and_prompts() {
    for (columns, rows) in [(20, 5), (40, 6), (24, 7)] {
        let mut app = showing(columns, rows, view());
        let text = "a reviewer has not answered yet. Stop the question? The provider may charge for it.".to_owned();
        let action = ConfirmAction::StopQuestion(finding_id(2).parse().expect("an id"));
        app.views.open(ConfirmView { action, text });
        check(&app, "a question");
        let mut app = showing(columns, rows, view());
        press(&mut app, "t");
        let card = ViewReply::TriageCard { finding: finding_id(1), card: Ok(card(1)) };
        send(&mut app, AppMessage::View(card));
        press(&mut app, "Z");
        check(&app, "a prompt over triage mode");
    }
}

#[test]
fn small_screens() {
    for (name, keys) in [
        ("list", "j"),
        ("finding", "j l"),
        ("menu", "y j"),
        ("form", "r"),
        ("confirm", "C"),
        ("help", "?"),
        ("filter", "f"),
    ] {
        for (columns, rows) in [(20, 5), (36, 8)] {
            let mut app = showing(columns, rows, view());
            let subject = DetailSubject::Finding(finding_id(2));
            press(&mut app, "j");
            send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
            press(&mut app, "k");
            press(&mut app, keys);
            assert_snapshot!(format!("small-{name}-{columns}x{rows}"), screen(&app));
        }
    }
}
