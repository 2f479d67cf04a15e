//! Budget of a review by a model, over attempts and runs.

use super::*;

/// Returns three turns.
fn script() -> Vec<Turn> {
    vec![calls(&[report(&[10]), read(1)]), calls(&[report(&[20]), read(2)]), calls(&[report(&[30]), finish()])]
}

#[test]
fn what_an_earlier_attempt_has_paid_counts_once_against_the_budget_of_the_day() {
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, "");
    let whole = place.run(&place.review(&["--reviewer", "m", "--wait"])).usage.tokens.total();
    // The spare amount is below the cost of the first turn: if that turn counts twice, the test fails.
    let spare = whole / 6;

    let place = place_with_change(40);
    let model = Model::start([script()[..2].to_vec(), script()[1..].to_vec()].concat());
    model.hold_after(1);
    settings(&place, &model, &format!("[budget]\nday_tokens = {}", whole + spare));
    let run = place.review(&["--reviewer", "m"]);
    wait_for("the second request", || (model.asked() == 2).then_some(()));
    let worker = place.worker(&run).expect("a worker");
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    model.let_go();
    place.revdeck(&["runs"]);
    let record = place.ended(&run);
    assert_eq!((record.status, record.attempt), (RunStatus::Completed, 2), "{}", record.outcome.summary);
    assert_eq!((place.finding_ids(&run).len(), model.asked()), (3, 4));
}
