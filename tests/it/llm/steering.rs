//! Kinds about which a model is almost always wrong: it is warned of them, and its findings of them are lowered by one step.

use revdeck::domain::{Kind, RunEvent, RunId};
use serde_json::{Value, json};

use super::server::{Model, calls};
use super::{finish, settings};
use crate::runner::place::Place;

/// Number of decisions that steer.
const DECISIONS: u32 = 20;
/// Beginning of the warning in a prompt.
const WARNING: &str = "People dismissed almost all";

/// Writes a file whose lines are all different.
fn write_lines(place: &Place, name: &str) -> String {
    let path = format!("src/{name}.rs");
    let text: String = (1..=DECISIONS).map(|line| format!("let {name}_{line} = compute({line});\n")).collect();
    place.test.write(&path, text);
    path
}

fn finding(name: &str, line: u32, kind: Kind) -> Value {
    json!({ "path": format!("src/{name}.rs"), "line_start": line, "line_end": line, "kind": kind.word(), "priority": 1,
        "title": format!("{kind} at {name} {line}"), "explanation": format!("the value {line} of {name} is wrong"),
        "quoted_code": format!("let {name}_{line} = compute({line});") })
}

/// Reviews a commit of one new file, of which the model reports `findings`.
fn review(place: &Place, model: &Model, name: &str, findings: &[Value]) -> RunId {
    model.answer_from_now_on(vec![calls(&[("report_findings", json!({ "findings": findings })), finish()])]);
    write_lines(place, name);
    let commit = place.test.commit(name);
    place.review(&["--reviewer", "m", "--commit", &commit, "--wait"])
}

/// Returns kind, priority and the step of each finding of a run.
fn shown(place: &Place, run: &RunId) -> Vec<(String, u64, Value)> {
    let page: Value = serde_json::from_str(&place.revdeck(&["show", run.as_str(), "--format", "json"])).expect("JSON");
    let findings = page["findings"].as_array().expect("findings").iter();
    findings
        .map(|one| {
            let kind = one["kind"].as_str().expect("a kind").to_owned();
            (kind, one["priority"].as_u64().expect("a priority"), one["lowered"].clone())
        })
        .collect()
}

fn last_request(model: &Model) -> String {
    model.requests().last().expect("a request").to_string()
}

#[test]
fn a_model_is_warned_of_what_people_dismissed_and_its_findings_of_that_are_lowered() {
    let place = Place::new();
    let model = Model::start(Vec::new());
    settings(&place, &model, "");
    let docs: Vec<Value> = (1..=DECISIONS).map(|line| finding("old", line, Kind::Docs)).collect();
    let run = review(&place, &model, "old", &docs);
    let ids: Vec<String> = place.finding_ids(&run).iter().map(ToString::to_string).collect();
    assert_eq!(ids.len(), DECISIONS as usize, "{:?}", shown(&place, &run));
    let dismiss = |ids: &[String]| {
        let ids = ids.iter().map(String::as_str);
        let words: Vec<&str> =
            ["triage"].into_iter().chain(ids).chain(["dismissed", "--reason", "not worth it"]).collect();
        place.revdeck(&words);
    };
    let both = |name: &str| [finding(name, 3, Kind::Docs), finding(name, 9, Kind::Correctness)];

    // One decision is missing: nothing is said.
    dismiss(&ids[1..]);
    let run = review(&place, &model, "early", &both("early"));
    assert!(!last_request(&model).contains(WARNING), "{}", last_request(&model));
    assert!(shown(&place, &run).iter().all(|(_, priority, lowered)| *priority == 1 && lowered.is_null()));

    dismiss(&ids[..1]);
    let run = review(&place, &model, "new", &both("new"));
    assert!(last_request(&model).contains("DOCS: 0 of 20 accepted"), "{}", last_request(&model));
    let steered = place.events(&run).into_iter().find_map(|event| match event {
        RunEvent::Steered { kinds } => Some(kinds),
        _ => None,
    });
    let steered = steered.expect("on record");
    assert_eq!(
        steered.iter().map(|one| (one.kind, one.accepted, one.wrong)).collect::<Vec<_>>(),
        [(Kind::Docs, 0, 20)]
    );
    let mut findings = shown(&place, &run);
    findings.sort_by(|a, b| a.0.cmp(&b.0));
    let because = "0 of 20 DOCS findings of m were accepted";
    assert_eq!(
        findings,
        [
            ("CORRECTNESS".to_owned(), 1, Value::Null),
            ("DOCS".to_owned(), 2, json!({ "from": 1, "to": 2, "because": because })),
        ]
    );
    let id = place.finding_ids(&run).into_iter().find(|id| {
        let text = place.revdeck(&["show", id.as_str()]);
        text.contains(&format!("lowered from p1 to p2: {because}"))
    });
    assert!(id.is_some(), "the finding says so");
    let stats: Value = serde_json::from_str(&place.revdeck(&["stats", "--format", "json"])).expect("JSON");
    let [wrong] = &stats["worth"]["almost_always_wrong"].as_array().expect("a list")[..] else {
        panic!("one: {stats}")
    };
    assert_eq!((&wrong["reviewer"], &wrong["kind"], &wrong["wrong"]), (&json!("m"), &json!("DOCS"), &json!(20)));
    // A run with a warning answers the same request.
    let commit = place.run(&run).subject.scope.to_string();
    let commit = commit.strip_prefix("commit:").expect("a commit").to_owned();
    assert_eq!(place.review(&["--reviewer", "m", "--commit", &commit]), run);

    settings(&place, &model, "[worth]\nsteer = false");
    let run = review(&place, &model, "later", &both("later"));
    assert!(!last_request(&model).contains(WARNING), "{}", last_request(&model));
    assert!(shown(&place, &run).iter().all(|(_, priority, lowered)| *priority == 1 && lowered.is_null()));
}
