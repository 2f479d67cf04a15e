//! Tests the lists: their order, what narrows them, what is new, and what is announced.

use std::sync::Arc;

use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use crate::config::FindingGrouping;
use crate::domain::{FindingStatus, Kind, Priority, RunStatus, Shortfall, Time};
use crate::store::{FindingRow, LastVisit, RunRow, StoreView, StoreViewBuilder};
use crate::tui::app::{App, NoticeLevel, Pane, RunChange, RunSubject};
use crate::tui::glyphs;
use crate::tui::message::{AppCommand, AppMessage, Tab};

/// Returns the numbers of the listed findings.
pub(super) fn listed(app: &App) -> Vec<u32> {
    let number = |row: &u32| app.store.view.finding(*row as usize).id.trim_start_matches("f_").parse().unwrap_or(0);
    app.finding_list.rows.iter().map(number).collect()
}

fn selected(app: &App) -> String {
    app.selected_finding().map(|finding| finding.id.to_owned()).unwrap_or_default()
}

#[test]
fn the_menu_sorts_and_groups_and_keeps_the_selection() {
    let mut app = showing(160, 48, view());
    assert_eq!(listed(&app), [1, 2, 3, 5], "the most urgent first, across runs");
    press(&mut app, "j j j");
    assert_eq!(selected(&app), finding_id(5));
    press(&mut app, "o 2");
    assert_eq!(listed(&app), [1, 2, 3, 5], "groups of priorities stay, in the order of files");
    press(&mut app, "o 6");
    assert!(app.finding_list.groups.is_empty());
    press(&mut app, "o 3");
    assert_eq!((listed(&app), selected(&app)), (vec![1, 2, 3, 5], finding_id(5)));
    press(&mut app, "o 8");
    assert_eq!(app.finding_list.groups.len(), 3, "three files");
    let shown = screen(&app);
    for header in ["src/config.rs ─ 1", "src/invoice/total.rs ─ 2", "src/mail/queue/retry.rs ─ 1", "by age in files"]
    {
        assert!(shown.contains(header), "{header} in {shown}");
    }
}

#[test]
fn the_list_stays_at_its_most_urgent_finding_until_the_store_is_read() {
    let newest = run_id(9);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&newest));
    let id = finding_id(40);
    builder.finding(FindingRow { priority: Priority::P3, ..finding_row(&id, &newest) });
    let Ok(mut first) = Arc::try_unwrap(builder.build()) else { unreachable!("nobody else has it") };
    first.complete = false;
    let mut app = app(160, 48);
    send(&mut app, AppMessage::StoreRead { view: Arc::new(first), written: 0 });
    assert_eq!(selected(&app), id);
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert_eq!(selected(&app), finding_id(1));
    // Later, the selection stays where it is.
    send(&mut app, AppMessage::StoreRead { view: with_urgent_run(RunStatus::Completed), written: 0 });
    assert_eq!((selected(&app), app.finding_list.cursor.selected), (finding_id(1), 1));
}

/// Returns the view of the tests with a further run above, which found one P0.
fn with_urgent_run(status: RunStatus) -> Arc<StoreView> {
    let before = view();
    let mut builder = StoreViewBuilder::default();
    let run = run_id(4);
    builder.run(RunRow { status, counts: [1, 0, 0, 0], created_ms: NOW, scope: "staged", ..run_row(&run) });
    (0..before.run_count()).for_each(|index| {
        builder.run(before.run(index));
    });
    let id = finding_id(7);
    let row = finding_row(&id, &run);
    builder.finding(FindingRow { priority: Priority::P0, kind: Kind::Security, ..row });
    (0..before.finding_count()).for_each(|index| {
        builder.finding(before.finding(index));
    });
    complete(builder)
}

#[test]
fn a_decision_that_the_store_shows_before_it_answers_leaves_the_row_where_it_is() {
    let mut app = showing(160, 48, many(5));
    let (before, listed) = (selected(&app), app.finding_list.rows.len());
    let commands = press(&mut app, "a");
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for n in 0..5 {
        let id = finding_id(n);
        let status = if id == before { FindingStatus::Addressed } else { FindingStatus::Open };
        builder.finding(FindingRow { status, ..finding_row(&id, &run) });
    }
    send(&mut app, AppMessage::StoreRead { view: complete(builder), written: 0 });
    assert_eq!((selected(&app), app.finding_list.rows.len()), (before, listed));
    assert_eq!(store(&mut app, commands), 1);
    assert_eq!((app.finding_list.cursor.selected, app.finding_list.rows.len()), (1, listed), "on to the next");
}

#[test]
fn findings_that_a_panel_disputes_have_a_sign_and_a_filter() {
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for (n, panel_disputed, status) in
        [(1, true, FindingStatus::Open), (2, false, FindingStatus::Open), (3, true, FindingStatus::Dismissed)]
    {
        let id = finding_id(n);
        let line = 100 + n;
        let row = finding_row(&id, &run);
        builder.finding(FindingRow { line_start: line, line_end: line, panel_disputed, status, ..row });
    }
    let view = complete(builder);
    for (columns, rows) in [(160, 48), (100, 30), (80, 24), (60, 16)] {
        for set in [glyphs::UNICODE, glyphs::ASCII] {
            let mut app = showing(columns, rows, Arc::clone(&view));
            app.display.glyphs = set;
            let shown = screen(&app);
            let open = set.finding_status(FindingStatus::Open);
            let list: Vec<&str> =
                shown.lines().map(|row| row.split(set.vertical).next().unwrap_or(row).trim()).collect();
            for (place, is_disputed) in [(":101", true), (":102", false)] {
                let row = list.iter().find(|row| row.starts_with(open) && row.contains(place)).expect("listed");
                assert_eq!(row.ends_with(set.disputed), is_disputed, "{columns}x{rows}: {shown}");
            }
            assert_eq!(listed(&app), [1, 2], "what is decided is not listed");
            press(&mut app, "f Ctrl-u");
            type_text(&mut app, "panel:disputed");
            press(&mut app, "Enter");
            assert_eq!(listed(&app), [1, 3]);
        }
    }
    let mut app = showing(160, 48, view);
    app.display.plain = true;
    app.display.glyphs = glyphs::PLAIN;
    let shown = screen(&app);
    assert!(shown.contains("P2 open and disputed in a panel, "), "{shown}");
    assert!(shown.contains("P2 open, "), "{shown}");
}

#[test]
fn a_run_with_folded_runs_below_it_is_chosen_like_any_other() {
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    assert!(app.run_list.entries[0].folded.total() > 0);
    press(&mut app, "Enter");
    assert_eq!((app.chosen_run(), app.panes.focus), (Some(run_id(3).as_str()), Pane::Findings));
    press(&mut app, "1 Space");
    assert!(app.run_list.entries[0].unfolded);
}

#[test]
fn runs_can_be_a_timeline_for_each_branch() {
    let branches = ["main", "fix/retry", "main", ""];
    let ids: Vec<String> = (0..4).map(|n| run_id(9 - n)).collect();
    let open = |columns, rows| {
        let mut builder = StoreViewBuilder::default();
        for (id, branch) in ids.iter().zip(branches) {
            builder.run(RunRow { branch, ..run_row(id) });
        }
        let mut app = showing(columns, rows, complete(builder));
        press(&mut app, "1 j o 2");
        app
    };
    assert_looks_at_all_sizes("runs_by_branch", open);
    let mut app = open(160, 48);
    let shown: Vec<&str> =
        app.run_list.entries.iter().map(|entry| app.store.view.run(entry.index as usize).branch).collect();
    assert_eq!(shown, ["main", "main", "fix/retry", ""]);
    assert_eq!(app.selected_run().map(|run| run.id.to_owned()), Some(ids[1].clone()), "the selection stays");
    press(&mut app, "o 1");
    assert_eq!(app.selected_run().map(|run| run.id.to_owned()), Some(ids[1].clone()));
    assert!(!app.run_list.entries.iter().any(|entry| entry.heads_branch));
}

/// Builds a view with four reviews of two branches, each of which found something new or misses what was fixed.
fn story() -> Arc<StoreView> {
    let runs: Vec<String> = (0..4).map(|n| run_id(9 - n)).collect();
    let ids: Vec<String> = (0..5).map(finding_id).collect();
    let found: [&[usize]; 4] = [&[2, 3, 4], &[3], &[0, 1, 2], &[]];
    let mut builder = StoreViewBuilder::default();
    for (at, id) in runs.iter().enumerate() {
        let (branch, counts) = (["main", "topic"][usize::from(at == 1)], [0, 0, found[at].len() as u32, 0]);
        let created_ms = NOW - at as i64 * 3_600_000;
        builder.run(RunRow { branch, counts, created_ms, ..run_row(id) });
    }
    for (number, id) in ids.iter().enumerate() {
        let status = if number < 2 { FindingStatus::Addressed } else { FindingStatus::Open };
        builder.finding(FindingRow { status, line_start: number as u32 + 1, ..finding_row(id, &runs[0]) });
    }
    for (run, found) in runs.iter().zip(found) {
        builder.reports(run, &found.iter().map(|number| ids[*number].as_str()).collect::<Vec<_>>());
    }
    complete(builder)
}

#[test]
fn each_row_of_the_timeline_says_what_changed_against_the_one_before() {
    let open = |columns, rows| {
        let mut app = showing(columns, rows, story());
        press(&mut app, "1 o 2");
        app
    };
    assert_looks_at_all_sizes("timeline", open);
    let shown = screen(&open(160, 48));
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("✓ worktree")).collect();
    let said = ["4 files · 2 new, 2 fixed since", "4 files · 3 new", "4 files ", "4 files "];
    assert_eq!(rows.len(), said.len(), "{shown}");
    for (row, said) in rows.iter().zip(said) {
        assert!(row.contains(said) && !(said.ends_with(' ') && row.contains("new")), "{said} in {shown}");
    }
}

#[test]
fn the_tenth_item_of_a_menu_has_a_digit() {
    let mut app = showing(160, 48, view());
    press(&mut app, "o");
    let items = app.views.front_as::<crate::tui::views::menu::MenuView>().map(|menu| menu.items.len());
    assert_eq!(items, Some(10));
    press(&mut app, "0");
    assert!(app.views.is_empty());
    assert_eq!(app.finding_list.arrangement.grouping, FindingGrouping::Run);
}

#[test]
fn a_chosen_finding_is_shown_whatever_tab_was_open() {
    for (keys, tab) in [("L", Tab::Ledger), ("l l", Tab::Diff)] {
        let mut app = showing(160, 48, view());
        press(&mut app, keys);
        app.panes.focus = Pane::Findings;
        assert_eq!(app.detail.tab, tab, "{keys}");
        press(&mut app, "j");
        assert_eq!(app.detail.tab, if tab == Tab::Diff { Tab::Diff } else { Tab::Page }, "{keys}");
    }
    for open in ["L", "d"] {
        for choose in ["Enter", "l", "j Enter", "j l"] {
            let mut app = showing(160, 48, view());
            press(&mut app, open);
            app.panes.focus = Pane::Findings;
            press(&mut app, choose);
            let shown = (app.detail.tab, app.panes.focus);
            assert_eq!(shown, (Tab::Page, Pane::Detail), "{open} {choose} opens the finding itself");
        }
    }
    // The key of the diff goes into it.
    let mut app = showing(160, 48, view());
    press(&mut app, "d Esc j d");
    assert_eq!((app.detail.tab, app.panes.focus), (Tab::Diff, Pane::Detail));
}

fn visited(app: &mut App, left_at: i64) {
    let left_at = Time::from_millisecond(left_at).expect("a time");
    let visit = LastVisit { left_at, ..LastVisit::default() };
    Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(visit));
}

#[test]
fn new_findings_are_marked_until_they_were_selected() {
    let mut app = app(160, 48);
    visited(&mut app, NOW - 86_400_000);
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    let header = |app: &App| screen(app).lines().next().unwrap_or_default().to_owned();
    assert_eq!(app.finding_list.new_count(), 3, "one finding is older than the last visit, two are decided");
    assert!(header(&app).contains("4 open  3 new"), "{}", header(&app));
    assert_eq!(screen(&app).lines().filter(|line| line.contains(" new │")).count(), 3, "{}", screen(&app));
    press(&mut app, "j");
    assert!(header(&app).contains("4 open  2 new"), "{}", header(&app));
    // A decision makes the finding old news, and the count survives the next view.
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert!(header(&app).contains("3 open  1 new"), "{}", header(&app));
    send(&mut app, AppMessage::DecidedToday { since: NOW - 3_600_000, count: 7 });
    assert!(header(&app).contains("7 decided today"), "{}", header(&app));
    send(&mut app, AppMessage::DecidedToday { since: NOW - 2 * 86_400_000, count: 7 });
    assert!(!header(&app).contains("decided today"), "yesterday's: {}", header(&app));
}

#[test]
fn nothing_is_new_without_a_last_visit() {
    let app = showing(160, 48, view());
    assert_eq!(app.finding_list.new_count(), 0);
    assert!(!screen(&app).contains(" new"));
}

/// Shows a view with a working run, then one in which it has changed. Returns the message and the notifications.
fn announced(before: RunRow<'_>, after: RunRow<'_>) -> (Option<(NoticeLevel, String)>, Vec<String>) {
    let with = |row: RunRow<'_>| {
        let mut builder = StoreViewBuilder::default();
        builder.run(row);
        for (priority, number) in Priority::ALL.into_iter().zip(row.counts) {
            for n in 0..number {
                let id = finding_id(10 * priority as u32 + n);
                let line = 100 * (priority as u32 + 1) + n;
                builder.finding(FindingRow { priority, line_start: line, line_end: line, ..finding_row(&id, row.id) });
            }
        }
        // Not the first finding of all, which is announced in another way.
        let (old, id) = (run_id(3), finding_id(99));
        builder.run(run_row(&old));
        builder.finding(finding_row(&id, &old));
        complete(builder)
    };
    let mut app = showing(160, 48, with(before));
    app.notice = None;
    let commands = send(&mut app, AppMessage::StoreRead { view: with(after), written: 0 });
    let told = commands.into_iter().filter_map(|command| match command {
        AppCommand::Notify(text) => Some(text),
        _ => None,
    });
    (app.notice.map(|notice| (notice.level, notice.text)), told.collect())
}

#[test]
fn a_worker_that_died_is_announced_while_its_run_has_not_ended() {
    for (status, expected) in
        [(RunStatus::Reviewing, Some("the worker that reviewed worktree is gone")), (RunStatus::Completed, None)]
    {
        let id = run_id(4);
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { status, ..run_row(&id) });
        let mut app = showing(160, 48, complete(builder));
        app.notice = None;
        let commands = send(&mut app, AppMessage::WorkersGone(vec![id.clone(), run_id(9)]));
        let told: Vec<&str> = commands
            .iter()
            .filter_map(|command| match command {
                AppCommand::Notify(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(told, expected.into_iter().collect::<Vec<_>>());
        let notice = app.notice.map(|notice| (notice.level, notice.text));
        assert_eq!(notice, expected.map(|text| (NoticeLevel::Error, text.to_owned())));
    }
}

#[test]
fn the_end_of_a_run_and_urgent_findings_are_announced() {
    use NoticeLevel as L;
    let id = run_id(4);
    let working = RunRow { status: RunStatus::Reviewing, counts: [0; 4], ..run_row(&id) };
    let cancelled = |reason: &'static str| RunRow { status: RunStatus::Cancelled, cancel_reason: reason, ..working };
    for (after, expected) in [
        (working, None),
        (RunRow { counts: [0, 0, 3, 0], ..working }, None),
        (
            RunRow { counts: [1, 2, 3, 0], ..working },
            Some((L::Info, "builtin found 3 findings, 1 P0, 2 P1 in worktree")),
        ),
        (
            RunRow { status: RunStatus::Completed, ..working },
            Some((L::Success, "builtin reviewed worktree: nothing found")),
        ),
        (
            RunRow { status: RunStatus::Completed, counts: [0, 1, 0, 0], ..working },
            Some((L::Success, "builtin reviewed worktree: 1 finding, 1 P1")),
        ),
        (
            RunRow { status: RunStatus::Completed, incomplete: true, ..working },
            Some((L::Info, "builtin reviewed a part of worktree: nothing found")),
        ),
        (
            RunRow { status: RunStatus::Completed, files_covered: 0, hunks_covered: 0, hunks_total: 0, ..working },
            Some((L::Info, "builtin reviewed nothing of worktree")),
        ),
        (
            RunRow { status: RunStatus::Completed, files_covered: 0, hunks_covered: 0, incomplete: true, ..working },
            Some((L::Info, "builtin reviewed nothing of worktree")),
        ),
        // All of it was carried over from an earlier run.
        (
            RunRow {
                status: RunStatus::Completed,
                files_covered: 0,
                hunks_covered: 0,
                carried_over_from: "ar_1",
                ..working
            },
            Some((L::Success, "builtin reviewed worktree: nothing found")),
        ),
        (
            RunRow { status: RunStatus::Failed, error_class: "rate_limit", ..working },
            Some((L::Error, "builtin failed to review worktree: rate limit")),
        ),
        (cancelled("budget_exhausted"), Some((L::Error, "builtin reached the budget of worktree: nothing found"))),
        (cancelled("user_stop"), None),
        (cancelled("obsolete"), Some((L::Info, "the review of worktree was cancelled: its commit was rewritten"))),
        (RunRow { status: RunStatus::Lost, ..working }, Some((L::Error, "the worker that reviewed worktree is gone"))),
        (RunRow { status: RunStatus::Superseded, ..working }, None),
    ] {
        let (notice, told) = announced(working, after);
        assert_eq!(notice, expected.map(|(level, text)| (level, text.to_owned())), "{after:?}");
        assert_eq!(told, expected.into_iter().map(|(_, text)| text.to_owned()).collect::<Vec<_>>());
    }
    let done = RunRow { status: RunStatus::Completed, ..working };
    assert_eq!(announced(done, done), (None, Vec::new()), "what had ended before is no news");
    for scope_hash in ["import:sarif", "fix:fx_1"] {
        let (before, after) = (RunRow { scope_hash, ..working }, RunRow { scope_hash, ..done });
        assert_eq!(announced(before, after), (None, Vec::new()), "{scope_hash} has an answer of its own");
    }
}

/// Shows a clean run, one that left all files out, and an incomplete one, with the focus on the runs.
fn with_shortfalls(columns: u16, rows: u16) -> App {
    let ids = [3, 2, 1].map(run_id);
    let clean = RunRow { counts: [0; 4], ..run_row(&ids[0]) };
    let unread = RunRow { id: &ids[1], files_covered: 0, hunks_covered: 0, hunks_total: 0, ..clean };
    let mut builder = StoreViewBuilder::default();
    builder.run(clean).run(unread).run(RunRow { id: &ids[2], incomplete: true, hunks_covered: 2, ..clean });
    let mut app = showing(columns, rows, complete(builder));
    press(&mut app, "1");
    app
}

#[test]
fn a_run_that_reviewed_no_file_has_a_glyph_and_a_word_of_its_own() {
    for (columns, rows) in [(160, 48), (100, 30), (80, 24), (60, 16)] {
        for set in [glyphs::UNICODE, glyphs::ASCII] {
            let mut app = with_shortfalls(columns, rows);
            app.display.glyphs = set;
            let shown = screen(&app);
            for (shortfall, other) in
                [(Shortfall::NothingReviewed, Shortfall::Gaps), (Shortfall::Gaps, Shortfall::NothingReviewed)]
            {
                let row = shown.lines().map(str::trim).find(|row| row.starts_with(set.shortfall(shortfall)));
                let row = row.unwrap_or_else(|| panic!("{columns}x{rows}: {shown}"));
                let row = row.split(set.vertical).next().unwrap_or(row);
                assert!(row.contains(shortfall.word()) && !row.contains(other.word()), "{columns}x{rows}: {shown}");
            }
            let clean = set.run_status(RunStatus::Completed);
            assert_ne!(set.shortfall(Shortfall::NothingReviewed), clean);
            let entries = set.legend();
            let meanings: Vec<&str> = entries.iter().map(|entry| entry.meaning.as_str()).collect();
            assert!(meanings.contains(&"run: not reviewed, every file was left out"), "{meanings:?}");
        }
    }
    // The page of the run says it, too.
    let mut app = with_shortfalls(160, 48);
    let commands = press(&mut app, "j");
    load_pages(&mut app, commands);
    assert!(screen(&app).contains("∅ not reviewed  worktree"), "{}", screen(&app));
    assert!(!screen(&app).contains("0 of 0"), "{}", screen(&app));
    let mut app = with_shortfalls(100, 30);
    app.display.plain = true;
    let shown = screen(&app);
    let row = shown.lines().find(|line| line.contains("not reviewed")).unwrap_or_else(|| panic!("{shown}"));
    assert!(!row.contains("no findings"), "{row}");
    assert!(shown.lines().any(|line| line.contains("completed") && line.contains("no findings")), "{shown}");
}

#[test]
fn files_that_a_review_left_out_are_counted_where_the_row_has_room() {
    let id = run_id(8);
    let run = RunRow { files_total: 6, files_covered: 4, ..run_row(&id) };
    for (run, expected) in [
        (run, Some(2)),
        (RunRow { files_covered: 6, ..run }, None),
        (RunRow { files_covered: 0, ..run }, None),
        (RunRow { hunks_covered: 5, ..run }, None),
        (RunRow { incomplete: true, ..run }, None),
        (RunRow { status: RunStatus::Reviewing, ..run }, None),
        (RunRow { members: "ar_01M85FXZAJJ8HH37S1AMJJN2F9:launch", ..run }, None),
    ] {
        assert_eq!(run.left_out_files(), expected, "{run:?}");
    }
    for (files_covered, title, expected) in [(4, "Fix", true), (6, "Fix", false), (4, "", false)] {
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { files_covered, ..run });
        let mut app = showing(240, 48, complete(builder));
        press(&mut app, "1");
        let title = if title.is_empty() { "a long title ".repeat(30) } else { title.to_owned() };
        send(&mut app, AppMessage::RunSubjects(vec![(id.clone(), RunSubject { commits: 1, title })]));
        assert_eq!(screen(&app).contains("2 files left out"), expected, "{}", screen(&app));
    }
}

#[test]
fn a_title_without_rows_says_that_the_newest_run_reviewed_nothing() {
    let (id, found) = (run_id(3), finding_id(1));
    let run = RunRow { files_covered: 0, hunks_covered: 0, hunks_total: 0, counts: [0; 4], ..run_row(&id) };
    for (run, expected) in [(run, "∅  worktree  not reviewed"), (run_row(&id), "✓  worktree  1h")] {
        let mut builder = StoreViewBuilder::default();
        builder.run(run).finding(finding_row(&found, &id));
        let mut app = showing(100, 30, complete(builder));
        press(&mut app, "2");
        let shown = screen(&app);
        assert!(shown.lines().any(|line| line.contains("1 Runs") && line.contains(expected)), "{shown}");
    }
}

#[test]
fn a_title_without_rows_names_the_newest_review_and_no_comment() {
    let [comment, review, found] = [run_id(4), run_id(3), finding_id(1)];
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { reviewer: "you", scope: "all", scope_hash: "import:1", ..run_row(&comment) });
    builder.run(run_row(&review)).finding(finding_row(&found, &review));
    let mut app = showing(100, 30, complete(builder));
    press(&mut app, "2");
    let shown = screen(&app);
    let title = shown.lines().find(|line| line.contains("1 Runs"));
    assert!(title.is_some_and(|title| title.contains("✓  worktree  1h")), "{shown}");
}

#[test]
fn the_title_of_the_runs_counts_no_comments_below_a_review() {
    let commit = "3fa2c1d09b7e4851aa";
    let other = "77aa00000000000000";
    let ids: Vec<String> = (1..6).map(run_id).collect();
    for (commented, folded, count) in [(commit, "3 comments", "2"), (other, "", "5")] {
        let mut builder = StoreViewBuilder::default();
        for id in ids[2..].iter().rev() {
            let comment = RunRow { reviewer: "you", scope: "all", scope_hash: "import:1", ..run_row(id) };
            builder.run(RunRow { snapshot_commit: commented, ..comment });
        }
        builder.run(RunRow { snapshot_commit: commit, ..run_row(&ids[1]) });
        builder.run(RunRow { scope: "commit:HEAD", snapshot_commit: "", ..run_row(&ids[0]) });
        let mut app = showing(160, 48, complete(builder));
        press(&mut app, "1");
        let title = |app: &App| {
            let shown = screen(app);
            shown.lines().find(|line| line.contains("1 Runs")).unwrap_or_default().to_owned()
        };
        assert!(title(&app).contains(&format!("1 Runs  {count} ")), "{commented}: {}", screen(&app));
        assert!(screen(&app).contains(folded), "{commented}: {}", screen(&app));
        // Whether comments are folded away changes nothing.
        press(&mut app, "Space");
        assert!(title(&app).contains(&format!("1 Runs  {count} ")), "{commented}: {}", screen(&app));
    }
    let app = showing(160, 48, view());
    assert_eq!((app.run_list.entries.len(), app.run_list.run_count), (2, 3), "a run that was superseded counts");
}

#[test]
fn an_urgent_finding_that_was_known_is_no_news_when_another_run_reports_it() {
    let (known, new) = (finding_id(1), finding_id(2));
    let (old, working) = (run_id(3), run_id(4));
    let with = |found: &[&str]| {
        let mut builder = StoreViewBuilder::default();
        let counts = [found.len() as u32, 0, 0, 0];
        builder.run(RunRow { status: RunStatus::Reviewing, counts, ..run_row(&working) });
        builder.run(run_row(&old));
        for id in found {
            let line = if *id == known { 48 } else { 90 };
            let row = finding_row(id, &working);
            builder.finding(FindingRow { priority: Priority::P0, line_start: line, line_end: line, ..row });
        }
        if !found.contains(&known.as_str()) {
            builder.finding(FindingRow { priority: Priority::P0, ..finding_row(&known, &old) });
        }
        complete(builder)
    };
    let mut app = showing(160, 48, with(&[]));
    app.notice = None;
    send(&mut app, AppMessage::StoreRead { view: with(&[&known]), written: 0 });
    assert_eq!(app.notice, None);
    send(&mut app, AppMessage::StoreRead { view: with(&[&known, &new]), written: 0 });
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("builtin found 1 finding, 1 P0 in worktree"));
}

#[test]
fn what_the_user_has_written_is_never_new() {
    let header = |app: &App| screen(app).lines().next().unwrap_or_default().to_owned();
    for (reviewer, is_new) in [("you", false), ("lint", true)] {
        let (id, run) = (finding_id(1), run_id(3));
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { reviewer, scope_hash: "import:you", ..run_row(&run) });
        builder.finding(finding_row(&id, &run));
        let mut app = app(160, 48);
        Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(LastVisit::default()));
        send(&mut app, AppMessage::StoreRead { view: complete(builder), written: 0 });
        assert_eq!(header(&app).contains("1 new"), is_new, "{reviewer}: {}", header(&app));
    }
}

#[test]
fn a_run_that_came_and_ended_between_two_views_is_announced() {
    let mut app = showing(160, 48, view());
    send(&mut app, AppMessage::StoreRead { view: with_urgent_run(RunStatus::Completed), written: 0 });
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("builtin reviewed staged: 1 finding, 1 P0"));
}

#[test]
fn the_end_of_a_run_replaces_what_was_told_about_it_while_it_worked() {
    let found = "builtin found 1 finding, 1 P0 in staged";
    for (status, expected) in [
        (RunStatus::Completed, "something else · builtin reviewed staged: 1 finding, 1 P0".to_owned()),
        // An end that counts nothing leaves the count.
        (RunStatus::Failed, format!("{found} · something else · builtin failed to review staged")),
        (RunStatus::Lost, format!("{found} · something else · the worker that reviewed staged is gone")),
    ] {
        let mut app = showing(160, 48, view());
        app.notice = None;
        send(&mut app, AppMessage::StoreRead { view: with_urgent_run(RunStatus::Reviewing), written: 0 });
        assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(found), "{status}");
        app.append_notice(NoticeLevel::Info, "something else");
        send(&mut app, AppMessage::StoreRead { view: with_urgent_run(status), written: 0 });
        assert_eq!(app.notice.map(|notice| notice.text), Some(expected), "{status}");
    }
    // Nothing else is said.
    let mut app = showing(160, 48, view());
    app.notice = None;
    for status in [RunStatus::Reviewing, RunStatus::Completed] {
        send(&mut app, AppMessage::StoreRead { view: with_urgent_run(status), written: 0 });
    }
    let said = app.notice.as_ref().map(|notice| (notice.level, notice.text.as_str()));
    assert_eq!(said, Some((NoticeLevel::Success, "builtin reviewed staged: 1 finding, 1 P0")));
}

#[test]
fn rows_have_place_and_symbol_at_every_size_and_two_lines_if_wanted() {
    for (columns, rows) in [(160, 48), (100, 30), (80, 24)] {
        let app = showing(columns, rows, view());
        let shown = screen(&app);
        let row = shown.lines().find(|line| line.contains("retry.rs:9")).unwrap_or_else(|| panic!("{shown}"));
        assert!(row.split('│').next().is_some_and(|list| list.contains("retry ") || list.contains("retry\n")), "{row}");
    }
    let mut app = app(160, 48);
    app.finding_list.row_height = 2;
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    let shown = screen(&app);
    let at = shown.lines().position(|line| line.contains("total.rs:48")).expect("the finding");
    let below = shown.lines().nth(at + 1).unwrap_or_default();
    assert!(below.contains("unused parameter"), "{shown}");
    assert_eq!(app.finding_by_id(&finding_id(3)).map(|row| app.current_status(&row)), Some(FindingStatus::Open));
}

#[test]
fn a_narrow_row_shows_the_problem_in_the_room_that_place_and_symbol_leave() {
    let title = |n: u32| match n {
        1 => "unused parameter `rate`",
        2 => "an API key for `TOKEN` stands in the code: …(32 characters)",
        3 => "function `a_name_that_needs_all_of_row` is complex: complexity 17",
        // The whole title is the problem.
        4 => "it seems that `load` hangs",
        _ => "it seems that `load` hangs, and that nobody learns of it",
    };
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for n in 1..=5 {
        let id = finding_id(n);
        builder.finding(FindingRow { path: "a.py", line_start: n, title: title(n), ..finding_row(&id, &run) });
    }
    let shown = screen(&showing(100, 30, complete(builder)));
    for (place, expected) in [
        ("a.py:1", "rate        unused parameter"),
        ("a.py:2", "TOKEN       hardcoded API key"),
        ("a.py:3", "a_name_that_needs_all_of_row"),
        ("a.py:4", "it seems that `load` hangs"),
        ("a.py:5", "load"),
    ] {
        let row = shown.lines().filter_map(|row| row.split('│').next()).find(|row| row.contains(place));
        let text = row.and_then(|row| row.split_once(place)).map(|(_, text)| text.trim());
        assert_eq!(text, Some(expected), "{shown}");
    }
}

#[test]
fn a_narrow_row_keeps_the_place_where_a_problem_has_no_room() {
    let run = run_id(1);
    let list = |path: &str, title: &str| {
        let mut builder = StoreViewBuilder::default();
        builder.run(run_row(&run)).finding(FindingRow { path, title, ..finding_row(&finding_id(1), &run) });
        let shown = screen(&showing(100, 30, complete(builder)));
        let row = shown.lines().filter_map(|row| row.split('│').next()).find(|row| row.contains(":48"));
        row.unwrap_or_else(|| panic!("{shown}")).trim().to_owned()
    };
    let row = list("src/mod_0/file_0.py", "unused parameter `work_0_0`");
    assert_eq!(row, "○ src/mod_0/file_0.py:48  work_0_0");
    // A path that does not fit anyway leaves room for the problem.
    let row = list("src/of/a/folder/with/a/long/name/file_0.py", "unused parameter `f`");
    assert!(row.starts_with("○ …") && row.contains(":48") && row.contains("f  unused"), "{row}");
}

#[test]
fn a_place_with_joined_emoji_is_whole_where_there_is_room() {
    let (run, found) = (run_id(1), finding_id(1));
    let mut builder = StoreViewBuilder::default();
    let path = "src/👩\u{200d}👩\u{200d}👧\u{200d}👦/total.rs";
    builder.run(run_row(&run)).finding(FindingRow { path, ..finding_row(&found, &run) });
    let mut app = showing(160, 48, complete(builder));
    let shown = screen(&app);
    let whole = "src/👩👩👧👦/total.rs:48";
    let is_whole = |row: &str| row.split('│').next().is_some_and(|list| list.contains(whole));
    assert!(shown.lines().any(is_whole), "{shown}");
    app.display.glyphs = glyphs::ASCII;
    let shown = screen(&app);
    assert!(shown.contains("src/????????/total.rs:48"), "as wide as the emoji: {shown}");
}

#[test]
fn the_label_of_a_run_with_joined_emoji_is_whole() {
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { scope: "branch", branch: "👩\u{200d}👩\u{200d}👧", ..run_row(&run) });
    let shown = screen(&showing(160, 48, complete(builder)));
    let is_whole = |row: &str| row.split('│').next().is_some_and(|list| list.contains("👩👩👧 "));
    assert!(shown.lines().any(is_whole), "{shown}");
}

#[test]
fn a_long_title_makes_room_for_what_is_new_and_no_fact_touches_another() {
    let run = run_id(1);
    let with_change = |columns: u16, new: usize| {
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { scope: "range:a0c3bec..7e1328b", ..run_row(&run) });
        let mut app = showing(columns, 48, complete(builder));
        let title = "Chunks are compressed by tree and read again on demand".into();
        Arc::make_mut(&mut app.run_list.subjects).insert(run.clone(), Some(RunSubject { commits: 7, title }));
        app.run_list.changes.insert(run.clone(), Some(RunChange { new, fixed: 0 }));
        let shown = screen(&app);
        let line = shown.lines().find(|line| line.contains("7 commits  latest"));
        line.and_then(|line| line.split('│').next()).unwrap_or_else(|| panic!("{columns}: {shown}")).to_owned()
    };
    let row = with_change(160, 6);
    assert!(row.contains("7 commits  latest “Chunks are compress") && row.contains("… · 6 new "), "{row}");
    for columns in 120..=220 {
        for row in [with_change(columns, 6), with_change(columns, 0)] {
            let rest = row.split_once("latest ").map_or("", |(_, rest)| rest);
            let is_apart = |(at, _): (usize, &str)| rest[..at].ends_with(' ');
            assert!(rest.match_indices('·').all(is_apart), "{columns}: {row}");
            for end in ['”', '…'] {
                let after = rest.split_once(end).map_or("", |(_, after)| after);
                assert!(after.is_empty() || after.starts_with([' ', '”']), "{columns}: {row}");
            }
        }
    }
}
