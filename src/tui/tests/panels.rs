//! Tests what the cockpit shows of panels: the row of a panel and those of its members, its page, its Live view.

use std::sync::Arc;

use super::looks::assert_looks_at_all_sizes;
use super::mouse::{click, find};
use super::support::*;
use crate::domain::{Priority, RunRecord, RunStatus, Time, Usage};
use crate::store::{FindingRow, Heartbeat, HeartbeatState, RunRow, StoreView, StoreViewBuilder};
use crate::tui::app::{App, Pane, RunSubject};
use crate::tui::glyphs;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};
use crate::tui::page_data::{PageData, RunPage, TurnsPage};
use crate::tui::turns::TurnHistory;
use crate::tui::views::ViewRequest;

/// Numbers of the runs: the panel, its members, and the earlier run that the built-in reviewer's part reuses.
const PANEL: u32 = 8;
const GEMINI: u32 = 7;
const GPT: u32 = 6;
const SONNET: u32 = 5;
const BUILTIN: u32 = 2;

/// Builds a view with a panel of four: one member is reused, and one works until the panel has ended.
fn panel_view(has_ended: bool) -> Arc<StoreView> {
    let [panel, gemini, gpt, sonnet, builtin] = [PANEL, GEMINI, GPT, SONNET, BUILTIN].map(run_id);
    let members = format!("{sonnet} {gpt} {gemini} {builtin}:reuse");
    let row = |id| RunRow { scope: "commit:HEAD", created_ms: NOW - 60_000, ..run_row(id) };
    let member = |id| RunRow { member_of: &panel, hunks_total: 2, hunks_covered: 2, cost: 0.0076, ..row(id) };
    let ended = if has_ended { RunStatus::Completed } else { RunStatus::Pending };
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow {
        status: ended,
        reviewer: "panel:three",
        members: &members,
        counts: if has_ended { [0, 1, 6, 2] } else { [0; 4] },
        files_covered: if has_ended { 2 } else { 0 },
        files_total: 2,
        hunks_total: if has_ended { 2 } else { 0 },
        hunks_covered: if has_ended { 2 } else { 0 },
        ..row(&panel)
    });
    builder.run(RunRow { reviewer: "gemini", counts: [0, 1, 2, 1], tokens: 9_100, ..member(&gemini) });
    builder.run(RunRow {
        reviewer: "gpt",
        status: if has_ended { RunStatus::Completed } else { RunStatus::Reviewing },
        hunks_covered: if has_ended { 2 } else { 1 },
        counts: [0, 0, 2, 1],
        tokens: if has_ended { 12_400 } else { 0 },
        cost: if has_ended { 0.0101 } else { 0.0 },
        ..member(&gpt)
    });
    builder.run(RunRow { reviewer: "sonnet", counts: [0, 1, 2, 0], tokens: 8_200, ..member(&sonnet) });
    builder.run(RunRow { counts: [0, 0, 2, 0], hunks_total: 2, hunks_covered: 2, reuse_count: 1, ..row(&builtin) });
    for (number, run) in [(1, &gemini), (2, &gpt), (3, &sonnet)] {
        let id = finding_id(number);
        builder.finding(finding_row(&id, run));
    }
    complete(builder)
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        turn: 3,
        state: HeartbeatState::Waiting,
        since: Time::from_millisecond(NOW - 2_000).expect("a moment"),
        last_byte_at: None,
        bytes: 0,
        tail: "the loop never ends when the call keeps failing".into(),
        cost: 0.0101,
        tokens: Usage { input: 11_000, output: 1_400, ..Usage::default() },
    }
}

/// Opens the list of runs, with the panel selected.
fn open(columns: u16, rows: u16, has_ended: bool) -> App {
    let mut app = showing(columns, rows, panel_view(has_ended));
    let subject = RunSubject { commits: 1, title: "Find users".into() };
    for run in [PANEL, GEMINI, GPT, SONNET, BUILTIN] {
        Arc::make_mut(&mut app.run_list.subjects).insert(run_id(run), Some(subject.clone()));
    }
    if !has_ended {
        send(&mut app, AppMessage::Pulses(vec![(run_id(GPT), heartbeat())]));
    }
    press(&mut app, "1 g");
    app
}

/// Returns the record of the panel as its page has it.
fn panel_record(has_ended: bool) -> RunRecord {
    let member = |reviewer: &str, run: u32, decision: &str| serde_json::json!({ "reviewer": reviewer, "run_id": run_id(run), "decision": decision });
    let members = [
        member("sonnet", SONNET, "launch"),
        member("gpt", GPT, "launch"),
        member("gemini", GEMINI, "launch"),
        member("builtin", BUILTIN, "reuse"),
    ];
    let coverage = serde_json::json!({ "files_total": 2, "files_covered": 2, "hunks_total": 2, "hunks_covered": 2 });
    serde_json::from_value(serde_json::json!({
        "run_id": run_id(PANEL), "status": if has_ended { "completed" } else { "pending" },
        "created_at": "2026-03-04T11:59:00Z", "updated_at": "2026-03-04T11:59:40Z", "source": "cli",
        "scope": "commit:HEAD", "reviewer": "panel:three", "branch": "main", "snapshot_commit": "3fa2c1d09b7e4851aa",
        "panel": { "name": "three", "members": members },
        "coverage": if has_ended { coverage } else { serde_json::json!({ "files_total": 2 }) },
    }))
    .expect("a record")
}

/// Opens the list of runs with the page of the panel beside it.
fn open_page(columns: u16, rows: u16, has_ended: bool) -> App {
    let mut app = open(columns, rows, has_ended);
    let page = RunPage { run: panel_record(has_ended), output: None, journal: Vec::new() };
    let subject = DetailSubject::Run(run_id(PANEL));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: Box::new(PageData::Run(Box::new(page))) });
    // The first key unfolds what is folded.
    press(&mut app, if has_ended { "l l" } else { "l" });
    app
}

/// Returns the rows of the list of runs without repeated blanks.
fn list_rows(app: &App) -> Vec<String> {
    let shown = screen(app);
    let rows = shown.lines().skip_while(|line| !line.contains("1 Runs")).skip(1);
    let rows = rows.take_while(|line| !line.contains("2 Findings")).map(|line| line.split('│').next().unwrap_or(line));
    let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    rows.filter(|row| !row.is_empty()).collect()
}

#[test]
fn screens() {
    for (name, has_ended) in [("panel_running", false), ("panel_ended", true)] {
        assert_looks_at_all_sizes(name, |columns, rows| {
            let mut app = open(columns, rows, has_ended);
            press(&mut app, "Space");
            app
        });
        assert_looks_at_all_sizes(&format!("{name}_page"), |columns, rows| open_page(columns, rows, has_ended));
        assert_looks_at_all_sizes(&format!("{name}_live"), |columns, rows| {
            let mut app = open(columns, rows, has_ended);
            press(&mut app, "V j");
            app
        });
    }
}

#[test]
fn a_panel_says_how_far_its_members_are_and_stands_above_them_in_the_order_of_the_settings() {
    let app = open(160, 48, false);
    let header = screen(&app).lines().next().unwrap_or_default().to_owned();
    assert!(header.contains("gpt on") && !header.contains("1 waiting"), "{header}");
    let rows = list_rows(&app);
    let expected = [
        "◌ 3fa2c1d 3 of 4 done · “Find users” 12 panel three $0.03 1m",
        "└ ✓ sonnet 2/2 hunks 3 $0.0076 1m",
        "└ ◌ gpt turn 3/20 · 1/2 hunks 3 $0.01 1m",
        "└ ✓ gemini 2/2 hunks 4 $0.0076 1m",
        "└ ✓ builtin reused · 2/2 hunks 2 1m",
        "✓ 3fa2c1d “Find users” · reused 1 time 2 builtin 1m",
    ];
    let words = |row: &str| row.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>();
    // The glyphs of the states are those of the theme.
    for (row, expected) in rows.iter().zip(expected) {
        let is_nested = expected.starts_with('└');
        assert_eq!(row.starts_with('└'), is_nested, "{rows:#?}");
        let skipped = usize::from(is_nested);
        assert_eq!(words(row)[skipped..], words(expected)[skipped..], "{rows:#?}");
    }
    assert_eq!(rows.len(), expected.len(), "{rows:#?}");
}

#[test]
fn an_ended_panel_has_the_findings_of_its_list_and_the_cost_of_its_members_and_is_folded() {
    let mut app = open(160, 48, true);
    let rows = list_rows(&app);
    assert!(rows[0].ends_with("9 panel three $0.03 1m"), "{rows:#?}");
    assert_eq!(rows[1], "└ 4 members", "{rows:#?}");
    press(&mut app, "Space");
    let rows = list_rows(&app);
    assert_eq!((rows.len(), rows[4].contains("builtin reused")), (6, true), "{rows:#?}");
    // The page and the Live view lead to the members.
    let mut app = open_page(160, 48, true);
    let shown = screen(&app);
    for expected in ["4 of 4 done", "reused", "29,700 tokens, $0.03 by 3 of 4 members", "P1 1   P2 6   P3 2"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert!(!shown.contains(&run_id(SONNET)), "no ids of members: {shown}");
    press(&mut app, "j j j Enter");
    assert_eq!(app.selected_run().map(|run| run.id.to_owned()), Some(run_id(GEMINI)), "{}", screen(&app));
    assert_eq!(app.detail.subject, DetailSubject::Run(run_id(GEMINI)));
    let selected = app.run_list.entries[app.run_list.cursor.selected];
    assert!(selected.nested && selected.member.is_some());
}

#[test]
fn the_page_of_a_working_panel_adds_up_its_members() {
    let app = open_page(160, 48, false);
    let shown = screen(&app);
    for expected in [
        "reviewing",
        "3 of 4",
        "7 of 8",
        "P1 2   P2 8   P3 2   not merged yet",
        "29,700 tokens, $0.03 by 3 of 4 members",
        "3/20",
        "12k",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert!(!shown.contains("none so far") && !shown.contains("0 in, 0 out"), "{shown}");
}

#[test]
fn what_other_runs_have_answered_is_not_said_to_be_spent_by_all_members() {
    let [panel, gpt, sonnet, elsewhere] = [PANEL, GPT, SONNET, BUILTIN].map(run_id);
    let members = format!("{sonnet} {gpt}");
    for (answered, expected) in [
        (&[][..], "8,200 tokens, $0.0076 by all members"),
        (&[GPT], "8,200 tokens, $0.0076 by 1 of 2 members"),
        (&[GPT, SONNET], "no tokens; other runs answered its members"),
    ] {
        let row = |id| RunRow { scope: "commit:HEAD", created_ms: NOW - 60_000, ..run_row(id) };
        let answer = |run: u32| if answered.contains(&run) { elsewhere.as_str() } else { "" };
        let (tokens, cost) = if answered.contains(&SONNET) { (0, 0.0) } else { (8_200, 0.0076) };
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { reviewer: "panel:two", members: &members, ..row(&panel) });
        builder.run(RunRow { reviewer: "gpt", member_of: &panel, reused_from: answer(GPT), ..row(&gpt) });
        builder.run(RunRow {
            reviewer: "sonnet",
            member_of: &panel,
            reused_from: answer(SONNET),
            tokens,
            cost,
            ..row(&sonnet)
        });
        let app = showing(160, 48, complete(builder));
        let index = app.store.view.run_index(&panel).expect("the panel");
        let sums = app.sum_panel(&app.store.view.run(index));
        assert_eq!(sums.describe_spending_by_members(), expected, "{answered:?}");
    }
}

#[test]
fn the_live_view_and_the_turns_of_a_panel_list_its_members_and_lead_to_theirs() {
    let is_live_of = |run: u32| {
        let id = run_id(run);
        move |command: &AppCommand| matches!(command, AppCommand::View(ViewRequest::Live(wanted)) if wanted.run == id)
    };
    let mut app = open(160, 48, false);
    let commands = press(&mut app, "V");
    assert!(!commands.iter().any(is_live_of(PANEL)), "what is shown of a panel is in memory");
    let shown = screen(&app);
    for expected in ["panel three", "3 of 4 done", "waiting for the first byte, 2 s", "turn", "reused"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let commands = press(&mut app, "j Enter");
    assert!(commands.iter().any(is_live_of(GPT)), "{commands:?}");
    assert_eq!(app.views.len(), 2);
    press(&mut app, "V");
    assert!(screen(&app).contains("panel three"), "back at the panel: {}", screen(&app));
    press(&mut app, "Esc");
    assert!(app.views.is_empty());
    let mut app = open(160, 48, true);
    press(&mut app, "l l ] t");
    assert_eq!((app.detail.tab, app.panes.focus), (Tab::Turns, Pane::Detail));
    let page = TurnsPage { run: panel_record(true), conversation: TurnHistory::default() };
    let loaded = Box::new(PageData::Turns(Box::new(page)));
    send(&mut app, AppMessage::Loaded { subject: DetailSubject::Run(run_id(PANEL)), tab: Tab::Turns, loaded });
    let shown = screen(&app);
    assert!(shown.contains("Each member has turns of its own") && !shown.contains("Nothing was asked"), "{shown}");
    let commands = press(&mut app, "j j Enter");
    let turns = (DetailSubject::Run(run_id(GPT)), Tab::Turns);
    let is_load = |command: &AppCommand| matches!(command, AppCommand::Load { subject, tab } if (subject, *tab) == (&turns.0, turns.1));
    assert!(commands.iter().any(is_load), "{commands:?}");
}

#[test]
fn a_click_in_the_live_view_of_a_panel_selects_a_member_and_a_double_click_opens_its_view() {
    let is_live_of_gemini = |command: &AppCommand| matches!(command, AppCommand::View(ViewRequest::Live(wanted)) if wanted.run == run_id(GEMINI));
    for (columns, rows) in [(160, 48), (80, 24)] {
        let mut app = open(columns, rows, true);
        press(&mut app, "V");
        let (x, y) = find(&app, "gemini");
        click(&mut app, x, y + 10);
        let commands = click(&mut app, x, y);
        assert!(!commands.iter().any(is_live_of_gemini) && app.views.len() == 1, "{columns}x{rows}: {commands:?}");
        let commands = click(&mut app, x, y);
        assert!(commands.iter().any(is_live_of_gemini), "{columns}x{rows}: {commands:?}");
    }
}

#[test]
fn a_second_key_before_the_page_of_a_member_is_there_does_nothing() {
    let mut app = open_page(160, 48, true);
    press(&mut app, "j j Enter Enter");
    assert_eq!(app.detail.subject, DetailSubject::Run(run_id(GPT)));
    assert!(app.notice.is_none(), "{:?}", app.notice);
}

#[test]
fn a_run_that_two_panels_share_keeps_the_row_that_is_selected() {
    let [second, first, shared] = [9, 8, 2].map(run_id);
    let members = format!("{shared}:reuse");
    let view = || {
        let mut builder = StoreViewBuilder::default();
        for id in [&second, &first] {
            let status = RunStatus::Reviewing;
            builder.run(RunRow { status, reviewer: "panel:two", members: &members, ..run_row(id) });
        }
        builder.run(run_row(&shared));
        complete(builder)
    };
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    for (steps, row) in [("g j", 1), ("g j j j", 3), ("G", 4)] {
        press(&mut app, steps);
        assert_eq!(app.run_list.cursor.selected, row);
        send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
        assert_eq!(app.run_list.cursor.selected, row, "{}", screen(&app));
        assert_eq!(app.selected_run().map(|run| run.id.to_owned()), Some(shared.clone()));
    }
}

#[test]
fn every_size_shows_panels_and_the_names_of_their_members_are_data() {
    let hostile = "\u{1b}[2J漢字かな交じり文の長い名前の審査員\u{202e}";
    let [panel, member] = [8, 7].map(run_id);
    let members = format!("{member} {}", run_id(1));
    for (columns, rows) in [(20, 5), (33, 7), (40, 10), (60, 16), (80, 24), (120, 16), (200, 60), (500, 5)] {
        for status in [RunStatus::Pending, RunStatus::Completed] {
            let mut builder = StoreViewBuilder::default();
            builder.run(RunRow { status, reviewer: hostile, members: &members, ..run_row(&panel) });
            builder.run(RunRow { status, reviewer: hostile, member_of: &panel, ..run_row(&member) });
            let mut app = showing(columns, rows, complete(builder));
            for keys in ["1", "Space", "V", "j", "j Enter", "Esc Esc", "l"] {
                press(&mut app, keys);
                for set in [glyphs::UNICODE, glyphs::ASCII, glyphs::PLAIN] {
                    app.display.glyphs = set;
                    let shown = screen(&app);
                    assert!(!shown.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)), "{shown}");
                    assert!(!set.is_ascii_only() || shown.is_ascii(), "{columns}x{rows}: {shown}");
                }
                app.display.glyphs = glyphs::UNICODE;
            }
        }
    }
}

/// Builds a view of a panel with two members and their urgent findings: reviewer and line of each.
fn reporting(panel: RunStatus, [gpt, gemini]: [RunRow<'_>; 2], found: &[(&str, u32)]) -> Arc<StoreView> {
    let ids = [PANEL, GPT, GEMINI].map(run_id);
    let members = ids[1..].join(" ");
    let mut builder = StoreViewBuilder::default();
    let all = u32::try_from(found.len()).unwrap_or(0);
    let counts = if panel.is_terminal() { [all, 0, 0, 0] } else { [0; 4] };
    builder.run(RunRow { status: panel, reviewer: "panel:two", members: &members, counts, ..run_row(&ids[0]) });
    for (row, id, reviewer) in [(gpt, &ids[1], "gpt"), (gemini, &ids[2], "gemini")] {
        let own = found.iter().filter(|(name, _)| *name == reviewer).count() as u32;
        builder.run(RunRow { id, reviewer, member_of: &ids[0], counts: [own, 0, 0, 0], ..row });
    }
    let (old, id) = (run_id(1), finding_id(99));
    builder.run(run_row(&old));
    for (number, (reviewer, line)) in (1..).zip(found) {
        let (id, run) = (finding_id(number), if *reviewer == "gpt" { &ids[1] } else { &ids[2] });
        let row = finding_row(&id, run);
        builder.finding(FindingRow { priority: Priority::P0, line_start: *line, line_end: *line, ..row });
    }
    builder.finding(FindingRow { path: "src/old.rs", ..finding_row(&id, &old) });
    complete(builder)
}

#[test]
fn the_live_view_of_a_panel_without_findings_says_whether_anything_was_reviewed() {
    let working = RunRow { status: RunStatus::Reviewing, ..run_row("") };
    let unread = RunRow { status: RunStatus::Failed, files_covered: 0, hunks_covered: 0, ..working };
    let done = RunRow { status: RunStatus::Completed, ..working };
    for (panel, member, said) in [
        (RunStatus::Pending, working, "found nothing yet"),
        (RunStatus::Completed, done, "found nothing"),
        (RunStatus::Failed, unread, "found nothing in the reviewed part"),
    ] {
        let mut app = showing(160, 48, reporting(panel, [member, member], &[]));
        press(&mut app, "1 g V");
        let shown = screen(&app);
        assert!(shown.lines().any(|line| line.trim_end().ends_with(said)), "{said}: {shown}");
        assert!(!shown.contains("0 findings"), "{shown}");
    }
}

#[test]
fn a_panel_is_announced_once_and_its_members_only_when_something_is_wrong_or_urgent() {
    let working = RunRow { status: RunStatus::Reviewing, ..run_row("") };
    let done = RunRow { status: RunStatus::Completed, ..working };
    let failed = RunRow { status: RunStatus::Failed, error_class: "rate_limit", ..working };
    let stopped = RunRow { status: RunStatus::Cancelled, cancel_reason: "budget_exhausted", ..working };
    let superseded = RunRow { status: RunStatus::Superseded, ..working };
    use RunStatus::{Completed, Pending};
    for (panel, members, found, expected) in [
        (Pending, [working, working], &[][..], &[][..]),
        (Pending, [done, working], &[], &[]),
        (Pending, [superseded, done], &[], &[]),
        (Completed, [done, done], &[], &["panel two reviewed worktree: nothing found"]),
        (Completed, [done, done], &[("gpt", 9)], &["panel two reviewed worktree: 1 finding, 1 P0"]),
        (Pending, [failed, working], &[], &["gpt failed to review worktree: rate limit"]),
        (Pending, [working, stopped], &[], &["gemini reached the budget of worktree: nothing found"]),
        (Pending, [working, working], &[("gpt", 9)], &["gpt found 1 finding, 1 P0 in worktree"]),
        (Pending, [done, working], &[("gpt", 9)], &["gpt found 1 finding, 1 P0 in worktree"]),
        // One problem of two members is one piece of news.
        (Pending, [working, done], &[("gpt", 9), ("gemini", 9)], &["gpt found 1 finding, 1 P0 in worktree"]),
        (
            Pending,
            [working, working],
            &[("gpt", 9), ("gemini", 90)],
            &["gpt found 1 finding, 1 P0 in worktree", "gemini found 1 finding, 1 P0 in worktree"],
        ),
    ] {
        let mut app = showing(160, 48, reporting(Pending, [working, working], &[]));
        app.notice = None;
        let view = reporting(panel, members, found);
        let commands = send(&mut app, AppMessage::StoreRead { view, written: 0 });
        let told: Vec<String> = commands
            .into_iter()
            .filter_map(|command| match command {
                AppCommand::Notify(text) => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(told, expected, "{panel} {members:?} {found:?}");
    }
}

#[test]
fn the_end_of_a_panel_replaces_what_was_told_about_its_members() {
    let working = RunRow { status: RunStatus::Reviewing, ..run_row("") };
    let done = RunRow { status: RunStatus::Completed, ..working };
    let found = &[("gpt", 9), ("gemini", 90)];
    let mut app = showing(160, 48, reporting(RunStatus::Pending, [working, working], &[]));
    app.notice = None;
    for (panel, member, expected) in [
        (
            RunStatus::Pending,
            working,
            "gpt found 1 finding, 1 P0 in worktree · gemini found 1 finding, 1 P0 in worktree",
        ),
        (RunStatus::Completed, done, "panel two reviewed worktree: 2 findings, 2 P0"),
    ] {
        send(&mut app, AppMessage::StoreRead { view: reporting(panel, [member, member], found), written: 0 });
        assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(expected));
    }
}
