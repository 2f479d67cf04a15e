//! Integration tests of the forecast of a review: what it will cost is known before it starts.

use super::*;

/// Returns the lines on standard error that speak of the cost.
fn announced(output: &std::process::Output) -> Vec<String> {
    let lines = String::from_utf8_lossy(&output.stderr);
    lines
        .lines()
        .filter(|line| line.starts_with("forecast: ") || line.starts_with("note: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_panel_says_what_it_will_cost_before_it_starts_and_an_estimate_says_the_same() {
    let panel = Panel::start(vec![first()], vec![second()], "max_cost = 1.0");
    let test = &panel.place.test;
    let estimate = ["review", "--panel", "all", "--estimate"];
    let printed = out(&test.revdeck(&estimate));
    let [size, decision, costs] = printed.lines().collect::<Vec<_>>().try_into().expect("three lines");
    assert!(size.contains(" hunk") && size.contains(" changed line"), "{printed}");
    assert!(decision.starts_with("starts a review: "), "{printed}");
    let parts: Vec<&str> = costs.split("; ").collect();
    assert!(
        parts[0].starts_with("one ~") && parts[0].contains(" tokens ($0.0") && parts[0].contains(", at most $"),
        "{printed}"
    );
    assert!(parts[1].starts_with("two ~") && parts[2] == "builtin at no cost", "{printed}");
    assert!(parts[3].starts_with("together first requests ~"), "{printed}");

    let forecast = test.json(&[&estimate[..], &["--format", "json"]].concat(), DONE)["forecast"].clone();
    let members = forecast["members"].as_array().expect("members").clone();
    let sum: u64 = members.iter().filter_map(|member| member["tokens"].as_u64()).sum();
    assert_eq!(
        (&forecast["action"], &forecast["tokens"], &forecast["no_room"]),
        (&json!("launch"), &json!(sum), &Value::Null)
    );
    // The limit, and one answer beyond it.
    let most = forecast["cost_limit"].as_f64().expect("an amount");
    assert!(most > 1.0 && most < 1.5 && parts[4] == format!("at most ${most:.2}"), "{most}: {printed}");
    assert_eq!(members.iter().map(|member| &member["reviewer"]).collect::<Vec<_>>(), ["one", "two", "builtin"]);
    assert_eq!((&members[2]["tokens"], &members[2]["cost_limit"]), (&json!(0), &json!(0.0)));
    assert!(panel.place.runs().is_empty() && panel.one.asked() + panel.two.asked() == 0, "nothing has started");

    let waited = test.revdeck(&["review", "--panel", "all", "--wait"]);
    assert_eq!(announced(&waited), [format!("forecast: {costs}")]);
    // A result that exists costs nothing, and an estimate names its run.
    let again = test.revdeck(&["review", "--panel", "all", "--wait"]);
    assert!(announced(&again).is_empty(), "{again:?}");
    let run = panel.place.newest().expect("a run");
    let reused = out(&test.revdeck(&estimate));
    assert!(reused.contains(&format!("\nreuses {run}, 0 tokens: it ")) && reused.lines().count() == 2, "{reused}");
    let forecast = test.json(&[&estimate[..], &["--format", "json"]].concat(), DONE)["forecast"].clone();
    assert_eq!((&forecast["run_id"], &forecast["cost_limit"]), (&json!(run.as_str()), &json!(0.0)));
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
}

#[test]
fn reviewers_on_the_command_line_are_forecast_too_and_free_ones_need_no_forecast() {
    let spare = Model::start(vec![first()]);
    let panel = Panel::start(vec![first()], vec![second()], &reviewer("spare", &spare, ""));
    let test = &panel.place.test;
    let printed = test.json(&["review", "--reviewer", "one,spare", "--wait", "--format", "json"], DONE);
    let members = printed["forecast"]["members"].as_array().expect("members").clone();
    assert_eq!((&members[0]["reviewer"], &members[1]["reviewer"]), (&json!("one"), &json!("spare")));
    assert!(members[0]["cost_limit"].is_f64() && members[1]["cost_limit"].is_null(), "{members:#?}");
    let uncounted = json!({ "limits": ["budget.run_cost"], "reviewers": ["spare"] });
    assert_eq!((&printed["forecast"]["uncounted"], &printed["forecast"]["cost_limit"]), (&uncounted, &Value::Null));
    let known = &printed["forecast"]["known_part"];
    assert_eq!((&known["without"], &known["cost_limit"]), (&json!(["spare"]), &members[0]["cost_limit"]), "{known}");
    // A single one, too, with what no limit can count.
    let single = test.revdeck(&["review", "--reviewer", "spare", "--force", "--wait"]);
    let [costs, note] = announced(&single).try_into().expect("two lines");
    assert!(costs.starts_with("forecast: first request ~") && costs.contains("its price is not known"), "{costs}");
    assert!(note.starts_with("note: budget.run_cost cannot count spare: no price is known; set price_input"), "{note}");
    let free = test.json(&["review", "--reviewer", "builtin", "--force", "--wait", "--format", "json"], DONE);
    assert_eq!(free["forecast"], Value::Null);
    for other in [&["--wait"][..], &["--sync"], &["--fail-on", "p1"], &["--allow-unreviewed", "binary"]] {
        let error = test.errors(&[&["review", "--estimate"][..], other].concat(), USAGE);
        assert!(error.contains("--estimate") && error.contains(other[0]), "{error}");
        assert!(!error.contains("required"), "one answer: {error}");
    }
    let error = test.errors(&["review", "--estimate", "--format", "sarif"], USAGE);
    assert!(error.contains("--estimate prints none") && !error.contains("--wait"), "{error}");
}

#[test]
fn an_estimate_says_that_a_limit_leaves_no_room_for_a_request() {
    let panel = Panel::start(vec![first()], vec![second()], "max_cost = 0.0001");
    let test = &panel.place.test;
    let estimate = ["review", "--panel", "all", "--estimate"];
    let said = "no request that costs money will be sent: max_cost of panel all leaves $0.0001, and the first one takes about $0.0";
    let printed = out(&test.revdeck(&estimate));
    assert!(printed.lines().last().is_some_and(|line| line.starts_with(said)), "{printed}");
    let forecast = test.json(&[&estimate[..], &["--format", "json"]].concat(), DONE)["forecast"].clone();
    assert!(forecast["no_room"].as_str().is_some_and(|note| note.starts_with(said)), "{forecast}");
    // Nothing is sent, and no amount is below zero.
    panel.place.test.revdeck(&["review", "--reviewer", "builtin", "--wait"]);
    let free = test.json(&["review", "--reviewer", "builtin", "--estimate", "--format", "json"], DONE);
    assert_eq!(free["forecast"]["input_cost"].to_string(), "0.0");
}
