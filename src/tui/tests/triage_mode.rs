//! Tests triage mode: keys, answers of the store and of fixes, and its screens.

use std::sync::Arc;

use rstest::rstest;

use super::looks::assert_looks;
use super::screens::add_voices;
use super::support::*;
use crate::domain::{
    Actor, Disposition, FindingId, FindingQuestion, FindingStatus, Fix, FixStatus, LoweredPriority, Priority,
    QuestionRequest, Time, TriageAction,
};
use crate::store::triage::UndoOutcome;
use crate::store::{FindingRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, TriageOrder, UserVerdict};
use crate::tui::page_data::{DiffPageHunk, DiffPageLine, DiffSide, FileDiffPage, HighlightSpans};
use crate::tui::views::ViewReply;
use crate::tui::views::ViewRequest;
use crate::tui::views::fix::{FixIndex, FixOrder, FixPlan};
use crate::tui::views::triage::{TriageCard, TriageView};

/// Answers requests for cards as the worker would. Returns the other commands.
fn load(app: &mut App, commands: Vec<AppCommand>) -> Vec<AppCommand> {
    let mut others = Vec::new();
    for command in commands {
        match command {
            AppCommand::View(ViewRequest::TriageCards(findings)) => {
                for finding in findings {
                    let number = finding.trim_start_matches("f_").parse().expect("a number");
                    deliver(app, finding, card(number));
                }
            }
            command => others.push(command),
        }
    }
    others
}

pub(super) fn deliver(app: &mut App, finding: String, card: Arc<TriageCard>) {
    let commands = send(app, AppMessage::View(ViewReply::TriageCard { finding, card: Ok(card) }));
    load(app, commands);
}

/// Opens triage mode with the sample findings 1, 2, 3 and 5, which are undecided.
pub(super) fn open(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    let commands = press(&mut app, "t");
    load(&mut app, commands);
    app
}

/// Presses keys and loads the cards that they ask for.
fn decide(app: &mut App, keys: &str) -> Vec<AppCommand> {
    let commands = press(app, keys);
    load(app, commands)
}

#[test]
fn the_head_names_the_function_around_the_finding_as_the_list_does() {
    let (run, id) = (run_id(1), finding_id(1));
    let (path, line_start, symbol) = ("tools/job0.py", 12, "load_w_0");
    for (columns, title, expected) in [
        (160, "A bare `except:` catches everything", "tools/job0.py:12  load_w_0  A bare `except:` catches everything"),
        (80, "A bare `except:` catches everything", "tools/job0.py:12  load_w_0  A bare `except:` catches everything"),
        (50, "A bare `except:` catches everything", "tools/job0.py:12  load_w_0\n A bare `except:` catches everything"),
        (24, "A bare `except:` catches everything", "tools/job0.py:12  loa…\n A bare"),
        // The title names what it is about.
        (80, "the error of `parse` is ignored", "tools/job0.py:12  the error of `parse` is ignored"),
    ] {
        let mut builder = StoreViewBuilder::default();
        let row = FindingRow { path, line_start, symbol, title, ..finding_row(&id, &run) };
        builder.run(run_row(&run)).finding(row);
        let mut app = showing(columns, 24, complete(builder));
        press(&mut app, "t");
        let rows: Vec<String> = screen(&app).lines().map(|line| line.trim_end().to_owned()).collect();
        assert!(rows.join("\n").contains(expected), "{columns}: {}", screen(&app));
    }
}

fn disposition(finding: &FindingId, verdict: &UserVerdict, action: TriageAction) -> Disposition {
    Disposition {
        finding_id: finding.clone(),
        status: verdict.status,
        previous: FindingStatus::Open,
        actor: Actor::User,
        reason: verdict.reason.clone(),
        at: Time::UNIX_EPOCH,
        action,
        group: "t_1".into(),
        run_id: None,
        merged_into: None,
        team: None,
        ci: false,
    }
}

/// Answers undo orders as the store would: the finding is open again.
fn undo(app: &mut App, commands: Vec<AppCommand>, finding: u32) {
    for command in commands {
        let AppCommand::Triage(order @ TriageOrder::Undo) = command else { continue };
        let finding: FindingId = finding_id(finding).parse().expect("an id");
        let reopened = UserVerdict::without_reason(FindingStatus::Open);
        let result = Ok(UndoOutcome::Decided(vec![disposition(&finding, &reopened, TriageAction::Undo)]));
        let commands = send(app, AppMessage::Triaged { order, result, written: 9 });
        load(app, commands);
    }
}

/// Returns the first row of triage mode.
fn head(app: &App) -> String {
    screen(app).lines().nth(1).expect("a row").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fix(status: FixStatus) -> Box<Fix> {
    let mut fix: Fix = serde_json::from_value(serde_json::json!({
        "fix_id": format!("fx_{:026}", 1), "status": "working", "created_at": "2026-03-04T05:06:07Z",
        "updated_at": "2026-03-04T05:06:07Z", "source": "cockpit", "findings": [finding_id(1)], "run_id": run_id(3),
        "snapshot_commit": "3fa2c1d09b7e4851aa", "reviewer": "builtin", "model": "", "cost": 0.0,
        "tokens": { "input": 0, "cached": 0, "output": 0, "reasoning": 0 },
    }))
    .expect("a fix");
    fix.status = status;
    Box::new(fix)
}

#[test]
fn one_key_decides_and_shows_the_next_finding_before_anything_is_read() {
    let mut app = open(160, 48);
    assert_eq!(
        head(&app),
        "1 of 4 · P0 · open · hardcoded configuration · confidence medium addressed 0 dismissed 0 later 0"
            .replace("hardcoded configuration", app.finding_by_id(&finding_id(1)).expect("one").kind.label())
    );
    for (keys, next, expected) in [
        ("a", "src/invoice/total.rs:31", "2 of 4"),
        ("4", "src/invoice/total.rs:48", "3 of 4"),
        ("Space", "src/mail/queue/retry.rs:9", "4 of 4"),
    ] {
        let commands = press(&mut app, keys);
        let shown = screen(&app);
        assert!(
            shown.contains(next) && shown.contains("let mut sum"),
            "{keys}: code and all, in the same frame\n{shown}"
        );
        assert!(head(&app).starts_with(expected), "{}", head(&app));
        let commands = load(&mut app, commands);
        store(&mut app, commands);
    }
    assert!(head(&app).ends_with("addressed 1 dismissed 1 later 1"), "{}", head(&app));
    let commands = decide(&mut app, "2");
    assert!(head(&app).ends_with("addressed 1 dismissed 1 later 1"), "not before it is stored: {}", head(&app));
    store(&mut app, commands);
    let shown = screen(&app);
    assert!(shown.contains("All 4 findings looked at"), "{shown}");
    assert!(shown.contains("2: 1 generated, 1 false alarm"), "{shown}");
    press(&mut app, "Esc");
    assert!(app.views.is_empty());
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("triage: 1 addressed, 2 dismissed, 1 later"));
}

#[test]
fn a_session_is_the_marked_findings_or_the_undecided_ones_of_the_list_from_the_selected_one_on() {
    for (keys, expected) in [
        ("t", "1 of 4"),
        ("j j t", "3 of 4"),
        ("Space j Space t", "1 of 2"),
        ("l t", "1 of 4"),
        ("f Ctrl-u p : 2 Enter t", "1 of 2"),
    ] {
        let mut app = showing(160, 48, view());
        press(&mut app, keys);
        assert!(head(&app).starts_with(expected), "{keys}: {}", head(&app));
    }
    let mut app = showing(160, 48, view());
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "status:addressed");
    press(&mut app, "Enter t");
    assert!(app.views.is_empty());
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.starts_with("nothing to decide")));
}

#[test]
fn u_takes_verdicts_back_one_by_one_and_shows_their_findings() {
    let mut app = open(160, 48);
    let commands = decide(&mut app, "a");
    store(&mut app, commands);
    decide(&mut app, "Space");
    let commands = decide(&mut app, "u");
    assert!(commands.iter().all(|command| !matches!(command, AppCommand::Triage(_))), "the store knows nothing of it");
    assert!(head(&app).starts_with("2 of 4"), "{}", head(&app));
    let commands = decide(&mut app, "u");
    assert!(head(&app).starts_with("1 of 4") && head(&app).contains("addressed 1"), "{}", head(&app));
    undo(&mut app, commands, 1);
    assert!(head(&app).starts_with("1 of 4 · P0 · open") && head(&app).contains("addressed 0"), "{}", head(&app));
    assert_eq!(decide(&mut app, "u").len(), 0);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "nothing to take back in this session"));
}

#[test]
fn u_takes_a_snooze_and_a_rating_back_before_the_verdict_ahead_of_them() {
    let mut app = open(160, 48);
    let commands = decide(&mut app, "a");
    store(&mut app, commands);
    let line = |until: &str| {
        let mut line = serde_json::json!({
            "finding_id": finding_id(2), "actor": "user", "at": Time::UNIX_EPOCH, "action": "set", "group": "t_2",
        });
        if !until.is_empty() {
            line["until"] = serde_json::json!({ "time": until });
        }
        line
    };
    let is_undo = |commands: &[AppCommand]| {
        commands.iter().any(|command| matches!(command, AppCommand::Triage(TriageOrder::Undo)))
    };
    let answer = |app: &mut App, outcome: UndoOutcome| {
        let commands = send(app, AppMessage::Triaged { order: TriageOrder::Undo, result: Ok(outcome), written: 9 });
        load(app, commands);
    };
    let commands = decide(&mut app, "Z Enter");
    assert!(commands.iter().any(|command| matches!(command, AppCommand::SnoozeFindings { .. })), "{commands:?}");
    assert!(head(&app).starts_with("3 of 4") && head(&app).ends_with("later 0"), "{}", head(&app));
    let snoozed = vec![serde_json::from_value(line("2026-03-07T12:00:00Z")).expect("a snooze")];
    let commands = send(&mut app, AppMessage::SnoozeStored(Ok(snoozed)));
    load(&mut app, commands);
    assert!(head(&app).starts_with("3 of 4") && head(&app).ends_with("later 1"), "{}", head(&app));
    assert!(screen(&app).contains("u undoes"), "{}", screen(&app));
    assert!(is_undo(&decide(&mut app, "u")));
    answer(&mut app, UndoOutcome::Snoozed(vec![serde_json::from_value(line("")).expect("a snooze")]));
    assert!(head(&app).starts_with("2 of 4"), "{}", head(&app));
    assert!(head(&app).ends_with("addressed 1 dismissed 0 later 0"), "{}", head(&app));
    // A rating goes to no other finding, and is taken back where it was made.
    let rated = || vec![serde_json::from_value(line("")).expect("a rating")];
    let commands = send(&mut app, AppMessage::Rated(Ok(rated())));
    load(&mut app, commands);
    decide(&mut app, "n");
    assert!(is_undo(&decide(&mut app, "u")));
    assert!(head(&app).starts_with("2 of 4"), "{}", head(&app));
    answer(&mut app, UndoOutcome::Rated(rated()));
    assert!(head(&app).ends_with("addressed 1 dismissed 0 later 0"), "{}", head(&app));
    assert!(is_undo(&decide(&mut app, "u")));
    assert!(head(&app).starts_with("1 of 4"), "{}", head(&app));
}

#[test]
fn a_finding_whose_snooze_was_ended_is_not_called_snoozed() {
    let mut app = open(160, 48);
    decide(&mut app, "Z Ctrl-u o f f Enter");
    let ended = serde_json::json!({
        "finding_id": finding_id(1), "previous": { "time": "2026-03-07T12:00:00Z" }, "actor": "user",
        "at": Time::UNIX_EPOCH, "action": "set", "group": "t_2",
    });
    let ended = vec![serde_json::from_value(ended).expect("a snooze")];
    let commands = send(&mut app, AppMessage::SnoozeStored(Ok(ended)));
    load(&mut app, commands);
    assert!(head(&app).ends_with("later 1"), "{}", head(&app));
    decide(&mut app, "Space Space Space");
    let shown = screen(&app);
    assert!(shown.contains("All 4 findings looked at") && shown.contains("snooze off  "), "{shown}");
}

#[test]
fn a_verdict_that_is_not_stored_brings_its_finding_back() {
    let mut app = open(160, 48);
    let commands = decide(&mut app, "a");
    let order = commands.into_iter().find_map(|command| match command {
        AppCommand::Triage(order) => Some(order),
        _ => None,
    });
    let failed = AppMessage::Triaged { order: order.expect("an order"), result: Err("disk full".into()), written: 0 };
    send(&mut app, failed);
    assert!(head(&app).starts_with("1 of 4") && head(&app).contains("addressed 0"), "{}", head(&app));
    assert!(screen(&app).contains("not stored: disk full"));
}

#[test]
fn other_words_are_typed_in_front_of_the_finding_and_decide_it() {
    let mut app = open(160, 48);
    press(&mut app, "5");
    type_text(&mut app, "4 of 5 tools disagree");
    let commands = decide(&mut app, "Enter");
    assert_eq!(store(&mut app, commands), 1);
    assert!(head(&app).starts_with("2 of 4") && head(&app).contains("dismissed 1"), "{}", head(&app));
    let commands = decide(&mut app, ".");
    assert_eq!(store(&mut app, commands), 1, "the verdict is repeated");
    press(&mut app, "5");
    press(&mut app, "Esc");
    assert!(head(&app).starts_with("3 of 4"), "{}", head(&app));
    let commands = decide(&mut app, "x 1");
    assert_eq!(store(&mut app, commands), 1);
    assert!(head(&app).contains("dismissed 3"), "{}", head(&app));
}

#[test]
fn enter_applies_the_exact_suggestion_and_u_takes_it_out_of_the_files() {
    let mut app = open(160, 48);
    let orders = |commands: Vec<AppCommand>| -> Vec<FixOrder> {
        let order = |command| if let AppCommand::Fix(order) = command { Some(order) } else { None };
        commands.into_iter().filter_map(order).collect()
    };
    let commands = decide(&mut app, "Enter");
    let order = FixOrder::ApplySuggestions(vec![finding_id(1).parse().expect("an id")]);
    assert_eq!(orders(commands), std::slice::from_ref(&order));
    assert!(head(&app).starts_with("2 of 4") && head(&app).contains("addressed 0"), "{}", head(&app));
    decide(&mut app, "u");
    assert!(head(&app).starts_with("2 of 4"), "not while it is being applied");
    let result = Ok(fix(FixStatus::Applied));
    let commands = send(&mut app, AppMessage::FixFinished { order, result });
    load(&mut app, commands);
    assert!(head(&app).contains("addressed 1"), "{}", head(&app));
    assert!(screen(&app).contains("u undoes"));
    let commands = decide(&mut app, "u");
    let undo = FixOrder::Undo(fix(FixStatus::Applied).fix_id);
    assert_eq!(orders(commands), std::slice::from_ref(&undo), "files are written back without a question");
    assert!(head(&app).starts_with("1 of 4"), "{}", head(&app));
    let result = Ok(fix(FixStatus::Undone));
    send(&mut app, AppMessage::FixFinished { order: undo, result });
    assert!(head(&app).contains("addressed 0"), "{}", head(&app));
    // A file that has changed: nothing was written, and the finding is there again.
    decide(&mut app, "Enter");
    let order = FixOrder::ApplySuggestions(vec![finding_id(1).parse().expect("an id")]);
    send(&mut app, AppMessage::FixFinished { order, result: Err("the patch does not apply".to_owned()) });
    assert!(head(&app).starts_with("1 of 4"), "{}", head(&app));
    assert!(screen(&app).contains("the patch does not apply"));
}

#[test]
fn without_an_exact_suggestion_enter_decides_nothing() {
    let mut app = showing(160, 48, view());
    press(&mut app, "t");
    let whole = card(1);
    let mut page = whole.page.clone();
    page.finding.suggestion = None;
    deliver(&mut app, finding_id(1), Arc::new(TriageCard { page, diff: None, similar: whole.similar.clone() }));
    let commands = press(&mut app, "Enter");
    assert!(commands.is_empty() && head(&app).starts_with("1 of 4"), "{commands:?}");
    assert!(screen(&app).contains("no exact suggestion"), "{}", screen(&app));
    assert!(!screen(&app).contains("Enter apply"));
}

#[test]
fn n_and_p_look_around_and_esc_selects_what_was_shown() {
    let mut app = open(160, 48);
    decide(&mut app, "n n p");
    assert!(head(&app).starts_with("2 of 4"), "{}", head(&app));
    press(&mut app, "Esc");
    assert_eq!(app.selected_finding().map(|finding| finding.id.to_owned()), Some(finding_id(2)));
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("triage: 4 not decided"));
}

#[test]
fn cards_are_asked_for_once_and_again_when_their_finding_has_changed() {
    let mut app = showing(160, 48, view());
    let asked = |commands: &[AppCommand]| -> Vec<String> {
        let cards = commands.iter().filter_map(|command| match command {
            AppCommand::View(ViewRequest::TriageCards(findings)) => Some(findings.clone()),
            _ => None,
        });
        cards.flatten().collect()
    };
    let commands = press(&mut app, "t");
    assert_eq!(asked(&commands), [finding_id(1), finding_id(2), finding_id(3)], "the shown one first");
    let more = press(&mut app, "n");
    assert_eq!(asked(&more), [finding_id(5)]);
    load(&mut app, commands);
    load(&mut app, more);
    assert_eq!(asked(&send(&mut app, AppMessage::StoreRead { view: view(), written: 0 })), Vec::<String>::new());
    let commands = press(&mut app, "a");
    assert_eq!(asked(&commands), Vec::<String>::new());
    for command in commands {
        let AppCommand::Triage(order) = command else { continue };
        let TriageOrder::Set { findings, verdict } = &order else { panic!("{order:?}") };
        let stored = findings.iter().map(|finding| disposition(finding, verdict, TriageAction::Set)).collect();
        let result = Ok(UndoOutcome::Decided(stored));
        let commands = send(&mut app, AppMessage::Triaged { order, result, written: 1 });
        assert_eq!(asked(&commands), [finding_id(2)], "its history has a new line");
    }
}

#[test]
fn scrolling_goes_through_the_code_and_then_through_the_explanation() {
    let mut app = showing(80, 24, view());
    press(&mut app, "t");
    let whole = card(1);
    let mut page = whole.page.clone();
    page.code.first = 1;
    page.code.lines = (1..=60).map(|number| format!("line {number};")).collect();
    page.finding.explanation = (1..=30).map(|number| format!("Sentence {number}.\n")).collect();
    page.finding.suggestion = None;
    deliver(&mut app, finding_id(1), Arc::new(TriageCard { page, diff: None, similar: whole.similar.clone() }));
    let shown = screen(&app);
    assert!(shown.contains("line 31;") && shown.contains("Sentence 1."), "the finding is in sight\n{shown}");
    press(&mut app, "G");
    let shown = screen(&app);
    assert!(shown.contains("line 60;") && shown.contains("History"), "{shown}");
    press(&mut app, "g");
    let shown = screen(&app);
    assert!(shown.contains("line 1;") && shown.contains("Sentence 1."), "{shown}");
}

#[test]
fn a_card_says_what_the_reviewers_of_a_panel_said_and_what_followed() {
    let mut app = open(160, 60);
    let whole = card(1);
    let mut page = whole.page.clone();
    add_voices(&mut page.finding);
    let because = "1 of 24 DOCS findings of deep were accepted".to_owned();
    page.finding.lowered = Some(LoweredPriority { from: Priority::P0, to: Priority::P1, because });
    deliver(&mut app, finding_id(1), Arc::new(TriageCard { page, diff: None, similar: whole.similar.clone() }));
    // The state of a fix arrives by itself.
    send(&mut app, AppMessage::Fixes(Arc::new(FixIndex::new(vec![*fix(FixStatus::Offered)]))));
    let shown = screen(&app);
    let mut from = 0;
    for said in [
        "confidence medium",
        "offered, made by builtin",
        "± disputed  gemini says that it is fixed",
        "± disputed  the priorities go from P0 to P2",
        "An amount that is no number",
        "lowered from P0 to P1: 1 of 24",
        "reviewers   said by claude (P2, confidence medium, ",
        "also said by gpt (P0, confidence medium",
        "Malformed amounts are counted as 0",
        "2 of 3 reviewers agree",
        "priority P0: the most urgent of P0, P2",
        "similar",
        "History",
    ] {
        let at = shown[from..].find(said);
        from += at.unwrap_or_else(|| panic!("{said:?} in this order\n{shown}"));
    }
    // A reviewer of many words leaves room for the others.
    let mut page = card(1).page.clone();
    add_voices(&mut page.finding);
    page.finding.voices[1].explanation = "word ".repeat(400);
    deliver(&mut app, finding_id(1), Arc::new(TriageCard { page, diff: None, similar: whole.similar.clone() }));
    assert_eq!(screen(&app).lines().filter(|line| line.contains("word word")).count(), 2, "{}", screen(&app));
}

/// Builds a card with a diff and a finding in it.
pub(super) fn card_with_diff() -> Arc<TriageCard> {
    let whole = card(1);
    let line = |side, old, new, text: &str| DiffPageLine {
        side,
        old,
        new,
        text: text.to_owned(),
        spans: HighlightSpans::new(),
    };
    let lines = vec![
        line(DiffSide::Both, Some(28), Some(28), "pub fn total(lines: &[Line], rate: f64) -> Result<f64, Error> {"),
        line(DiffSide::Both, Some(29), Some(29), "    let mut sum = 0.0;"),
        line(DiffSide::Both, Some(30), Some(30), "    for line in lines {"),
        line(DiffSide::Old, Some(31), None, "        sum += line.amount;"),
        line(DiffSide::New, None, Some(31), "        sum += line.amount.parse::<f64>().unwrap_or(0.0);"),
        line(DiffSide::Both, Some(32), Some(32), "    }"),
        line(DiffSide::Both, Some(33), Some(33), "    Ok(sum)"),
    ];
    let hunk = DiffPageHunk { old_start: 28, new_start: 28, old_lines: 6, new_lines: 6, lines };
    let diff = FileDiffPage { path: "src/invoice/total.rs".to_owned(), hunks: vec![hunk], ..FileDiffPage::default() };
    Arc::new(TriageCard { page: whole.page.clone(), diff: Some(diff), similar: whole.similar.clone() })
}

#[test]
fn what_was_taken_back_can_be_decided_again() {
    let mut app = open(160, 48);
    assert_eq!(decide(&mut app, "Ctrl-r").len(), 0);
    assert!(screen(&app).contains("no decision was taken back since the last verdict"), "{}", screen(&app));
    let commands = decide(&mut app, "a");
    store(&mut app, commands);
    let commands = decide(&mut app, "u");
    undo(&mut app, commands, 1);
    assert!(head(&app).starts_with("1 of 4") && head(&app).contains("addressed 0"), "{}", head(&app));
    let commands = decide(&mut app, "Ctrl-r");
    assert!(matches!(commands.as_slice(), [AppCommand::Triage(TriageOrder::Redo)]), "{commands:?}");
    let finding: FindingId = finding_id(1).parse().expect("an id");
    let addressed = UserVerdict::without_reason(FindingStatus::Addressed);
    let result = Ok(UndoOutcome::Decided(vec![disposition(&finding, &addressed, TriageAction::Redo)]));
    let commands = send(&mut app, AppMessage::Triaged { order: TriageOrder::Redo, result, written: 9 });
    load(&mut app, commands);
    assert!(head(&app).starts_with("2 of 4") && head(&app).contains("addressed 1"), "{}", head(&app));
    // The redone verdict is one step of the session again.
    let commands = decide(&mut app, "u");
    assert!(matches!(commands.as_slice(), [AppCommand::Triage(TriageOrder::Undo)]), "{commands:?}");
    // A new verdict ends what can be redone.
    undo(&mut app, commands, 1);
    let commands = decide(&mut app, "2");
    store(&mut app, commands);
    assert_eq!(decide(&mut app, "Ctrl-r").len(), 0);
}

#[test]
fn a_fix_is_made_for_the_shown_finding_and_its_menu_has_no_page_behind_the_view() {
    let mut app = open(160, 48);
    assert_eq!(decide(&mut app, "F").len(), 0);
    assert!(screen(&app).contains("the patch is on the screen: Enter applies it"), "{}", screen(&app));
    // Without an exact suggestion a reviewer makes one.
    let whole = card(1);
    let mut page = whole.page.clone();
    page.finding.suggestion = None;
    deliver(&mut app, finding_id(1), Arc::new(TriageCard { page, diff: None, similar: whole.similar.clone() }));
    decide(&mut app, "Enter");
    assert!(screen(&app).contains("no exact suggestion comes with it: F has a fix made"), "{}", screen(&app));
    let commands = decide(&mut app, "F");
    let [AppCommand::PlanFix(findings)] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(findings[0].to_string(), finding_id(1));
    let plan = FixPlan { findings: findings.clone(), reviewer: "sonnet".into(), patch_reviewer: "builtin".into() };
    send(&mut app, AppMessage::FixPlanned(Ok(plan)));
    assert!(screen(&app).contains("Have sonnet fix 1 finding?"), "{}", screen(&app));
    let commands = decide(&mut app, "y");
    assert!(matches!(commands.as_slice(), [AppCommand::Fix(FixOrder::Make(_))]), "{commands:?}");
    send(&mut app, AppMessage::Fixes(Arc::new(FixIndex::new(vec![*fix(FixStatus::Offered)]))));
    decide(&mut app, "F");
    let shown = screen(&app);
    assert!(shown.contains("apply it") && shown.contains("drop it") && !shown.contains("look at it"), "{shown}");
}

#[test]
fn secrets_stay_masked_and_the_key_says_where_they_are_shown() {
    let mut app = open(160, 48);
    assert_eq!(decide(&mut app, "~").len(), 0);
    let said = "secrets stay masked here: q leaves, and ~ shows them on the page";
    assert!(screen(&app).contains(said), "{}", screen(&app));
}

#[test]
fn a_question_about_the_shown_finding_reads_its_card_again() {
    let mut app = open(160, 48);
    let commands = decide(&mut app, "A");
    let first: crate::domain::FindingId = finding_id(1).parse().expect("an id");
    assert!(
        matches!(commands.as_slice(), [AppCommand::PlanQuestion { finding, .. }] if *finding == first),
        "{commands:?}"
    );
    let request = QuestionRequest {
        finding_id: first,
        run_id: run_id(3).parse().expect("an id"),
        question: "Why?".into(),
        reviewer: "sonnet".into(),
        at: Time::UNIX_EPOCH,
        reserved_tokens: 0,
        reserved_microdollars: 0,
        reported_as: None,
    };
    let reads = |commands: Vec<AppCommand>| -> Vec<String> {
        let cards = commands.into_iter().filter_map(|command| match command {
            AppCommand::View(ViewRequest::TriageCards(findings)) => Some(findings),
            _ => None,
        });
        cards.flatten().collect()
    };
    assert_eq!(reads(send(&mut app, AppMessage::QuestionAsked(Ok(request.clone())))), [finding_id(1)]);
    deliver(&mut app, finding_id(1), card(1));
    let answered = FindingQuestion::failed(request, "no network".into());
    assert_eq!(reads(send(&mut app, AppMessage::QuestionsAnswered(vec![answered]))), [finding_id(1)]);
}

#[rstest]
#[case(160, 48)]
#[case(100, 30)]
#[case(80, 24)]
fn screens(#[case] columns: u16, #[case] rows: u16) {
    let mut app = open(columns, rows);
    let commands = decide(&mut app, "a");
    store(&mut app, commands);
    app.notice = None;
    assert_looks("triage-code", &mut app);
    deliver(&mut app, finding_id(2), card_with_diff());
    assert_looks("triage-diff", &mut app);
    for keys in ["2", "Space", "4"] {
        let commands = decide(&mut app, keys);
        store(&mut app, commands);
    }
    app.notice = None;
    assert_looks("triage-closing", &mut app);
    assert!(app.views.front_as::<TriageView>().is_some());
}

#[test]
fn a_decision_has_the_cards_of_similar_findings_read_again() {
    // All findings of this view are alike.
    let mut app = showing(100, 30, many(4));
    let commands = press(&mut app, "t");
    load(&mut app, commands);
    let decided = press(&mut app, "a");
    let decided = load(&mut app, decided);
    let mut requested = Vec::new();
    for command in decided {
        let AppCommand::Triage(order) = command else { continue };
        let TriageOrder::Set { findings, verdict } = &order else { continue };
        let stored = findings.iter().map(|finding| disposition(finding, verdict, TriageAction::Set)).collect();
        let result = Ok(UndoOutcome::Decided(stored));
        for command in send(&mut app, AppMessage::Triaged { order: order.clone(), result, written: 1 }) {
            if let AppCommand::View(ViewRequest::TriageCards(findings)) = command {
                requested.extend(findings);
            }
        }
    }
    assert!(requested.contains(&finding_id(1)), "the shown one: {requested:?}");
}

#[test]
fn a_small_screen_keeps_the_position_the_place_and_a_line_of_code() {
    let mut app = open(40, 10);
    let shown = screen(&app);
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("1 of 4 · P0 · open"), "{shown}");
    assert_eq!(lines[2], "src/config.rs:7", "{shown}");
    assert!(lines[3].starts_with("a token in the source"), "{shown}");
    assert!(shown.contains("let mut sum") || shown.contains("sum +="), "the code: {shown}");
    let commands = decide(&mut app, "a");
    store(&mut app, commands);
    assert!(head(&app).starts_with("2 of 4 · P1"), "{}", screen(&app));
    assert!(head(&app).ends_with("addressed 1"), "a verdict that was given is counted: {}", screen(&app));
}
