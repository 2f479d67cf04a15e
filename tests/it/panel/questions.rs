//! Integration tests of questions about reports whose problem the list of the panel has under another id.

use revdeck::domain::FindingId;

use super::moved_decisions::start_and_wait;
use super::*;

/// Words that only one of the members says about the injection. The list has the words and the id of the report that says more.
const FIRST_WORDS: &str = "The first member has seen that nobody escapes the name, which comes from the user.";
const SECOND_WORDS: &str = "The second member has seen it, too.";

/// Returns an answer that reports the injection under a kind and in words of its own. Under another kind it has another id.
fn told(kind: &str, words: &str) -> Turn {
    let mut told = report(INJECTION, kind, 0, "SQL injection through `name`");
    told["explanation"] = format!("SQL injection through `name`, as the line shows. {words}").into();
    answer(&[told])
}

/// Starts the panel whose members report the same injection.
fn start(more: &str) -> Panel {
    Panel::start(vec![told("SECURITY", FIRST_WORDS)], vec![told("CORRECTNESS", SECOND_WORDS)], more)
}

/// Returns the questions that `show` has of a finding: text, reviewer and the report that the reviewer was shown.
fn questions(panel: &Panel, id: &FindingId) -> Vec<(String, String, Option<String>)> {
    let shown = panel.place.test.json(&["show", id.as_str(), "--format", "json"], DONE);
    let word = |question: &Value, key: &str| question[key].as_str().map(str::to_owned);
    let questions = shown["questions"].as_array().expect("questions").iter();
    let outline = questions.map(|question| {
        let name = |key: &str| word(question, key).unwrap_or_else(|| panic!("{key} in {question}"));
        (name("question"), name("reviewer"), word(question, "reported_as"))
    });
    outline.collect()
}

/// Returns the text of the last request to a model.
fn last_request(model: &Model) -> String {
    model.requests().last().expect("a request")["messages"].to_string()
}

#[test]
fn a_question_about_a_merged_report_goes_to_its_member_and_stands_with_the_finding_of_the_list() {
    let panel = start("");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let listed = panel.findings(&run)[0].finding_id.clone();
    let member = panel.member(&run, "two");
    let report = panel.findings(&member)[0].finding_id.clone();
    assert_ne!(report, listed);
    panel.two.answer_from_now_on(vec![crate::ask::answer("stands", "Two holds to it.")]);
    panel.one.answer_from_now_on(vec![crate::ask::answer("explained", "One explains it.")]);
    // The worktree has other code now than the member has reviewed.
    panel.place.test.write("src/users.py", "CHANGED = 1\n");

    let output = panel.place.test.revdeck(&["ask", report.as_str(), "who says so?", "--format", "json"]);
    let notes = crate::env::err(&output);
    assert_eq!(output.status.code(), Some(DONE), "{notes}");
    assert!(notes.contains(&format!("note: a panel lists {report} as {listed}")), "{notes}");
    let printed: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let asked = &printed["question"];
    let names = ["finding_id", "reported_as", "reviewer", "run_id"].map(|key| asked[key].as_str().unwrap_or_default());
    assert_eq!(names, [listed.as_str(), report.as_str(), "two", member.run_id.as_str()]);
    let request = last_request(&panel.two);
    assert!(request.contains(SECOND_WORDS) && request.contains("SELECT * FROM users"), "{request}");
    assert!(!request.contains("CHANGED"), "{request}");

    // The next question, about the finding of the list, has the first one before it.
    panel.place.revdeck(&["ask", listed.as_str(), "what else?", "--reviewer", "one"]);
    let request = last_request(&panel.one);
    assert!(request.contains("who says so?") && request.contains("Two holds to it."), "{request}");
    let expected = [
        ("who says so?".to_owned(), "two".to_owned(), Some(report.to_string())),
        ("what else?".to_owned(), "one".to_owned(), None),
    ];
    for id in [&listed, &report] {
        assert_eq!(questions(&panel, id), expected, "{id}");
    }
}

#[test]
fn a_question_that_was_asked_while_the_members_worked_stands_with_the_finding_of_the_list() {
    let third = Model::start(vec![answer(&[])]);
    let panel = start(&reviewer("third", &third, CHEAP));
    let (id, reported) = start_and_wait(&panel, "one,two,third", &["one", "two"], (&third, 1));
    let [listed, report] = reported.as_slice() else { panic!("{reported:?}") };
    panel.two.answer_from_now_on(vec![crate::ask::answer("stands", "Two holds to it.")]);
    panel.place.revdeck(&["ask", report.as_str(), "who says so?"]);
    assert_eq!(questions(&panel, listed), [], "nobody knows yet that both are one problem");
    third.let_go();
    panel.place.ended(&id);
    let expected = [("who says so?".to_owned(), "two".to_owned(), None)];
    for id in [listed, report] {
        assert_eq!(questions(&panel, id), expected, "{id}");
    }
}
