//! Random keys, escape sequences, mouse events, pastes, sizes and changes of the store, on ordinary, ASCII and plain
//! screens: the cockpit never panics, its cursors stay in their lists, help and quit stay in the footer, and its screen
//! holds nothing that a terminal could obey.
//!
//! The campaign takes minutes: `cargo test --lib -- --ignored campaign --nocapture`. `REVDECK_TEST_EVENTS` sets the
//! number of events (1,000,000), `REVDECK_TEST_SEED` the seed.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sizes::check_footer;
use super::support::{self, NOW};
use super::{diff, live, screens};
use crate::domain::text::is_unsafe;
use crate::domain::{FindingStatus, QuestionRequest, RunStatus, Time, ViewedFile};
use crate::policy::BudgetAmount;
use crate::runner::{CostLimit, PreparedQuestion, QuestionPlan, ScopeFingerprints, WrittenComment};
use crate::store::triage::UndoOutcome;
use crate::store::{FindingRow, RunRow, StoreView, StoreViewBuilder, TeamStatus};
use crate::tui::app::{App, MotionMode, ReviewedFile, ReviewedFiles, RunSubject};
use crate::tui::diff::DiffRequest;
use crate::tui::finding_texts::{FindingText, find_texts};
use crate::tui::input::InputParser;
use crate::tui::message::{
    AppCommand, AppMessage, DetailSubject, ExitCause, FileListRow, FileListState, ReviewReply, RunFile, Tab,
    TriageOrder,
};
use crate::tui::page_data::PageData;
use crate::tui::views::live::{LiveReply, LiveRequest};
use crate::tui::views::{ViewReply, ViewRequest};
use crate::tui::{draw, glyphs, update};

/// Events between two frames.
const EVENTS_PER_FRAME: usize = 10;
/// Input that random bytes rarely make: keys with escape sequences, mouse reports, pastes, replies to queries.
const SEQUENCES: [&str; 28] = [
    "\x1b",
    "\x1b[A",
    "\x1b[B",
    "\x1b[C",
    "\x1b[D",
    "\x1b[5~",
    "\x1b[6~",
    "\x1b[H",
    "\x1b[F",
    "\x1b[Z",
    "\x1bOP",
    "\x1b[15~",
    "\x1b[1;5C",
    "\x1b[<0;10;7M",
    "\x1b[<0;10;7m",
    "\x1b[<64;300;300M",
    "\x1b[M !!",
    "\x1b[I",
    "\x1b[O",
    "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b[200~\x1b[2Jpaste\r\n\u{202e}\x07\x1b[201~",
    "\x1b[200~",
    "\r",
    "\t",
    "\x7f",
    "\x03",
    "漢\u{301}",
    "\u{1f468}\u{200d}\u{1f469}",
];
const HOSTILE: &str = "a\x1b[2Jb\u{202e}c\r\nd\t漢字\u{0}\u{7f}\u{200b}e";

/// A random number generator (xorshift); its seed must not be 0.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn variable(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Creates views from no findings to many, with hostile titles and paths.
fn views() -> Vec<Arc<StoreView>> {
    let mut hostile = StoreViewBuilder::default();
    let run = support::run_id(7);
    hostile.run(support::run_row(&run));
    for n in 0..9 {
        let id = support::finding_id(n + 1);
        hostile.finding(FindingRow {
            title: HOSTILE,
            path: HOSTILE,
            line_start: u32::MAX - n,
            line_end: u32::MAX,
            ..support::finding_row(&id, &run)
        });
    }
    vec![
        support::complete(StoreViewBuilder::default()),
        support::view(),
        support::many(1),
        support::many(500),
        support::complete(hostile),
        panel([RunStatus::Reviewing, RunStatus::Reviewing, RunStatus::Pending]),
        panel([RunStatus::Resolving, RunStatus::Completed, RunStatus::Failed]),
        panel([RunStatus::Completed; 3]),
    ]
}

/// Creates the view of a panel and its two members with these statuses; about every second finding they contradict each
/// other.
fn panel(statuses: [RunStatus; 3]) -> Arc<StoreView> {
    let mut builder = StoreViewBuilder::default();
    let ids = [9, 8, 6].map(support::run_id);
    let reviewers = ["sonnet+gpt", "sonnet", HOSTILE];
    for (at, (id, status)) in ids.iter().zip(statuses).enumerate() {
        let member_of = if at == 0 { "" } else { ids[0].as_str() };
        builder.run(RunRow { status, reviewer: reviewers[at], member_of, ..support::run_row(id) });
    }
    for n in 0..7 {
        let id = support::finding_id(n + 1);
        let status = if n % 3 == 2 { FindingStatus::Dismissed } else { FindingStatus::Open };
        builder.finding(FindingRow {
            status,
            line_start: n + 1,
            line_end: n + 1,
            panel_disputed: n % 2 == 0,
            symbol: if n % 3 == 0 { HOSTILE } else { "" },
            ..support::finding_row(&id, &ids[0])
        });
    }
    support::complete(builder)
}

/// Answers a command as the effects would, or as failed effects would.
fn answer(dice: &mut Dice, command: AppCommand) -> Option<AppMessage> {
    let text = || HOSTILE.to_owned();
    let fails = dice.below(3) == 0;
    Some(match command {
        AppCommand::Filter { serial, view, query } => {
            let listed = query.list(&view);
            AppMessage::Filtered { serial, view, listed }
        }
        AppCommand::LoadRunSubjects(queries) => {
            let subject = RunSubject { commits: dice.below(3), title: text() };
            AppMessage::RunSubjects(queries.into_iter().map(|query| (query.run, subject.clone())).collect())
        }
        AppCommand::Load { subject, tab: Tab::Diff } => {
            let shown = *dice.pick(&[None, Some(2), Some(3)]);
            let page = diff::sample().page(shown.map(support::finding_id).as_deref());
            AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(page.into()) }
        }
        AppCommand::Load { subject: subject @ DetailSubject::Finding(_), tab: Tab::Page } => {
            let mut loaded = support::page(2, 3);
            if let PageData::Finding(page) = loaded.as_mut()
                && fails
            {
                screens::add_voices(&mut page.finding);
            }
            AppMessage::Loaded { subject, tab: Tab::Page, loaded }
        }
        AppCommand::Diff(DiffRequest::Read { page, file }) => {
            let texts = if fails { Err(text()) } else { Ok(diff::sample().texts_of(&page, file)) };
            AppMessage::DiffFile { page, file, texts }
        }
        AppCommand::MarkViewed(mark) => {
            AppMessage::ViewedFile { mark, result: if fails { Err(text()) } else { Ok(()) } }
        }
        AppCommand::MarkChanges(marks) => {
            AppMessage::ChangesMarked { marks, result: if fails { Err(text()) } else { Ok(()) } }
        }
        AppCommand::MarkFiles { files, viewed, at } => {
            let mark = |file: &RunFile| ViewedFile { path: file.path.clone(), content: text(), viewed, at };
            let marks: Vec<ViewedFile> = files.iter().map(mark).collect();
            AppMessage::FilesMarked { files, result: if fails { Err(text()) } else { Ok(marks) } }
        }
        AppCommand::WriteFinding { finding, .. } => {
            assert!(finding.lines.start <= finding.lines.end, "{finding:?}");
            let written = support::finding_id(1 + dice.below(9) as u32);
            let written = WrittenComment { finding: written.parse().expect("an id"), trouble: None };
            AppMessage::FindingWritten(if fails { Err(text()) } else { Ok(written) })
        }
        AppCommand::Load { subject, tab } => {
            let loaded = support::page(1 + dice.below(6) as u32, 1 + dice.below(3) as u32);
            AppMessage::Loaded { subject, tab, loaded }
        }
        AppCommand::LoadFiles { run } => AppMessage::Files { run, files: None },
        AppCommand::LoadReviewedFiles { runs } => {
            let row = |run: &str| FileListRow::new(&format!("{run}/a clean file.rs"), FileListState::LeftOut("binary"));
            let reviewed = |run: String| ReviewedFile { row: row(&run), run };
            let files: Vec<ReviewedFile> = runs.into_iter().map(reviewed).collect();
            let viewed = files.iter().map(|file| (file.row.path.clone(), vec![file.run.clone()])).collect();
            let has_more = dice.below(2) == 0;
            AppMessage::ReviewedFiles(ReviewedFiles {
                files,
                has_more_clean: has_more,
                has_more_partial: has_more,
                has_more_left_out: has_more,
                viewed,
                partly_viewed: HashMap::new(),
            })
        }
        AppCommand::ListFiles { serial, view, source } => {
            AppMessage::FilesListed { serial, listed: source.collect_files(&view) }
        }
        AppCommand::LoadReported { run } => {
            let findings = (0..dice.below(5)).map(|n| support::finding_id(n as u32)).collect();
            AppMessage::Reported { run, findings }
        }
        AppCommand::Triage(order) => {
            let result = match (fails, &order) {
                (true, _) => Err(text()),
                (_, TriageOrder::Undo | TriageOrder::Redo) => Ok(UndoOutcome::Nothing),
                _ => Ok(UndoOutcome::Decided(Vec::new())),
            };
            AppMessage::Triaged { order, result, written: dice.below(100) as u64 }
        }
        AppCommand::Review { .. } => {
            let reply = ReviewReply { scope: None, run: None, decision: Ok(text()) };
            AppMessage::Requested(if fails { Err(text()) } else { Ok(reply) })
        }
        AppCommand::Cancel(run) => {
            AppMessage::Cancelled { run: run.to_string(), result: if fails { Err(text()) } else { Ok(text()) } }
        }
        AppCommand::CompareScopes { epoch, scopes } => {
            let fingerprints = scopes.iter().map(|scope| (scope.to_string(), text())).collect();
            let look = ScopeFingerprints { epoch, worktree: text(), branch: text(), head: text(), fingerprints };
            AppMessage::ScopesCompared {
                result: if fails { Err(text()) } else { Ok(look) },
                took_ms: dice.below(5_000) as i64,
            }
        }
        AppCommand::Sync | AppCommand::Watch | AppCommand::Snooze(_) => {
            AppMessage::Watched(if fails { Err(text()) } else { Ok(text()) })
        }
        AppCommand::PlanQuestion { finding: finding_id, .. } => AppMessage::QuestionPlanned(match fails {
            true => Err(text()),
            false if dice.below(2) == 0 => Ok(QuestionPlan::Stop(QuestionRequest {
                finding_id,
                run_id: support::run_id(3).parse().expect("an id"),
                reviewer: text(),
                question: text(),
                at: Time::UNIX_EPOCH,
                reserved_tokens: 0,
                reserved_microdollars: 0,
                reported_as: None,
            })),
            false => Ok(QuestionPlan::Ask(Box::new(PreparedQuestion {
                listed: finding_id.clone(),
                finding_id,
                reported_as: None,
                run_id: support::run_id(3).parse().expect("an id"),
                reviewer: text(),
                answerers: vec![text(), text()],
                question: String::new(),
                limit: CostLimit::AtMost { dollars: 0.13 },
                most: BudgetAmount::default(),
            }))),
        }),
        AppCommand::Ask { .. } => AppMessage::QuestionAsked(Err(text())),
        AppCommand::PlanFix(_) => AppMessage::FixPlanned(Err(text())),
        AppCommand::Fix(order) => AppMessage::FixFinished { order, result: Err(text()) },
        AppCommand::Note { .. } => AppMessage::Noted(if fails { Err(text()) } else { Ok(true) }),
        AppCommand::View(ViewRequest::TriageCards(findings)) => {
            let finding = dice.pick(&findings).clone();
            let card = if fails { Err(text()) } else { Ok(support::card(1 + dice.below(6) as u32)) };
            AppMessage::View(ViewReply::TriageCard { finding, card })
        }
        AppCommand::View(ViewRequest::Live(LiveRequest { run, .. })) => {
            let page = if fails { Err(text()) } else { Ok(live::sample_page(dice.below(2) == 0)) };
            AppMessage::View(ViewReply::Live(LiveReply::Run { run, page }))
        }
        AppCommand::Edit { .. } => AppMessage::Edited(if fails { Err(text()) } else { Ok(()) }),
        AppCommand::Suspend => AppMessage::Resumed,
        _ => return None,
    })
}

/// Returns the messages of one random event.
fn event(dice: &mut Dice, parser: &mut InputParser, views: &[Arc<StoreView>]) -> Vec<AppMessage> {
    let mut inputs = Vec::new();
    match dice.below(40) {
        0 => {
            let (columns, rows) = match dice.below(3) {
                0 => (dice.below(60), dice.below(16)),
                1 => (dice.below(260), dice.below(90)),
                _ => (dice.below(540), dice.below(160)),
            };
            let (columns, rows) = (columns as u16, rows as u16);
            return vec![AppMessage::Resized { columns, rows }];
        }
        1 => return vec![AppMessage::StoreRead { view: dice.pick(views).clone(), written: dice.below(100) as u64 }],
        2 if dice.below(2) == 0 => {
            return vec![AppMessage::RepositoryGone((dice.below(2) == 0).then(|| HOSTILE.to_owned()))];
        }
        2 => return vec![AppMessage::StoreTrouble(HOSTILE.to_owned())],
        3 => return vec![AppMessage::Tick],
        4 if dice.below(2) == 0 => {
            let team = TeamStatus {
                joined_at: Time::from_millisecond(dice.below(2) as i64).ok(),
                synced_at: Some(Time::UNIX_EPOCH),
                has_failed: dice.below(2) == 0,
                to_send: dice.below(3),
                disputed: (0..dice.below(3)).map(|n| support::finding_id(n as u32)).collect(),
            };
            return vec![AppMessage::Team(Some(team).filter(|_| dice.below(4) > 0))];
        }
        4 if dice.below(2) == 0 => return vec![AppMessage::TeamFollowed(dice.below(2) == 0)],
        4 if dice.below(4) == 0 => return vec![AppMessage::TeamStopped(HOSTILE.to_owned())],
        4 => return vec![AppMessage::Reconciled(Some(HOSTILE.to_owned()))],
        5 => return vec![AppMessage::Ended(ExitCause::Terminated)],
        6..12 => parser.feed(dice.pick(&SEQUENCES).as_bytes(), &mut inputs),
        12 => {
            let bytes: Vec<u8> = (0..1 + dice.below(12)).map(|_| dice.below(256) as u8).collect();
            parser.feed(&bytes, &mut inputs);
        }
        // The mouse: a gesture of a few reports, mostly inside a screen of ordinary size.
        13..17 => {
            for _ in 0..1 + dice.below(4) {
                let button = dice.pick(&[0, 0, 0, 1, 2, 4, 32, 32, 35, 64, 65, 66, 128]);
                let widest = if dice.below(4) == 0 { 600 } else { 130 };
                let (column, row) = (dice.below(widest), dice.below(45));
                let last = dice.pick(&['M', 'M', 'm']);
                parser.feed(format!("\x1b[<{button};{column};{row}{last}").as_bytes(), &mut inputs);
            }
        }
        // Ctrl keys.
        17..19 => parser.feed(&[1 + dice.below(26) as u8], &mut inputs),
        _ => parser.feed(&[b' ' + dice.below(95) as u8], &mut inputs),
    }
    if dice.below(2) == 0 {
        parser.flush(&mut inputs);
    }
    inputs.into_iter().map(AppMessage::Input).collect()
}

/// Checks the cursors of the lists against their rows.
fn check_state(app: &App, hint: &str) {
    for (name, selected, rows) in [
        ("runs", app.run_list.cursor.selected, app.run_list.entries.len()),
        ("findings", app.finding_list.cursor.selected, app.finding_list.rows.len()),
        ("files", app.file_list.cursor.selected, app.file_list.row_count()),
    ] {
        assert!(selected < rows.max(1), "{name}: row {selected} of {rows} is selected; {hint}");
    }
}

fn check_screen(app: &App, hint: &str) {
    let (columns, rows) = (app.display.columns, app.display.rows);
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(app, &mut buffer);
    // The texts that are kept for the rows are those that would be made now.
    for index in app.finding_list.rows.iter().take(64) {
        let fresh = FindingText::new(app, &app.store.view.finding(*index as usize));
        assert_eq!(*find_texts(app, *index), fresh, "finding {index}; {hint}");
    }
    let unsafe_cell = buffer.content().iter().find(|cell| cell.symbol().chars().any(is_unsafe));
    assert!(unsafe_cell.is_none(), "{columns}x{rows}: {unsafe_cell:?}; {hint}");
    // The hints of a sequence stand in place of the footer.
    if !app.layout().too_small && app.pending_keys.is_none() {
        check_footer(app, &buffer, hint);
    }
    if app.display.glyphs.is_ascii_only() {
        let other = buffer.content().iter().find(|cell| !cell.symbol().is_ascii());
        assert!(other.is_none(), "{columns}x{rows}: {other:?}; {hint}");
    }
}

/// Returns the number of messages, answers included, and of frames.
fn play(events: usize, seed: u64) -> (usize, usize) {
    let (mut dice, views) = (Dice(seed), views());
    let (mut app, mut parser) = (support::showing(120, 40, support::view()), InputParser::default());
    let (mut messages, mut frames) = (0, 0);
    let mut now = NOW;
    for number in 0..events {
        let hint = format!("event {number}, seed {seed}");
        now += dice.below(2_000) as i64;
        let mut waiting = event(&mut dice, &mut parser, &views);
        // A program that answers each answer with another request would not end.
        for _ in 0..32 {
            let Some(message) = waiting.pop() else { break };
            messages += 1;
            let mut ended = false;
            for command in update(&mut app, now, message) {
                ended |= matches!(command, AppCommand::Quit(_));
                waiting.extend(answer(&mut dice, command));
            }
            if ended {
                app = support::showing(120, 40, dice.pick(&views).clone());
                app.display.plain = dice.below(4) == 0;
                app.display.glyphs = *dice.pick(&[glyphs::UNICODE, glyphs::ASCII, glyphs::PLAIN]);
                app.display.motion = *dice.pick(&[MotionMode::Full, MotionMode::Reduced, MotionMode::Still]);
                parser = InputParser::default();
                waiting.clear();
            }
        }
        check_state(&app, &hint);
        if number % EVENTS_PER_FRAME == 0 {
            frames += 1;
            check_screen(&app, &hint);
        }
    }
    (messages, frames)
}

#[test]
fn some_thousand_random_events_do_no_harm() {
    let (messages, frames) = play(3_000, 0x5eed);
    assert!(messages > 2_000 && frames == 300, "{messages} messages, {frames} frames");
}

#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
fn campaign_of_random_events() {
    let events = variable("REVDECK_TEST_EVENTS", 1_000_000);
    let (threads, seed) = (2, variable("REVDECK_TEST_SEED", 0x5eed) as u64);
    let played = std::thread::scope(|scope| {
        let players: Vec<_> =
            (0..threads).map(|n| scope.spawn(move || play(events / threads, seed + n as u64))).collect();
        players.into_iter().map(|player| player.join().expect("no panic")).collect::<Vec<_>>()
    });
    let (messages, frames) = played.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    println!("{events} random events, {messages} messages, {frames} frames: no panic, no bad state (seed {seed})");
}
