//! Integration tests of decisions about reports whose problem the list of the panel has under another id.

use revdeck::domain::FindingId;
use rstest::rstest;

use super::*;

const TITLE: &str = "SQL injection through `name`";

/// Returns the answer of a model that reports the injection in this code under a kind. Under another kind it has another id.
fn told(code: &str, kind: &str) -> Turn {
    let mut told = report(INJECTION, kind, 0, TITLE);
    told["quoted_code"] = code.lines().nth(INJECTION as usize - 1).expect("the line").into();
    answer(&[told])
}

/// Starts a panel, and waits until these members have ended and the held model is asked for the nth time. Returns the run of the
/// panel, and the ids under which the members have reported the injection.
pub(super) fn start_and_wait(
    panel: &Panel,
    reviewers: &str,
    ended: &[&str],
    held: (&Model, usize),
) -> (RunId, Vec<FindingId>) {
    let (model, asked) = held;
    model.hold_after(asked - 1);
    let started = out(&panel.place.test.revdeck(&["review", "--reviewer", reviewers]));
    let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the request to the held model", || (model.asked() == asked).then_some(()));
    let run = panel.place.run(&id);
    let reported = ended.iter().map(|name| {
        wait_for("the end of the other members", || panel.member(&run, name).status.is_terminal().then_some(()));
        let findings = panel.findings(&panel.member(&run, name));
        findings.iter().find(|found| found.line_start == INJECTION).expect("a report").finding_id.clone()
    });
    let reported = reported.collect();
    (id, reported)
}

/// Returns the decisions about a finding: status and reason.
fn history(panel: &Panel, id: &FindingId) -> Vec<(String, String)> {
    let shown = panel.place.test.json(&["show", id.as_str(), "--format", "json"], DONE);
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let lines = shown["history"].as_array().expect("a history").iter();
    lines.map(|line| (word(line, "status"), word(line, "reason"))).collect()
}

#[test]
fn a_decision_holds_for_a_finding_that_an_earlier_review_knows_under_another_id() {
    let edited = CODE.replace("SELECT * FROM users", "SELECT id, mail FROM users");
    let panel = Panel::start(vec![told(CODE, "SECURITY")], Vec::new(), "");
    let alone = panel.review(&["--reviewer", "one"], DONE);
    let known = panel.findings(&alone)[0].finding_id.clone();
    panel.place.test.write("src/users.py", &edited);
    panel.one.answer_from_now_on(vec![told(&edited, "SECURITY")]);
    panel.two.answer_from_now_on(vec![told(&edited, "CORRECTNESS")]);
    let (id, reported) = start_and_wait(&panel, "one,two", &["two"], (&panel.one, 2));
    assert_ne!(reported[0], known);
    panel.place.revdeck(&["triage", reported[0].as_str(), "dismissed", "--reason", "intended"]);
    panel.one.let_go();
    let run = panel.place.ended(&id);
    let output = panel.place.output(&run.run_id).expect("an output");
    assert!(output.findings.is_empty(), "{:#?}", output.findings);
    let held_back: Vec<&FindingId> = output.held_back.iter().map(|held| &held.finding.finding_id).collect();
    assert_eq!(held_back, [&known], "{:#?}", output.held_back);
    assert_eq!(panel.listed(), [], "nothing is open");
    for id in [&known, &reported[0]] {
        assert_eq!(history(&panel, id), [("dismissed".to_owned(), "intended".to_owned())], "{id}");
    }
    // What was one decision is taken back at once.
    let undone = out(&panel.place.test.revdeck(&["undo"]));
    assert_eq!(undone, format!("{known}  dismissed -> open\n"), "nothing is said to be open that is not");
    assert_eq!(history(&panel, &known).last().map(|(status, _)| status.as_str()), Some("open"));
    // The report that was decided gives way to the finding of the list.
    assert_eq!(panel.listed().len(), 1, "{:?}", panel.listed());
    panel.place.revdeck(&["undo", "--redo"]);
    assert_eq!(panel.listed(), [], "one redo decides again");
}

#[rstest]
#[case::dismissed_later([("addressed", ""), ("dismissed", "false alarm")], 0)]
#[case::addressed_later([("dismissed", "false alarm"), ("addressed", "")], 1)]
fn of_two_decisions_about_one_problem_the_later_stands(#[case] said: [(&str, &str); 2], #[case] raised: usize) {
    let third = Model::start(vec![answer(&[])]);
    let one = vec![told(CODE, "SECURITY")];
    let panel = Panel::start(one, vec![told(CODE, "CORRECTNESS")], &reviewer("third", &third, CHEAP));
    let (id, reported) = start_and_wait(&panel, "one,two,third", &["one", "two"], (&third, 1));
    assert_ne!(reported[0], reported[1]);
    for (id, (status, reason)) in reported.iter().zip(said) {
        let mut command = vec!["triage", id.as_str(), status];
        if !reason.is_empty() {
            command.extend(["--reason", reason]);
        }
        panel.place.revdeck(&command);
    }
    third.let_go();
    let run = panel.place.ended(&id);
    let output = panel.place.output(&run.run_id).expect("an output");
    assert_eq!((output.findings.len(), output.held_back.len()), (raised, 1 - raised), "{output:#?}");
    // Of two reports that are worth the same, the name decides whose id is on the list.
    let mut listed = output.findings.iter().chain(output.held_back.iter().map(|held| &held.finding));
    assert!(listed.all(|finding| finding.finding_id == reported[0]));
    let expected = said.map(|(status, reason)| (status.to_owned(), reason.to_owned()));
    assert_eq!(history(&panel, &reported[0]), expected);
    assert_eq!(history(&panel, &reported[1]), expected[1..]);
    assert_eq!(panel.listed(), []);
}

/// The decision about the finding of the list stands, and the report has another one, or the same for itself.
#[rstest]
#[case::decided_before_the_finding([(1, "dismissed", "intended"), (0, "addressed", "")])]
#[case::decided_like_the_finding([(0, "addressed", ""), (1, "addressed", "")])]
fn a_report_gives_way_to_the_decision_that_stands_and_a_later_one_is_about_the_finding(
    #[case] said: [(usize, &str, &str); 2],
) {
    let third = Model::start(vec![answer(&[])]);
    let one = vec![told(CODE, "SECURITY")];
    let panel = Panel::start(one, vec![told(CODE, "CORRECTNESS")], &reviewer("third", &third, CHEAP));
    let (id, reported) = start_and_wait(&panel, "one,two,third", &["one", "two"], (&third, 1));
    let [listed, report] = reported.as_slice() else { panic!("{reported:?}") };
    for (at, status, reason) in said {
        let mut command = vec!["triage", reported[at].as_str(), status];
        if !reason.is_empty() {
            command.extend(["--reason", reason]);
        }
        panel.place.revdeck(&command);
    }
    third.let_go();
    panel.place.ended(&id);
    let last = |id: &FindingId| history(&panel, id).pop().expect("a decision");
    assert_eq!((last(listed).0.as_str(), last(report).0.as_str()), ("addressed", "obsolete"));
    assert_eq!(panel.listed(), []);
    panel.place.revdeck(&["triage", report.as_str(), "dismissed", "--reason", "false alarm"]);
    assert_eq!(last(listed), ("dismissed".to_owned(), "false alarm".to_owned()));
    assert_eq!(last(report).0, "obsolete");
    assert_eq!(panel.listed(), []);
}

#[test]
fn what_is_decided_after_the_panel_about_a_decided_report_holds_for_the_finding_of_the_list() {
    let third = Model::start(vec![answer(&[])]);
    let one = vec![told(CODE, "SECURITY")];
    let panel = Panel::start(one, vec![told(CODE, "CORRECTNESS")], &reviewer("third", &third, CHEAP));
    let (id, reported) = start_and_wait(&panel, "one,two,third", &["one", "two"], (&third, 1));
    let [listed, report] = reported.as_slice() else { panic!("{reported:?}") };
    panel.place.revdeck(&["triage", listed.as_str(), "addressed"]);
    panel.place.revdeck(&["triage", report.as_str(), "dismissed", "--reason", "intended"]);
    third.let_go();
    panel.place.ended(&id);
    assert_eq!(panel.listed(), []);
    let last = |id: &FindingId| history(&panel, id).pop().expect("a decision").0;
    for (status, shown) in [("open", 1), ("addressed", 0)] {
        panel.place.revdeck(&["triage", report.as_str(), status]);
        assert_eq!((last(listed).as_str(), last(report).as_str()), (status, "obsolete"));
        assert_eq!(panel.listed().len(), shown, "{:?}", panel.listed());
    }
}
