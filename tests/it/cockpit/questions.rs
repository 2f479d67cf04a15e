//! A question to a model in a real terminal: the screen goes on while the model thinks, and a quit loses no answer.

use serde_json::json;

use super::Cockpit;
use crate::ask::{Reviewed, answer};
use crate::runner::place::wait_for;

#[test]
fn a_question_is_asked_in_the_background_and_its_answer_outlives_the_cockpit() {
    let turns = vec![answer("withdrawn", "The caller checks it."), answer("stands", "It can be None.")];
    let reviewed = Reviewed::new("", turns);
    let asked = reviewed.model.asked();
    reviewed.model.hold_after(asked);
    let mut cockpit = Cockpit::open(&reviewed.test);
    cockpit.wait("the findings", |screen| screen.contains("A GitHub token stands") && screen.contains("idle"));
    cockpit.press("j");
    cockpit.wait("the finding", |screen| screen.contains("nobody checks it") && screen.contains("idle"));
    cockpit.press("A");
    cockpit.wait("the cost", |screen| screen.contains("at most $0.0") && screen.contains("asks m"));
    cockpit.press("the caller?\x1b");
    cockpit.wait("the panes", |screen| !screen.contains("asks m"));
    assert_eq!(reviewed.model.asked(), asked, "Esc sends nothing");
    cockpit.press("A");
    cockpit.wait_for("asks m");
    cockpit.press("the caller?\r");
    cockpit.wait("the question", |screen| screen.contains("Questions") && screen.contains("asking m"));
    wait_for("the request", || (reviewed.model.asked() == asked + 1).then_some(()));
    // The screen does not wait for the model.
    cockpit.press("?");
    cockpit.wait_for("Here: findings");
    cockpit.press("\x1b");
    reviewed.model.hold_after(asked + 1);
    reviewed.model.wake();
    cockpit.wait("the answer", |screen| {
        screen.contains("the reviewer withdraws it: The caller checks it.") && screen.contains("x dismisses it")
    });
    cockpit.press("A");
    cockpit.wait_for("asks m");
    cockpit.press("sure?\r");
    wait_for("the request", || (reviewed.model.asked() == asked + 2).then_some(()));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    reviewed.model.let_go();
    let questions = wait_for("the answer", || {
        let questions = reviewed.shown()["questions"].clone();
        questions[1].is_object().then_some(questions)
    });
    assert_eq!(questions[1]["answer"], json!({ "verdict": "stands", "text": "It can be None." }));
    assert_eq!(reviewed.shown()["finding"]["status"], "open");
}
