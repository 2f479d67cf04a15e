//! Budget of a review by a model, over attempts and runs.

use revdeck::domain::{BudgetKind, BudgetStop};

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

/// Returns the whole tokens of [`script`].
fn whole_tokens() -> u64 {
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, "");
    place.run(&place.review(&["--reviewer", "m", "--wait"])).usage.tokens.total()
}

#[test]
fn a_run_that_reaches_its_budget_says_so_wherever_it_is_shown() {
    // The third request does not fit any more.
    let limit = whole_tokens() - 100;
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, &format!("[budget]\nrun_tokens = {limit}"));
    let waited = place.test.revdeck(&["review", "--reviewer", "m", "--wait"]);
    assert_eq!(waited.status.code(), Some(INCOMPLETE));
    let run = place.newest().expect("a run");
    let record = place.run(&run);
    let spent = record.usage.tokens.total();
    let stop = BudgetStop { kind: BudgetKind::RunTokens, reached: spent as f64, limit: limit as f64 };
    assert_eq!(
        (record.status, record.ending.cancel_reason, record.ending.budget_stop),
        (RunStatus::Cancelled, Some(CancelReason::BudgetExhausted), Some(stop))
    );
    let words = stop.describe();
    assert!(words.starts_with("budget reached at ") && words.ends_with(" tokens"), "{words}");
    let said = out(&waited);
    assert!(said.contains(&format!("run {run} ended: {words}\n")), "{said}");
    assert!(record.outcome.summary.starts_with(&format!("{words}; ")), "{}", record.outcome.summary);
    let listed = place.revdeck(&["runs"]);
    assert!(listed.contains(&format!("{run}  budget reached  ")), "{listed}");
    let shown = place.revdeck(&["show", run.as_str()]);
    assert!(shown.contains(&format!("{run}  budget reached\n")), "{shown}");
    assert!(shown.contains(&format!("  stopped    {words}\n")), "{shown}");
    let value = place.test.json(&["show", run.as_str(), "--format", "json"], DONE);
    let expected = json!({ "budget": "run_tokens", "reached": spent as f64, "limit": limit as f64 });
    assert_eq!((&value["run"]["budget_stop"], &value["run"]["cancel_reason"]), (&expected, &json!("budget_exhausted")));
    let ledger = place.revdeck(&["ledger"]);
    assert!(ledger.contains(&format!("summary=\"{words}; ")), "{ledger}");
    assert!(!record.outcome.summary.contains("cancelled"), "{}", record.outcome.summary);
    let stats = place.revdeck(&["stats"]);
    assert!(stats.contains("1 ended by its budget") && !stats.contains("cancelled"), "{stats}");
}

#[test]
fn a_budget_that_ends_a_run_between_tool_calls_leaves_its_code_open() {
    let limit = whole_tokens() - 100;
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, &format!("[budget]\nrun_tokens = {limit}"));
    let review = ["review", "--reviewer", "m", "--commit", "HEAD", "--wait", "--format"];
    let first = place.test.json(&[&review[..], &["json"]].concat(), INCOMPLETE);
    let expected = json!({ "incomplete": true, "gaps": [{ "reason": "budget", "files": 1, "hunks": 1 }] });
    assert_eq!(
        json!({ "incomplete": first["coverage"]["incomplete"], "gaps": first["coverage"]["gaps"] }),
        expected,
        "{first}"
    );
    settings(&place, &model, "");
    let next = place.test.json(&[&review[..], &["json"]].concat(), DONE);
    let covered = json!([next["coverage"]["hunks_carried"], next["coverage"]["hunks_covered"]]);
    assert_eq!((covered, model.asked()), (json!([0, 1]), 3), "{next}");
}

#[test]
fn the_budget_of_a_day_has_its_own_words() {
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, "");
    let spent = place.run(&place.review(&["--reviewer", "m", "--wait"])).usage.tokens.total();
    settings(&place, &model, "[budget]\nday_tokens = 1");
    place.test.write("src/other.rs", "let other = compute(1);\n");
    place.test.commit("other");
    let output = place.test.revdeck(&["review", "--reviewer", "m", "--wait"]);
    assert_eq!(output.status.code(), Some(INCOMPLETE));
    let stop = place.run(&place.newest().expect("a run")).ending.budget_stop.expect("a limit");
    assert_eq!((stop.kind, stop.reached, stop.limit), (BudgetKind::DayTokens, spent as f64, 1.0));
    assert!(out(&output).contains(&format!(" ended: {}\n", stop.describe())), "{}", out(&output));
}

#[test]
fn a_run_that_the_day_leaves_too_little_names_the_day_and_not_its_own_budget() {
    let whole = whole_tokens();
    let place = place_with_change(40);
    let model = Model::start([script(), script()].concat());
    settings(&place, &model, "");
    let earlier = place.run(&place.review(&["--reviewer", "m", "--wait"])).usage.tokens.total();
    // The forced review does not fit, because the first one has used a part of the day.
    let limit = earlier + whole * 2 / 3;
    settings(&place, &model, &format!("[budget]\nday_tokens = {limit}"));
    let id = place.review_incompletely(&["--reviewer", "m", "--force"]);
    let record = place.run(&id);
    let reached = earlier + record.usage.tokens.total();
    let stop = BudgetStop { kind: BudgetKind::DayTokens, reached: reached as f64, limit: limit as f64 };
    assert_eq!(record.ending.budget_stop, Some(stop));
    assert!(record.usage.tokens.total() > 0, "it began: {}", record.outcome.summary);
    let shown = place.revdeck(&["show", id.as_str()]);
    let next_step = "ask again after midnight, or with a higher budget.day_tokens";
    assert!(shown.contains(&stop.describe()) && shown.contains(next_step), "{shown}");
}

#[test]
fn the_window_of_a_run_is_measured_by_its_own_limit() {
    let place = place_with_change(40);
    let model = Model::start(script());
    settings(&place, &model, "context_window = 32000\nmax_output = 4000");
    let record = place.run(&place.review(&["--reviewer", "m", "--wait"]));
    let asked = place.events(&record.run_id).into_iter().filter_map(|event| match event {
        RunEvent::TurnAsked { window, .. } => Some((window.tokens, window.limit)),
        _ => None,
    });
    assert_eq!(asked.max(), Some((record.usage.window_peak, record.usage.window_limit)));
    assert!(record.usage.window_limit < 32_000, "{}", record.usage.window_limit);
    let shown = place.revdeck(&["show", record.run_id.as_str()]);
    let limit = record.usage.window_limit.to_string();
    let (thousands, rest) = limit.split_at(limit.len() - 3);
    assert!(shown.contains(&format!(" of {thousands},{rest} tokens at once\n")), "{shown}");
}
