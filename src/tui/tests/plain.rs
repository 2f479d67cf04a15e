//! Tests the screen for a screen reader: one text in every line, and words for what other screens say by signs.

use std::sync::Arc;

use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use super::{diff, knowledge, live, triage_mode};
use crate::config::FindingGrouping;
use crate::domain::{RunStatus, Time};
use crate::runner::{SnoozedFindings, WatchState};
use crate::store::{FindingRow, LastVisit, RunRow, StoreViewBuilder, TeamStatus, WatcherStatus};
use crate::tui::app::{App, MotionMode, Pane, RunSubject};
use crate::tui::glyphs;
use crate::tui::input::{MouseEvent, MouseKind, TerminalInput};
use crate::tui::message::{AppMessage, DetailSubject, Tab};

/// Shows an app as `--plain` does.
fn make_plain(mut app: App) -> App {
    app.display.plain = true;
    app.display.glyphs = glyphs::PLAIN;
    app.display.motion = MotionMode::Still;
    app.detail.width = 0;
    let (columns, rows) = (app.display.columns, app.display.rows);
    send(&mut app, AppMessage::Resized { columns, rows });
    app
}

fn triage_with_diff(columns: u16, rows: u16) -> App {
    let mut app = triage_mode::open(columns, rows);
    triage_mode::deliver(&mut app, finding_id(1), triage_mode::card_with_diff());
    app.notice = None;
    make_plain(app)
}

/// Shows four runs: one under way that costs money, one of a commit with a title, one that was replaced and is folded
/// away, and one of another branch whose code has changed since.
fn with_runs(columns: u16, rows: u16) -> App {
    let ids = [4, 3, 2, 1].map(run_id);
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow {
        status: RunStatus::Reviewing,
        reviewer: "sonnet",
        scope: "range:HEAD~3..HEAD",
        cost: 0.14,
        counts: [1, 0, 0, 0],
        ..run_row(&ids[0])
    });
    builder.run(RunRow { scope: "commit:HEAD", reuse_count: 1, ..run_row(&ids[1]) });
    builder.run(RunRow { status: RunStatus::Superseded, superseded_by: &ids[1], counts: [0; 4], ..run_row(&ids[2]) });
    builder.run(RunRow { branch: "topic", scope: "range:a0c3bec..7e1328b", counts: [0; 4], ..run_row(&ids[3]) });
    let mut app = showing(columns, rows, complete(builder));
    let subjects = Arc::make_mut(&mut app.run_list.subjects);
    subjects.insert(ids[1].clone(), Some(RunSubject { commits: 1, title: "Retry on 429".into() }));
    subjects.insert(ids[3].clone(), Some(RunSubject { commits: 3, title: "Topic".into() }));
    press(&mut app, "1");
    make_plain(app)
}

#[test]
fn screens() {
    assert_looks_at_all_sizes("plain-runs", with_runs);
    assert_looks_at_all_sizes("plain-triage", triage_with_diff);
    assert_looks_at_all_sizes("plain-diff", |columns, rows| make_plain(diff::of_finding(columns, rows)));
    assert_looks_at_all_sizes("plain-live", |columns, rows| make_plain(live::following(columns, rows)));
}

#[test]
fn the_patch_stands_below_the_code_whatever_the_width() {
    for columns in [80, 160, 240] {
        let shown = screen(&triage_with_diff(columns, 48));
        let lines: Vec<&str> = shown.lines().collect();
        let at = |text: &str| lines.iter().position(|line| line.contains(text));
        let (code, title) = (at("let mut sum").expect("code"), at("suggested").expect("a title"));
        assert!(code < title, "{columns}: {shown}");
        let patch = lines[title..].iter().position(|line| line.contains("parse::<f64>()?")).expect("a patch");
        let line = lines[title + patch].trim_start();
        assert!(line.starts_with('+'), "nothing stands before the patch: {line:?}");
    }
}

#[test]
fn a_diff_stays_unified_whatever_its_width_and_the_key_says_why() {
    for columns in [80, 160, 240] {
        let mut app = make_plain(diff::of_finding(columns, 48));
        assert!(!app.detail.diff.columns().is_side_by_side, "{columns}");
        press(&mut app, "=");
        assert!(!app.detail.diff.columns().is_side_by_side, "{columns}");
        let said = app.notice.as_ref().map(|notice| notice.text.as_str());
        assert_eq!(said, Some("the plain screen has no columns: the diff stays unified"));
    }
    let mut app = make_plain(live::following(160, 48));
    press(&mut app, "=");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("unified")));
}

#[test]
fn the_first_line_counts_what_is_open_new_snoozed_and_decided_and_names_team_and_watcher() {
    let mut app = make_plain(showing(160, 48, view()));
    let header = |app: &App| screen(app).lines().next().unwrap_or_default().to_owned();
    assert_eq!(header(&app), "billing, branch main. idle. 4 open.");
    let visit =
        LastVisit { left_at: Time::from_millisecond(NOW - 86_400_000).expect("a time"), ..LastVisit::default() };
    Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(visit));
    let until = Time::from_millisecond(NOW + 60_000).expect("a time");
    let snoozed = SnoozedFindings::for_test(&[(&finding_id(2), until)]);
    send(&mut app, AppMessage::Snoozed(Arc::new(snoozed)));
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    send(&mut app, AppMessage::DecidedToday { since: NOW - 3_600_000, count: 7 });
    let synced_at = Time::from_millisecond(NOW - 60_000).ok();
    let team = TeamStatus { synced_at, ..TeamStatus::default() };
    send(&mut app, AppMessage::Team(Some(team)));
    send(&mut app, AppMessage::Watch(WatchState { watcher: WatcherStatus::Unknown, snoozed: None }));
    let expected = "billing, branch main. idle. 3 open, 2 new, 1 snoozed, 7 decided today, synced 11:59, watching.";
    assert_eq!(header(&app), expected);
}

#[test]
fn marks_of_findings_are_words_and_groups_have_their_names() {
    let mut app = make_plain(showing(160, 48, view()));
    let visit =
        LastVisit { left_at: Time::from_millisecond(NOW - 86_400_000).expect("a time"), ..LastVisit::default() };
    Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(visit));
    let disputed = [finding_id(2)].into_iter().collect();
    let team = TeamStatus { disputed, ..TeamStatus::default() };
    send(&mut app, AppMessage::Team(Some(team)));
    let until = Time::from_millisecond(NOW + 60_000).expect("a time");
    send(&mut app, AppMessage::Snoozed(Arc::new(SnoozedFindings::for_test(&[(&finding_id(1), until)]))));
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "status:all");
    press(&mut app, "Enter");
    let shown = screen(&app);
    for row in [
        " P0, 1 finding.",
        "   P0 open, snoozed, ",
        " P1, 1 finding.",
        " > P1 unresolved, disputed in the team, new, ",
        " P2, 3 findings.",
        "   P2 open, new, dead code, src/invoice/total.rs line 48: ",
        "   P2 open, long method, src/mail/queue/retry.rs line 9: ",
    ] {
        assert!(shown.lines().any(|line| line.starts_with(row)), "{row:?} in {shown}");
    }
}

#[test]
fn runs_are_named_as_people_say_them_with_what_is_unusual() {
    let shown = screen(&with_runs(200, 48));
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains(" by ")).map(str::trim).collect();
    for (row, parts) in [
        (0, &["> reviewing, HEAD~3..HEAD by sonnet, ", "1 finding (1 P0)", "$0.14"][..]),
        (1, &["completed, 3fa2c1d \"Retry on 429\" by builtin, ", "reused 1 time", "1 superseded"][..]),
        (2, &["completed, 3 commits, latest \"Topic\" by builtin, on topic, ", "no findings"][..]),
    ] {
        let shown = rows.get(row).unwrap_or_else(|| panic!("row {row} of {shown}"));
        for part in parts {
            assert!(shown.contains(part), "{part:?} in {shown:?}");
        }
        assert!(!shown.contains("commit:") && !shown.contains("range:"), "{shown}");
    }
    assert_eq!(rows.len(), 3, "{shown}");
}

#[test]
fn every_status_is_a_word_and_no_screen_has_signs_or_bars() {
    let with_finding = || {
        let mut app = showing(100, 40, view());
        press(&mut app, "j");
        let subject = DetailSubject::Finding(finding_id(2));
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
        press(&mut app, "l");
        app
    };
    let with_run = || {
        let mut app = showing(100, 40, view());
        let mut commands = press(&mut app, "1");
        // The first key unfolds the runs below it.
        commands.extend(press(&mut app, "l l"));
        load_pages(&mut app, commands);
        assert_eq!(app.panes.focus, Pane::Detail);
        app
    };
    for (name, app, words) in [
        ("finding", with_finding(), &["P1  unresolved"][..]),
        ("run", with_run(), &["completed  "]),
        (
            "live",
            live::following(100, 40),
            &[
                "  waiting for the first byte",
                "files 1 this turn, 1 read, 1 left out, 1 nobody yet",
                " read - src/invoice/total.rs",
                " this turn - src/mail.rs",
            ],
        ),
        (
            "knowledge",
            knowledge::open_knowledge(200, 40, knowledge::library()),
            &["known false alarm, ", "mistake, ", "came with revdeck", "seen "],
        ),
    ] {
        let shown = screen(&make_plain(app));
        let sign = shown.chars().find(|c| "○◐●◌✓✗⊘↑∅≠‖◆↓█▓▒░▌▸▾–·━─│".contains(*c));
        assert_eq!(sign, None, "{name}: {shown}");
        assert!(name == "knowledge" || !shown.contains("##"), "{name}: {shown}");
        for word in words {
            assert!(shown.contains(word), "{name}: {word:?} in {shown}");
        }
    }
}

#[test]
fn all_runs_of_a_page_have_their_titles_and_say_what_changed() {
    let ids: Vec<String> = (1..=40).rev().map(run_id).collect();
    let mut builder = StoreViewBuilder::default();
    for id in &ids {
        builder.run(RunRow { scope: "commit:HEAD", counts: [0; 4], ..run_row(id) });
    }
    let mut app = make_plain(showing(100, 20, complete(builder)));
    press(&mut app, "1");
    let height = usize::from(app.layout().body(Pane::Runs).expect("the list").height);
    // The first row of the second page.
    for _ in 0..height {
        press(&mut app, "j");
    }
    let shown = screen(&app);
    let entries = app.run_list.entries.iter().map(|entry| app.store.view.run(entry.index as usize).id);
    let asked = entries.filter(|id| app.run_list.subjects.contains_key(*id)).count();
    assert_eq!((app.run_list.cursor.selected, asked), (height, 2 * height), "{shown}");
    let changes = shown.lines().filter(|line| line.contains("no findings, nothing new")).count();
    assert_eq!(changes, height, "{shown}");
}

#[test]
fn a_long_path_leaves_room_for_the_line_and_the_title() {
    let (run, long) = (run_id(1), finding_id(1));
    let path = format!("src/{}/total.rs", "a_very_long_folder_of_invoices".repeat(4));
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run)).finding(FindingRow { path: &path, ..finding_row(&long, &run) });
    let app = make_plain(showing(120, 30, complete(builder)));
    let shown = screen(&app);
    let row = shown.lines().find(|line| line.starts_with(" > ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(row.contains("/total.rs line 48: unused parameter"), "{row}");
}

#[test]
fn a_key_in_a_long_path_is_masked_before_the_path_is_shortened() {
    let (run, found) = (run_id(1), finding_id(1));
    let key = ["ghp", "_R7tY2pZ4kW6nB8vC1xD3fG5hJ9mQ0sL2aE4u"].concat();
    let path = format!("src/{key}.rs");
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run)).finding(FindingRow { path: &path, ..finding_row(&found, &run) });
    let app = make_plain(showing(60, 30, complete(builder)));
    let shown = screen(&app);
    assert!(shown.contains("secret:github_token") && !shown.contains(&key[20..]), "{shown}");
}

#[test]
fn every_finding_is_on_a_page_with_its_group_and_a_click_selects_it() {
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for n in 0..40 {
        let (id, path) = (finding_id(n), format!("src/{:02}.rs", n / 3));
        builder.finding(FindingRow { path: &path, line_start: n + 1, line_end: n + 1, ..finding_row(&id, &run) });
    }
    let view = complete(builder);
    let mut app = make_plain(showing(100, 20, Arc::clone(&view)));
    app.finding_list.arrangement.grouping = FindingGrouping::File;
    send(&mut app, AppMessage::StoreRead { view, written: 0 });
    assert!(app.finding_list.groups.len() > 10);
    for at in 0..40 {
        let shown = screen(&app);
        let selected =
            shown.lines().position(|line| line.starts_with(" > ")).unwrap_or_else(|| panic!("{at}: {shown}"));
        assert!(shown.lines().any(|line| line.contains(&format!(" line {}: ", at + 1))), "{at}: {shown}");
        // A click on the row selects what is selected already.
        let body = app.layout().body(Pane::Findings).expect("the list");
        assert!((body.top()..body.bottom()).contains(&(selected as u16)), "{at}: {shown}");
        let click = MouseEvent { kind: MouseKind::Press, column: 5, row: selected as u16 };
        send(&mut app, AppMessage::Input(TerminalInput::Mouse(click)));
        assert_eq!(app.finding_list.cursor.selected, at, "{shown}");
        press(&mut app, "j");
    }
}
