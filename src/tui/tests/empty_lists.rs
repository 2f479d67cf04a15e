//! Tests an empty list of findings: what was not reviewed, or is not read yet, never looks clean.

use super::support::*;
use crate::domain::RunStatus;
use crate::store::{FindingRow, RunRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::doc::DocLine;
use crate::tui::empty_list::explain_empty_list;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, FileListRow, FileListState, Tab};
use crate::tui::page_data::{FilePage, PageData};
use crate::tui::pages::build_page;
use crate::tui::theme::Role;

const SIZES: [(u16, u16); 4] = [(160, 48), (100, 30), (80, 24), (20, 5)];

/// Shows a single run.
fn with_run(columns: u16, rows: u16, run: RunRow<'_>) -> App {
    let mut builder = StoreViewBuilder::default();
    builder.run(run);
    showing(columns, rows, complete(builder))
}

/// Chooses the run, as `Enter` in the list of runs does; the store answers that it reported nothing.
fn choose_run(app: &mut App, run: &str) {
    press(app, "1 Enter");
    send(app, AppMessage::Reported { run: run.to_owned(), findings: Vec::new() });
}

#[test]
fn a_chosen_run_without_findings_says_what_it_has_reviewed() {
    let id = run_id(1);
    let clean = RunRow { counts: [0; 4], ..run_row(&id) };
    let unread = RunRow { files_covered: 0, hunks_covered: 0, ..clean };
    let left_out = RunRow { hunks_total: 0, ..unread };
    let budget = RunRow { status: RunStatus::Cancelled, cancel_reason: "budget_exhausted", hunks_covered: 3, ..clean };
    let failed = |run| RunRow { status: RunStatus::Failed, error_class: "rate_limit", ..run };
    // Title, run, beginning of the headline for every size, whole headline, next key.
    for (title, run, begins, whole, key) in [
        ("clean", clean, "no findings", "no findings", "Esc"),
        ("all left out", left_out, "not reviewed", "not reviewed: every changed file was left out", "Press r"),
        ("clean", RunRow { has_carried: true, ..left_out }, "no findings", "no findings", "Esc"),
        ("failed at once", failed(unread), "not reviewed", "not reviewed: it failed: rate limit", "Press r"),
        (
            "stopped before it read anything",
            RunRow { status: RunStatus::Cancelled, cancel_reason: "user_stop", ..unread },
            "not reviewed",
            "not reviewed: stopped by the user",
            "Press r",
        ),
        ("lost", RunRow { status: RunStatus::Lost, ..unread }, "not reviewed", "its worker is gone", "Press r"),
        ("budget", budget, "only a part", "only a part was reviewed: budget reached", "Press r"),
        ("failed half way", failed(clean), "only a part", "only a part was reviewed: it failed: rate limit", "Press r"),
        (
            "gaps",
            RunRow { incomplete: true, hunks_covered: 3, ..clean },
            "only a part",
            "only a part was reviewed: a part is missing",
            "Press r",
        ),
        ("working", RunRow { status: RunStatus::Reviewing, ..unread }, "no findings yet", "no findings yet", "Esc"),
        ("waiting", RunRow { status: RunStatus::Pending, ..unread }, "no findings yet", "no findings yet", "Esc"),
    ] {
        for (columns, rows) in SIZES {
            let mut app = with_run(columns, rows, run);
            choose_run(&mut app, &id);
            let why = explain_empty_list(&app);
            assert!(why.headline.contains(whole), "{title}: {}", why.headline);
            assert_eq!(why.role == Role::Good, title == "clean", "{title}");
            let shown = screen(&app);
            let lower = shown.to_lowercase();
            assert!(lower.contains(begins), "{title} {columns}x{rows}: {shown}");
            assert_eq!(
                lower.contains("no findings"),
                begins.contains("no findings"),
                "{title} {columns}x{rows}: {shown}"
            );
            assert!(rows < 24 || shown.contains(key), "{title} {columns}x{rows}: {shown}");
        }
        let mut app = with_run(80, 24, run);
        app.display.plain = true;
        choose_run(&mut app, &id);
        let shown = screen(&app).to_lowercase();
        assert!(shown.contains(whole), "{title}: {shown}");
    }
}

#[test]
fn findings_of_a_run_that_are_not_read_or_are_lost_are_not_none() {
    let id = run_id(1);
    let mut app = with_run(80, 24, run_row(&id));
    press(&mut app, "1 Enter");
    assert!(screen(&app).contains("Reading the findings of this run"), "{}", screen(&app));
    send(&mut app, AppMessage::Reported { run: id.clone(), findings: Vec::new() });
    assert!(screen(&app).contains("The 3 findings of this run cannot be listed"), "{}", screen(&app));
    assert!(screen(&app).contains("revdeck store verify"), "{}", screen(&app));
    // A filter that hides them says so, and that there is more to review.
    let finding = finding_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { counts: [0, 0, 1, 0], incomplete: true, hunks_covered: 3, ..run_row(&id) });
    builder.finding(finding_row(&finding, &id));
    let mut app = showing(80, 24, complete(builder));
    press(&mut app, "1 Enter");
    send(&mut app, AppMessage::Reported { run: id.clone(), findings: vec![finding] });
    press(&mut app, "f");
    type_text(&mut app, " p:0");
    press(&mut app, "Enter");
    let shown = screen(&app);
    assert!(shown.contains("No finding of this run passes the filter"), "{shown}");
    assert!(shown.contains("Only a part was reviewed: a part is missing."), "{shown}");
}

#[test]
fn nothing_left_to_decide_is_no_praise_after_a_review_that_read_nothing() {
    let (newer, older, finding) = (run_id(2), run_id(1), finding_id(1));
    let decided = FindingRow { status: crate::domain::FindingStatus::Dismissed, ..finding_row(&finding, &older) };
    let unread = RunRow { counts: [0; 4], files_covered: 0, hunks_covered: 0, ..run_row(&newer) };
    for (run, praised, said) in [
        (RunRow { counts: [0; 4], ..run_row(&newer) }, true, ""),
        // The older one answers for it.
        (RunRow { status: RunStatus::Cancelled, cancel_reason: "duplicate", ..unread }, true, ""),
        (RunRow { status: RunStatus::Failed, ..unread }, false, "reviewed nothing: it failed."),
        (RunRow { hunks_total: 0, ..unread }, false, "reviewed nothing: every changed file was left out."),
        (RunRow { status: RunStatus::Reviewing, ..unread }, false, "The review of worktree is not over ("),
        (RunRow { incomplete: true, hunks_covered: 3, ..unread }, false, "reviewed only a part: a part is missing."),
    ] {
        let mut builder = StoreViewBuilder::default();
        builder.run(run).run(run_row(&older)).finding(decided);
        let app = showing(80, 24, complete(builder));
        let why = explain_empty_list(&app);
        assert_eq!((why.headline.as_str(), why.role == Role::Good), ("nothing left to decide", praised), "{said}");
        assert_eq!(why.details.len(), if praised { 1 } else { 2 }, "{:?}", why.details);
        assert!(why.details[0].contains(said), "{:?}", why.details);
    }
    let app = with_run(80, 24, RunRow { status: RunStatus::Failed, ..unread });
    assert_eq!(explain_empty_list(&app).headline, "the newest review reviewed nothing");
    // A review of another branch says nothing about this one.
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { branch: "other", ..run_row(&older) }).finding(decided);
    assert_eq!(explain_empty_list(&showing(80, 24, complete(builder))).role, Role::Strong);
}

#[test]
fn the_keys_of_an_empty_store_name_the_filter_that_they_change() {
    let id = run_id(1);
    let clean = RunRow { counts: [0; 4], ..run_row(&id) };
    for (filter, expected) in [
        ("status:undecided", "Press f to change the filter (status:all shows everything), r to review again."),
        ("p:0", "Press f to change the filter, Esc to take it back, r to review again."),
    ] {
        let mut app = with_run(80, 24, clean);
        app.finding_list.filter_text = filter.to_owned();
        let why = explain_empty_list(&app);
        assert_eq!((why.headline.as_str(), why.details), ("nothing found", vec![expected.to_owned()]), "{filter}");
    }
}

#[test]
fn files_that_wait_or_were_reviewed_in_part_are_not_counted_as_clean() {
    let id = run_id(1);
    let mut app = with_run(160, 48, RunRow { status: RunStatus::Reviewing, counts: [0; 4], ..run_row(&id) });
    press(&mut app, "1");
    let file = |path: &str, state| FileListRow::new(path, state);
    let files = [("a.rs", FileListState::Covered), ("b.rs", FileListState::Waiting), ("c.rs", FileListState::Partial)];
    let files = files.map(|(path, state)| file(path, state)).to_vec();
    send(&mut app, AppMessage::Files { run: id.clone(), files: Some(files) });
    assert!(screen(&app).contains("1 clean, 1 partly reviewed, 1 waiting"), "{}", screen(&app));
    for (status, said) in [(RunStatus::Reviewing, "no file yet"), (RunStatus::Failed, "no file was reviewed")] {
        let unread = RunRow { counts: [0; 4], files_covered: 0, hunks_covered: 0, ..run_row(&id) };
        let mut app = with_run(160, 48, RunRow { status, ..unread });
        press(&mut app, "1");
        assert!(screen(&app).contains(said), "{}", screen(&app));
    }
}

#[test]
fn the_page_of_a_run_does_not_call_unreviewed_code_clean() {
    let id = run_id(1);
    let clean = RunRow { counts: [0; 4], ..run_row(&id) };
    let unread = RunRow { files_covered: 0, hunks_covered: 0, ..clean };
    for (run, said) in [
        (clean, "none"),
        (RunRow { status: RunStatus::Failed, ..unread }, "nothing was reviewed"),
        (RunRow { incomplete: true, hunks_covered: 3, ..clean }, "none in the reviewed part"),
        (RunRow { status: RunStatus::Reviewing, ..unread }, "none so far"),
    ] {
        let mut app = with_run(160, 48, run);
        press(&mut app, "1");
        load_pages(&mut app, vec![AppCommand::Load { subject: DetailSubject::Run(id.clone()), tab: Tab::Page }]);
        let shown = screen(&app);
        assert!(shown.contains(&format!("findings    {said}")), "{said}: {shown}");
        let has_more = shown.contains("none in the") || shown.contains("none so");
        assert_eq!(has_more, said.starts_with("none "), "{said}: {shown}");
    }
}

#[test]
fn the_page_of_a_file_does_not_call_unreviewed_hunks_clean() {
    let id = run_id(1);
    let clean = RunRow { counts: [0; 4], ..run_row(&id) };
    let gaps = RunRow { incomplete: true, hunks_covered: 3, ..clean };
    for (run, said) in [(clean, "no findings"), (gaps, "no findings in the reviewed part")] {
        let mut app = with_run(160, 48, run);
        press(&mut app, "1");
        load_pages(&mut app, vec![AppCommand::Load { subject: DetailSubject::Run(id.clone()), tab: Tab::Page }]);
        let Some((subject, tab, loaded)) = app.detail.page.take() else { unreachable!("the page of the run") };
        let PageData::Run(page) = *loaded else { unreachable!("the page of the run") };
        let file = FilePage {
            run: page.run.clone(),
            path: "src/a.rs".to_owned(),
            findings: Vec::new(),
            hunks: 1,
            state: FileListState::Covered,
        };
        app.detail.page = Some((subject, tab, Box::new(PageData::File(Box::new(file)))));
        let lines: Vec<String> = build_page(&app, 80).lines.iter().map(DocLine::plain_text).collect();
        assert_eq!(lines.last().map(String::as_str), Some(said), "{lines:?}");
    }
}
