//! Tests the effects of keys and other messages.

use std::sync::Arc;

use rstest::rstest;

use super::support::*;
use crate::domain::{Actor, Disposition, FindingStatus, RunStatus, Scope, Time, TriageAction};
use crate::runner::FreshnessFacts;
use crate::store::triage::UndoOutcome;
use crate::store::{RunRow, StoreViewBuilder};
use crate::tui::app::{App, Notice, Pane, PendingCount};
use crate::tui::finding_order::ListedFindings;
use crate::tui::input::TerminalInput;
use crate::tui::message::{AppCommand, AppMessage, ChosenReviewer, DetailSubject, Tab, TriageOrder, UserVerdict};
use crate::tui::update;
use crate::tui::views::ViewReply;
use crate::tui::views::fix::FixOrder;
use crate::tui::views::knowledge::KnowledgeOutcome;
use crate::tui::views::prompt::PromptView;

fn selected(app: &App) -> String {
    app.selected_finding().map(|finding| finding.id.to_owned()).unwrap_or_default()
}

fn quits(commands: &[AppCommand]) -> bool {
    commands.iter().any(|command| matches!(command, AppCommand::Quit(_)))
}

#[test]
fn motions_take_counts_and_single_digits_are_panes() {
    // Keys, expected focus and row. The list has 60 findings and the focus.
    for (keys, focus, row) in [
        ("j j k", Pane::Findings, 1),
        ("1 2 j", Pane::Findings, 12),
        ("2 3 j", Pane::Findings, 23),
        ("2 j", Pane::Findings, 1),
        ("1 2 k 5 j", Pane::Findings, 5),
        ("9 j", Pane::Findings, 9),
        ("1 0 j 5 k", Pane::Findings, 5),
        ("G", Pane::Findings, 59),
        ("G g", Pane::Findings, 0),
        ("7 g", Pane::Findings, 6),
        ("3 0 G", Pane::Findings, 29),
        ("1", Pane::Runs, 0),
        ("3", Pane::Files, 0),
        ("1 Tab Tab", Pane::Files, 0),
        ("Shift-Tab", Pane::Runs, 0),
        ("l", Pane::Detail, 0),
        ("l h", Pane::Findings, 0),
        ("Enter Esc", Pane::Findings, 0),
        ("Ctrl-d Ctrl-u", Pane::Findings, 0),
    ] {
        let mut app = showing(160, 48, many(60));
        press(&mut app, keys);
        assert_eq!((app.panes.focus, app.finding_list.cursor.selected), (focus, row), "{keys}");
    }
}

#[test]
fn a_count_is_typed_in_one_go() {
    let mut app = showing(160, 48, many(60));
    press(&mut app, "1 2");
    assert!(app.has_running_clock(), "somebody has to look when the second is over");
    let at = |app: &mut App, later: i64, message| update(app, NOW + later, message);
    at(&mut app, PendingCount::TIMEOUT_MS - 1, AppMessage::Tick);
    assert!(app.count.is_some());
    at(&mut app, PendingCount::TIMEOUT_MS, AppMessage::Tick);
    assert!(app.count.is_none() && !app.has_running_clock());
    // After the timeout the digits are pane keys, and `j` moves one row.
    press(&mut app, "1 2");
    at(&mut app, PendingCount::TIMEOUT_MS, AppMessage::Input(TerminalInput::Key("j".parse().expect("a key"))));
    assert_eq!((app.panes.focus, app.finding_list.cursor.selected), (Pane::Findings, 1));
}

#[test]
fn what_is_typed_takes_the_place_of_what_is_offered() {
    let typed = |app: &mut App| match app.views.front_as::<PromptView>() {
        Some(prompt) => prompt.line.text().to_owned(),
        other => panic!("{other:?}"),
    };
    let mut app = showing(160, 48, view());
    press(&mut app, "W");
    assert_eq!(typed(&mut app), "30m");
    press(&mut app, "2 h");
    assert_eq!(typed(&mut app), "2h");
    press(&mut app, "Esc W Left");
    type_text(&mut app, "5");
    assert_eq!(typed(&mut app), "305m");
    press(&mut app, "Esc r 6");
    type_text(&mut app, "v1.0");
    assert_eq!(typed(&mut app), "v1.0");
}

#[rstest]
#[case::small(80, 24)]
#[case::wide(160, 48)]
fn a_long_error_can_be_read_to_its_end(#[case] columns: u16, #[case] rows: u16) {
    let mut app = showing(columns, rows, view());
    let error = "the patch does not apply: src/config.rs: line 7 is \"const TOKEN\" and not \"const OTHER\"; your files \
                 have changed since the snapshot; review again and fix what is found then, or take from `revdeck fix show` \
                 what you need";
    let words = |screen: &str| screen.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let order = FixOrder::Make(Vec::new());
    send(&mut app, AppMessage::FixFinished { order, result: Err(error.to_owned()) });
    let shown = screen(&app);
    assert!(words(&shown).contains(error), "{shown}");
    assert!(shown.lines().count() == usize::from(rows) && shown.contains("Findings"), "{shown}");
    press(&mut app, "j");
    assert!(!screen(&app).contains("review again"));
    // A store problem stays visible and leaves the lists their rows.
    send(&mut app, AppMessage::StoreTrouble(error.to_owned()));
    assert!(words(&screen(&app)).contains(error), "{}", screen(&app));
}

#[test]
fn a_part_that_has_stopped_is_named_until_the_end() {
    let mut app = showing(160, 48, view());
    app.notice = None;
    let stopped = |text: &str| AppMessage::PartStopped(text.to_owned());
    send(&mut app, stopped("a part of the cockpit has stopped; start it again (internal error in pages: no such row)"));
    send(&mut app, stopped("a part of the cockpit has stopped; start it again"));
    // A store problem is more urgent, and passes.
    send(&mut app, AppMessage::StoreTrouble("cannot read runs.ndjson".to_owned()));
    assert!(screen(&app).contains("cannot read runs.ndjson"), "{}", screen(&app));
    for keys in ["", "S", "Esc j"] {
        press(&mut app, keys);
        app.notice = None;
        send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
        assert!(screen(&app).contains("start it again (internal error in pages: no such row)"), "{}", screen(&app));
    }
}

#[test]
fn esc_goes_back_step_by_step_and_never_quits() {
    let mut app = showing(160, 48, view());
    press(&mut app, "Space Space");
    type_text(&mut app, "");
    press(&mut app, "l");
    for _ in 0..12 {
        let commands = press(&mut app, "Esc");
        assert!(!quits(&commands));
    }
    assert_eq!((app.panes.focus, app.finding_list.marks.len()), (Pane::Findings, 0));
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.starts_with("q quits")));
    assert!(quits(&press(&mut app, "q")));
}

#[test]
fn a_decision_shows_only_after_it_is_stored_and_stays_in_sight() {
    let mut app = showing(160, 48, view());
    let first = selected(&app);
    let commands = press(&mut app, "a");
    let status = |app: &App| app.finding_by_id(&first).map(|row| app.current_status(&row));
    assert_eq!(status(&app), Some(FindingStatus::Open), "not before it is stored");
    assert_eq!(store(&mut app, commands), 1);
    assert_eq!(status(&app), Some(FindingStatus::Addressed));
    assert_eq!(app.finding_list.cursor.selected, 1, "on to the next");
    assert!(app.finding_list.rows.len() == 4, "the decided one stays where it is");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "addressed src/config.rs:7 · u undoes"));

    let commands = press(&mut app, "a");
    let order = commands.into_iter().find_map(|command| match command {
        AppCommand::Triage(order) => Some(order),
        _ => None,
    });
    let before = app.finding_list.overrides.statuses.clone();
    let failed = AppMessage::Triaged { order: order.expect("an order"), result: Err("disk full".into()), written: 1 };
    send(&mut app, failed);
    assert_eq!(app.finding_list.overrides.statuses, before, "what was not stored is not shown");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "not stored: disk full"));
}

#[test]
fn undo_and_redo_are_the_stores_to_find() {
    let mut app = showing(160, 48, view());
    let orders = |commands: Vec<AppCommand>| -> Vec<TriageOrder> {
        commands
            .into_iter()
            .filter_map(|command| match command {
                AppCommand::Triage(order) => Some(order),
                _ => None,
            })
            .collect()
    };
    assert_eq!(orders(press(&mut app, "u")), [TriageOrder::Undo]);
    assert_eq!(orders(press(&mut app, "Ctrl-r")), [TriageOrder::Redo]);
    send(&mut app, AppMessage::Triaged { order: TriageOrder::Undo, result: Ok(UndoOutcome::Nothing), written: 0 });
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "nothing to undo"));
}

#[test]
fn dismissing_asks_for_a_reason_and_esc_takes_it_back() {
    let mut app = showing(160, 48, view());
    press(&mut app, "v j j x");
    assert!(app.views.front_as::<PromptView>().is_some());
    let commands = press(&mut app, "Esc");
    assert!(commands.iter().all(|command| !matches!(command, AppCommand::Triage(_))));
    let commands = press(&mut app, "x Enter");
    assert!(commands.iter().all(|command| !matches!(command, AppCommand::Triage(_))), "not without a reason");
    type_text(&mut app, "on purpose");
    let commands = press(&mut app, "Enter");
    assert_eq!(store(&mut app, commands), 3, "the range that was marked");
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("dismissed 3 findings: src/config.rs:7, src/invoice/total.rs:31 and 1 more · u undoes"));
    press(&mut app, "j x");
    assert_eq!(crate::tui::views::prompt::dismissal_reasons(&app)[0], "on purpose", "reasons are remembered");
}

#[test]
fn the_selection_sticks_to_ids_while_data_changes() {
    let mut app = showing(160, 48, many(60));
    press(&mut app, "G k k");
    let before = selected(&app);
    let place = app.finding_list.cursor.selected - app.finding_list.cursor.offset;
    // A new run with five new findings arrives above.
    let (old, new) = (run_id(1), run_id(9));
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { status: RunStatus::Reviewing, ..run_row(&new) });
    builder.run(run_row(&old));
    for n in 70..75 {
        let id = finding_id(n);
        builder.finding(finding_row(&id, &new));
    }
    for n in 0..60 {
        let id = finding_id(n);
        builder.finding(finding_row(&id, &old));
    }
    send(&mut app, AppMessage::StoreRead { view: complete(builder), written: 0 });
    assert_eq!(selected(&app), before);
    assert_eq!(
        app.finding_list.cursor.selected - app.finding_list.cursor.offset,
        place,
        "and keeps its place on the screen"
    );
    assert!(app.has_active_runs());
}

#[test]
fn superseded_runs_are_folded_below_what_replaced_them() {
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    assert_eq!(app.run_list.entries.len(), 2);
    assert_eq!(app.run_list.entries[0].folded.total(), 1);
    for (keys, rows) in [("Space", 3), ("Space", 2), ("l", 3), ("h", 2), ("Space", 3)] {
        press(&mut app, keys);
        assert_eq!(app.run_list.entries.len(), rows, "{keys}");
    }
    press(&mut app, "j h");
    assert_eq!(
        (app.run_list.entries.len(), app.run_list.cursor.selected),
        (2, 0),
        "folding from inside selects what replaced it"
    );
}

#[test]
fn the_filter_is_typed_live_and_can_be_taken_back() {
    let mut app = showing(160, 48, view());
    assert_eq!(app.finding_list.rows.len(), 4, "undecided ones at first");
    press(&mut app, "f");
    type_text(&mut app, "p:0,1");
    assert_eq!(app.finding_list.rows.len(), 2);
    press(&mut app, "Esc");
    assert_eq!((app.finding_list.rows.len(), app.finding_list.filter_text.as_str()), (4, "status:undecided"));
    press(&mut app, "f Ctrl-u");
    assert_eq!(app.finding_list.rows.len(), 6);
    press(&mut app, "s t Tab d i s Tab Enter");
    assert_eq!(app.finding_list.filter_text, "status:dismissed");
    assert_eq!(app.finding_list.rows.len(), 1);
    press(&mut app, "Esc");
    assert_eq!(app.finding_list.filter_text, "status:undecided", "Esc goes back to what is undecided");
    press(&mut app, "1 j Enter");
    assert_eq!(app.finding_list.rows.len(), 2, "a run's own findings, whatever became of them");
    assert!(!app.finding_list.filter_text.contains("status:"), "{}", app.finding_list.filter_text);
    press(&mut app, "3 Enter");
    assert!(app.finding_list.filter_text.starts_with("status:undecided path:"), "{}", app.finding_list.filter_text);
}

#[test]
fn header_and_form_follow_the_branch_that_is_checked_out() {
    let header = |app: &App| screen(app).lines().next().expect("a header").to_owned();
    let mut app = showing(160, 48, view());
    assert!(header(&app).contains(" main "), "{}", header(&app));
    for (branch, shown, scope) in
        [("topic", " topic ", "topic since it left its base"), ("", " detached HEAD ", "HEAD since it left its base")]
    {
        let facts = FreshnessFacts::for_worktree(1, "/repo", branch, "", &[]).with_branch(branch);
        send(&mut app, AppMessage::Freshness(Arc::new(facts)));
        assert!(header(&app).contains(shown) && !header(&app).contains("main"), "{}", header(&app));
        press(&mut app, "r");
        assert!(screen(&app).contains(scope), "{}", screen(&app));
        press(&mut app, "Esc");
    }
    // Nobody knows the branch of a repository that is gone.
    send(&mut app, AppMessage::Freshness(Arc::new(FreshnessFacts::for_worktree(2, "/repo", "", "", &[]))));
    assert!(header(&app).contains(" detached HEAD "), "{}", header(&app));
}

#[test]
fn the_footer_of_a_list_offers_the_palette_where_it_has_room() {
    for (columns, keys, expected) in [
        (160, "1", ": commands   ? help   q quit"),
        (160, "2", "c comment   : commands   ? help   q quit"),
        (100, "2", "c comment   : commands   ? help   q quit"),
        (160, "3", "/ search   : commands   ? help   q quit"),
        (80, "2", "f filter   ? help   q quit"),
    ] {
        let mut app = showing(columns, 24, view());
        press(&mut app, keys);
        let shown = screen(&app);
        assert!(shown.lines().last().is_some_and(|footer| footer.trim_end().ends_with(expected)), "{columns}: {shown}");
    }
}

#[test]
fn the_footer_offers_decisions_only_about_findings() {
    let last_line = |app: &App| screen(app).lines().last().expect("a footer").to_owned();
    let mut app = showing(160, 48, view());
    for (keys, offered) in [("2 l", true), ("1 l l", false), ("3 l", false)] {
        press(&mut app, keys);
        assert_eq!(app.panes.focus, Pane::Detail, "{keys}");
        let footer = last_line(&app);
        assert_eq!(footer.contains("addressed"), offered, "{keys}: {footer}");
        assert!(footer.contains("? help") && footer.contains("Esc back"), "{footer}");
    }
    let mut app = showing(80, 24, complete(StoreViewBuilder::default()));
    press(&mut app, "L");
    assert_eq!((&app.detail.subject, app.panes.focus), (&DetailSubject::Nothing, Pane::Detail));
    let footer = last_line(&app);
    assert!(!footer.contains("addressed") && footer.contains("r review"), "{footer}");
}

#[test]
fn many_findings_are_filtered_elsewhere_and_old_answers_do_not_count() {
    let mut app = showing(160, 48, many(10));
    let commands = send(&mut app, AppMessage::StoreRead { view: many(5_000), written: 0 });
    let asked = commands.iter().find_map(|command| match command {
        AppCommand::Filter { serial, view, .. } => Some((*serial, Arc::clone(view))),
        _ => None,
    });
    let (serial, view) = asked.expect("filtering is asked for");
    assert_eq!(app.finding_list.rows.len(), 10, "until then the old list stays");
    let listed = |rows: Vec<u32>| ListedFindings { rows, ..ListedFindings::default() };
    send(&mut app, AppMessage::Filtered { serial: serial - 1, view: many(3), listed: listed(vec![0]) });
    assert_eq!(app.finding_list.rows.len(), 10);
    send(&mut app, AppMessage::Filtered { serial, view, listed: listed((0..5_000).collect()) });
    assert_eq!(app.finding_list.rows.len(), 5_000);
}

#[test]
fn a_filter_while_a_new_view_is_filtered_does_not_bring_the_old_one_back() {
    let mut app = showing(160, 48, many(5_000));
    let answer = |app: &mut App, commands: Vec<AppCommand>| {
        for command in commands {
            if let AppCommand::Filter { serial, view, query } = command {
                let listed = query.list(&view);
                send(app, AppMessage::Filtered { serial, view, listed });
            }
        }
    };
    let commands = send(&mut app, AppMessage::StoreRead { view: many(5_001), written: 0 });
    answer(&mut app, commands);
    assert_eq!(app.store.view.finding_count(), 5_001);
    for is_answered_late in [false, true] {
        let count = app.store.view.finding_count() + 1;
        let first = send(&mut app, AppMessage::StoreRead { view: many(count as u32), written: 0 });
        // What the same look at the store has found, too.
        let second = send(&mut app, AppMessage::Snoozed(Arc::default()));
        // Of several requests, the thread may answer the last one only.
        if is_answered_late {
            answer(&mut app, first);
        }
        answer(&mut app, second);
        assert_eq!(app.store.view.finding_count(), count, "{is_answered_late}");
        assert!(app.store.next_view.is_none(), "{is_answered_late}");
    }
}

#[test]
fn the_detail_follows_and_answers_for_others_are_dropped() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "j");
    let asked = DetailSubject::Finding(finding_id(2));
    assert!(commands.iter().any(|c| matches!(c, AppCommand::Load { subject, tab: Tab::Page } if *subject == asked)));
    send(
        &mut app,
        AppMessage::Loaded { subject: DetailSubject::Finding(finding_id(1)), tab: Tab::Page, loaded: page(1, 3) },
    );
    assert!(app.detail.page.is_none());
    send(&mut app, AppMessage::Loaded { subject: asked.clone(), tab: Tab::Page, loaded: page(2, 3) });
    assert!(app.detail.page.is_some() && app.detail.loading.is_none());
    let commands = press(&mut app, "l l");
    assert!(commands.iter().any(|c| matches!(c, AppCommand::Load { tab: Tab::Diff, .. })));
    assert!(app.detail.doc.lines.is_empty(), "another tab's page does not stay");
}

#[test]
fn a_review_is_asked_for_with_the_chosen_scope_and_cancelling_asks_first() {
    for (keys, scope) in [
        ("r Enter", None),
        ("r j Enter", Some(Scope::Worktree)),
        ("r 3 Enter", Some(Scope::Staged)),
        ("r 8 8", Some(Scope::All)),
        ("r 6 Enter Enter", Some(Scope::Commit("HEAD~1".into()))),
        ("r 7 a . . b Enter Enter", Some(Scope::Range { from: "a".into(), to: "b".into() })),
    ] {
        let mut app = showing(160, 48, view());
        let commands = press(&mut app, keys);
        let asked = commands.into_iter().find_map(|command| match command {
            AppCommand::Review { scope, reviewer: ChosenReviewer::Default, force: false } => Some(scope),
            _ => None,
        });
        assert_eq!(asked, Some(scope), "{keys}");
    }
    let id = run_id(7);
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { status: RunStatus::Reviewing, ..run_row(&id) });
    let mut app = showing(160, 48, complete(builder));
    assert!(press(&mut app, "C n").iter().all(|command| !matches!(command, AppCommand::Cancel(_))));
    assert!(
        press(&mut app, "C y").iter().any(|command| matches!(command, AppCommand::Cancel(run) if run.as_str() == id))
    );
}

#[test]
fn search_finds_rows_and_lines_around_the_end() {
    let mut app = showing(160, 48, view());
    press(&mut app, "/ r e t r y Enter");
    assert_eq!(selected(&app), finding_id(5));
    press(&mut app, "n");
    assert_eq!(selected(&app), finding_id(5), "the only one");
    press(&mut app, "/ x y z Enter");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert_eq!(prompt.error, "\"xyz\" is not here");
    // A page may get further lines: the prompt closes, and the message line says it.
    let mut app = showing(160, 48, view());
    press(&mut app, "l / x y z Enter");
    assert!(app.views.is_empty());
    assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some("\"xyz\" is not here"));
}

#[test]
fn copying_and_editing_name_the_place() {
    let mut app = showing(160, 48, view());
    let copied = |commands: Vec<AppCommand>| {
        commands.into_iter().find_map(|command| match command {
            AppCommand::Copy(order) => Some(order.text),
            _ => None,
        })
    };
    assert_eq!(copied(press(&mut app, "y Enter")).as_deref(), Some("src/config.rs:7"));
    assert_eq!(copied(press(&mut app, "y 3")), Some(finding_id(1)));
    assert!(copied(press(&mut app, "y 2")).is_some_and(|text| text.starts_with("**p0: a token")));
    let commands = press(&mut app, "e");
    assert!(commands.iter().any(|c| matches!(c, AppCommand::Edit { path, line: 7 } if path == "src/config.rs")));
}

#[test]
fn a_prompt_is_copied_of_the_selected_finding_or_of_the_marked_ones() {
    let prompted = |commands: Vec<AppCommand>| {
        commands.into_iter().find_map(|command| match command {
            AppCommand::CopyPrompt(findings) => Some(findings),
            _ => None,
        })
    };
    let mut app = showing(160, 48, view());
    assert_eq!(prompted(press(&mut app, "Y")), Some(vec![finding_id(1)]));
    press(&mut app, "j");
    let second = selected(&app);
    assert_eq!(prompted(press(&mut app, "Y")), Some(vec![second.clone()]));
    press(&mut app, "k Space Space");
    assert_eq!(prompted(press(&mut app, "Y")), Some(vec![finding_id(1), second]), "in the order of the list");

    let mut empty = app_without_findings();
    assert_eq!(prompted(press(&mut empty, "Y")), None);
    assert!(screen(&empty).contains("no finding is selected"), "{}", screen(&empty));
}

fn app_without_findings() -> App {
    showing(160, 48, complete(StoreViewBuilder::default()))
}

#[test]
fn what_was_set_right_is_told_until_a_key_is_pressed() {
    let mut app = showing(160, 48, view());
    let summary = "2 runs resumed, 1 lost: worker died in turn 7, 4 findings kept; 1 leftover worktree removed";
    send(&mut app, AppMessage::Reconciled(Some(summary.to_owned())));
    for message in
        [AppMessage::Tick, AppMessage::Pulses(Vec::new()), AppMessage::StoreRead { view: view(), written: 0 }]
    {
        send(&mut app, message);
    }
    assert!(screen(&app).contains(summary), "{}", screen(&app));
    press(&mut app, "j");
    assert!(!screen(&app).contains("resumed"));
    send(&mut app, AppMessage::Reconciled(None));
    assert_eq!(app.notice, None);
}

#[test]
fn copied_text_reaches_the_terminal_as_base64() {
    assert_eq!(
        crate::tui::clipboard::encode_clipboard("src/ü.rs:7\u{1b}[2J", |_| None),
        "\x1b]52;c;c3JjL8O8LnJzOjcbWzJK\x1b\\"
    );
}

fn page_orders(commands: &[AppCommand]) -> Vec<&'static str> {
    let order = |command: &AppCommand| match command {
        AppCommand::Load { .. } => Some("masked"),
        AppCommand::Reveal { .. } => Some("revealed"),
        _ => None,
    };
    commands.iter().filter_map(order).collect()
}

#[test]
fn a_page_with_its_secrets_comes_and_goes_with_the_wish_for_it() {
    let mut app = showing(160, 48, view());
    let subject = app.detail.subject.clone();
    let loaded = |subject: &DetailSubject| (subject.clone(), Tab::Page, page(1, 3));
    let (s, tab, data) = loaded(&subject);
    send(&mut app, AppMessage::Loaded { subject: s, tab, loaded: data });
    assert_eq!(page_orders(&press(&mut app, "~")), ["revealed"]);
    // A masked page that was on its way does not replace the wish.
    let (s, tab, data) = loaded(&subject);
    send(&mut app, AppMessage::Loaded { subject: s, tab, loaded: data });
    assert!(app.detail.revealed.is_some() && app.detail.loading.is_some());
    let (s, tab, data) = loaded(&subject);
    send(&mut app, AppMessage::Revealed { subject: s, tab, loaded: data });
    assert!(screen(&app).contains("secrets shown"));
    // The page follows the store with its secrets.
    app.detail.stale = true;
    assert_eq!(page_orders(&send(&mut app, AppMessage::Tick)), ["revealed"]);
    for (keys, back) in [("~", ""), ("j", "k"), ("?", "q"), ("l l", "h h")] {
        if app.detail.revealed.is_none() {
            press(&mut app, "~");
        }
        assert_eq!(page_orders(&press(&mut app, keys)).last(), Some(&"masked"), "{keys}");
        assert_eq!((app.detail.page.is_none(), app.detail.doc.lines.len()), (true, 0), "{keys}: gone at once");
        // A page with secrets that comes late is not shown.
        let (s, tab, data) = loaded(&app.detail.subject.clone());
        send(&mut app, AppMessage::Revealed { subject: s, tab, loaded: data });
        assert!(app.detail.page.is_none(), "{keys}");
        press(&mut app, back);
    }
    press(&mut app, "1 ~");
    assert_eq!(app.detail.revealed, None, "the page of a run shows no code");
}

#[rstest]
#[case::filter("f Ctrl-u", "kind:xyz", "kind:xyz is unknown; there are ")]
#[case::no_run("f Ctrl-u", "run:ar_9", "run:ar_9 is unknown; the newest runs are ")]
#[case::range("r 7", "main", "\"main\" is no range; write A..B or A...B")]
#[case::snooze("W", "half an hour", "is no time to be left alone")]
#[case::search("/", "nowhere at all", "\"nowhere at all\" is not here")]
fn a_typo_keeps_the_prompt_with_the_text_and_the_reason(#[case] open: &str, #[case] typed: &str, #[case] reason: &str) {
    let mut app = showing(160, 48, view());
    press(&mut app, open);
    type_text(&mut app, typed);
    let commands = press(&mut app, "Enter");
    assert!(commands.iter().all(|command| !matches!(command, AppCommand::Review { .. } | AppCommand::Snooze(_))));
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert_eq!(prompt.line.text(), typed);
    let shown = screen(&app);
    assert!(shown.contains(reason) && shown.contains(typed), "{shown}");
    press(&mut app, "Backspace");
    assert!(!screen(&app).contains(reason), "the next change takes the reason away");
}

#[rstest]
#[case::commit("r 6", "HEAD~99")]
#[case::range("r 7", "nobody..HEAD")]
fn a_revision_that_git_does_not_know_comes_back_into_its_prompt(#[case] open: &str, #[case] typed: &str) {
    let mut app = showing(160, 48, view());
    press(&mut app, open);
    type_text(&mut app, typed);
    // The second Enter does not wait for the forecast.
    press(&mut app, "Enter Enter");
    assert!(app.views.is_empty());
    send(&mut app, AppMessage::Requested(Err("there is no such revision".to_owned())));
    let prompt: &PromptView = app.views.front_as().expect("the prompt is back");
    assert_eq!((prompt.line.text(), prompt.error.as_str()), (typed, "no review: there is no such revision"));
    press(&mut app, "Esc Esc");
    // Only once, and not for a review that no prompt asked for.
    send(&mut app, AppMessage::Requested(Err("the disk is full".to_owned())));
    assert!(app.views.is_empty());
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "no review: the disk is full"));
}

#[test]
fn an_answer_about_something_else_leaves_a_prompt_to_its_own_answer() {
    let mut app = showing(160, 48, view());
    press(&mut app, "r 6");
    type_text(&mut app, "HEAD~99");
    press(&mut app, "Enter Enter");
    for outcome in [KnowledgeOutcome::Failed("the disk is full".to_owned()), KnowledgeOutcome::Done("muted".to_owned())]
    {
        send(&mut app, AppMessage::View(ViewReply::KnowledgeFinished(outcome)));
        assert!(app.views.is_empty());
    }
    send(&mut app, AppMessage::Requested(Err("there is no such revision".to_owned())));
    let prompt: &PromptView = app.views.front_as().expect("the prompt is back");
    assert_eq!(prompt.line.text(), "HEAD~99");
}

#[test]
fn the_error_inside_the_window_of_dismissals_takes_no_rows_of_the_panes() {
    let mut app = showing(80, 24, view());
    press(&mut app, "x Ctrl-u");
    let before = app.layout();
    press(&mut app, "Enter");
    assert!(screen(&app).contains("a dismissal needs a reason"), "{}", screen(&app));
    assert_eq!(app.layout(), before);
}

#[test]
fn a_copy_is_said_to_be_done_only_if_a_program_has_done_it() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "y 1");
    let order = commands.into_iter().find_map(|command| match command {
        AppCommand::Copy(order) => Some(order),
        _ => None,
    });
    let order = order.expect("an order");
    assert_eq!((order.text.as_str(), order.what), ("src/config.rs:7", "the place"));
    assert_eq!(app.notice, None, "nothing is known yet");
    let done = AppMessage::Copied { order: order.clone(), program: Some("wl-copy") };
    assert!(send(&mut app, done).is_empty());
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "copied the place with wl-copy"));
    let commands = send(&mut app, AppMessage::Copied { order, program: None });
    assert!(matches!(&commands[..], [AppCommand::CopyToTerminal(text)] if text == "src/config.rs:7"));
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("sent the place to the terminal, which may put it into the clipboard"));
}

#[test]
fn a_message_goes_when_it_is_over_and_an_error_stays() {
    let at = |app: &mut App, later: i64| update(app, NOW + later, AppMessage::Tick);
    let mut app = showing(160, 48, view());
    app.notice = None;
    assert!(!app.has_running_clock());
    send(&mut app, AppMessage::Watched(Ok("not snoozed any more".to_owned())));
    assert!(app.has_running_clock(), "somebody has to look when it is over");
    at(&mut app, Notice::MIN_SHOWN_MS - 1);
    assert!(app.notice.is_some());
    at(&mut app, Notice::MIN_SHOWN_MS);
    assert!(app.notice.is_none() && !app.has_running_clock());
    let long = "a long message ".repeat(20);
    send(&mut app, AppMessage::Watched(Ok(long)));
    at(&mut app, 2 * Notice::MIN_SHOWN_MS);
    assert!(app.notice.is_some(), "a long text takes longer to read");
    send(&mut app, AppMessage::Watched(Err("nobody watches".to_owned())));
    at(&mut app, 3_600_000);
    assert!(app.notice.is_some() && !app.has_running_clock());
}

#[test]
fn undoing_names_what_is_open_again() {
    let mut app = showing(160, 48, view());
    let disposition = |n: u32, status| Disposition {
        finding_id: finding_id(n).parse().expect("an id"),
        status,
        previous: FindingStatus::Dismissed,
        actor: Actor::User,
        reason: String::new(),
        at: Time::UNIX_EPOCH,
        action: TriageAction::Undo,
        group: String::new(),
        run_id: None,
        merged_into: None,
        team: None,
        ci: false,
    };
    use FindingStatus as S;
    for (order, statuses, expected) in [
        (TriageOrder::Undo, &[S::Open][..], "undone: src/config.rs:7 is open again · Ctrl-r redoes"),
        (
            TriageOrder::Undo,
            &[S::Open, S::Open, S::Open],
            "undone: 3 findings are open again: src/config.rs:7, src/invoice/total.rs:31 and 1 more · Ctrl-r redoes",
        ),
        (
            TriageOrder::Undo,
            &[S::Open, S::Unresolved],
            "undone: 2 findings are as they were: src/config.rs:7, src/invoice/total.rs:31 · Ctrl-r redoes",
        ),
        (
            TriageOrder::Set { findings: Vec::new(), verdict: UserVerdict::without_reason(S::Open) },
            &[S::Open],
            "reopened src/config.rs:7 · u undoes",
        ),
        (
            TriageOrder::Redo,
            &[S::Dismissed, S::Dismissed],
            "redone: 2 findings are dismissed: src/config.rs:7, src/invoice/total.rs:31 · u undoes",
        ),
    ] {
        let lines = (1..).zip(statuses).map(|(n, status)| disposition(n, *status)).collect();
        send(&mut app, AppMessage::Triaged { order, result: Ok(UndoOutcome::Decided(lines)), written: 1 });
        assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(expected));
    }
}

#[test]
fn on_a_terminal_that_reports_released_keys_secrets_are_shown_while_the_key_is_held() {
    let mut app = showing(160, 48, view());
    send(&mut app, AppMessage::Input(TerminalInput::ReportsReleases));
    assert_eq!(page_orders(&press(&mut app, "~")), ["revealed"]);
    press(&mut app, "~ ~");
    assert!(app.detail.revealed.is_some(), "a held key repeats itself");
    assert_eq!(page_orders(&send(&mut app, AppMessage::Input(TerminalInput::Released))), ["masked"]);
    assert_eq!(app.detail.revealed, None);
    assert!(
        send(&mut app, AppMessage::Input(TerminalInput::Released)).is_empty(),
        "other keys are released all the time"
    );
}
