//! Machines of a team, and reviews that a model makes for them.

use std::process::{Child, Stdio};

use revdeck::domain::RunEvent;
use serde_json::{Value, json};

use super::CHANGE;
use super::postgres_server::{OWNER, TestDatabase};
use crate::env::{DONE, TestEnvironment, err, out, run};
use crate::llm::finish;
use crate::llm::server::{Model, Turn, calls};
use crate::runner::place::wait_for;

/// Returns a machine of a person that has no commits.
pub fn empty_machine(person: &str, origin: &str) -> TestEnvironment {
    let machine = TestEnvironment::new();
    machine.git(&["config", "user.name", person]);
    machine.git(&["config", "user.email", &format!("{}@example.org", person.to_lowercase())]);
    machine.git(&["remote", "add", "origin", origin]);
    machine
}

/// Commits a beginning, and the change on top.
pub fn commit_change(machine: &TestEnvironment) {
    machine.write("a.py", "x = 1\n");
    machine.commit("Begin");
    machine.write("b.py", CHANGE);
    machine.commit("Read files");
}

/// Returns a machine with the change as its last commit; all have the same commits.
pub fn machine(person: &str) -> TestEnvironment {
    let machine = empty_machine(person, "git@git.example.org:team/app.git");
    commit_change(&machine);
    machine
}

/// Returns a machine that has joined a database under the name of its person.
pub fn member(database: &TestDatabase, person: &str) -> TestEnvironment {
    let machine = machine(person);
    let name = format!("{}-1", person.to_lowercase());
    run(&machine, &["team", "join", &database.address(OWNER), "--machine", &name], DONE);
    machine
}

/// Returns a machine that has joined a database, with a reviewer `mine` that the model plays.
pub fn member_with_model(database: &TestDatabase, person: &str, model: &Model) -> TestEnvironment {
    let machine = member(database, person);
    machine.settings(&format!(
        "default_reviewer = \"mine\"\n[reviewers.mine]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
         api_key_cmd = \"printf made-up\"\nattempts = 1\nprice_input = 2.0\nprice_output = 8.0\nmax_output = 1000\n",
        model.url()
    ));
    machine
}

/// Returns a whole review with one finding in one turn.
pub fn report() -> Turn {
    let finding = json!({ "path": "b.py", "line_start": 4, "line_end": 4, "kind": "ERROR_HANDLING", "priority": 1,
        "confidence": 0.8, "title": "Every error is hidden", "explanation": "The bare except hides them all.",
        "quoted_code": "    except:" });
    calls(&[("report_findings", json!({ "findings": [finding] })), finish()])
}

/// Returns a first turn with a finding, and a second one that ends the review.
pub fn two_turns() -> Vec<Turn> {
    let Turn::Say { text, calls: said, stop } = report() else { panic!("an answer") };
    let first = said.into_iter().take(1).collect();
    vec![Turn::Say { text, calls: first, stop }, calls(&[finish()])]
}

/// Starts a review of the last commit, and does not wait.
pub fn start_review(machine: &TestEnvironment) -> Child {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("revdeck starts")
}

/// Returns the result of a review when it has ended.
pub fn end_of(review: Child) -> Value {
    let output = review.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    serde_json::from_str(&out(&output)).expect("JSON")
}

pub fn newest_run(machine: &TestEnvironment) -> Value {
    machine.json(&["runs", "--format", "json"], DONE)["runs"][0].clone()
}

/// Waits until the newest run of a machine has a note.
pub fn wait_for_note(machine: &TestEnvironment, words: &str) {
    wait_for(words, || {
        let runs = machine.json(&["runs", "--format", "json"], DONE);
        let run = runs["runs"][0]["run_id"].as_str()?.parse().ok()?;
        let entries = machine.store().read_journal(&run).ok()?;
        let has_words = |text: &str| text.contains(words);
        entries.iter().any(|entry| matches!(&entry.event, RunEvent::Note { text } if has_words(text))).then_some(())
    });
}
