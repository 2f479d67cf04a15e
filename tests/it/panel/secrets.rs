//! Integration tests of secrets that revdeck's own search finds in the runs of a panel's members.

use super::*;

/// Reviews a key about which both models of a panel say nothing, whenever they are asked. Returns the panel and its run.
fn review_key() -> (Panel, RunRecord) {
    let quiet = || vec![answer(&[]), answer(&[])];
    let panel = Panel::start(quiet(), quiet(), "");
    let key = ["sk_live_51H8aKJ2", "eZvKYlo2C0qRtYwXzPmNbV"].concat();
    panel.place.test.write("src/users.py", format!("{CODE}\n\nSTRIPE = \"{key}\"\n"));
    panel.place.test.commit("key");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    (panel, run)
}

#[test]
fn a_secret_that_no_model_reports_is_a_finding_of_revdeck() {
    let (panel, run) = review_key();
    let findings = panel.findings(&run);
    let [secret] = findings.as_slice() else { panic!("{findings:#?}") };
    let said: Vec<&str> = secret.voices.iter().map(|voice| voice.reviewer.as_str()).collect();
    assert_eq!(said, ["revdeck"], "the models said nothing");
    let steps: Vec<String> = secret.steps.iter().map(ToString::to_string).collect();
    assert_eq!(steps, ["found by revdeck's own search for secrets, not by a reviewer"]);
    assert!(secret.disputed.is_empty() && !run.outcome.summary.contains("several"), "{}", run.outcome.summary);
    let shown = panel.place.revdeck(&["show", secret.finding_id.as_str()]);
    assert!(shown.contains("said by revdeck") && !shown.contains("agree"), "{shown}");
    let asked = panel.place.test.fails(&["ask", secret.finding_id.as_str(), "why?"], USAGE);
    assert!(asked.contains("revdeck cannot answer: its own search"), "{asked}");
    for reviewer in ["one", "two"] {
        let member = panel.member(&run, reviewer);
        assert_eq!(member.outcome.scanned_findings, std::slice::from_ref(&secret.finding_id));
    }
    let stats = panel.place.test.json(&["stats", "--by", "reviewer", "--format", "json"], DONE);
    let worth = stats["worth"]["by_reviewer"].as_array().expect("rows");
    let raised: Vec<(&Value, &Value)> = worth.iter().map(|row| (&row["name"], &row["raised"])).collect();
    assert_eq!(raised, [(&json!("one"), &json!(0)), (&json!("two"), &json!(0))]);
    assert_eq!(stats["totals"]["findings"]["found"], 1);
    let compared = panel.place.test.json(&["compare", "one", "two", "--format", "json"], DONE);
    assert_eq!((&compared["both"], &compared["runs"][0]["findings"]), (&json!([]), &json!(0)));
}

#[test]
fn a_secret_that_is_taken_out_is_confirmed_by_the_next_review_of_the_panel() {
    let (panel, run) = review_key();
    let id = panel.findings(&run)[0].finding_id.clone();
    panel.place.revdeck(&["triage", id.as_str(), "addressed"]);
    panel.place.test.write("src/users.py", format!("{CODE}\n\nSTRIPE = os.environ[\"STRIPE\"]\n"));
    panel.review(&["--reviewer", "one,two"], DONE);
    let shown = panel.place.test.json(&["show", id.as_str(), "--format", "json"], DONE);
    let lines = shown["history"].as_array().expect("a history");
    let is_confirmation = |line: &&Value| line["status"] == "addressed" && line["actor"] == "engine";
    assert_eq!(lines.iter().filter(is_confirmation).count(), 1, "{lines:#?}");
}
