//! Reviews that end before everything was put before the model: they are incomplete, and the next request goes on.

use super::*;
use crate::env::{DONE, INCOMPLETE};

/// Writes 12 files of about 3,000 tokens each and commits them.
fn place_with_wide_change() -> Place {
    let place = Place::new();
    for file in 0..12 {
        let line = |line: usize| format!("let value_{line} = compute_{file}({line});\n");
        place.test.write(&format!("src/part_{file:02}.rs"), (1..=250).map(line).collect::<String>());
    }
    place.test.commit("wide change");
    place
}

fn ask(place: &Place, code: i32) -> Value {
    place.test.json(&["review", "--reviewer", "m", "--commit", "HEAD", "--wait", "--format", "json"], code)
}

fn count(value: &Value, key: &str) -> u64 {
    value["coverage"][key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn a_review_that_used_up_its_turns_is_incomplete_and_the_next_one_goes_on() {
    let place = place_with_wide_change();
    let model = Model::start(Vec::new());
    settings(&place, &model, "[window]\nmax_turns = 3\nmax_tokens = 20000");
    let first = ask(&place, INCOMPLETE);
    let covered = count(&first, "hunks_covered");
    assert_eq!((&first["run"]["status"], &first["run"]["incomplete"]), (&json!("completed"), &json!(true)));
    assert_eq!((count(&first, "hunks_total"), model.asked()), (12, 3));
    assert_eq!(first["coverage"]["incomplete"], true);
    let missing = 12 - covered;
    assert!((1..12).contains(&covered), "{covered}");
    assert_eq!(first["coverage"]["gaps"], json!([{ "reason": "turn_limit", "files": missing, "hunks": missing }]));
    let said = format!("incomplete: {covered} of 12 hunks reviewed (turn limit)");
    assert!(first["run"]["summary"].as_str().is_some_and(|summary| summary.starts_with(&said)), "{first}");
    let run = first["run"]["run_id"].as_str().expect("an id").to_owned();
    let shown = place.revdeck(&["show", &run]);
    assert!(shown.contains(&said), "{shown}");
    let listed = place.revdeck(&["runs"]);
    assert!(listed.contains("incomplete"), "{listed}");

    let (mut carried, mut turns) = (covered, 3);
    for request in 2.. {
        assert!(request < 8, "each request reviews more");
        let rest = 12 - carried;
        let next = ask(&place, if rest > covered { INCOMPLETE } else { DONE });
        assert_eq!(next["decision"]["action"], "launch", "{next}");
        let reason = next["decision"]["reason"].as_str().expect("a reason");
        assert!(reason.contains(&format!("has reviewed {carried} of 12 hunks; this run goes on")), "{reason}");
        assert_eq!(count(&next, "hunks_carried"), carried);
        assert!(next["run"]["saved_token_estimate"].as_u64() > Some(0), "{next}");
        assert!(model.asked() > turns);
        turns = model.asked();
        carried += count(&next, "hunks_covered");
        if carried == 12 {
            assert_eq!((&next["coverage"]["incomplete"], &next["coverage"]["gaps"]), (&json!(false), &json!([])));
            break;
        }
    }
    assert_eq!(ask(&place, DONE)["decision"]["action"], "reuse", "a whole one is an answer");
    assert_eq!(model.asked(), turns);
}

#[test]
fn a_review_whose_answers_all_broke_off_has_reviewed_nothing() {
    let place = place_with_change(40);
    let broken = || Turn::Break { text: "I am looking at".to_owned() };
    let model = Model::start((0..40).map(|_| broken()).collect());
    settings(&place, &model, "[window]\nmax_turns = 2");
    let first = ask(&place, INCOMPLETE);
    assert_eq!(first["coverage"]["gaps"], json!([{ "reason": "broken_answer", "files": 1, "hunks": 1 }]));
    let summary = first["run"]["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("incomplete: 0 of 1 hunk reviewed (answers broke off)"), "{summary}");
    assert_eq!(ask(&place, INCOMPLETE)["decision"]["action"], "launch", "never reused");
    model.answer_from_now_on(vec![calls(&[report(&[5]), finish()])]);
    let whole = ask(&place, DONE);
    assert_eq!((count(&whole, "hunks_covered"), &whole["coverage"]["incomplete"]), (1, &json!(false)));
}

#[test]
fn a_review_that_its_budget_ended_is_continued_by_the_next_request() {
    let place = place_with_wide_change();
    let model = Model::start(Vec::new());
    settings(&place, &model, "[window]\nmax_tokens = 20000\n[budget]\nrun_tokens = 25000");
    let first = ask(&place, INCOMPLETE);
    let covered = count(&first, "hunks_covered");
    assert_eq!(
        (&first["run"]["status"], &first["run"]["cancel_reason"]),
        (&json!("cancelled"), &json!("budget_exhausted"))
    );
    assert_eq!(first["coverage"]["gaps"][0]["reason"], "budget", "{first}");
    assert!((1..12).contains(&covered), "{covered}");
    settings(&place, &model, "[window]\nmax_tokens = 20000");
    let next = ask(&place, DONE);
    let reason = next["decision"]["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("has reviewed {covered} of 12 hunks; this run goes on")), "{reason}");
    assert_eq!(count(&next, "hunks_carried"), covered);
}

/// Requests the review again with a model that finishes: it gets the hunk anew and covers it.
fn check_that_the_hunk_is_sent_again(place: &Place, model: &Model) {
    let asked = model.asked();
    model.answer_from_now_on(vec![calls(&[report(&[5]), finish()])]);
    let next = ask(place, DONE);
    assert_eq!(next["decision"]["action"], "launch", "{next}");
    assert_eq!((count(&next, "hunks_carried"), count(&next, "hunks_covered")), (0, 1));
    assert_eq!(model.asked(), asked + 1);
}

#[test]
fn tool_calls_before_answers_that_break_off_are_no_review() {
    let place = place_with_change(40);
    let broken = || Turn::Break { text: "I am looking at".to_owned() };
    let model = Model::start([vec![calls(&[report(&[5]), read(1)])], (0..4).map(|_| broken()).collect()].concat());
    settings(&place, &model, "[window]\nmax_turns = 3");
    let first = ask(&place, INCOMPLETE);
    assert_eq!(first["run"]["status"], "completed");
    assert_eq!(first["coverage"]["gaps"], json!([{ "reason": "broken_answer", "files": 1, "hunks": 1 }]));
    assert_eq!(first["findings"].as_array().map(Vec::len), Some(1), "what was found meanwhile is kept");
    check_that_the_hunk_is_sent_again(&place, &model);
}

#[test]
fn a_cancellation_between_tool_calls_leaves_the_hunk_open() {
    let place = place_with_change(40);
    let model = Model::start(vec![calls(&[read(1)])]);
    model.hold_after(1);
    settings(&place, &model, "");
    let run = place.review(&["--reviewer", "m", "--commit", "HEAD"]);
    wait_for("the second request", || (model.asked() == 2).then_some(()));
    place.revdeck(&["cancel", run.as_str()]);
    let coverage = place.output(&run).expect("an output").coverage;
    assert_eq!((coverage.hunks_covered, coverage.gaps.len()), (0, 1), "{coverage:?}");
    model.let_go();
    check_that_the_hunk_is_sent_again(&place, &model);
}

#[test]
fn what_may_stay_unreviewed_is_a_matter_of_the_user() {
    let place = place_with_wide_change();
    let model = Model::start(Vec::new());
    let window = "[window]\nmax_turns = 3\nmax_tokens = 20000";
    settings(&place, &model, window);
    let review = ["review", "--reviewer", "m", "--commit", "HEAD", "--wait"];
    place.test.output(&[&review[..], &["--allow-unreviewed", "turn_limit,binary"]].concat(), DONE);
    place.test.output(&[&review[..], &["--force", "--allow-unreviewed", "binary"]].concat(), INCOMPLETE);
    place.test.write(".revdeck.toml", "allow_unreviewed = [\"turn_limit\"]\n");
    place.test.output(&[&review[..], &["--force"]].concat(), INCOMPLETE);
    let user = format!(
        "allow_unreviewed = [\"turn_limit\"]\n{}",
        std::fs::read_to_string(place.test.home().join("config.toml")).expect("settings")
    );
    place.settings(&user);
    place.test.output(&[&review[..], &["--force"]].concat(), DONE);
    let mistake = place.test.fails(&[&review[..], &["--allow-unreviewed", "everything"]].concat(), crate::env::USAGE);
    insta::assert_snapshot!(mistake, @r#"
    error: invalid value 'everything' for '--allow-unreviewed <KIND,...>': "everything" is none of generated, vendored, lock_file, minified, binary, oversized, submodule, symlink, no_content_change, deleted, ignored, unsupported_language, secret, too_complex, unreadable, not_reached, turn_limit, budget, broken_answer, window

    For more information, try '--help'.
    "#);
}
