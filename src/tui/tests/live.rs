//! Tests the Live view: screens, the scrub bar, following, hostile texts, sizes.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::diff::{Sides, sample as diff_sample};
use super::looks::{SIZES, assert_looks};
use super::mouse::{click, find};
use super::support::*;
use super::turns::TurnsFixture;
use super::turns::sample::Fate;
use crate::domain::{
    FileCoverage, Finding, JournalEntry, LineRange, OmissionReason, OmittedFile, Priority, RunEvent, RunRecord,
    RunStatus, Time, ToolOutcome, TurnPhase, WindowUse, text,
};
use crate::store::{Heartbeat, HeartbeatState, RunRow, StoreViewBuilder};
use crate::tui::app::{App, Pane, RunBudget};
use crate::tui::diff::DiffPage;
use crate::tui::keymap::KeyContext;
use crate::tui::message::{AppCommand, AppMessage, ReviewReply};
use crate::tui::page_data::PageData;
use crate::tui::theme::Role;
use crate::tui::views::live::{CONTEXT, LivePage, LiveReply, LiveRequest, ReviewTrace};
use crate::tui::views::{ViewReply, ViewRequest};
use crate::tui::{draw, glyphs};

fn run() -> String {
    run_id(4)
}

/// Builds a view with one run under way by a model.
fn working(status: RunStatus) -> Arc<crate::store::StoreView> {
    let id = run();
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { status, reviewer: "sonnet", scope: "range:HEAD~3..HEAD", hunks_total: 6, ..run_row(&id) });
    complete(builder)
}

fn finding(n: u32, priority: Priority, line: u32, title: &str) -> Box<Finding> {
    let PageData::Finding(page) = *page(n, 4) else { unreachable!("the page of a finding") };
    Box::new(Finding { priority, line_start: line, line_end: line, title: title.into(), ..page.finding })
}

/// Returns the entries of a run: three turns are answered, the fourth is on its way.
fn entries() -> Vec<RunEvent> {
    let asked = |turn, phase, tokens| {
        let window = WindowUse { tokens, limit: 70_000, ..WindowUse::default() };
        RunEvent::TurnAsked { turn, phase, asked: "Review.".into(), window }
    };
    let answered = |turn| RunEvent::TurnAnswered {
        turn,
        response: serde_json::from_value(serde_json::json!({ "text": "I look.", "stop": "tools", "usage": {} }))
            .expect("a response"),
        cost: 0.05,
        first_ms: 600,
        took_ms: 4_000,
        taken_over: false,
    };
    let tool = |turn, name: &str, arguments: serde_json::Value, outcome, result: &str| RunEvent::ToolAnswered {
        turn,
        name: name.into(),
        arguments: arguments.to_string(),
        outcome,
        tokens: 300,
        result: result.into(),
    };
    let covered = |path: &str, hunks: &[(u32, u32)]| {
        let hunks = hunks.iter().map(|(start, end)| LineRange::new(*start, *end)).collect();
        RunEvent::Covered { file: FileCoverage { path: path.into(), hunks, keys: Vec::new() } }
    };
    use ToolOutcome::{Answered, Refused};
    use serde_json::json;
    let lock = OmittedFile::new("Cargo.lock", OmissionReason::LockFile);
    vec![
        RunEvent::Started { attempt: 1, worker: 7 },
        RunEvent::Planned { files: 4, hunks: 6, left_out: vec![lock] },
        asked(1, TurnPhase::Investigate, 12_000),
        answered(1),
        RunEvent::Finding { finding: finding(2, Priority::P1, 4, "the error of `parse` is ignored") },
        covered("src/invoice/total.rs", &[(1, 1), (4, 4), (6, 6), (40, 41)]),
        tool(1, "codebase_search", json!({ "query": "retry" }), Answered, "9 places"),
        asked(2, TurnPhase::Investigate, 30_000),
        answered(2),
        tool(
            2,
            "read_file",
            json!({ "path": "src/invoice/total.rs" }),
            Answered,
            "src/invoice/total.rs, lines 20 to 60 of 61",
        ),
        tool(2, "read_file", json!({ "path": "../../etc/passwd" }), Refused, "outside of the repository"),
        asked(3, TurnPhase::Analyse, 64_000),
        answered(3),
        RunEvent::Finding { finding: finding(1, Priority::P0, 41, "a token in the source") },
        covered("src/mail.rs", &[(1, 3)]),
        asked(4, TurnPhase::Analyse, 41_000),
    ]
}

fn live_page(events: Vec<RunEvent>, status: RunStatus) -> Arc<LivePage> {
    let mut trace = ReviewTrace::default();
    for event in events {
        trace.apply_entry(JournalEntry { seq: 0, at: Time::UNIX_EPOCH, event });
    }
    let record: RunRecord = serde_json::from_value(serde_json::json!({
        "run_id": run(), "status": status, "created_at": "2026-03-04T11:00:00Z", "updated_at": "2026-03-04T11:00:00Z",
        "source": "cli", "scope": "range:HEAD~3..HEAD", "reviewer": "sonnet", "model": "", "attempt": 1,
        "prompt_estimate": 24_000, "cost": 0.15, "tokens": { "input": 106_000, "output": 900 },
    }))
    .expect("a record");
    let changed = ["src/invoice/total.rs", "src/mail.rs", "src/new.rs"].map(str::to_owned).to_vec();
    Arc::new(LivePage { record, trace, changed })
}

/// Returns the page of a run, which works or has ended.
pub(super) fn sample_page(is_working: bool) -> Arc<LivePage> {
    live_page(entries(), if is_working { RunStatus::Reviewing } else { RunStatus::Completed })
}

fn sides() -> Sides {
    diff_sample().file("src/new.rs", "", "pub fn nobody_read_this() {}\n", Vec::new())
}

fn diff_page() -> Arc<DiffPage> {
    Arc::new(DiffPage { run: run(), ..(*sides().page(None)).clone() })
}

fn beat(app: &mut App, state: HeartbeatState) -> Vec<AppCommand> {
    let at = |ago: i64| Time::from_millisecond(NOW - ago).expect("a moment");
    let pulse = Heartbeat {
        turn: 4,
        state,
        since: at(2_000),
        last_byte_at: None,
        bytes: 0,
        tail: "retry() doubles the pause up to a minute, and nothing stops it when the run is cancelled.".into(),
        cost: 0.14,
        tokens: crate::domain::Usage { input: 105_000, output: 900, ..Default::default() },
    };
    send(app, AppMessage::Pulses(vec![(run(), pulse)]))
}

fn reply(app: &mut App, reply: LiveReply) -> Vec<AppCommand> {
    send(app, AppMessage::View(ViewReply::Live(reply)))
}

/// Opens the view of a run with these entries and its diff.
fn open(columns: u16, rows: u16, events: Vec<RunEvent>, status: RunStatus) -> App {
    let mut app = showing(columns, rows, working(status));
    app.session.budget = RunBudget { cost: Some(1.0), tokens: None };
    if status.is_working() {
        beat(&mut app, HeartbeatState::Waiting);
    }
    let commands = press(&mut app, "1 V");
    let request = LiveRequest { run: run(), wants_diff: true };
    let is_request =
        |command: &AppCommand| matches!(command, AppCommand::View(ViewRequest::Live(wanted)) if *wanted == request);
    assert!(commands.iter().any(is_request), "{commands:?}");
    reply(&mut app, LiveReply::Run { run: run(), page: Ok(live_page(events, status)) });
    let commands = reply(&mut app, LiveReply::Diff(diff_page()));
    sides().answer(&mut app, commands);
    app
}

pub(super) fn following(columns: u16, rows: u16) -> App {
    open(columns, rows, entries(), RunStatus::Reviewing)
}

#[test]
fn screens() {
    for (columns, rows) in SIZES {
        let mut app = following(columns, rows);
        assert_looks("live_following", &mut app);
        press(&mut app, "Left Left");
        assert_looks("live_first_turn", &mut app);
    }
}

#[test]
fn a_file_that_the_user_has_viewed_lights_up_like_the_others() {
    let mut app = showing(160, 48, working(RunStatus::Completed));
    press(&mut app, "1 V");
    reply(&mut app, LiveReply::Run { run: run(), page: Ok(live_page(entries(), RunStatus::Completed)) });
    let mut page = (*diff_page()).clone();
    for file in &mut page.files {
        file.is_viewed = true;
    }
    // Also when the diff is read again.
    for _ in 0..2 {
        let commands = reply(&mut app, LiveReply::Diff(Arc::new(page.clone())));
        sides().answer(&mut app, commands);
        let shown = screen(&app);
        assert!(shown.contains("let more = 1;") && !shown.contains("▸ src/"), "{shown}");
    }
}

#[test]
fn the_header_does_not_repeat_what_the_first_row_says_of_the_run() {
    let header = |app: &App| screen(app).lines().next().unwrap_or_default().to_owned();
    let mut app = following(160, 48);
    let shown = screen(&app);
    assert!(header(&app).starts_with(" billing  main") && !header(&app).contains("sonnet"), "{shown}");
    assert_eq!(shown.matches("waiting for the first byte, 2 s").count(), 1, "{shown}");
    press(&mut app, "Esc");
    assert!(header(&app).contains("sonnet on HEAD~3..HEAD"), "{}", screen(&app));
    // The view of another run says nothing of the one that works.
    let (other, id) = (run_id(3), run());
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { status: RunStatus::Reviewing, reviewer: "sonnet", ..run_row(&id) });
    builder.run(run_row(&other));
    let mut app = showing(160, 48, complete(builder));
    press(&mut app, "1 j V");
    assert!(header(&app).contains("sonnet on worktree"), "{}", screen(&app));
}

fn bar(app: &App) -> String {
    let shown = screen(app);
    let row = shown.lines().find(|line| line.contains('◂')).unwrap_or_default();
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_step_through_the_turns_and_end_follows_again() {
    let mut app = following(120, 40);
    for (keys, expected) in [
        ("j", "◂ 1 2 [3] 4… ▸ following"),
        ("Left", "◂ 1 [2] 3 4… ▸ not following"),
        ("h h h", "◂ [1] 2 3 4… ▸ not following"),
        ("l", "◂ 1 [2] 3 4… ▸ not following"),
        ("Right Right", "◂ 1 2 3 [4…] ▸ not following"),
        ("Home", "◂ [1] 2 3 4… ▸ not following"),
        ("End", "◂ 1 2 [3] 4… ▸ following"),
        ("Right Right", "◂ 1 2 [3] 4… ▸ following"),
    ] {
        press(&mut app, keys);
        assert_eq!(bar(&app), expected, "{keys}");
    }
    assert_eq!(app.key_context(), KeyContext::View(&CONTEXT));
    press(&mut app, "Esc");
    assert!(app.views.is_empty());
}

#[test]
fn the_key_of_a_pane_leaves_a_view_for_it() {
    for (view, key, pane) in
        [("1 V", "1", Pane::Runs), ("1 V", "2", Pane::Findings), ("S", "3", Pane::Files), ("1 K", "2", Pane::Findings)]
    {
        let mut app = showing(160, 48, working(RunStatus::Reviewing));
        press(&mut app, view);
        assert_eq!(app.views.len(), 1, "{view}");
        press(&mut app, key);
        assert!(app.views.is_empty() && app.panes.focus == pane, "{view} {key}: {:?}", app.panes.focus);
    }
    // In a window the key is the window's.
    let mut app = following(160, 48);
    press(&mut app, "C 2");
    assert_eq!(app.views.len(), 2, "{}", screen(&app));
}

#[test]
fn clicks_choose_turns_and_files() {
    let mut app = following(120, 24);
    let (x, y) = find(&app, "[3]");
    click(&mut app, x - 2, y);
    assert_eq!(bar(&app), "◂ 1 [2] 3 4… ▸ not following");
    let (x, y) = find(&app, "◂");
    click(&mut app, x, y);
    assert_eq!(bar(&app), "◂ [1] 2 3 4… ▸ not following");
    let (x, y) = find(&app, "▸ ");
    click(&mut app, x, y);
    assert_eq!(bar(&app), "◂ 1 [2] 3 4… ▸ not following");
    // The third cell of the map is src/mail.rs: a click shows it, and the turn stays.
    press(&mut app, "Home");
    let name = "▾ src/mail.rs";
    assert!(!screen(&app).contains(name), "{}", screen(&app));
    let (x, y) = find(&app, "files ");
    click(&mut app, x + 6 + 2, y);
    assert!(screen(&app).contains(name), "{}", screen(&app));
    assert_eq!(bar(&app), "◂ [1] 2 3 4… ▸ not following");
    // Its name leads to the turn that read it.
    let (x, y) = find(&app, name);
    click(&mut app, x + 3, y);
    assert_eq!(bar(&app), "◂ 1 2 [3] 4… ▸ not following");
    assert!(screen(&app).contains(name), "{}", screen(&app));
}

#[test]
fn a_click_in_the_list_of_files_goes_to_the_turn_that_read_the_file() {
    let mut app = showing(120, 40, working(RunStatus::Reviewing));
    press(&mut app, "1 V");
    reply(&mut app, LiveReply::Run { run: run(), page: Ok(live_page(entries(), RunStatus::Reviewing)) });
    press(&mut app, "Home");
    let (x, y) = find(&app, " src/mail.rs");
    click(&mut app, x + 3, y);
    assert_eq!(bar(&app), "◂ 1 2 [3] 4… ▸ not following");
    let (x, y) = find(&app, " src/new.rs");
    click(&mut app, x + 3, y);
    assert!(screen(&app).contains("no turn has read this file"), "{}", screen(&app));
}

/// Returns the rows that are lit, and the styles of the code of each row.
fn lit(app: &App) -> Vec<String> {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.display.columns, app.display.rows));
    draw(app, &mut buffer);
    let accent = app.display.theme.style(Role::Accent).fg;
    let rows = (0..app.display.rows).filter(|y| {
        let cell = &buffer[(1, *y)];
        cell.symbol() == "▌" && Some(cell.fg) == accent
    });
    let text = |y: u16| (2..app.display.columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    rows.map(|y| text(y).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_a_turn_read_is_lit_and_what_it_reports_is_marked() {
    let mut app = following(100, 60);
    assert!(lit(&app).iter().any(|row| row.contains("Sends mail.")), "turn 3: {:?}", lit(&app));
    assert!(!lit(&app).iter().any(|row| row.contains("nobody_read_this") || row.contains("parse")));
    press(&mut app, "Home");
    let rows = lit(&app);
    assert!(rows.iter().any(|row| row.contains("line.amount.parse")), "turn 1: {rows:?}");
    assert!(!rows.iter().any(|row| row.contains("Sends mail")), "{rows:?}");
    let shown = screen(&app);
    assert!(shown.contains("● P1  src/invoice/total.rs:4"), "{shown}");
    assert!(!shown.contains("a token in the source"), "a later turn reports it: {shown}");
    press(&mut app, "End");
    assert!(screen(&app).contains("● P0  src/invoice/total.rs:41"), "{}", screen(&app));
}

#[test]
fn it_follows_the_run_by_the_changes_that_the_cockpit_tells_of() {
    let mut app = following(120, 40);
    let is_request = |commands: &[AppCommand]| {
        commands.iter().any(|command| matches!(command, AppCommand::View(ViewRequest::Live(_))))
    };
    assert!(!is_request(&beat(&mut app, HeartbeatState::Waiting)), "nothing has changed");
    assert!(is_request(&beat(&mut app, HeartbeatState::Receiving)));
    assert!(!is_request(&beat(&mut app, HeartbeatState::Tools)), "the answer to the first request is on its way");
    let mut events = entries();
    events.push(RunEvent::ToolAnswered {
        turn: 4,
        name: "find_symbol".into(),
        arguments: r#"{"name":"Session"}"#.into(),
        outcome: ToolOutcome::Answered,
        tokens: 1,
        result: String::new(),
    });
    let page = live_page(events.clone(), RunStatus::Reviewing);
    let commands = reply(&mut app, LiveReply::Run { run: run(), page: Ok(page) });
    assert!(is_request(&commands), "it was outdated");
    press(&mut app, "Right");
    assert!(screen(&app).contains("looked up Session"), "{}", screen(&app));
    // The answer of another run is not for this view.
    let page = live_page(Vec::new(), RunStatus::Reviewing);
    reply(&mut app, LiveReply::Run { run: run_id(1), page: Ok(page) });
    assert!(screen(&app).contains("looked up Session"));
    let page = live_page(events, RunStatus::Completed);
    reply(&mut app, LiveReply::Run { run: run(), page: Ok(page) });
    let commands = send(&mut app, AppMessage::StoreRead { view: working(RunStatus::Completed), written: 0 });
    assert!(!is_request(&commands), "it has ended");
    assert!(!screen(&app).contains("following"), "{}", screen(&app));
}

#[test]
fn each_activity_has_its_words() {
    let mut app = following(160, 48);
    let until = Time::from_millisecond(NOW + 12_000).expect("a moment");
    for (state, said) in [
        (HeartbeatState::Waiting, "◌ waiting for the first byte, 2 s"),
        (HeartbeatState::Receiving, "● receiving, 0 B, 2 s"),
        (HeartbeatState::BackingOff { reason: "rate limited".into(), until }, "◌ rate limited, 12 s left"),
        (HeartbeatState::Tools, "● running tools, 2 s"),
    ] {
        beat(&mut app, state);
        let shown = screen(&app);
        assert!(shown.lines().nth(1).is_some_and(|row| row.contains(said)), "{said}: {shown}");
    }
}

#[test]
fn the_names_of_reviewer_and_run_stay_before_the_tokens() {
    for columns in [100, 110, 120, 160] {
        let shown = screen(&following(columns, 30));
        let row = shown.lines().nth(1).unwrap_or_default();
        assert!(row.starts_with(" sonnet   HEAD~3..HEAD   turn 4 of 20 analyse "), "{columns}: {shown}");
        assert!(row.contains("$0.14 of $1.00"), "{columns}: {shown}");
    }
    let mut app = open(80, 24, entries(), RunStatus::Completed);
    press(&mut app, "Left");
    assert!(screen(&app).contains(" sonnet   HEAD~3..HEAD   "), "{}", screen(&app));
}

#[test]
fn a_long_wait_does_not_hide_what_was_spent() {
    let until = Time::from_millisecond(NOW + 12_000).expect("a moment");
    let reason = "rate limited by the provider after 3 of 5 attempts";
    for columns in [24, 40, 60, 80, 120] {
        let mut app = following(columns, 24);
        beat(&mut app, HeartbeatState::BackingOff { reason: reason.into(), until });
        let shown = screen(&app);
        assert!(shown.lines().nth(1).is_some_and(|row| row.contains("$0.14")), "at {columns}: {shown}");
    }
}

#[test]
fn a_run_without_findings_says_what_it_has_read_and_why_no_more() {
    let id = run();
    let whole = RunRow { reviewer: "sonnet", counts: [0; 4], hunks_total: 6, hunks_covered: 6, ..run_row(&id) };
    let failed =
        RunRow { status: RunStatus::Failed, error_class: "rate_limit", files_covered: 0, hunks_covered: 0, ..whole };
    let stopped = RunRow { status: RunStatus::Cancelled, cancel_reason: "budget_exhausted", hunks_covered: 5, ..whole };
    let working = RunRow { status: RunStatus::Reviewing, ..whole };
    let is_quiet = |event: &RunEvent| !matches!(event, RunEvent::Finding { .. });
    let quiet = || -> Vec<RunEvent> { entries().into_iter().filter(is_quiet).collect() };
    for (title, row, events, keys, said, reason) in [
        ("all", whole, quiet(), "", "found nothing", ""),
        ("an earlier turn", whole, quiet(), "Home", "found nothing yet", ""),
        ("working", working, quiet(), "", "found nothing yet", ""),
        ("failed at once", failed, Vec::new(), "", "nothing was reviewed", "not reviewed: it failed: rate limit"),
        (
            "a budget",
            stopped,
            quiet(),
            "",
            "found nothing in the reviewed part",
            "only a part was reviewed: budget reached",
        ),
    ] {
        for (columns, rows) in SIZES {
            let mut builder = StoreViewBuilder::default();
            builder.run(row);
            let mut app = showing(columns, rows, complete(builder));
            press(&mut app, "1 V");
            reply(&mut app, LiveReply::Run { run: run(), page: Ok(live_page(events.clone(), row.status)) });
            press(&mut app, keys);
            let shown = screen(&app);
            assert!(columns < 160 || shown.lines().any(|line| line.trim_end().ends_with(said)), "{title}: {shown}");
            let is_clean = shown.lines().any(|line| line.trim_end().ends_with(" nothing"));
            assert_eq!(is_clean, title == "all", "{title} at {columns}: {shown}");
            let has_reason = shown.contains("not reviewed:") || shown.contains("only a part was reviewed:");
            assert!(shown.contains(reason) && has_reason != reason.is_empty(), "{title} at {columns}: {shown}");
        }
    }
}

#[test]
fn the_signs_of_a_map_of_many_files_are_explained() {
    for columns in [80, 100, 160] {
        let mut app = following(columns, 40);
        let mut page = Arc::into_inner(live_page(entries(), RunStatus::Reviewing)).expect("one owner");
        page.changed = (0..300).map(|number| format!("src/part_{number:03}.rs")).collect();
        reply(&mut app, LiveReply::Run { run: run(), page: Ok(Arc::new(page)) });
        let shown = screen(&app);
        let map = shown.lines().find(|line| line.starts_with(" files ")).unwrap_or_default();
        assert!(map.contains("this turn") && map.contains("nobody yet"), "{shown}");
    }
}

#[test]
fn a_run_of_the_built_in_reviewer_has_no_bar_of_turns() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        press(&mut app, "1 V");
        let events = entries().into_iter().filter(|event| {
            !matches!(event, RunEvent::TurnAsked { .. } | RunEvent::TurnAnswered { .. } | RunEvent::ToolAnswered { .. })
        });
        let mut page = Arc::into_inner(live_page(events.collect(), RunStatus::Completed)).expect("one owner");
        page.record.reviewed_by.name = "builtin".into();
        reply(&mut app, LiveReply::Run { run: run_id(3), page: Ok(Arc::new(page)) });
        press(&mut app, "Left Right Home End j k");
        assert_looks("live_builtin", &mut app);
    }
}

#[test]
fn a_finished_run_is_read_from_its_journal_in_the_store() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Completed]);
    for (columns, rows) in SIZES {
        let mut app = fixture.app(columns, rows);
        fixture.press(&mut app, "1 V Home Right");
        assert_looks("live_finished", &mut app);
    }
}

#[test]
fn a_run_under_way_is_followed_in_the_store() {
    let mut fixture = TurnsFixture::with_fates(&[Fate::Receiving]);
    let mut app = fixture.app(120, 40);
    fixture.press(&mut app, "1 V");
    assert!(bar(&app).starts_with("◂ 1 2 3 4 5 [6] 7… ▸"), "{}", screen(&app));
    let file = FileCoverage { path: "src/late.rs".into(), hunks: vec![LineRange::new(1, 2)], keys: Vec::new() };
    let run = fixture.written[0].1.run.clone();
    let mut journal = fixture.store.open_journal(&run).expect("a journal");
    journal.append(super::turns::now(), RunEvent::Covered { file }).expect("appended");
    fixture.refresh(&mut app);
    assert!(screen(&app).contains("src/late.rs"), "{}", screen(&app));
}

#[test]
fn the_keys_of_a_run_work_and_a_finding_leads_to_its_run() {
    let mut app = following(120, 40);
    let commands = press(&mut app, "p");
    assert!(matches!(commands.as_slice(), [AppCommand::Pause(_)]), "{commands:?}");
    press(&mut app, "C");
    assert!(screen(&app).contains("Cancel the review of HEAD~3..HEAD?"), "{}", screen(&app));
    let commands = press(&mut app, "y");
    assert!(matches!(commands.as_slice(), [AppCommand::Cancel(_)]), "{commands:?}");
    let mut app = showing(120, 40, view());
    let commands = press(&mut app, "2 V");
    let is_request = |command: &AppCommand| matches!(command, AppCommand::View(ViewRequest::Live(wanted)) if wanted.run == run_id(3));
    assert!(commands.iter().any(is_request), "{commands:?}");
    reply(&mut app, LiveReply::Run { run: run_id(3), page: Err("the store no longer has the run".into()) });
    assert!(screen(&app).contains("the store no longer has the run"), "{}", screen(&app));
    let mut app = app_without_runs();
    press(&mut app, "V");
    assert!(screen(&app).contains("no run is selected"), "{}", screen(&app));
}

#[test]
fn the_review_that_was_asked_for_is_watched_from_the_findings_while_it_is_under_way() {
    let (asked, old, found) = (run_id(4), run_id(3), finding_id(1));
    let watched = |commands: &[AppCommand]| {
        commands.iter().find_map(|command| match command {
            AppCommand::View(ViewRequest::Live(wanted)) => Some(wanted.run.clone()),
            _ => None,
        })
    };
    for (status, is_asked, expected) in [
        (RunStatus::Reviewing, true, &asked),
        (RunStatus::Pending, true, &asked),
        (RunStatus::Completed, true, &old),
        (RunStatus::Reviewing, false, &old),
    ] {
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { status, ..run_row(&asked) });
        builder.run(run_row(&old)).finding(finding_row(&found, &old));
        let mut app = showing(120, 40, complete(builder));
        press(&mut app, "2");
        if is_asked {
            let reply = ReviewReply { scope: None, run: Some(asked.clone()), decision: Ok("reviewing".to_owned()) };
            send(&mut app, AppMessage::Requested(Ok(reply)));
        }
        assert_eq!(watched(&press(&mut app, "V")).as_ref(), Some(expected), "{status} {is_asked}");
        // A selected run is meant, whatever was asked for.
        press(&mut app, "q 1 G");
        assert_eq!(watched(&press(&mut app, "V")).as_ref(), Some(&old), "{status} {is_asked}");
    }
}

fn app_without_runs() -> App {
    showing(120, 40, complete(StoreViewBuilder::default()))
}

#[test]
fn no_size_is_too_small_and_no_text_is_obeyed() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}abc\u{9b}31m \u{e0041}\r\n\tx 漢字かな";
    let mut events = entries();
    let arguments = serde_json::json!({ "path": evil, "query": evil }).to_string();
    for name in ["read_file", "codebase_search", evil] {
        events.push(RunEvent::ToolAnswered {
            turn: 4,
            name: name.into(),
            arguments: arguments.clone(),
            outcome: ToolOutcome::Answered,
            tokens: u64::MAX,
            result: format!("{evil}, lines 1 to 9 of 9"),
        });
    }
    let hunks = vec![LineRange { start: u32::MAX, end: 0 }, LineRange { start: 0, end: u32::MAX }];
    events.push(RunEvent::Covered { file: FileCoverage { path: evil.into(), hunks, keys: Vec::new() } });
    let mut found = finding(9, Priority::P0, u32::MAX, evil);
    found.repo_relative_path = evil.into();
    events.push(RunEvent::Finding { finding: found });
    for (columns, rows) in
        [(20, 5), (20, 24), (33, 7), (40, 10), (60, 16), (80, 5), (80, 24), (120, 16), (200, 60), (500, 5), (500, 150)]
    {
        for has_diff in [true, false] {
            let mut app = open(columns, rows, events.clone(), RunStatus::Reviewing);
            if !has_diff {
                let empty = DiffPage { run: run(), note: Some(evil.into()), ..DiffPage::default() };
                reply(&mut app, LiveReply::Diff(Arc::new(empty)));
            }
            for keys in ["", "Right", "Left", "Home", "End", "G", "g", "j", "Ctrl-d", "=", "PageDown"] {
                press(&mut app, keys);
                for set in [glyphs::UNICODE, glyphs::ASCII, glyphs::PLAIN] {
                    app.display.glyphs = set;
                    let shown = screen(&app);
                    assert!(!shown.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{columns}x{rows}: {shown}");
                    assert!(!set.is_ascii_only() || shown.is_ascii(), "{columns}x{rows}: {shown}");
                }
            }
            for (columns, rows) in [(20, 5), (37, 11), (300, 9), (columns, rows)] {
                send(&mut app, AppMessage::Resized { columns, rows });
                screen(&app);
            }
        }
    }
}
