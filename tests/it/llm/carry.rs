//! Carried hunks: a model does not receive code that it has reviewed in the same state.

use revdeck::domain::{FindingStatus, RunEvent, RunStatus};
use serde_json::json;

use super::server::{Model, calls};
use super::{finish, settings};
use crate::runner::place::Place;

/// Returns functions `f_0` and so on of ten lines each; the `edited` ones have one more line.
fn functions(count: usize, edited: &[(usize, &str)]) -> String {
    let mut text = String::new();
    for number in 0..count {
        text.push_str(&format!("fn f_{number}() {{\n"));
        for (_, line) in edited.iter().filter(|(function, _)| *function == number) {
            text.push_str(&format!("    {line};\n"));
        }
        (0..10).for_each(|line| text.push_str(&format!("    step_{number}({line});\n")));
        text.push_str("}\n\n");
    }
    text
}

fn report(path: &str, line: u32, quoted: &str, title: &str) -> (&'static str, serde_json::Value) {
    let finding = json!({ "path": path, "line_start": line, "line_end": line, "kind": "CORRECTNESS", "priority": 1,
        "title": title, "explanation": title, "quoted_code": quoted });
    ("report_findings", json!({ "findings": [finding] }))
}

/// Returns the text that a request sent to the model.
fn sent(model: &Model, request: usize) -> String {
    model.requests()[request].to_string()
}

#[test]
fn only_the_hunks_that_changed_are_sent_and_the_findings_of_the_others_come_along() {
    let place = Place::new();
    place.test.write("src/a.rs", functions(12, &[]));
    place.test.commit("base");
    place.test.write("src/a.rs", functions(12, &[(1, "first_edit()"), (9, "second_edit()")]));
    let model = Model::start(vec![
        calls(&[report("src/a.rs", 15, "    first_edit();", "the first edit is wrong"), finish()]),
        calls(&[finish()]),
    ]);
    settings(&place, &model, "");
    let first = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let finding = place.output(&first).expect("an output").findings.remove(0);
    assert_eq!((finding.line_start, model.asked()), (15, 1));

    // A line is added at the top of the file, and the second edit changes.
    let text = functions(12, &[(1, "first_edit()"), (9, "another_edit()")]);
    place.test.write("src/a.rs", format!("use std::fmt;\n{text}"));
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let (record, output) = (place.run(&second), place.output(&second).expect("an output"));
    assert_eq!(
        (
            record.outcome.coverage.hunks_carried,
            record.outcome.coverage.hunks_covered,
            record.outcome.coverage.hunks_total
        ),
        (1, 2, 3)
    );
    let asked = sent(&model, 1);
    assert!(asked.contains("another_edit") && asked.contains("use std::fmt"), "{asked}");
    assert!(!asked.contains("+    first_edit"), "what is carried over is not sent: {asked}");
    assert!(asked.contains("src/a.rs:16 CORRECTNESS the first edit is wrong"), "it is told what is known: {asked}");
    let here = &output.findings[0];
    assert_eq!((&here.finding_id, here.line_start, output.findings.len()), (&finding.finding_id, 16, 1));
    assert_eq!(output.coverage.carried_from_run(&here.finding_id), Some(&first));
    assert_eq!(record.links.carried_over_from, Some(first));
    assert!(record.usage.saved_token_estimate > 0);
    assert_eq!(here.status, FindingStatus::Open);
}

#[test]
fn a_review_with_nothing_left_to_send_asks_nobody() {
    let place = Place::new();
    for path in ["src/a.rs", "src/b.rs"] {
        place.test.write(path, functions(3, &[]));
    }
    place.test.commit("base");
    for path in ["src/a.rs", "src/b.rs"] {
        place.test.write(path, functions(3, &[(1, "edit()")]));
    }
    let model = Model::start(vec![calls(&[report("src/a.rs", 15, "    edit();", "wrong"), finish()])]);
    settings(&place, &model, "");
    let first = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let asked = model.asked();
    // One of the two files is reverted: the rest of the change was already reviewed.
    place.test.git(&["checkout", "-q", "--", "src/b.rs"]);
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let record = place.run(&second);
    assert_eq!((record.status, model.asked()), (RunStatus::Completed, asked), "{}", record.outcome.summary);
    assert_eq!((record.usage.tokens.total(), record.outcome.coverage.files_carried), (0, 1));
    assert!(record.usage.saved_token_estimate >= 4_000, "{}", record.usage.saved_token_estimate);
    assert!(record.decision.contains("nothing is left to review"), "{}", record.decision);
    assert_eq!(place.finding_ids(&second), place.finding_ids(&first));
    let asked_anything = |event: &RunEvent| matches!(event, RunEvent::TurnAsked { .. });
    assert!(!place.events(&second).iter().any(asked_anything));
    // `--force` sends everything.
    let forced = place.review(&["--reviewer", "m", "--worktree", "--wait", "--force"]);
    assert_eq!(place.run(&forced).outcome.coverage.hunks_carried, 0);
    assert!(model.asked() > asked);
}

/// A model that reports a carried finding again has reviewed it: the report counts as its own.
#[test]
fn a_carried_finding_that_is_reported_again_is_a_report() {
    let place = Place::new();
    place.test.write("src/a.rs", functions(12, &[]));
    place.test.commit("base");
    place.test.write("src/a.rs", functions(12, &[(1, "first_edit()"), (9, "second_edit()")]));
    let first = report("src/a.rs", 15, "    first_edit();", "the first edit is wrong");
    let model = Model::start(vec![calls(&[first.clone(), finish()]), calls(&[first, finish()])]);
    settings(&place, &model, "");
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let id = place.output(&run).expect("an output").findings[0].finding_id.clone();
    place.revdeck(&["triage", id.as_str(), "addressed"]);
    place.test.write("src/a.rs", functions(12, &[(1, "first_edit()"), (9, "another_edit()")]));
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let output = place.output(&second).expect("an output");
    assert_eq!((output.coverage.hunks_carried, output.coverage.carried_from_run(&id)), (1, None));
    assert_eq!(place.store().status(&id).expect("readable"), FindingStatus::Unresolved);
}

/// Other code at this place got a finding in the meantime: an earlier review of the present code does not settle that
/// finding.
#[test]
fn what_is_to_be_judged_is_sent() {
    let place = Place::new();
    place.test.write("src/a.rs", functions(12, &[]));
    place.test.commit("base");
    let version = |edit: &str, other: &str| functions(12, &[(1, edit), (9, other)]);
    place.test.write("src/a.rs", version("first_edit()", "one()"));
    let model = Model::start(vec![
        calls(&[finish()]),
        calls(&[report("src/a.rs", 15, "    worse_edit();", "this is worse"), finish()]),
        calls(&[finish()]),
    ]);
    settings(&place, &model, "");
    place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    place.test.write("src/a.rs", version("worse_edit()", "one()"));
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let id = place.output(&second).expect("an output").findings[0].finding_id.clone();
    // The code is the same as in the first review, except for the other edit.
    place.test.write("src/a.rs", version("first_edit()", "two()"));
    let third = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    assert_eq!(place.run(&third).outcome.coverage.hunks_carried, 0);
    assert!(sent(&model, 2).contains("+    first_edit"));
    assert_eq!(place.store().status(&id).expect("readable"), FindingStatus::Addressed, "a fresh look says so");
}

/// A run that is killed after its first turn restarts with the same carried hunks and pays for nothing twice.
#[test]
fn a_restart_leaves_out_the_same() {
    use crate::runner::place::{gone, signal, wait_for};
    use rustix::process::Signal;

    let place = Place::new();
    place.test.write("src/a.rs", functions(12, &[]));
    place.test.commit("base");
    place.test.write("src/a.rs", functions(12, &[(1, "first_edit()"), (9, "second_edit()")]));
    let model = Model::start(vec![
        calls(&[report("src/a.rs", 15, "    first_edit();", "the first edit is wrong"), finish()]),
        calls(&[super::read(1)]),
        calls(&[finish()]),
    ]);
    settings(&place, &model, "");
    let first = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    place.test.write("src/a.rs", functions(12, &[(1, "first_edit()"), (9, "another_edit()")]));
    model.hold_after(2);
    let second = place.review(&["--reviewer", "m", "--worktree"]);
    wait_for("the third request", || (model.asked() == 3).then_some(()));
    let worker = place.worker(&second).expect("a worker");
    signal(worker, Signal::KILL);
    wait_for("its end", || gone(worker).then_some(()));
    model.let_go();
    place.revdeck(&["runs"]);
    let record = place.ended(&second);
    assert_eq!((record.status, record.attempt), (RunStatus::Completed, 2), "{}", record.outcome.summary);
    assert_eq!((record.outcome.coverage.hunks_carried, record.outcome.coverage.hunks_covered), (1, 1));
    assert_eq!(record.decision.matches("carried over").count(), 1, "{}", record.decision);
    let carried = place.events(&second).iter().filter(|event| matches!(event, RunEvent::Carried { .. })).count();
    assert_eq!(carried, 1);
    assert_eq!(place.finding_ids(&second), place.finding_ids(&first));
    assert_eq!(super::asked_again(&place, &second), 2, "one answer of each turn");
}
