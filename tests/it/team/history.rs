//! History of a finding after decisions of several machines were merged.

use serde_json::Value;

use super::{Team, ids, review, sync};
use crate::env::{DONE, TestEnvironment, run};

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
    assert!(shown.contains("Ada on ada-1 set open -> dismissed") && !shown.contains("Bob on bob-1"), "{shown}");
}
