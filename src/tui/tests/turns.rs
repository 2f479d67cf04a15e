//! Tests runs that talk to a model, read from journals in a store: turns, activity, keys.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::looks::{SIZES, assert_looks};
use super::support::*;
use crate::domain::{
    Disposition, JournalEntry, OmissionReason, OmittedFile, RunEvent, RunId, Time, TurnPhase, WindowUse,
};
use crate::git::FilterSettings;
use crate::masking::Mask;
use crate::runner::{FreshnessFacts, LedgerPreview};
use crate::store::{RepoInfo, Store};
use crate::tui::app::{App, Pane, RunBudget, TurnLimits};
use crate::tui::doc::FoldKey;
use crate::tui::message::{AppCommand, AppMessage, Tab};
use crate::tui::page_loader::PageLoader;
use crate::tui::theme::Role;
use crate::tui::turns::{FindingReportKind, TurnHistory};
use crate::tui::views::live::LiveLoader;
use crate::tui::views::{ViewReply, ViewRequest};
use crate::tui::{draw, update};

#[path = "../../../benches/support/turns.rs"]
pub(super) mod sample;

use sample::{Fate, Written};

/// Store with runs written as workers write them, and its loader.
pub(super) struct TurnsFixture {
    _folder: tempfile::TempDir,
    pub(super) store: Store,
    loader: PageLoader,
    live: LiveLoader,
    pub(super) written: Vec<(Fate, Written)>,
}

pub(super) fn now() -> Time {
    Time::from_millisecond(NOW).expect("a moment")
}

impl TurnsFixture {
    pub(super) fn with_fates(fates: &[Fate]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let written = (1..)
            .zip(fates)
            .map(|(number, fate)| (*fate, sample::write(&store, number, *fate, now()).expect("a run")))
            .collect();
        let new_loader = || {
            let filter = Box::new(FilterSettings { max_file_bytes: 1 << 20, ignored_paths: Vec::new() });
            PageLoader::new(store.clone(), None, filter, Box::new(|| Ok(LedgerPreview::default())))
        };
        let (loader, live) = (new_loader(), LiveLoader::new(new_loader()));
        Self { _folder: folder, store, loader, live, written }
    }

    pub(super) fn app(&mut self, columns: u16, rows: u16) -> App {
        let mut app = app(columns, rows);
        self.refresh(&mut app);
        app
    }

    /// Sends the messages that the threads would send after a change of the store.
    pub(super) fn refresh(&mut self, app: &mut App) {
        let view = self.store.view().expect("a view");
        let live = |written: &&(Fate, Written)| self.store.is_live(&written.1.run).expect("a lock");
        let working: Vec<&str> = self.written.iter().filter(live).map(|(_, written)| written.run.as_str()).collect();
        let facts = FreshnessFacts::for_worktree(0, "/billing", "fix/sessions", "", &working);
        send(app, AppMessage::Freshness(Arc::new(facts)));
        let commands = send(app, AppMessage::StoreRead { view, written: 0 });
        self.carry_out(app, commands);
        self.beat(app);
    }

    pub(super) fn beat(&mut self, app: &mut App) {
        let runs: Vec<RunId> = self.written.iter().map(|(_, written)| written.run.clone()).collect();
        let commands = send(app, AppMessage::Pulses(self.store.heartbeats(&runs)));
        self.carry_out(app, commands);
    }

    pub(super) fn press(&mut self, app: &mut App, keys: &str) -> Vec<AppCommand> {
        let mut rest = Vec::new();
        for key in keys.split_whitespace() {
            let commands = press(app, key);
            rest.extend(self.carry_out(app, commands));
        }
        rest
    }

    /// Executes the load commands; returns the other commands.
    fn carry_out(&mut self, app: &mut App, commands: Vec<AppCommand>) -> Vec<AppCommand> {
        let mut rest = Vec::new();
        for command in commands {
            match command {
                AppCommand::Load { subject, tab } => {
                    let (view, mut pages) = (app.store.view.clone(), Vec::new());
                    self.loader.load(&view, &subject, tab, Mask::On, &mut |loaded| pages.push(loaded));
                    for loaded in pages {
                        send(app, AppMessage::Loaded { subject: subject.clone(), tab, loaded: Box::new(loaded) });
                    }
                }
                AppCommand::LoadFiles { run } => {
                    let files = self.loader.read_files(&app.store.view, &run);
                    send(app, AppMessage::Files { run, files });
                }
                AppCommand::LoadReported { run } => {
                    let findings = self.loader.read_reported(&run);
                    let commands = send(app, AppMessage::Reported { run, findings });
                    rest.extend(self.carry_out(app, commands));
                }
                AppCommand::View(ViewRequest::Live(request)) => {
                    let (view, mut replies) = (app.store.view.clone(), Vec::new());
                    self.live.answer(&request, &view, &mut |reply| replies.push(reply));
                    for reply in replies {
                        let commands = send(app, AppMessage::View(ViewReply::Live(reply)));
                        rest.extend(self.carry_out(app, commands));
                    }
                }
                other => rest.push(other),
            }
        }
        rest
    }

    /// Opens the context of the only run.
    pub(super) fn context(&mut self, columns: u16, rows: u16) -> App {
        let mut app = self.turns(columns, rows);
        self.press(&mut app, "l");
        assert_eq!((app.detail.tab, app.panes.focus), (Tab::Context, Pane::Detail));
        app
    }

    /// Opens the turns of the only run.
    fn turns(&mut self, columns: u16, rows: u16) -> App {
        let mut app = self.app(columns, rows);
        self.press(&mut app, "1 l l");
        assert_eq!((app.detail.tab, app.panes.focus), (Tab::Turns, Pane::Detail));
        app
    }
}

/// Rebuilds the page, as after a change of its width.
fn rebuild(app: &mut App) {
    app.detail.width = 0;
    send(app, AppMessage::Tick);
}

pub(super) fn assert_fixture_looks(
    name: &str,
    desk: &mut TurnsFixture,
    make: impl Fn(&mut TurnsFixture, u16, u16) -> App,
) {
    for (columns, rows) in SIZES {
        let mut app = make(desk, columns, rows);
        assert_looks(name, &mut app);
    }
}

#[test]
fn twenty_turns_with_a_sliding_window() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    assert_fixture_looks("turns", &mut desk, |desk, columns, rows| desk.turns(columns, rows));
}

#[test]
fn hunks_in_files_that_are_left_out_are_told_apart_while_a_run_works() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let run = desk.written[0].1.run.clone();
    let file = OmittedFile::new("notes.txt", OmissionReason::UnsupportedLanguage);
    let mut journal = desk.store.open_journal(&run).expect("a journal");
    journal.append(now(), RunEvent::LeftOut { file, hunks: 11 }).expect("appended");
    let mut app = desk.app(160, 48);
    desk.press(&mut app, "1");
    let screen = screen(&app);
    let words: Vec<&str> = screen.split_whitespace().collect();
    for count in ["13", "20"] {
        assert!(words.windows(2).any(|pair| pair == ["of", count]), "of {count}: {screen}");
    }
    assert!(screen.contains("1 file with 11 hunks"), "{screen}");
}

#[test]
fn a_run_shows_all_that_it_reported_whoever_reported_it_again() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed; 3]);
    let mut app = desk.app(160, 48);
    let middle = desk.written[1].1.run.clone();
    let output = desk.store.output(&middle).expect("read").expect("an output");
    let ids: Vec<&str> = output.findings.iter().map(|finding| finding.finding_id.as_str()).collect();
    assert!(
        ids.len() > 2
            && ids.iter().all(|id| {
                let row = app.finding_by_id(id).expect("a row");
                row.first_run != middle.as_str() && row.last_run != middle.as_str()
            })
    );
    let dismissed: Disposition = serde_json::from_value(serde_json::json!({
        "finding_id": ids[0], "status": "dismissed", "previous": "open", "actor": "user", "action": "set",
        "reason": "", "at": now(), "group": "g",
    }))
    .expect("a disposition");
    desk.store.append_dispositions(&[dismissed]).expect("appended");
    desk.refresh(&mut app);
    desk.press(&mut app, "1 j");
    assert_eq!(app.selected_run().expect("a run").id, middle.as_str());
    desk.press(&mut app, "Enter");
    let mut shown: Vec<&str> =
        app.finding_list.rows.iter().map(|row| app.store.view.finding(*row as usize).id).collect();
    let mut expected = ids.clone();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!((app.panes.focus, shown), (Pane::Findings, expected));
    let dismissed = screen(&app).lines().filter(|line| line.starts_with("  ✗ ")).count();
    assert_eq!(dismissed, 1, "each with its present status: {}", screen(&app));
    desk.press(&mut app, "Esc");
    assert_eq!(
        (app.finding_list.filter_text.as_str(), app.finding_list.overrides.reported.len()),
        ("status:undecided", 0)
    );
    assert_eq!(app.finding_list.rows.len(), ids.len() - 1, "the dismissed one is not to be decided");
}

#[test]
fn a_turn_unfolded() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    assert_fixture_looks("turn_unfolded", &mut desk, |desk, columns, rows| {
        let mut app = desk.turns(columns, rows);
        desk.press(&mut app, "4 g Enter");
        assert!(app.detail.open_folds.contains(&FoldKey::Turn(4)));
        app
    });
}

#[test]
fn a_reviewer_that_says_nothing_any_more() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Stalled]);
    assert_fixture_looks("stalled", &mut desk, |desk, columns, rows| {
        let mut app = desk.turns(columns, rows);
        app.session.budget = RunBudget { cost: Some(0.5), tokens: Some(2_000_000) };
        rebuild(&mut app);
        app
    });
}

#[test]
fn a_reviewer_that_was_told_to_wait() {
    let mut desk = TurnsFixture::with_fates(&[Fate::RateLimited]);
    assert_fixture_looks("rate_limited", &mut desk, |desk, columns, rows| desk.turns(columns, rows));
}

#[test]
fn a_paused_run() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Paused]);
    assert_fixture_looks("paused", &mut desk, |desk, columns, rows| desk.turns(columns, rows));
}

#[test]
fn a_failed_run() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Failed]);
    assert_fixture_looks("failed", &mut desk, |desk, columns, rows| {
        let mut app = desk.turns(columns, rows);
        desk.press(&mut app, "G Enter G");
        app
    });
}

#[test]
fn a_run_with_reports_that_were_set_aside() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    assert_fixture_looks("set_aside", &mut desk, |desk, columns, rows| {
        let mut app = desk.app(columns, rows);
        desk.press(&mut app, "1 l");
        assert!(
            app.detail
                .doc
                .lines
                .iter()
                .any(|line| line.plain_text() == format!("{} 3 reports set aside", app.display.glyphs.folded))
        );
        desk.press(&mut app, "G Enter G");
        app
    });
}

#[test]
fn runs_say_what_they_do_in_the_list() {
    let mut desk = TurnsFixture::with_fates(&Fate::ALL);
    assert_fixture_looks("fates", &mut desk, |desk, columns, rows| {
        let mut app = desk.app(columns, rows);
        desk.press(&mut app, "1 g");
        app
    });
}

/// Returns the colour of a text on the screen and the colour of a role.
fn colours(app: &App, text: &str, role: Role) -> (Option<ratatui::style::Color>, Option<ratatui::style::Color>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.display.columns, app.display.rows));
    draw(app, &mut buffer);
    for y in 0..app.display.rows {
        let line: Vec<&str> = (0..app.display.columns).map(|x| buffer[(x, y)].symbol()).collect();
        let width = text.chars().count();
        if let Some(x) = (0..line.len().saturating_sub(width)).find(|x| line[*x..x + width].concat() == text) {
            return (buffer[(x as u16, y)].style().fg, app.display.theme.style(role).fg);
        }
    }
    panic!("{text:?} is not on the screen:\n{}", screen(app));
}

#[test]
fn trouble_has_the_colour_of_trouble_in_the_head_and_in_the_header() {
    for (fate, text, role) in [
        (Fate::Stalled, "! turn 9 of 20: no bytes for 40 s", Role::Warn),
        (Fate::RateLimited, "◌ turn 3 of 20: rate limited, 12 s left", Role::Warn),
        (Fate::Paused, "‖ turn 7 of 20: paused", Role::Pending),
        (Fate::Receiving, "● turn 7 of 20: receiving, 12 KB, 3 s", Role::Working),
    ] {
        let mut desk = TurnsFixture::with_fates(&[fate]);
        let app = desk.turns(160, 48);
        let shown = screen(&app);
        assert_eq!(shown.matches(text).count(), 2, "{text:?} in the header and above the page:\n{shown}");
        let (is, meant) = colours(&app, text, role);
        assert_eq!(is, meant, "{text}");
    }
}

#[test]
fn time_passes_on_the_screen_only_while_a_run_works_and_moves_nothing_else() {
    for (fate, ticks) in
        [(Fate::Stalled, true), (Fate::Receiving, true), (Fate::Paused, false), (Fate::Completed, false)]
    {
        let mut desk = TurnsFixture::with_fates(&[fate]);
        let mut app = desk.turns(160, 48);
        assert_eq!(app.has_running_clock(), ticks, "{fate:?}");
        let (before, lines) = (screen(&app), app.detail.doc.lines.clone());
        update(&mut app, NOW + 1_000, AppMessage::Tick);
        let after = screen(&app);
        let differing = before.lines().zip(after.lines()).filter(|(a, b)| a != b).count();
        assert_eq!(differing, if ticks { 2 } else { 0 }, "{fate:?}: the header and the line above the page");
        assert_eq!(app.detail.doc.lines, lines, "the page is not built again");
    }
}

#[test]
fn a_run_without_turns_has_no_tab_for_them() {
    let mut app = showing(160, 48, view());
    // The first step unfolds the superseded runs.
    press(&mut app, "1 l l");
    assert!(!screen(&app).contains("Turns") && !screen(&app).contains("Context"));
    press(&mut app, "l");
    assert_eq!(app.detail.tab, Tab::Diff);
    // The run of a model below has turns; leaving the run leaves the tab.
    press(&mut app, "h h j j l l");
    assert_eq!(app.detail.tab, Tab::Turns);
    press(&mut app, "1 k");
    assert_eq!(app.detail.tab, Tab::Page);
}

#[test]
fn keys_go_from_turn_to_turn_open_and_close_them_and_read_long_ones() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    let mut app = desk.turns(160, 48);
    let turn = |app: &App| match app.detail.fold {
        Some(FoldKey::Turn(number)) => number,
        _ => 0,
    };
    // Keys, selected turn, open turns.
    for (keys, chosen, open) in [
        ("j", 1, &[][..]),
        ("j", 2, &[]),
        ("4 j", 6, &[]),
        ("k k", 4, &[]),
        ("Enter", 4, &[4]),
        ("j Enter", 5, &[4, 5]),
        ("k Enter", 4, &[5]),
        ("G", 20, &[5]),
        ("g", 1, &[5]),
        ("7 g", 7, &[5]),
    ] {
        desk.press(&mut app, keys);
        let mut folds: Vec<u32> =
            app.detail.open_folds.iter().map(|key| if let FoldKey::Turn(n) = key { *n } else { 0 }).collect();
        folds.sort_unstable();
        assert_eq!((turn(&app), folds.as_slice()), (chosen, open), "{keys}");
    }
    // `j` alone reaches every line, even on a small screen, and the selected turn is always visible.
    let mut app = desk.turns(80, 24);
    desk.press(&mut app, "4 g Enter g");
    let (mut seen, height) = (vec![false; app.detail.doc.lines.len()], app.pane_height(Pane::Detail));
    for _ in 0..300 {
        for line in app.detail.scroll..(app.detail.scroll + height).min(seen.len()) {
            seen[line] = true;
        }
        desk.press(&mut app, "j");
        if let Some(fold) = app.detail.doc.folds.iter().find(|fold| app.detail.fold == Some(fold.key)) {
            let shown = app.detail.scroll..app.detail.scroll + height;
            let goes_on = app.detail.doc.folds.iter().any(|next| next.line > shown.end) || shown.start > fold.line;
            if !goes_on {
                assert!(shown.contains(&fold.line), "turn {:?} at {} of {shown:?}", app.detail.fold, fold.line);
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    assert_eq!(turn(&app), 20);
}

#[test]
fn a_page_that_is_read_again_keeps_what_is_open_and_where_one_is() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = desk.turns(80, 24);
    desk.press(&mut app, "5 g Enter j");
    let (scroll, fold, open) = (app.detail.scroll, app.detail.fold, app.detail.open_folds.clone());
    let run = desk.written[0].1.run.clone();
    let mut journal = desk.store.open_journal(&run).expect("a journal");
    let window = WindowUse { tokens: 40_000, limit: 70_000, ..WindowUse::default() };
    let event = RunEvent::TurnAsked { turn: 8, phase: TurnPhase::Analyse, asked: "Go on.".into(), window };
    journal.append(now(), event).expect("written");
    let lines = app.detail.doc.lines.len();
    desk.refresh(&mut app);
    assert_eq!((app.detail.scroll, app.detail.fold, &app.detail.open_folds), (scroll, fold, &open));
    assert!(app.detail.doc.lines.len() > lines, "the new turn is there");
    // At the end of the page the end stays visible.
    desk.press(&mut app, "G");
    let at_end = |app: &App| app.detail.scroll + app.pane_height(Pane::Detail) == app.detail.doc.lines.len();
    assert!(at_end(&app));
    let event = RunEvent::TurnAsked { turn: 9, phase: TurnPhase::Analyse, asked: "Go on.".into(), window };
    journal.append(now(), event).expect("written");
    desk.refresh(&mut app);
    assert!(at_end(&app));
}

#[test]
fn p_pauses_the_selected_run_or_lets_it_go_on() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed, Fate::Paused, Fate::Receiving]);
    let mut app = desk.app(160, 48);
    // The newest run is on top.
    for (keys, wanted) in
        [("1 g p", Some((2, true))), ("j p", Some((1, false))), ("j p", None), ("2 p", Some((2, true)))]
    {
        let commands = desk.press(&mut app, keys);
        let asked = commands.iter().find_map(|command| match command {
            AppCommand::Pause(run) => Some((run.clone(), true)),
            AppCommand::Resume(run) => Some((run.clone(), false)),
            _ => None,
        });
        let wanted = wanted.map(|(number, pause)| (desk.written[number].1.run.clone(), pause));
        assert_eq!(asked, wanted, "{keys}");
    }
    send(&mut app, AppMessage::Paused(Err("this reviewer asks no model: it has nothing to pause".into())));
    assert!(screen(&app).contains("! this reviewer asks no model"));
    let mut app = showing(160, 48, view());
    assert!(press(&mut app, "p").iter().all(|command| !matches!(command, AppCommand::Pause(_))));
    assert!(screen(&app).contains("no review is running"));
}

#[test]
fn the_wish_to_pause_shows_before_the_worker_heeds_it() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = desk.turns(160, 48);
    let run = desk.written[0].1.run.clone();
    desk.store.with_lock(|locked| locked.annotate_run(&run, |record| record.paused = true)).expect("written");
    desk.refresh(&mut app);
    assert!(screen(&app).contains("turn 7 of 20: receiving, 12 KB, 3 s, then pauses"), "{}", screen(&app));
    let pulse = desk.written[0].1.pulse.as_mut().expect("a pulse");
    pulse.set_state(now(), crate::store::HeartbeatState::Paused);
    desk.beat(&mut app);
    assert!(screen(&app).contains("turn 7 of 20: paused") && !app.has_running_clock());
    // A dead worker leaves no heartbeat; the pause request stays.
    desk.written.clear();
    desk.refresh(&mut app);
    assert!(screen(&app).contains("‖ paused"), "{}", screen(&app));
}

#[test]
fn hostile_words_reach_the_screen_as_words() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Receiving]);
    let run = desk.written[0].1.run.clone();
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}abc\u{9b}31m \u{e0041}\r\n\tx";
    let mut journal = desk.store.open_journal(&run).expect("a journal");
    let window = WindowUse { tokens: u64::MAX, limit: 1, pinned: u64::MAX, masked: u32::MAX, ..WindowUse::default() };
    let response: crate::domain::ChatResponse = serde_json::from_value(serde_json::json!({
        "text": evil.repeat(3_000), "stop": "length", "model": evil,
        "calls": [{ "id": evil, "name": evil, "arguments": evil }],
        "usage": { "input": u64::MAX, "output": 1 },
    }))
    .expect("a response");
    let finding = crate::domain::RunEvent::Repeated {
        turn: 8,
        finding_id: finding_id(1).parse().expect("an id"),
        line_start: u32::MAX,
        line_end: 0,
        title: evil.into(),
    };
    for event in [
        RunEvent::TurnAsked { turn: 8, phase: TurnPhase::Analyse, asked: evil.into(), window },
        RunEvent::Waiting { turn: 8, reason: evil.into(), wait_ms: u64::MAX },
        RunEvent::TurnAnswered {
            turn: 8,
            response: Box::new(response),
            cost: f64::MAX,
            first_ms: 0,
            took_ms: u64::MAX,
            taken_over: false,
        },
        RunEvent::ToolAnswered {
            turn: 8,
            name: evil.into(),
            arguments: evil.into(),
            outcome: crate::domain::ToolOutcome::Failed,
            tokens: u64::MAX,
            result: evil.into(),
        },
        finding,
        RunEvent::Failed { class: crate::domain::ErrorClass::Malformed, summary: evil.into() },
    ] {
        journal.append(now(), event).expect("written");
    }
    let pulse = desk.written[0].1.pulse.as_mut().expect("a pulse");
    pulse.append_text(now(), evil);
    let (reason, until) = (evil.to_owned(), now());
    pulse.set_state(now(), crate::store::HeartbeatState::BackingOff { reason, until });
    for (columns, rows) in [(160, 48), (80, 24), (60, 16), (41, 11)] {
        let mut app = desk.turns(columns, rows);
        desk.press(&mut app, "G Enter");
        for _ in 0..6 {
            desk.press(&mut app, "Ctrl-d");
            let shown = screen(&app);
            assert!(!shown.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)), "{shown}");
        }
        assert!(
            app.detail.doc.lines.len() < 600,
            "a long answer is not all on the page: {}",
            app.detail.doc.lines.len()
        );
    }
}

#[test]
fn a_journal_becomes_turns_whatever_is_missing_in_it() {
    let mut conversation = TurnHistory::default();
    let take =
        |conversation: &mut TurnHistory, event| conversation.apply_entry(JournalEntry { seq: 0, at: now(), event });
    let asked = |turn| RunEvent::TurnAsked {
        turn,
        phase: TurnPhase::Finish,
        asked: "Go on.".into(),
        window: WindowUse::default(),
    };
    let answered = |turn, cost| RunEvent::TurnAnswered {
        turn,
        response: Box::new(
            serde_json::from_value(
                serde_json::json!({"text": "", "stop": "done", "usage": {"input": 100, "output": 5}}),
            )
            .expect("a response"),
        ),
        cost,
        first_ms: 1,
        took_ms: 2,
        taken_over: false,
    };
    let tool = |turn| RunEvent::ToolAnswered {
        turn,
        name: "read_file".into(),
        arguments: String::new(),
        outcome: crate::domain::ToolOutcome::Answered,
        tokens: 9,
        result: String::new(),
    };
    // Entries before the first turn belong to no turn.
    take(&mut conversation, RunEvent::Paused);
    take(&mut conversation, RunEvent::Resumed);
    assert!(conversation.turns.is_empty());
    // A worker died in turn 2, a response to turn 2 was unusable, and turn 3 has no request entry.
    for event in [
        asked(1),
        answered(1, 0.1),
        asked(2),
        RunEvent::Failed { class: crate::domain::ErrorClass::Network, summary: "gone".into() },
        RunEvent::Started { attempt: 2, worker: 1 },
        asked(2),
        answered(2, 0.2),
        answered(2, 0.4),
        RunEvent::Repeated {
            turn: 2,
            finding_id: finding_id(1).parse().expect("an id"),
            line_start: 7,
            line_end: 7,
            title: "again".into(),
        },
        tool(3),
        RunEvent::Paused,
    ] {
        take(&mut conversation, event);
    }
    let facts: Vec<_> = conversation
        .turns
        .iter()
        .map(|turn| (turn.number, turn.attempts, turn.answers.len(), turn.tools.len(), turn.pauses.len()))
        .collect();
    assert_eq!(facts, [(1, 1, 1, 0, 0), (2, 2, 2, 0, 0), (3, 0, 0, 1, 1)]);
    assert!((conversation.cost() - 0.7).abs() < 1e-9, "every answer was paid for");
    assert_eq!((conversation.usage().input, conversation.usage().output), (300, 15));
    assert_eq!(conversation.turns[1].findings[0].report, FindingReportKind::Repeated);
    assert!(conversation.failure.is_none(), "what failed was tried again");
    // Unchanged turns are shared with the earlier state.
    let before = conversation.clone();
    take(&mut conversation, tool(3));
    let shared = |at: usize| std::sync::Arc::ptr_eq(&before.turns[at], &conversation.turns[at]);
    assert!(shared(0) && shared(1) && !shared(2));
}

#[test]
fn the_page_of_an_active_run_counts_turns_and_names_the_phase() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = fixture.app(160, 48);
    fixture.press(&mut app, "1");
    let shown = screen(&app);
    let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("turns   ").contains("6 of 20"), "the seventh is not done: {shown}");
    assert!(line("phase   ").contains("analyse"), "{shown}");
}

#[test]
fn the_limit_of_turns_is_that_of_the_reviewer_and_second_opinions_come_after_it() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = fixture.app(160, 48);
    let reviewer = app.selected_run().expect("a run").reviewer.to_owned();
    for (limit, header, gauge, phase) in [
        (12, "turn 7 of 12: receiving", "6 of 12", "analyse"),
        (5, "second opinion 2: receiving", "5 of 5", "second opinion 2"),
    ] {
        app.session.turn_limits = TurnLimits { default: 20, by_reviewer: [(reviewer.clone(), limit)].into() };
        fixture.press(&mut app, "1");
        rebuild(&mut app);
        let shown = screen(&app);
        let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
        assert_eq!(shown.matches(header).count(), 2, "in the header and above the page: {shown}");
        assert!(line("turns   ").contains(gauge) && line("phase   ").contains(phase), "{shown}");
    }
}

#[test]
fn a_run_whose_worker_is_gone_has_no_clock() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = fixture.app(160, 48);
    assert!(app.has_running_clock());
    let run = fixture.written[0].1.run.to_string();
    fixture.written.clear();
    let mut facts = FreshnessFacts::for_worktree(0, "/billing", "fix/sessions", "", &[&run]);
    assert!(facts.refresh_locks(&fixture.store), "the worker holds no lock any more");
    assert!(!facts.refresh_locks(&fixture.store), "nothing has changed since");
    send(&mut app, AppMessage::Freshness(Arc::new(facts)));
    let shown = screen(&app);
    assert!(shown.contains("lost") && shown.contains("! its worker is gone; r resumes it"), "{shown}");
    assert!(!app.has_running_clock());
}

#[test]
fn keys_in_the_words_of_a_model_are_masked_on_every_page_of_the_run() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Receiving]);
    let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
    let run = fixture.written[0].1.run.clone();
    let mut journal = fixture.store.open_journal(&run).expect("a journal");
    let said = || format!("it has {key} in it");
    let report = serde_json::json!({
        "path": "a.py", "line_start": 0, "line_end": 0, "kind": "DEAD_CODE", "title": said(),
    });
    let report = serde_json::from_value(report).expect("a report");
    let rejected = Box::new(crate::domain::RejectedReport { report, reason: said() });
    for event in [
        RunEvent::Note { text: said() },
        RunEvent::Judged {
            finding_id: "f_0000000000000001".parse().expect("an id"),
            opinion: crate::domain::Opinion::Real,
            reason: said(),
        },
        RunEvent::Rejected { turn: 7, rejected },
        RunEvent::Failed { class: crate::domain::ErrorClass::Network, summary: said() },
    ] {
        journal.append(now(), event).expect("appended");
    }
    drop(journal);
    let mut app = fixture.app(160, 48);
    let mut shown = String::new();
    for keys in ["1", "l l G Enter G", "l", "l", "l G"] {
        fixture.press(&mut app, keys);
        shown += &screen(&app);
    }
    assert!(shown.matches("«secret").count() >= 4, "{shown}");
    assert!(!shown.contains(&key), "{shown}");
}
