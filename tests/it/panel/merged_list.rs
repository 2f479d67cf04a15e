//! The whole list of a panel whose members overlap, contradict each other, fail, and reach their budget.

use revdeck::domain::Voice;

use super::*;

/// The list: place, urgency, confidence and kind, title; then the voices, the steps and the disputes, one in a line.
const LIST: &str = "\
src/users.py:6 p0 critical, confidence high, SECURITY, open: SQL injection through `name`
  one: p0, confidence medium, SECURITY, line 6: SQL injection through `name`
  two: p3, confidence medium, SECURITY, line 6: User input `name` is concatenated into SQL: injection
  2 of 2 reviewers agree: confidence raised from medium to high
  priority p0: the most urgent of p0, p3
  disputed: the priorities go from p0 to p3
src/users.py:11 p2 medium, confidence high, CORRECTNESS, open: Division by zero for an empty list
  one: p2, confidence medium, CORRECTNESS, line 11: Division by zero for an empty list
  third: p2, confidence medium, CORRECTNESS, line 11: Division by zero for an empty list
  2 of 3 reviewers agree: confidence raised from medium to high
src/users.py:15 p2 medium, confidence medium, CORRECTNESS, open: Retries never stop
  two: p2, confidence medium, CORRECTNESS, line 15: Retries never stop
";

/// Writes a list as in [`LIST`].
pub(super) fn write_list(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let Finding { repo_relative_path, line_start, priority, severity, confidence, kind, status, title, .. } =
            finding;
        text.push_str(&format!(
            "{repo_relative_path}:{line_start} {priority} {severity}, confidence {confidence}, {kind}, {status}: {title}\n"
        ));
        for voice in &finding.voices {
            let Voice { reviewer, priority, confidence, kind, line_start, title, .. } = voice;
            text.push_str(&format!(
                "  {reviewer}: {priority}, confidence {confidence}, {kind}, line {line_start}: {title}\n"
            ));
        }
        finding.steps.iter().for_each(|step| text.push_str(&format!("  {step}\n")));
        finding.disputed.iter().for_each(|dispute| text.push_str(&format!("  disputed: {dispute}\n")));
    }
    text
}

#[test]
fn an_overlap_a_contradiction_a_failure_and_a_budget_give_exactly_this_list() {
    // The largest request of a review says what a request costs: one fits into the budget, and a second one does not.
    let alone = Panel::start(vec![first()], Vec::new(), "").review(&["--reviewer", "one"], DONE);
    let budget = alone.usage.window_peak * 3 / 2;
    let contradiction = answer(&[
        report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection"),
        report(ENDLESS, "CORRECTNESS", 2, "Retries never stop"),
    ]);
    let division = report(DIVISION, "CORRECTNESS", 2, "Division by zero for an empty list");
    let third = Model::start(vec![calls(&[("report_findings", json!({ "findings": [division] }))]), answer(&[])]);
    let fourth = Model::start(vec![refusal()]);
    let more = format!(
        "[panels.four]\nreviewers = [\"one\", \"two\", \"third\", \"fourth\"]\n[budget]\nrun_tokens = {budget}\n{}{}",
        reviewer("third", &third, CHEAP),
        reviewer("fourth", &fourth, CHEAP)
    );
    let panel = Panel::start(vec![first()], vec![contradiction], &more);
    let run = panel.review(&["--panel", "four"], INCOMPLETE);
    assert_eq!(write_list(&panel.findings(&run)), LIST);
    let ends = ["one", "two", "third", "fourth"].map(|name| {
        let member = panel.member(&run, name);
        (member.status, member.ending.budget_stop.map(|stop| stop.kind))
    });
    let expected = [
        (RunStatus::Completed, None),
        (RunStatus::Completed, None),
        (RunStatus::Cancelled, Some(BudgetKind::RunTokens)),
        (RunStatus::Failed, None),
    ];
    assert_eq!(ends, expected);
    assert!(run.ending.error_summary.starts_with("fourth did not finish: "), "{}", run.ending.error_summary);
    assert_eq!((run.status, run.is_incomplete()), (RunStatus::Completed, true));
    assert_eq!((panel.one.asked(), panel.two.asked(), third.asked(), fourth.asked()), (1, 1, 1, 1));
    let output = panel.place.output(&run.run_id).expect("an output");
    let notes: Vec<Option<&str>> = output.notes.iter().map(|note| note.split(':').next()).collect();
    assert_eq!(notes[..4], ["one", "two", "third", "fourth"].map(Some), "{:?}", output.notes);
    // The store lists each problem once, under the ids of the list.
    let listed: Vec<u64> = panel.listed().into_iter().map(|(line, _)| line).collect();
    assert_eq!(listed, [INJECTION, DIVISION, ENDLESS].map(u64::from));
}

#[test]
fn members_are_compared_by_what_became_of_the_problem_on_the_list() {
    let title = "SQL injection through `name`";
    // The same problem with one more line has another id.
    let mut wider = report(INJECTION, "SECURITY", 0, title);
    let code: Vec<&str> = CODE.lines().skip(INJECTION as usize - 2).take(2).collect();
    wider["line_start"] = (INJECTION - 1).into();
    wider["quoted_code"] = code.join("\n").into();
    let one = answer(&[report(INJECTION, "SECURITY", 0, title)]);
    let panel = Panel::start(vec![one], vec![answer(&[wider])], "");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let findings = panel.findings(&run);
    let [injection] = findings.as_slice() else { panic!("{findings:#?}") };
    assert_ne!(injection.voices[0].finding_id, injection.voices[1].finding_id, "{injection:#?}");
    // The code of the report under the other id is not gone.
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    assert!(notes.iter().any(|note| note.starts_with("1 report merged into findings of the list")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("the code is gone")), "{notes:?}");
    // A decision about the other id is one about the problem.
    let other = injection.voices.iter().map(|voice| &voice.finding_id).find(|id| **id != injection.finding_id);
    let other = other.expect("another id").as_str();
    let decided = panel.place.test.revdeck(&["triage", other, "addressed"]);
    assert_eq!(out(&decided).trim_end(), format!("{}  open -> addressed", injection.finding_id));
    let note = format!("note: a panel lists {other} as {}", injection.finding_id);
    assert!(crate::env::err(&decided).contains(&note), "{}", crate::env::err(&decided));
    let test = &panel.place.test;
    let members = ["one", "two"].map(|name| panel.member(&run, name).run_id);
    let compared = test.json(&["compare", members[0].as_str(), members[1].as_str(), "--format", "json"], DONE);
    let statuses = [0, 1].map(|side| compared["both"][0][side]["status"].as_str().unwrap_or_default().to_owned());
    assert_eq!(statuses, ["addressed"; 2], "{compared}");
    let shown = out(&test.revdeck(&["compare", members[0].as_str(), members[1].as_str()]));
    let addressed = shown.lines().find(|line| line.starts_with("addressed")).unwrap_or_default();
    assert_eq!(addressed.split_whitespace().collect::<Vec<_>>(), ["addressed", "1", "1"], "{shown}");
    let stats = test.json(&["stats", "--format", "json"], DONE);
    let rows = stats["worth"]["by_reviewer"].as_array().expect("rows");
    let accepted: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["name"], &row["accepted"])).collect();
    assert_eq!(accepted, [(&json!("one"), &json!(1)), (&json!("two"), &json!(1))], "{stats}");
}
