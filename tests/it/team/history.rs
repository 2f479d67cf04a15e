//! History of a finding after decisions of several machines were merged.

use serde_json::Value;

use super::{Team, ids, review, status, sync};
use crate::env::{DONE, TestEnvironment, out, run};

/// Returns the steps of a finding's history, for example `open > dismissed`.
fn steps(machine: &TestEnvironment, finding: &str) -> Vec<String> {
    let shown = machine.json(&["show", finding, "--format", "json"], DONE);
    let word = |line: &Value, key: &str| line[key].as_str().expect("a word").to_owned();
    let lines = shown["history"].as_array().expect("a history").iter();
    lines.map(|line| format!("{} > {}", word(line, "previous"), word(line, "status"))).collect()
}

#[test]
fn a_decision_that_beats_another_one_is_told_once() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&bob, &["triage", &found[0], "addressed"], DONE);
    for machine in [&ada, &bob, &ada] {
        sync(machine);
    }
    let expected = ["open > dismissed", "dismissed > addressed"];
    assert_eq!(steps(&bob, &found[0]), expected, "Bob's own decision stands");
    assert_eq!(steps(&ada, &found[0]), expected);
    // The file still ends with what stands.
    let lines = bob.store().dispositions(&found[0].parse().expect("an id")).expect("decisions");
    let statuses: Vec<&str> = lines.iter().map(|line| line.status.word()).collect();
    assert_eq!(statuses, ["addressed", "dismissed", "addressed"]);
    let shown = run(&bob, &["show", &found[0]], DONE);
    let expected = ["Ada on ada-1 set open -> dismissed: intended", "Bob on bob-1 set dismissed -> addressed"];
    assert!(expected.iter().all(|line| shown.contains(line)), "{shown}");
    // `show` on the other machine does not say that its own user has claimed the fix.
    let shown = run(&ada, &["show", &found[0]], DONE);
    assert!(shown.contains("addressed: claimed by Bob on bob-1 "), "{shown}");
}

/// Runs a command on a machine whose clock says `now`, as a person or an assistant.
fn act(machine: &TestEnvironment, now: &str, actor: &str, arguments: &[&str]) -> String {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(arguments).env("REVDECK_NOW", now).env("REVDECK_ACTOR", actor).output();
    let output = output.expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{arguments:?}: {}", crate::env::err(&output));
    out(&output)
}

/// Returns the history of a finding as JSON and as text. `group` is local: it names what an undo takes back together.
pub fn shared_history(machine: &TestEnvironment, finding: &str) -> String {
    let mut shown = machine.json(&["show", finding, "--format", "json"], DONE);
    let lines = shown["history"].as_array_mut().expect("a history");
    lines.iter_mut().filter_map(Value::as_object_mut).for_each(|line| drop(line.remove("group")));
    let text = act(machine, "2027-01-01T00:00:00Z", "user", &["show", finding]);
    let is_decision = |line: &&str| line.contains(" ago  ");
    let text: Vec<&str> = text.lines().filter(is_decision).collect();
    format!("{}\n{}\n", shown["history"], text.join("\n"))
}

#[test]
fn machines_with_other_clocks_and_another_order_of_arrival_show_the_same_history() {
    let team = Team::new();
    let people = [team.member("Ada"), team.member("Bob"), team.member("Cleo")];
    let [ada, bob, cleo] = &people;
    let found = ids(&review(ada));
    people.iter().for_each(|machine| drop(sync(machine)));
    let (early, late) = ("2026-11-20T10:00:00Z", "2026-11-26T10:00:00Z");
    act(bob, late, "user", &["triage", &found[0], "dismissed", "--reason", "intended"]);
    act(ada, early, "user", &["triage", &found[0], "addressed"]);
    sync(bob);
    sync(ada);
    // Later than Bob's decision, which she knows, although her clock is six days behind.
    act(ada, early, "user", &["triage", &found[0], "open"]);
    act(cleo, "2026-11-23T10:00:00Z", "user", &["triage", &found[0], "snoozed", "--until", "3d"]);
    act(cleo, "2026-11-23T10:00:01Z", "assistant", &["triage", &found[0], "addressed"]);
    for _ in 0..2 {
        people.iter().for_each(|machine| drop(sync(machine)));
    }
    let expected = shared_history(ada, &found[0]);
    for machine in [bob, cleo] {
        assert_eq!(shared_history(machine, &found[0]), expected);
        assert_eq!(status(machine, &found[0]), status(ada, &found[0]));
    }
    let authors: Vec<&str> = expected.lines().skip(1).filter_map(|line| line.split(" ago  ").nth(1)).collect();
    insta::assert_snapshot!(authors.join("\n"), @"
    Ada on ada-1 set open -> addressed
    the assistant of Cleo on cleo-1 set addressed -> addressed
    Bob on bob-1 set addressed -> dismissed: intended
    Ada on ada-1 set dismissed -> open
    ");
}

/// Returns the decisions about a finding, given by its JSON, as every machine shows them: without what reviews have seen, and what
/// follows from that.
pub fn shared_decisions(shown: &Value) -> String {
    let mut text = String::new();
    for line in shown["history"].as_array().expect("a history").iter().filter(|line| line["actor"] != "engine") {
        let mut line = line.clone();
        for key in ["group", "previous"] {
            line.as_object_mut().expect("a line").remove(key);
        }
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// Returns true if a review has seen something about a finding, given by its JSON. A line that follows from forgetting a machine does
/// not count.
pub fn is_seen_by_review(shown: &Value) -> bool {
    let is_forgotten = |line: &Value| line["group"].as_str().is_some_and(|group| group.starts_with("forget_"));
    let mut history = shown["history"].as_array().expect("a history").iter();
    history.any(|line| line["actor"] == "engine" && !is_forgotten(line))
}
