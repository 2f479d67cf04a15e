//! Integration tests of known findings that one member calls fixed by its silence, and another still sees.

use rstest::rstest;

use super::*;

/// Returns the report of a line of an edited file.
fn report_edited(edited: &str, line: u32, kind: &str, priority: u8, title: &str) -> Value {
    let mut found = report(line, kind, priority, title);
    found["quoted_code"] = edited.lines().nth(line as usize - 1).expect("the line").into();
    found
}

#[test]
fn whoever_has_reported_a_finding_since_its_first_report_can_call_it_fixed() {
    let title = "SQL injection through `name`";
    let found = || answer(&[report(INJECTION, "SECURITY", 1, title)]);
    let panel = Panel::start(vec![found()], vec![found()], "");
    // One reviewer reports it alone, and the second one in a panel.
    let alone = panel.review(&["--reviewer", "one"], DONE);
    let id = panel.findings(&alone)[0].finding_id.clone();
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    assert_eq!(panel.findings(&run)[0].voices.len(), 2);
    panel.place.revdeck(&["triage", id.as_str(), "addressed"]);
    let edited = CODE.replace("SELECT * FROM users", "SELECT id, mail FROM users");
    panel.place.test.write("src/users.py", &edited);
    panel.one.answer_from_now_on(vec![answer(&[report_edited(&edited, INJECTION, "SECURITY", 1, title)])]);
    panel.two.answer_from_now_on(vec![answer(&[])]);
    let again = panel.review(&["--reviewer", "one,two"], DONE);
    let findings = panel.findings(&again);
    let [injection] = findings.as_slice() else { panic!("{findings:#?}") };
    assert_eq!((&injection.finding_id, injection.status), (&id, FindingStatus::Unresolved));
    let said: Vec<String> = injection.disputed.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|said| said == "two says that it is fixed, one still sees it"), "{said:?}");
    let shown = panel.place.revdeck(&["show", id.as_str()]);
    assert!(shown.contains("disputed: two says that it is fixed, one still sees it"), "{shown}");
}

#[test]
fn a_member_whose_report_is_held_back_is_not_silent_about_its_problem() {
    let panel = Panel::start(vec![answer(&[])], vec![answer(&[])], "");
    panel.review(&["--reviewer", "one,two"], DONE);
    let edited = CODE.replace("return row[1]", "return row[2]");
    panel.place.test.write("src/users.py", &edited);
    panel.place.test.commit("another column");
    let found = |priority, title| answer(&[report_edited(&edited, INJECTION, "SECURITY", priority, title)]);
    panel.one.answer_from_now_on(vec![found(0, "SQL injection through `name`")]);
    panel.two.answer_from_now_on(vec![found(3, "User input `name` is concatenated into SQL: injection")]);
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    // New and not urgent, about a line that the second model had reviewed before.
    let two = panel.place.output(&panel.member(&run, "two").run_id).expect("an output");
    assert_eq!((two.findings.len(), two.held_back.len()), (0, 1), "{:?}", two.notes);
    let findings = panel.findings(&run);
    let [injection] = findings.as_slice() else { panic!("{findings:#?}") };
    assert!(injection.disputed.is_empty(), "{:?}", injection.disputed);
    // Its words stand with the finding, and it agrees.
    let said: Vec<(&str, u8, bool)> = injection
        .voices
        .iter()
        .map(|voice| (voice.reviewer.as_str(), voice.priority as u8, voice.held_back.is_some()))
        .collect();
    assert_eq!(said, [("one", 0, false), ("two", 3, true)]);
    let shown = panel.place.revdeck(&["show", injection.finding_id.as_str()]);
    assert!(shown.contains("also said by two (p3, ") && shown.contains("held back: late"), "{shown}");
    assert_eq!(panel.listed().len(), 1, "a held-back report is no finding by itself");
}

#[test]
fn a_contradiction_about_a_finding_that_is_held_back_is_a_note_of_the_panel() {
    let title = "The list is walked twice";
    let found = || answer(&[report(DIVISION, "PERFORMANCE", 2, title)]);
    let panel = Panel::start(vec![found()], vec![found()], "");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let id = panel.findings(&run)[0].finding_id.clone();
    panel.place.revdeck(&["mute", "PERFORMANCE"]);
    panel.place.revdeck(&["triage", id.as_str(), "addressed"]);
    let edited = CODE.replace("return sum(values)", "return float(sum(values))");
    panel.place.test.write("src/users.py", &edited);
    panel.one.answer_from_now_on(vec![answer(&[report_edited(&edited, DIVISION, "PERFORMANCE", 2, title)])]);
    panel.two.answer_from_now_on(vec![answer(&[])]);
    let again = panel.review(&["--reviewer", "one,two"], DONE);
    let output = panel.place.output(&again.run_id).expect("an output");
    assert!(output.findings.is_empty(), "{:#?}", output.findings);
    let expected = format!("{id}: two says that it is fixed, one still sees it");
    assert!(output.notes.contains(&expected), "{:#?}", output.notes);
}

#[rstest]
#[case::the_member_itself_is_silent(false, None)]
#[case::the_fallback_is_silent(true, Some("spare says that it is fixed, two still sees it"))]
fn what_a_fallback_has_reported_is_called_fixed_by_the_silence_of_the_fallback(
    #[case] takes_over_again: bool,
    #[case] expected: Option<&str>,
) {
    let title = "SQL injection through `name`";
    let found = || answer(&[report(INJECTION, "SECURITY", 1, title)]);
    let (third, spare) = (Model::start(vec![refusal()]), Model::start(vec![found()]));
    let more = format!("{}{}", reviewer("third", &third, "fallback = \"spare\"\n"), reviewer("spare", &spare, CHEAP));
    let panel = Panel::start(Vec::new(), Vec::new(), &more);
    // The fallback reports it for `third`.
    let alone = panel.review(&["--reviewer", "third"], DONE);
    assert_eq!((third.asked(), spare.asked()), (1, 1));
    let id = panel.findings(&alone)[0].finding_id.clone();
    panel.place.revdeck(&["triage", id.as_str(), "addressed"]);
    let edited = CODE.replace("SELECT * FROM users", "SELECT id, mail FROM users");
    panel.place.test.write("src/users.py", &edited);
    panel.two.answer_from_now_on(vec![answer(&[report_edited(&edited, INJECTION, "SECURITY", 1, title)])]);
    third.answer_from_now_on(vec![if takes_over_again { refusal() } else { answer(&[]) }]);
    spare.answer_from_now_on(vec![answer(&[])]);
    let again = panel.review(&["--reviewer", "third,two"], DONE);
    assert_eq!((third.asked(), spare.asked()), (2, 1 + usize::from(takes_over_again)));
    let findings = panel.findings(&again);
    let [injection] = findings.as_slice() else { panic!("{findings:#?}") };
    assert_eq!(injection.finding_id, id);
    let said: Vec<String> = injection.disputed.iter().map(ToString::to_string).collect();
    let fixed = said.iter().find(|said| said.contains("says that it is fixed"));
    assert_eq!(fixed.map(String::as_str), expected, "{said:?}");
}
