//! Secrets in files that a model reviews: revdeck itself reports them.

use super::*;
use crate::env::FINDINGS;

/// Returns lines with values that have the shape or the name of a secret, and that no provider has given out.
fn lines_with_secrets() -> [String; 3] {
    let key = ["AKIA", "Z7QK3MV5XWRT2LNP"].concat();
    let token = ["ghp_", "x7Kp2QmW9dLs4VnR8tYb3ZcF6hJg1XaE5uNo"].concat();
    let password = ["Zx9kPq27", "LmW4tRb8"].concat();
    [format!("key = \"{key}\"\n"), format!("tok = \"{token}\"\n"), format!("password = \"{password}\"\n")]
}

/// Creates a repository whose last commit adds the lines to `a.py`, from line 2 on.
fn place_with(lines: &[String]) -> Place {
    let place = Place::new();
    place.test.write("a.py", "import os\n");
    place.test.commit("base");
    place.test.write("a.py", format!("import os\n{}", lines.concat()));
    place.test.commit("change");
    place
}

fn gate(place: &Place, reviewer: &str, code: i32) -> Value {
    let scope = ["--commit", "HEAD", "--wait", "--fail-on", "p1", "--format", "json"];
    place.test.json(&[&["review", "--reviewer", reviewer], &scope[..]].concat(), code)
}

/// Returns line, priority and id of each finding about a fixed value, by line.
fn found(value: &Value) -> Vec<(u64, u64, String)> {
    let findings = value["findings"].as_array().expect("a list").iter();
    let here = findings.filter(|finding| finding["kind"] == "HARDCODED_CONFIGURATION");
    let mut found: Vec<_> = here
        .map(|finding| {
            let number = |key: &str| finding[key].as_u64().expect("a number");
            (number("line_start"), number("priority"), finding["finding_id"].to_string())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn new_secrets_are_found_whatever_the_model_says() {
    let lines = lines_with_secrets();
    let place = place_with(&lines);
    let model = Model::start(Vec::new());
    settings(&place, &model, "");
    let value = gate(&place, "m", FINDINGS);
    let secrets = found(&value);
    assert_eq!(secrets.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 3, 4], "{value}");
    assert!(value["run"]["summary"].as_str().is_some_and(|said| said.starts_with("3 findings")), "{value}");
    for secret in lines.iter().filter_map(|line| line.split('"').nth(1)) {
        assert!(!value.to_string().contains(secret));
    }
    assert_eq!(found(&gate(&place, "builtin", FINDINGS)), secrets, "the same findings");
    // Secrets that were there before are not new.
    place.test.write("a.py", format!("import os\n{}more = 1\n", lines.concat()));
    place.test.commit("another change");
    assert_eq!(found(&gate(&place, "m", DONE)), []);
}

#[test]
fn a_secret_that_the_model_reports_is_one_finding_and_as_urgent_as_it_is() {
    let place = place_with(&lines_with_secrets()[..1]);
    let known = json!({ "path": "a.py", "line_start": 2, "line_end": 2, "kind": "SECURITY", "priority": 3,
        "title": "Sample key", "explanation": "This key is only a sample." });
    let model = Model::start(vec![calls(&[("report_findings", json!({ "findings": [known] })), finish()])]);
    settings(&place, &model, "");
    let value = gate(&place, "m", FINDINGS);
    let findings = value["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 1, "{value}");
    assert_eq!(json!([findings[0]["title"], findings[0]["priority"]]), json!(["Sample key", 0]));
    // A later review with nothing to send carries the finding over.
    let again =
        place.test.json(&["review", "--reviewer", "m", "--branch", "HEAD~1", "--wait", "--format", "json"], DONE);
    assert_eq!((again["findings"].as_array().map(Vec::len), model.asked()), (Some(1), 1), "{again}");
}

#[test]
fn other_findings_in_the_line_of_a_secret_do_not_hide_it() {
    let place = place_with(&lines_with_secrets()[..1]);
    let about = |kind: &str, last: u32| {
        json!({ "path": "a.py", "line_start": 2, "line_end": last, "kind": kind, "priority": 3, "title": "Wrong order",
            "explanation": "It comes too late." })
    };
    let reports = json!({ "findings": [about("SECURITY", 2), about("CORRECTNESS", 2)] });
    let model = Model::start(vec![calls(&[("report_findings", reports), finish()])]);
    settings(&place, &model, "");
    assert_eq!(found(&gate(&place, "m", FINDINGS)).len(), 1);
}

#[test]
fn a_run_that_ends_early_has_them_too() {
    let place = place_with(&lines_with_secrets());
    let model = Model::start(Vec::new());
    settings(&place, &model, "[budget]\nrun_tokens = 1");
    let value = gate(&place, "m", INCOMPLETE);
    assert_eq!((found(&value).len(), model.asked()), (3, 0));
    let summary = value["run"]["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("budget reached at ") && summary.contains("3 findings"), "{summary}");

    let place = place_with(&lines_with_secrets());
    model.hold_after(0);
    settings(&place, &model, "");
    let run = place.review(&["--reviewer", "m", "--commit", "HEAD"]);
    wait_for("the request", || (model.asked() == 1).then_some(()));
    place.revdeck(&["cancel", run.as_str()]);
    assert_eq!(place.run(&run).status, RunStatus::Cancelled);
    assert_eq!(place.finding_ids(&run).len(), 3);
    model.let_go();
}
