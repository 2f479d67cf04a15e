//! Tests the context page of a run: sent pieces, omitted pieces, empty pages, and the key that switches.

use rstest::rstest;
use unicode_width::UnicodeWidthStr;

use super::support::*;
use super::turns::sample::Fate;
use super::turns::{TurnsFixture, assert_fixture_looks, now};
use crate::domain::{
    ContextRecord, ContextRecordSection, JournalEntry, RunEvent, RunId, RunStatus, TurnPhase, WindowUse, text,
};
use crate::tui::app::{App, ContextListing, Pane};
use crate::tui::keymap::{self, Keymap};
use crate::tui::message::{AppMessage, Tab};
use crate::tui::turns::TurnHistory;

#[test]
fn what_was_sent() {
    assert_fixture_looks("context_sent", &mut TurnsFixture::with_fates(&[Fate::Completed]), |desk, columns, rows| {
        desk.context(columns, rows)
    });
}

#[test]
fn what_was_left_out() {
    assert_fixture_looks(
        "context_left_out",
        &mut TurnsFixture::with_fates(&[Fate::Completed]),
        |desk, columns, rows| {
            let mut app = desk.context(columns, rows);
            desk.press(&mut app, "s");
            app
        },
    );
}

#[test]
fn alone_on_the_screen_there_is_room_for_more_columns() {
    assert_fixture_looks("context_zoomed", &mut TurnsFixture::with_fates(&[Fate::Completed]), |desk, columns, rows| {
        let mut app = desk.context(columns, rows);
        desk.press(&mut app, "z");
        app
    });
}

#[test]
fn a_run_that_tells_of_no_context() {
    assert_fixture_looks("context_none", &mut TurnsFixture::with_fates(&[Fate::Failed]), |desk, columns, rows| {
        desk.context(columns, rows)
    });
}

#[rstest]
#[case::waiting(RunStatus::Pending, false, "Waiting for a worker.")]
#[case::working(RunStatus::Reviewing, false, "Nothing has been sent yet.")]
#[case::never_asked(RunStatus::Cancelled, false, "Nothing was sent in this run.")]
#[case::journal_gone(RunStatus::Completed, true, "The journal of this run is no longer kept")]
fn it_says_why_there_is_nothing(#[case] status: RunStatus, #[case] has_paid: bool, #[case] said: &str) {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    let id: RunId = format!("ar_{:026}", 7).parse().expect("an id");
    let record = serde_json::from_value(serde_json::json!({
        "run_id": id, "status": status, "created_at": now(), "updated_at": now(), "source": "cli",
        "scope": "staged", "reviewer": "claude", "attempt": 1, "tokens": { "input": if has_paid { 9 } else { 0 } },
    }))
    .expect("a record");
    desk.store.with_lock(|locked| locked.create_run(&record)).expect("created");
    let mut app = desk.app(160, 48);
    desk.press(&mut app, "1 j");
    if app.selected_run().is_none_or(|run| run.id != id.as_str()) {
        desk.press(&mut app, "k");
    }
    desk.press(&mut app, "l l l");
    assert_eq!((app.detail.tab, app.subject_run().map(|run| run.id)), (Tab::Context, Some(id.as_str())));
    assert!(screen(&app).contains(said), "{}", screen(&app));
}

fn shown(app: &App) -> String {
    app.detail.doc.lines.iter().map(|line| line.plain_text() + "\n").collect()
}

#[test]
fn one_key_shows_what_was_left_out_and_what_was_sent_again() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    let mut app = desk.context(80, 24);
    for (keys, portion, heading, footer) in [
        ("", ContextListing::Sent, "17 sections sent", " s left out "),
        ("G s", ContextListing::LeftOut, "431 pieces left out", " s sent "),
        // Another tab and back: the listing is unchanged.
        ("l h", ContextListing::LeftOut, "431 pieces left out", " s sent "),
        ("s", ContextListing::Sent, "17 sections sent", " s left out "),
    ] {
        desk.press(&mut app, keys);
        let (page, screen) = (shown(&app), screen(&app));
        assert_eq!((app.detail.context_listing, app.detail.scroll), (portion, 0), "{keys}");
        assert!(page.contains(heading) && screen.contains(footer), "{keys}: {page}\n{screen}");
    }
    desk.press(&mut app, "s");
    assert!(shown(&app).contains("… and 423 more, none of them stronger"), "{}", shown(&app));
    // Without a context, the key shows a notice.
    desk.press(&mut app, "h s");
    assert_eq!((app.detail.tab, app.detail.context_listing), (Tab::Turns, ContextListing::LeftOut));
    assert!(screen(&app).contains("this page lists no context"), "{}", screen(&app));
}

#[test]
fn the_key_that_the_page_names_works_while_a_list_has_the_focus() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    for columns in [160, 80, 41] {
        let mut app = desk.context(columns, 24);
        assert!(shown(&app).contains("press s to see"), "{}", shown(&app));
        desk.press(&mut app, "1");
        assert_eq!(app.panes.focus, Pane::Runs);
        desk.press(&mut app, "s");
        assert_eq!((app.detail.tab, app.detail.context_listing), (Tab::Context, ContextListing::LeftOut), "{columns}");
        assert!(screen(&app).contains("431 pieces left out"), "{columns}: {}", screen(&app));
    }
}

#[test]
fn what_the_colours_of_the_bar_are_is_seen_at_once() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    for (columns, rows, keys, seen) in [
        (160, 48, "", "▓ change 8,853   █ code 13,937   ▒ project 2,844   · free 1,366"),
        (80, 24, "", "▓ change 8,853   █ code 13,937   ▒ project 2,844   · free 1,366"),
        (41, 24, "", "▓ change   █ code   ▒ project   · free"),
    ] {
        let mut app = desk.context(columns, rows);
        desk.press(&mut app, keys);
        assert!(screen(&app).contains(seen), "{columns} {keys}: {}", screen(&app));
        assert_eq!(shown(&app).matches("▒ project").count(), if seen.contains("8,853") { 1 } else { 2 });
    }
}

#[test]
fn the_key_can_be_another_one_and_help_tells_it() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    let mut app = desk.context(160, 48);
    desk.press(&mut app, "?");
    assert!(screen(&app).contains("│ s                context: sent and left out"), "{}", screen(&app));
    desk.press(&mut app, "Esc");
    let other = keymap::DEFAULT.replace("\"s\" = \"left_out\"", "\"Ctrl-x\" = \"left_out\"");
    app.keymap = Keymap::parse(&other).0;
    desk.press(&mut app, "s");
    assert_eq!(app.detail.context_listing, ContextListing::Sent);
    desk.press(&mut app, "Ctrl-x");
    assert_eq!(app.detail.context_listing, ContextListing::LeftOut);
    assert!(shown(&app).contains("17 sections; press Ctrl-x to see"), "{}", shown(&app));
}

#[test]
fn a_context_that_comes_while_one_looks_is_shown_and_what_is_shown_stays() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = desk.context(160, 20);
    desk.press(&mut app, "s Ctrl-d");
    let (portion, scroll) = (app.detail.context_listing, app.detail.scroll);
    assert!(scroll > 0);
    let run = desk.written[0].1.run.clone();
    let mut journal = desk.store.open_journal(&run).expect("a journal");
    let mut context = app.shown_context().expect("a context").clone();
    context.left_out_total = 600;
    journal.append(now(), RunEvent::Surrounded { context: Box::new(context) }).expect("written");
    desk.refresh(&mut app);
    assert_eq!((app.detail.context_listing, app.detail.scroll), (portion, scroll));
    assert!(shown(&app).contains("600 pieces left out"), "{}", shown(&app));
}

#[test]
fn what_was_learned_and_told_stands_behind_what_was_sent() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = desk.context(160, 48);
    assert!(!shown(&app).contains("learned"), "{}", shown(&app));
    let mut context = app.shown_context().expect("a context").clone();
    context.patterns = vec!["python: compare with None by `is`".to_owned(), "java: close what was opened".to_owned()];
    let mut journal = desk.store.open_journal(&desk.written[0].1.run).expect("a journal");
    journal.append(now(), RunEvent::Surrounded { context: Box::new(context) }).expect("written");
    desk.refresh(&mut app);
    let page = shown(&app);
    let (heading, list) = (page.find("2 learned patterns told"), page.find("sections sent"));
    assert!(heading > list && list.is_some(), "{page}");
    assert!(page.contains("python: compare with None by `is`\njava: close"), "{page}");
    desk.press(&mut app, "s");
    assert!(!shown(&app).contains("learned"), "they are nothing that was left out");
}

fn entry(path: &str, kind: &str, reason: &str) -> ContextRecordSection {
    ContextRecordSection {
        path: path.to_owned(),
        start_line: 8,
        end_line: u32::MAX,
        kind: kind.to_owned(),
        tokens: u32::MAX,
        score: 0.5,
        reason: reason.to_owned(),
    }
}

#[test]
fn nothing_is_lost_and_nothing_too_wide_at_any_width() {
    let long = format!("{}/{}.rs", "a_folder_with_a_name/".repeat(9), "x".repeat(70));
    let reasons = "it has the change's words; a test and what it tests";
    for sections in [
        vec![entry("src/a.rs", "function", reasons)],
        vec![entry(&long, "documentation", reasons), entry("", "overview", "the folders of the tree")],
        vec![entry("漢字/漢字.rs", "interface", ""); ContextRecord::MAX_LISTED],
        Vec::new(),
    ] {
        let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
        let run = desk.written[0].1.run.clone();
        let mut journal = desk.store.open_journal(&run).expect("a journal");
        let context = ContextRecord {
            budget: 1,
            total_tokens: u32::MAX,
            compression: "some new one".into(),
            left_out: sections.clone(),
            sections: sections.clone(),
            ..ContextRecord::default()
        };
        journal.append(now(), RunEvent::Surrounded { context: Box::new(context) }).expect("written");
        let mut app = desk.context(160, 48);
        for columns in 40..200 {
            for _ in 0..2 {
                send(&mut app, AppMessage::Resized { columns, rows: 24 });
                let width = usize::from(app.layout().body(Pane::Detail).expect("a detail").width);
                for line in &app.detail.doc.lines {
                    assert!(line.plain_text().width() <= width, "{:?} at {columns}: {width}", line.plain_text());
                }
                let squeeze = |text: &str| text.split_whitespace().collect::<String>();
                let page = squeeze(&shown(&app));
                for entry in sections.iter().take(1) {
                    // Figures stand between a location and its continuation.
                    let name = entry.path.rsplit('/').next().unwrap_or_default();
                    let found = page.contains(name) || name.len() > 40 && page.matches('x').count() >= 70;
                    assert!(found && page.contains("4G"), "{page} at {columns}");
                    for word in entry.reason.split_whitespace() {
                        assert!(page.contains(word), "{word} at {columns}: {page}");
                    }
                }
                desk.press(&mut app, "s");
            }
        }
    }
}

#[test]
fn hostile_words_reach_the_screen_as_words() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let run = desk.written[0].1.run.clone();
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}abc\u{9b}31m \u{e0041}\r\n\tx";
    let mut journal = desk.store.open_journal(&run).expect("a journal");
    let context = ContextRecord {
        compression: evil.into(),
        notes: vec![evil.into()],
        patterns: vec![evil.into()],
        sections: vec![entry(evil, evil, evil), entry("", evil, evil)],
        left_out: vec![entry(&evil.repeat(40), evil, &evil.repeat(40))],
        ..ContextRecord::default()
    };
    journal.append(now(), RunEvent::Surrounded { context: Box::new(context) }).expect("written");
    for (columns, rows) in [(160, 48), (80, 24), (41, 11)] {
        let mut app = desk.context(columns, rows);
        for keys in ["Ctrl-d", "G", "s", "Ctrl-d", "G"] {
            desk.press(&mut app, keys);
            let shown = screen(&app);
            assert!(!shown.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{shown}");
        }
    }
}

#[test]
fn a_journal_is_believed_up_to_what_may_be_listed_and_its_last_word_counts() {
    let mut conversation = TurnHistory::default();
    let mut take = |event| conversation.apply_entry(JournalEntry { seq: 0, at: now(), event });
    let (asked, window) = ("Go on.".to_owned(), WindowUse::default());
    for (budget, count) in [(1, 3), (2, 900)] {
        let sections = vec![entry("src/a.rs", "function", ""); count];
        let context = ContextRecord { budget, left_out: sections.clone(), sections, ..ContextRecord::default() };
        take(RunEvent::Surrounded { context: Box::new(context) });
    }
    take(RunEvent::TurnAsked { turn: 1, phase: TurnPhase::Investigate, asked, window });
    let context = conversation.context.expect("a context");
    assert_eq!((context.budget, context.sections.len(), context.left_out.len()), (2, 200, 200));
}
