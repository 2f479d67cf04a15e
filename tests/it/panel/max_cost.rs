//! Integration tests of `max_cost` of a panel over several runs.

use super::*;

/// Writes another limit into the settings of the panel.
fn limit_to(panel: &Panel, limit: f64) {
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(settings).expect("settings");
    let lines = written.lines().map(|line| match line.starts_with("max_cost") {
        true => format!("max_cost = {limit:.6}\n"),
        false => format!("{line}\n"),
    });
    panel.place.settings(&lines.collect::<String>());
}

/// Returns the panel in the record of its run.
fn record(run: &RunRecord) -> &revdeck::domain::Panel {
    run.links.panel.as_ref().expect("a panel")
}

/// Checks which run a panel completes, and what it has spent.
fn expect_continued(run: &RunRecord, continues: Option<&RunId>, spent: f64) {
    let panel = record(run);
    assert_eq!(panel.continues.as_ref(), continues);
    assert!((panel.spent_before - spent).abs() < 1e-9, "{} and not {spent}", panel.spent_before);
}

#[test]
fn a_panel_that_is_asked_again_goes_on_with_its_limit_until_that_is_raised_or_it_is_forced() {
    let panel = Panel::start(vec![first(); 2], vec![refusal(), second(), second()], "max_cost = 1.0");
    let run = panel.review(&["--panel", "all"], INCOMPLETE);
    let spent = panel.member(&run, "one").usage.cost;
    assert!(spent > 0.0 && panel.member(&run, "two").usage.cost.abs() < f64::EPSILON);
    expect_continued(&run, None, 0.0);

    // The rest of the limit is too little for the member that failed.
    limit_to(&panel, spent * 1.5);
    let estimate = panel.place.test.json(&["review", "--panel", "all", "--estimate", "--format", "json"], DONE);
    let forecast = &estimate["forecast"];
    assert_eq!(
        (&forecast["continues"], &forecast["members"][0]["action"]),
        (&json!(run.run_id.as_str()), &json!("reuse"))
    );
    assert!(forecast["reason"].as_str().is_some_and(|reason| reason.contains(" has spent $")), "{forecast}");
    // The whole limit is much more.
    let is_rest = forecast["cost_limit"].as_f64().is_some_and(|most| most < 0.2);
    assert!(is_rest, "only the rest is left, and one answer beyond it: {forecast}");
    let stopped = panel.review(&["--panel", "all"], INCOMPLETE);
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1), "what was reviewed is reused, and nobody is asked");
    expect_continued(&stopped, Some(&run.run_id), spent);
    let member = panel.member(&stopped, "two");
    let stop = member.ending.budget_stop.expect("a limit");
    assert!(stop.kind == BudgetKind::PanelCost && (stop.reached - spent).abs() < 1e-9, "{stop:?}");
    let has_spent = format!("{} has spent $", run.run_id);
    assert!(stopped.decision.contains(&has_spent), "{}", stopped.decision);
    let shown = panel.place.revdeck(&["show", member.run_id.as_str()]);
    assert!(shown.contains(&format!(" by {}) and the next request", run.run_id)), "{shown}");
    assert!(shown.contains("ask again with a higher max_cost of the panel, or begin anew (--force)"), "{shown}");

    // A higher limit leaves the difference.
    limit_to(&panel, spent * 4.0);
    let whole = panel.review(&["--panel", "all"], DONE);
    expect_continued(&whole, Some(&stopped.run_id), spent);
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 2));

    // A forced review has the limit for itself: one member is asked, and the other does not fit any more.
    limit_to(&panel, spent * 1.5);
    let forced = panel.review(&["--panel", "all", "--force"], INCOMPLETE);
    expect_continued(&forced, None, 0.0);
    assert_eq!(panel.one.asked() + panel.two.asked(), 4);
}

#[test]
fn a_panel_about_other_code_begins_anew() {
    let panel = Panel::start(vec![first(); 2], vec![refusal(), second()], "max_cost = 1.0");
    panel.review(&["--panel", "all"], INCOMPLETE);
    panel.place.test.write("src/users.py", CODE.replace("users.db", "other.db"));
    panel.place.test.commit("others");
    let other = panel.review(&["--panel", "all"], DONE);
    expect_continued(&other, None, 0.0);
    assert!(!other.decision.contains("has spent"), "{}", other.decision);
}

#[test]
fn a_member_without_a_known_price_is_named_where_the_limit_is_and_reviews() {
    let spare = Model::start(vec![second()]);
    let more =
        format!("{}[panels.pair]\nreviewers = [\"one\", \"spare\"]\nmax_cost = 1.0\n", reviewer("spare", &spare, ""));
    let panel = Panel::start(vec![first()], Vec::new(), &more);
    let run = panel.review(&["--panel", "pair"], DONE);
    assert_eq!(record(&run).uncounted, ["spare"]);
    let said = "max_cost cannot count spare: no price is known; set price_input and price_output of [reviewers.spare]";
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    let shown = panel.place.revdeck(&["show", run.run_id.as_str()]);
    assert!(shown.contains(&format!("  limits     {said}\n")), "{shown}");
    let member = panel.place.revdeck(&["show", panel.member(&run, "spare").run_id.as_str()]);
    assert!(member.contains(", no price is known: no limit in US dollars counts them"), "{member}");
    let member = panel.place.revdeck(&["show", panel.member(&run, "one").run_id.as_str()]);
    assert!(member.contains(" USD") && !member.contains("no price is known"), "{member}");
}
