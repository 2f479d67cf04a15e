//! Tests whole screens at three sizes.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use insta::assert_snapshot;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use crate::domain::{
    Confidence, Dispute, Finding, FindingStep, Kind, LedgerForm, Opinion, Priority, RankRule, RunStatus, Voice,
};
use crate::runner::{LedgerPreview, PreviewLine, SessionPreview};
use crate::store::{FindingRow, RunRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppMessage, DetailSubject, FileListRow, FileListState, Tab};
use crate::tui::page_data::PageData;
use crate::tui::{Screen, draw, glyphs};

/// Returns the files of the newest run, clean and left-out ones among them.
fn files_of_run() -> Vec<FileListRow> {
    vec![
        FileListRow {
            path: "src/config.rs".into(),
            counts: [1, 0, 0, 0],
            state: FileListState::Covered,
            is_viewed: false,
            viewed_changes: None,
        },
        FileListRow {
            path: "src/invoice/total.rs".into(),
            counts: [0, 1, 1, 0],
            state: FileListState::Covered,
            is_viewed: false,
            viewed_changes: None,
        },
        FileListRow::new("src/mail.rs", FileListState::Covered),
        FileListRow {
            path: "Cargo.lock".into(),
            counts: [0; 4],
            state: FileListState::LeftOut("lock file"),
            is_viewed: false,
            viewed_changes: None,
        },
    ]
}

fn with_page(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "j");
    let subject = DetailSubject::Finding(finding_id(2));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
    app
}

#[test]
fn first_start() {
    assert_looks_at_all_sizes("first_start", |columns, rows| {
        showing(columns, rows, complete(StoreViewBuilder::default()))
    });
}

#[test]
fn first_start_without_a_store() {
    assert_looks_at_all_sizes("first_start_failed", |columns, rows| {
        let mut app = showing(columns, rows, complete(StoreViewBuilder::default()));
        let error = "cannot write /home/ada/.local/state/revdeck/runs: No space left on device".to_owned();
        send(&mut app, AppMessage::Opened { outcome: Err(error), terms: None });
        app
    });
}

#[test]
fn findings() {
    assert_looks_at_all_sizes("findings", with_page);
}

#[test]
fn a_finding_of_a_panel_with_the_words_of_its_reviewers() {
    assert_looks_at_all_sizes("panel_finding", |columns, rows| {
        let mut app = with_page(columns, rows);
        let mut loaded = page(2, 3);
        let PageData::Finding(shown) = loaded.as_mut() else { panic!("a page of a finding") };
        add_voices(&mut shown.finding);
        send(&mut app, AppMessage::Loaded { subject: DetailSubject::Finding(finding_id(2)), tab: Tab::Page, loaded });
        app
    });
}

/// Makes a finding that of a panel: three reviewers, of whom two report it and a third calls it fixed.
pub fn add_voices(finding: &mut Finding) {
    let voice = |reviewer: &str, run: u32, priority: Priority, title: &str, explanation: &str| Voice {
        reviewer: reviewer.into(),
        run_id: run_id(run).parse().expect("an id"),
        finding_id: finding_id(run).parse().expect("an id"),
        priority,
        confidence: Confidence::Medium,
        kind: Kind::ErrorHandling,
        title: title.into(),
        explanation: explanation.into(),
        line_start: 32,
        line_end: 32,
        held_back: None,
    };
    let own = voice("claude", 5, Priority::P2, &finding.title, &finding.explanation);
    let words = "unwrap_or(0.0) turns a malformed amount into zero, so the total is silently too low.";
    finding.voices = vec![own, voice("gpt", 6, Priority::P0, "Malformed amounts are counted as 0", words)];
    finding.steps = vec![
        FindingStep::Agreed { voices: 2, reviewers: 3, from: Confidence::Medium, to: Confidence::High },
        FindingStep::Ranked {
            priorities: vec![Priority::P0, Priority::P2],
            to: Priority::P0,
            rule: RankRule::MostUrgent,
        },
    ];
    finding.disputed = vec![
        Dispute::Fixed { fixed: vec!["gemini".into()], standing: vec!["claude".into(), "gpt".into()] },
        Dispute::Priority { most: Priority::P0, least: Priority::P2 },
    ];
}

#[test]
fn the_page_marks_a_dispute_until_a_second_opinion_has_settled_it() {
    for (opinion, is_marked) in [(None, true), (Some(Opinion::Unsure), true), (Some(Opinion::Real), false)] {
        let mut app = with_page(160, 48);
        let mut loaded = page(2, 3);
        let PageData::Finding(shown) = loaded.as_mut() else { panic!("a page of a finding") };
        add_voices(&mut shown.finding);
        let ruled = |opinion| FindingStep::Ruled {
            by: "opus".to_owned(),
            opinion,
            reason: String::new(),
            from: Priority::P0,
            to: Priority::P0,
        };
        shown.finding.steps.extend(opinion.map(ruled));
        send(&mut app, AppMessage::Loaded { subject: DetailSubject::Finding(finding_id(2)), tab: Tab::Page, loaded });
        let shown = screen(&app);
        assert_eq!(shown.contains("± disputed"), is_marked, "{opinion:?}: {shown}");
        assert_eq!(shown.contains("settled"), !is_marked, "{opinion:?}: {shown}");
        assert!(is_marked || !shown.contains('±'), "{opinion:?}: {shown}");
    }
}

#[test]
fn incomplete() {
    assert_looks_at_all_sizes("incomplete", |columns, rows| {
        let mut builder = StoreViewBuilder::default();
        let id = run_id(8);
        builder.run(RunRow { hunks_total: 40, hunks_covered: 7, incomplete: true, counts: [0; 4], ..run_row(&id) });
        let mut app = showing(columns, rows, complete(builder));
        let commands = press(&mut app, "1");
        load_pages(&mut app, commands);
        app
    });
}

#[test]
fn running() {
    assert_looks_at_all_sizes("running", |columns, rows| {
        let (new, old) = (run_id(8), run_id(7));
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow {
            status: RunStatus::Reviewing,
            files_covered: 3,
            files_total: 12,
            hunks_covered: 7,
            hunks_total: 40,
            updated_ms: NOW - 2_000,
            counts: [0, 0, 1, 0],
            ..run_row(&new)
        });
        builder.run(RunRow { status: RunStatus::Pending, scope: "all", counts: [0; 4], ..run_row(&old) });
        let id = finding_id(1);
        builder.finding(finding_row(&id, &new));
        let mut app = showing(columns, rows, complete(builder));
        press(&mut app, "1");
        app
    });
}

#[test]
fn filter() {
    assert_looks_at_all_sizes("filter", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "f");
        type_text(&mut app, "kind:err");
        app
    });
}

#[test]
fn lists_menus_and_prompts() {
    for (name, keys) in [
        ("runs", "1"),
        ("finding_zoomed", "l z"),
        ("marked", "Space Space"),
        ("sort_menu", "o"),
        ("copy_menu", "y"),
        ("snooze_prompt", "Z"),
        ("pause_prompt", "W"),
        ("range_prompt", "r 7"),
        ("note_prompt", "i"),
        ("rating_prompt", "P"),
        ("search_prompt", "/"),
        ("key_hints", "]"),
    ] {
        assert_looks_at_all_sizes(name, |columns, rows| {
            let mut app = with_page(columns, rows);
            let commands = press(&mut app, keys);
            load_pages(&mut app, commands);
            app
        });
    }
}

#[test]
fn files() {
    assert_looks_at_all_sizes("files", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "1");
        send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files_of_run()) });
        press(&mut app, "3");
        app
    });
    assert_looks_at_all_sizes("files_of_findings", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "3");
        app
    });
}

#[test]
fn rows_of_two_lines_a_plain_screen_and_a_question() {
    assert_looks_at_all_sizes("two_lines", |columns, rows| {
        let mut app = with_page(columns, rows);
        app.finding_list.row_height = 2;
        app
    });
    assert_looks_at_all_sizes("plain", |columns, rows| {
        let mut app = with_page(columns, rows);
        app.display.plain = true;
        app.display.glyphs = glyphs::PLAIN;
        app
    });
    assert_looks_at_all_sizes("confirm_cancel", |columns, rows| {
        let id = run_id(8);
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { status: RunStatus::Reviewing, counts: [0; 4], ..run_row(&id) });
        let mut app = showing(columns, rows, complete(builder));
        press(&mut app, "1 C");
        app
    });
}

#[test]
fn help() {
    assert_looks_at_all_sizes("help", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "?");
        app
    });
}

#[test]
fn dismissal() {
    assert_looks_at_all_sizes("dismissal", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "Space Space x Down Down");
        app
    });
}

#[test]
fn ledger() {
    assert_looks_at_all_sizes("ledger", |columns, rows| {
        let mut app = with_page(columns, rows);
        press(&mut app, "L");
        let lines = [
            ("<auto_review_ledger version=\"1\" repo=\"billing\">\n", 14),
            (
                "  <latest run=\"ar_00000000000000000000000003\" status=\"completed\" snapshot=\"3fa2c1d\" findings=\"3\" surfaced=\"false\" summary=\"3 findings in 4 files\"/>\n",
                48,
            ),
            ("</auto_review_ledger>\n", 9),
        ];
        let session = SessionPreview {
            agent: String::new(),
            session: String::new(),
            form: Some(LedgerForm::Whole),
            lines: lines.map(|(text, tokens)| PreviewLine { text: text.into(), tokens }).into(),
            tokens: 71,
            cap: 600,
            left_out: 12,
            omitted: vec!["f_3b1f0c9d2a7e4851".parse().expect("an id")],
            stale: Vec::new(),
            below_priority: 4,
        };
        let line = "<auto_review_ledger version=\"1\" repo=\"billing\" unchanged=\"true\" findings=\"1\"/>\n";
        let known = SessionPreview {
            agent: "claude-code".into(),
            session: "7f3a".into(),
            form: Some(LedgerForm::Unchanged),
            lines: vec![PreviewLine { text: line.into(), tokens: 24 }],
            tokens: 24,
            left_out: 0,
            ..session.clone()
        };
        let delivery = |form: &str, tokens: u64| {
            serde_json::from_value(serde_json::json!({
                "at": "2026-09-21T14:13:20Z", "worktree": "/repo", "findings": ["f_3b1f0c9d2a7e4851"], "tokens": tokens,
                "counted": "at_most", "agent": "claude-code", "session": "7f3a", "form": form,
            }))
            .expect("a delivery")
        };
        let recent = vec![delivery("unchanged", 24), delivery("whole", 310)];
        let ledger = PageData::Ledger(LedgerPreview { sessions: vec![session, known], recent });
        let (subject, tab) = (app.detail.subject.clone(), app.detail.tab);
        send(&mut app, AppMessage::Loaded { subject, tab, loaded: Box::new(ledger) });
        app
    });
}

#[test]
fn ascii() {
    let mut app = showing(160, 48, many(60));
    app.display.glyphs = glyphs::ASCII;
    press(&mut app, "Space 1");
    assert!(screen(&app).is_ascii(), "{}", screen(&app));
}

#[test]
fn hostile_names() {
    assert_looks_at_all_sizes("hostile", |columns, rows| {
        let run = run_id(1);
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { scope: "commit:\u{1b}[2Jx", ..run_row(&run) });
        let names = [
            ("\u{1b}]0;owned\u{7}src/a.rs", "\u{1b}[31mred\u{1b}[0m and \u{9b}2J"),
            (
                "src/漢字かな交じり文の長い名前のファイル/とても長い名前.rs",
                "wide: 漢字かな交じり文が途中で切れてはならない、決して、どの幅でも",
            ),
            ("src/user\u{202e}gnp.exe", "bidi \u{202e}reversed\u{2066} and\nlines\r\nand\ttabs"),
            ("e\u{301}\u{302}\u{303}/👩‍👩‍👧‍👦.rs", "combining e\u{301} and a family 👩‍👩‍👧‍👦 of one width"),
        ];
        for (n, (path, title)) in names.into_iter().enumerate() {
            let id = finding_id(n as u32);
            let row =
                FindingRow { path, title, priority: Priority::P1, kind: Kind::Security, ..finding_row(&id, &run) };
            builder.finding(row);
        }
        showing(columns, rows, complete(builder))
    });
}

#[test]
fn tiny() {
    for (columns, rows, has_room) in [(19, 12, true), (60, 4, true), (20, 3, true), (1, 1, false), (0, 0, false)] {
        let app = showing(columns, rows, view());
        let text = screen(&app);
        assert_eq!(text.contains("too small"), has_room, "{columns}x{rows}: {text}");
    }
    let app = showing(60, 16, view());
    assert_snapshot!("one_pane-60x16", screen(&app));
}

#[test]
fn every_screen_at_every_size_stays_inside_and_shows_no_command_for_a_terminal() {
    for columns in [0, 7, 39, 40, 61, 79, 80, 119, 120, 133, 200] {
        for rows in [0, 9, 10, 17, 24, 48] {
            for keys in ["", "1", "3", "l", "z", "?", "r", "x", "f", "/", "y", "C", "L", "S", "l l", "v j"] {
                let mut app = showing(columns, rows, view());
                press(&mut app, keys);
                let text = screen(&app);
                assert!(
                    !text.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)),
                    "{columns}x{rows} {keys}"
                );
            }
        }
    }
}

#[test]
fn without_colours_only_attributes_are_drawn() {
    use crate::tui::theme::{Background, ColorDepth, Theme};
    let mut app = with_page(160, 48);
    app.display.theme = Theme::builtin_for(Background::Dark, ColorDepth::None);
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 160, 48));
    draw(&app, &mut buffer);
    let reset = ratatui::style::Color::Reset;
    assert!(buffer.content.iter().all(|cell| cell.fg == reset && cell.bg == reset));
    assert!(buffer.content.iter().any(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED)));
}

#[test]
fn a_reversed_bar_in_a_window_has_one_colour() {
    use crate::tui::theme::{Background, ColorDepth, Theme};
    use ratatui::style::{Color, Modifier};
    for (background, depth) in [
        (Background::Unknown, ColorDepth::TrueColor),
        (Background::Dark, ColorDepth::Ansi16),
        (Background::Dark, ColorDepth::None),
    ] {
        for keys in ["r", ":", "y"] {
            let mut app = showing(100, 30, view());
            app.display.theme = Theme::builtin_for(background, depth);
            press(&mut app, keys);
            let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 100, 30));
            draw(&app, &mut buffer);
            let is_bar = |cell: &&ratatui::buffer::Cell| cell.modifier.contains(Modifier::REVERSED);
            // A single cell is the cursor of a line of input.
            let bars = buffer.content.chunks(100).filter(|row| row.iter().filter(is_bar).count() > 10);
            let cells: Vec<_> = bars.flat_map(|row| row.iter().filter(is_bar)).collect();
            assert!(!cells.is_empty(), "{keys} {depth:?}");
            let is_patchy = |cell: &&ratatui::buffer::Cell| {
                cell.fg != Color::Reset || cell.bg != Color::Reset || cell.modifier.contains(Modifier::DIM)
            };
            assert_eq!(cells.iter().filter(|cell| is_patchy(cell)).count(), 0, "{keys} {depth:?}");
        }
    }
}

/// Memory that ratatui's terminal writes to.
#[derive(Clone, Default)]
struct SharedBytes(Rc<RefCell<Vec<u8>>>);

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_key_costs_a_fifth_less_than_with_the_terminal_of_ratatui() {
    let (columns, rows) = (200, 60);
    let mut app = showing(columns, rows, many(3_000));
    let written = SharedBytes::default();
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    let mut theirs = Terminal::with_options(CrosstermBackend::new(written.clone()), TerminalOptions { viewport })
        .expect("a terminal");
    let mut ours = Screen::new(columns, rows);
    let mut count = |app: &App| {
        written.0.borrow_mut().clear();
        theirs.draw(|frame| _ = draw(app, frame.buffer_mut())).expect("memory takes bytes");
        (ours.draw_frame(|buffer| draw(app, buffer)).len(), written.0.borrow().len())
    };
    let first = count(&app);
    assert!(first.0 < first.1, "first frame: {first:?}");
    assert_eq!(count(&app).0, 0, "nothing changed, nothing is written");
    for key in ["j", "j", "k", "1", "2", "?", "Esc", "S", "Esc"] {
        press(&mut app, key);
        let (ours, theirs) = count(&app);
        assert!(ours * 5 <= theirs * 4, "{key}: {ours} against {theirs}");
    }
}
