//! Tests the key for fixes and the fix pages.

use std::sync::Arc;

use super::looks::{SIZES, assert_looks, assert_looks_at_all_sizes};
use super::support::*;
use crate::domain::{FileDiffStat, Fix, FixId, FixStatus};
use crate::store::triage::UndoOutcome;
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab, TriageOrder};
use crate::tui::page_data::{DiffPageHunk, DiffPageLine, DiffSide, FileDiffPage, FixPage, HighlightSpans, PageData};
use crate::tui::views::confirm::ConfirmView;
use crate::tui::views::fix::{FixIndex, FixOrder, FixPlan};
use crate::tui::views::menu::MenuView;
use crate::tui::views::prompt::PromptView;

fn fix_id() -> FixId {
    format!("fx_{:026}", 1).parse().expect("an id")
}

/// Builds a fix of the first finding.
fn fix(status: FixStatus) -> Fix {
    let mut fix: Fix = serde_json::from_value(serde_json::json!({
        "fix_id": fix_id(), "status": "working", "created_at": "2026-03-04T05:06:07Z",
        "updated_at": "2026-03-04T05:06:07Z", "source": "cockpit", "findings": [finding_id(1)], "run_id": run_id(3),
        "snapshot_commit": "3fa2c1d09b7e4851aa", "reviewer": "claude", "model": "m-1", "cost": 0.04,
        "tokens": { "input": 12_000, "cached": 0, "output": 800, "reasoning": 0 },
    }))
    .expect("a fix");
    fix.status = status;
    if !status.is_working() {
        fix.files = vec![FileDiffStat { path: "src/config.rs".to_owned(), added: 1, removed: 1 }];
        fix.verdict = "clean".to_owned();
    }
    fix
}

fn app_with_fix(fix: Fix) -> App {
    app_with_fix_at(120, 40, fix)
}

fn app_with_fix_at(columns: u16, rows: u16, fix: Fix) -> App {
    let mut app = showing(columns, rows, view());
    send(&mut app, AppMessage::Fixes(Arc::new(FixIndex::new(vec![fix]))));
    app
}

fn menu(app: &App) -> Vec<String> {
    match app.views.front_as::<MenuView>() {
        Some(menu) => menu.items.iter().map(|item| item.label.clone()).collect(),
        other => panic!("{other:?}"),
    }
}

fn orders(commands: &[AppCommand]) -> Vec<&FixOrder> {
    commands
        .iter()
        .filter_map(|command| if let AppCommand::Fix(order) = command { Some(order) } else { None })
        .collect()
}

#[test]
fn a_fix_is_asked_for_with_who_makes_it_and_what_it_may_cost() {
    let mut app = showing(120, 40, view());
    app.session.budget.cost = Some(1.0);
    let commands = press(&mut app, "Space Space F");
    let planned = commands.iter().find_map(|command| match command {
        AppCommand::PlanFix(findings) => Some(findings.clone()),
        _ => None,
    });
    let findings = planned.expect("a plan is asked for");
    assert_eq!(findings.len(), 2, "the marked ones");
    assert!(orders(&commands).is_empty(), "nothing is started before somebody says yes");
    let plan =
        FixPlan { findings: findings.clone(), reviewer: "claude".to_owned(), patch_reviewer: "claude".to_owned() };
    send(&mut app, AppMessage::FixPlanned(Ok(plan.clone())));
    let Some(ConfirmView { text, .. }) = app.views.front_as() else { panic!("{:?}", app.views) };
    assert_eq!(text, "Have claude fix 2 findings? It may cost up to $1.00.");
    assert!(press(&mut app, "n").is_empty());
    let reviewed = FixPlan { patch_reviewer: "gpt".to_owned(), ..plan.clone() };
    send(&mut app, AppMessage::FixPlanned(Ok(reviewed)));
    let Some(ConfirmView { text, .. }) = app.views.front_as() else { panic!("{:?}", app.views) };
    assert_eq!(
        text,
        "Have claude fix 2 findings? It may cost up to $1.00. gpt reviews the patch, with a limit of its own."
    );
    assert!(press(&mut app, "n").is_empty());
    let exact = FixPlan { reviewer: "builtin".to_owned(), patch_reviewer: "builtin".to_owned(), ..plan };
    send(&mut app, AppMessage::FixPlanned(Ok(exact)));
    let Some(ConfirmView { text, .. }) = app.views.front_as() else { panic!("{:?}", app.views) };
    assert_eq!(text, "Fix 2 findings with exact suggestions? It costs nothing.");
    let commands = press(&mut app, "y");
    assert_eq!(orders(&commands), [&FixOrder::Make(findings)]);
    assert!(app.finding_list.marks.is_empty());
    send(&mut app, AppMessage::FixPlanned(Err("no exact suggestion comes with the finding".to_owned())));
    assert!(screen(&app).contains("no fix: no exact suggestion"), "{}", screen(&app));
}

#[test]
fn an_offer_is_applied_after_a_question_and_dropped_without() {
    let mut app = app_with_fix(fix(FixStatus::Offered));
    press(&mut app, "F");
    assert_eq!(menu(&app), ["look at it", "apply it", "drop it", "make another"]);
    assert!(orders(&press(&mut app, "2")).is_empty(), "it asks first");
    let Some(ConfirmView { text, .. }) = app.views.front_as() else { panic!("{:?}", app.views) };
    assert_eq!(text, "Write the patch into your files (1 file, +1 -1)?");
    assert_eq!(orders(&press(&mut app, "y")), [&FixOrder::Apply(fix_id())]);
    assert_eq!(orders(&press(&mut app, "F 3")), [&FixOrder::Drop(fix_id())]);
    press(&mut app, "F 1");
    assert_eq!(app.detail.tab, Tab::Fix);
}

#[test]
fn undo_and_redo_ask_before_they_write_files() {
    for (order, status, word, expected) in [
        (TriageOrder::Undo, FixStatus::Applied, "Take it out of your files", FixOrder::Undo(fix_id())),
        (TriageOrder::Redo, FixStatus::Undone, "Write it into your files", FixOrder::Apply(fix_id())),
    ] {
        let mut app = app_with_fix(fix(status));
        let step = UndoOutcome::Fix(Box::new(fix(status)));
        assert!(orders(&send(&mut app, AppMessage::Triaged { order, result: Ok(step), written: 0 })).is_empty());
        let Some(ConfirmView { text, .. }) = app.views.front_as() else { panic!("{:?}", app.views) };
        assert!(text.contains(word), "{text}");
        assert_eq!(orders(&press(&mut app, "y")), [&expected]);
    }
}

#[test]
fn what_the_menu_offers_depends_on_the_fix() {
    let half = || {
        let mut fix = fix(FixStatus::Offered);
        fix.touched = vec![serde_json::from_value(serde_json::json!({ "path": "src/config.rs" })).expect("one")];
        fix
    };
    for (fix, expected) in [
        (fix(FixStatus::Working), vec!["drop it"]),
        (fix(FixStatus::Reviewing), vec!["drop it"]),
        (fix(FixStatus::Applied), vec!["look at it", "undo it"]),
        (fix(FixStatus::Undone), vec!["look at it", "apply it", "drop it", "make another"]),
        (half(), vec!["apply it", "undo it"]),
    ] {
        let mut app = app_with_fix(fix);
        press(&mut app, "F");
        assert_eq!(menu(&app), expected);
    }
    for status in [FixStatus::Failed, FixStatus::Dropped] {
        let mut app = app_with_fix(fix(status));
        assert!(press(&mut app, "F").iter().any(|command| matches!(command, AppCommand::PlanFix(_))), "{status}");
    }
}

#[test]
fn the_end_of_a_fix_is_told_once() {
    let mut app = app_with_fix(fix(FixStatus::Reviewing));
    let mut tell = |fix| {
        app.notice = None;
        send(&mut app, AppMessage::Fixes(Arc::new(FixIndex::new(vec![fix]))));
        app.notice.as_ref().map(|notice| notice.text.clone())
    };
    assert_eq!(tell(fix(FixStatus::Offered)).as_deref(), Some("a fix is offered: 1 file, +1 -1"));
    assert_eq!(tell(fix(FixStatus::Offered)), None);
    tell(fix(FixStatus::Working));
    let failed = Fix { reason: "it changes nothing".to_owned(), ..fix(FixStatus::Failed) };
    assert_eq!(tell(failed).as_deref(), Some("no fix: it changes nothing"));
}

#[test]
fn the_finding_and_the_patch_say_how_it_stands() {
    for (columns, rows) in SIZES {
        the_finding_and_the_patch_say_how_it_stands_at(columns, rows);
    }
}

fn the_finding_and_the_patch_say_how_it_stands_at(columns: u16, rows: u16) {
    let mut app = app_with_fix_at(
        columns,
        rows,
        Fix { reason: "left as it was: secret.env".to_owned(), ..fix(FixStatus::Offered) },
    );
    let DetailSubject::Finding(id) = app.detail.subject.clone() else { panic!("a finding is selected") };
    assert_eq!(id, finding_id(1));
    let subject = app.detail.subject.clone();
    send(&mut app, AppMessage::Loaded { subject: subject.clone(), tab: Tab::Page, loaded: page(1, 3) });
    assert_looks("fix_on_the_page", &mut app);
    press(&mut app, "F 1");
    let line = |side, old, new, text: &str| DiffPageLine {
        side,
        old,
        new,
        text: text.to_owned(),
        spans: HighlightSpans::new(),
    };
    let diff = FileDiffPage {
        path: "src/config.rs".to_owned(),
        from: "3fa2c1d09b7e4851aa".to_owned(),
        to: "77aa00d09b7e4851aa".to_owned(),
        hunks: vec![DiffPageHunk {
            old_start: 6,
            new_start: 6,
            old_lines: 2,
            new_lines: 2,
            lines: vec![
                line(DiffSide::Both, Some(6), Some(6), "/// Where the token is."),
                line(DiffSide::Old, Some(7), None, "const TOKEN: &str = \"…\";"),
                line(DiffSide::New, None, Some(7), "const TOKEN: &str = env!(\"TOKEN\");"),
            ],
        }],
        ..FileDiffPage::default()
    };
    let loaded = PageData::Fix(Box::new(FixPage { fix: fix(FixStatus::Offered), diffs: vec![diff] }));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Fix, loaded: Box::new(loaded) });
    assert_looks("fix_with_its_patch", &mut app);
    // Without the fix its tab is gone.
    let commands = send(&mut app, AppMessage::Fixes(Arc::default()));
    assert_eq!(app.detail.tab, Tab::Page, "{commands:?}");
}

#[test]
fn a_question_about_a_fix_does_not_come_in_the_middle_of_something_else() {
    let mut app = showing(120, 40, view());
    press(&mut app, "f");
    assert!(app.views.front_as::<PromptView>().is_some());
    let plan = FixPlan {
        findings: vec![finding_id(1).parse().expect("an id")],
        reviewer: "builtin".to_owned(),
        patch_reviewer: "builtin".to_owned(),
    };
    send(&mut app, AppMessage::FixPlanned(Ok(plan)));
    assert!(app.views.front_as::<PromptView>().is_some(), "{:?}", app.views);
    press(&mut app, "Esc");
    assert!(screen(&app).contains("ask for it again"), "{}", screen(&app));
}

#[test]
fn an_offer_is_not_hidden_by_a_newer_fix_that_came_to_nothing() {
    let failed = Fix { fix_id: "fx_01JD3Z8Q6M7S5V2K4T9XWB1C0F".parse().expect("an id"), ..fix(FixStatus::Failed) };
    let fixes = FixIndex::new(vec![failed.clone(), fix(FixStatus::Offered)]);
    assert_eq!(fixes.for_finding(&finding_id(1)).map(|fix| fix.status), Some(FixStatus::Offered));
    let fixes = FixIndex::new(vec![failed]);
    assert_eq!(fixes.for_finding(&finding_id(1)).map(|fix| fix.status), Some(FixStatus::Failed));
}

#[test]
fn an_exact_suggestion_is_shown_with_one_key_and_applied_with_the_next() {
    let open = |columns, rows| {
        let mut app = showing(columns, rows, view());
        let subject = app.detail.subject.clone();
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(1, 3) });
        assert!(press(&mut app, "F").is_empty(), "nothing is asked for");
        app
    };
    assert_looks_at_all_sizes("suggestion_before_it_is_applied", open);
    let mut app = open(120, 40);
    let footer = screen(&app).lines().last().unwrap_or_default().trim().to_owned();
    assert_eq!(footer, "Enter apply   n back");
    let findings = vec![finding_id(1).parse().expect("an id")];
    let order = FixOrder::ApplySuggestions(findings.clone());
    assert_eq!(orders(&press(&mut app, "j Enter")), [&order]);
    assert!(app.views.is_empty());
    send(&mut app, AppMessage::FixFinished { order, result: Ok(Box::new(fix(FixStatus::Applied))) });
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("applied: 1 file, +1 -1 · u undoes"));
    press(&mut app, "F");
    assert!(orders(&press(&mut app, "Esc")).is_empty() && app.views.is_empty());
    // The page of another finding is not there yet: whoever can fix it is looked up, and then the page is there.
    let commands = press(&mut app, "j F");
    assert!(commands.iter().any(|command| matches!(command, AppCommand::PlanFix(_))));
    let subject = app.detail.subject.clone();
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
    let findings = vec![finding_id(2).parse().expect("an id")];
    let plan = FixPlan { findings: findings.clone(), reviewer: "builtin".into(), patch_reviewer: "builtin".into() };
    send(&mut app, AppMessage::FixPlanned(Ok(plan)));
    assert_eq!(orders(&press(&mut app, "Enter")), [&FixOrder::ApplySuggestions(findings)]);
}
