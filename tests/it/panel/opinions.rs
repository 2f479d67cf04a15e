//! Integration tests of the limits of second opinions.

use super::*;

/// Returns the report of a second model that calls an injection p3: three steps from the first.
fn contradiction() -> Turn {
    answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")])
}

#[test]
fn a_judge_is_held_to_the_budget_of_a_run() {
    let judge = Model::start(vec![says("{}")]);
    // A request costs more than that with the price of the judge, and less than a tenth of it with that of the members.
    let prices = "price_input = 1000.0\nprice_output = 1000.0\n";
    let more = format!("judge = \"dear\"\n{}[budget]\nrun_cost = 0.1\n", reviewer("dear", &judge, prices));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 0));
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    let said = notes.iter().find(|note| note.starts_with("no second opinion by dear: "));
    assert!(said.is_some_and(|note| note.contains("budget reached at ")), "{notes:?}");
}

#[test]
fn a_judge_is_not_paid_for_what_an_escalation_has_settled() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let (boss, judge) = (Model::start(vec![says(ruling.to_string())]), Model::start(vec![says(ruling.to_string())]));
    let more = format!(
        "judge = \"dear\"\nescalate = {{ to = \"boss\", when = \"disputed\" }}\n{}{}",
        reviewer("dear", &judge, DEAR),
        reviewer("boss", &boss, DEAR)
    );
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((boss.asked(), judge.asked()), (1, 0));
    let findings = panel.findings(&run);
    let injection = findings.iter().find(|finding| finding.line_start == INJECTION).expect("there");
    let said: Vec<String> = injection.steps.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|step| step.starts_with("boss finds it real")), "{said:?}");
    assert!(!said.iter().any(|step| step.starts_with("dear")), "{said:?}");
}

#[test]
fn the_page_of_a_panel_sums_up_what_its_members_and_its_judge_used() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let own = run.usage.tokens.total();
    let members = ["one", "two"].map(|name| panel.member(&run, name).usage.tokens.total());
    let shown = panel.place.revdeck(&["show", run.run_id.as_str()]);
    let line =
        |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("tokens ").contains(&own.to_string()), "{shown}");
    let all = line("in all ");
    assert!(all.contains(&(own + members[0] + members[1]).to_string()), "{shown}");
    assert!(all.ends_with("USD, with its members"), "{shown}");
}

#[test]
fn a_judge_that_cannot_answer_leaves_the_list_as_it_is() {
    let other = answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")]);
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![refusal(), says(ruling.to_string())]);
    let more = format!("escalate = {{ to = \"dear\", when = \"p0 or disputed\" }}\n{}", reviewer("dear", &judge, ""));
    let panel = Panel::start(vec![first()], vec![other], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let output = panel.place.output(&run.run_id).expect("an output");
    assert!(output.notes.iter().any(|note| note.starts_with("no second opinion by dear")), "{:?}", output.notes);
    assert_eq!(output.findings.len(), panel.listed().len());
    assert_eq!((run.status, judge.asked()), (RunStatus::Completed, 1));
    // Asked again, only the judge is asked; and who asks for no review gets the list as it is.
    let report = ["review", "--panel", "all", "--from-team", "--format", "json"];
    assert_eq!(panel.place.test.json(&report, DONE)["run"]["run_id"], run.run_id.as_str());
    let again = panel.review(&["--panel", "all"], DONE);
    assert!(again.decision.starts_with(&format!("{} lacks second opinions", run.run_id)), "{}", again.decision);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 2));
    let notes = panel.place.output(&again.run_id).expect("an output").notes;
    assert!(!notes.iter().any(|note| note.starts_with("no second opinion")), "{notes:?}");
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
}
