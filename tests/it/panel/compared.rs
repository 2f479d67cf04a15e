//! Integration tests of comparisons with panels and their members.

use super::*;

/// Returns the tokens and the cost of one side of a comparison.
fn spent(compared: &Value, side: usize) -> (u64, Option<f64>) {
    let run = &compared["runs"][side];
    (run["tokens"].as_u64().expect("tokens"), run["cost"].as_f64())
}

#[test]
fn a_panel_costs_what_all_its_members_and_its_judge_cost() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    let other = answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![other], &more);
    // The panel reuses what one of its members has reviewed alone.
    let alone = panel.review(&["--reviewer", "one"], DONE);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((panel.member(&run, "one").run_id, judge.asked()), (alone.run_id.clone(), 1));
    let reviews = [run.clone(), alone.clone(), panel.member(&run, "two")];
    let tokens: u64 = reviews.iter().map(|review| review.usage.tokens.total()).sum();
    let cost: f64 = reviews.iter().map(|review| review.usage.cost).sum();

    let compared = panel.place.test.json(&["compare", "all", "one", "--format", "json"], DONE);
    let (all_tokens, all_cost) = spent(&compared, 0);
    assert_eq!(all_tokens, tokens, "{compared}");
    assert!(all_cost.is_some_and(|all| (all - cost).abs() < 1e-9), "{all_cost:?} and not {cost}");
    let (own_tokens, own_cost) = spent(&compared, 1);
    assert_eq!(own_tokens, alone.usage.tokens.total());
    assert!(own_cost.is_some_and(|own| (own - alone.usage.cost).abs() < 1e-9), "{own_cost:?}");
    let sums = panel.place.test.json(&["compare", "all", "one", "--all", "--format", "json"], DONE);
    assert_eq!(sums["sides"][0]["tokens"], tokens, "{sums}");
}

#[test]
fn a_panel_takes_no_less_time_than_a_member_that_it_reuses() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    panel.two.hold_after(0);
    let started = out(&panel.place.test.revdeck(&["review", "--reviewer", "two"]));
    let slow: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the request to the second model", || (panel.two.asked() == 1).then_some(()));
    // Whole reviews in which the second model does not answer.
    for _ in 0..3 {
        panel.review(&["--reviewer", "builtin", "--force"], DONE);
    }
    panel.two.let_go();
    wait_for("the end of the slow review", || panel.place.run(&slow).status.is_terminal().then_some(()));
    let run = panel.review(&["--reviewer", "two,builtin"], DONE);
    assert_eq!(panel.member(&run, "two").run_id, slow);
    let compared = panel.place.test.json(&["compare", "two,builtin", "two", "--format", "json"], DONE);
    let took = [0, 1].map(|side| compared["runs"][side]["took_ms"].as_i64().expect("a time"));
    assert!(took[0] >= took[1], "{compared}");
}

#[test]
fn a_member_of_a_finished_panel_is_not_superseded_in_statistics() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let run = panel.review(&["--panel", "all"], DONE);
    let one = panel.member(&run, "one").run_id;
    let test = &panel.place.test;
    let printed = test.json(&["stats", "--run", one.as_str(), "--format", "json"], DONE).to_string();
    let link = format!("\"member_of\":\"{}\"", run.run_id);
    assert!(printed.contains(&link), "{printed}");
    let shown = out(&test.revdeck(&["stats", "--run", one.as_str()]));
    assert!(!shown.contains("superseded"), "{shown}");
    let shown = out(&test.revdeck(&["stats"]));
    assert!(!shown.contains("superseded"), "{shown}");
}

#[test]
fn a_review_without_a_known_price_has_no_cost() {
    let unpriced = Model::start(vec![first()]);
    let panel = Panel::start(vec![first()], Vec::new(), &reviewer("unpriced", &unpriced, ""));
    let run = panel.review(&["--reviewer", "one,unpriced"], DONE);
    assert!(run.usage.cost.abs() < f64::EPSILON);
    let compared = panel.place.test.json(&["compare", "one", "unpriced", "--format", "json"], DONE);
    let costs = [0, 1].map(|side| spent(&compared, side).1);
    assert!(costs[0].is_some_and(|cost| cost > 0.0) && costs[1].is_none(), "{compared}");
    let shown = out(&panel.place.test.revdeck(&["compare", "one", "unpriced"]));
    let line = shown.lines().find(|line| line.starts_with("cost")).unwrap_or_default();
    assert!(line.ends_with("price not known"), "{shown}");
}

#[test]
fn prompt_sets_are_compared_by_a_member_and_its_review_alone_if_nothing_else_has_both() {
    let panel = Panel::start(vec![first(), first()], vec![second()], "");
    let set = panel.place.test.home().join("prompts/strict");
    std::fs::create_dir_all(&set).expect("a folder");
    std::fs::write(set.join("system.md"), "You are the strict reviewer.").expect("a prompt");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let strict = panel.review(&["--reviewer", "one", "--prompt-set", "strict"], DONE);
    let compare = ["compare", "--prompt-set", "default,strict", "--format", "json"];
    let compared = panel.place.test.json(&compare, DONE);
    let ids = [0, 1].map(|side| compared["runs"][side]["run_id"].as_str().unwrap_or_default().to_owned());
    assert_eq!(ids, [panel.member(&run, "one").run_id, strict.run_id].map(|id| id.to_string()));
}
