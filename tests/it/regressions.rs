//! Integration tests: each holds one defect that was found in use, so that it does not come back.

use std::fs;
use std::process::{Output, Stdio};

use revdeck::domain::{Actor, Disposition, FindingId, FindingStatus, SCHEMA_VERSION, Time, TriageAction};
use revdeck::git::Repo;
use revdeck::store::{RepoInfo, Store};
use rstest::rstest;
use serde_json::Value;

use crate::env::TestEnvironment;

const DONE: i32 = 0;
const FINDINGS: i32 = 1;
const USAGE: i32 = 2;
const INCOMPLETE: i32 = 3;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs revdeck and holds the exit code against what is expected; its standard output and standard error.
#[track_caller]
fn run(test: &TestEnvironment, arguments: &[&str], code: i32) -> (String, String) {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    (out(&output), err(&output))
}

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    let (text, _) = run(test, &[arguments, &["--format", "json"]].concat(), code);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

fn store(test: &TestEnvironment) -> Store {
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let info = RepoInfo { version: SCHEMA_VERSION, key: repo.key(), name: repo.name(), common_dir: String::new() };
    Store::open(&test.home().join("state"), info).expect("a store")
}

/// A function of 200 lines: a p1 finding.
fn long_function(name: &str) -> String {
    let body: String = (0..200).map(|line| format!("    {name}_total = add({name}_total, {name}_{line})\n")).collect();
    format!("def {name}({name}_total):\n{body}    return {name}_total\n")
}

/// A repository with one p1 finding in `src/long.py` that a review has recorded.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/long.py", long_function("long"));
    test.commit("one finding");
    run(&test, &["review", "--wait"], DONE);
    test
}

fn user_settings(test: &TestEnvironment, content: &str) {
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), content).expect("settings");
}

#[test]
fn concurrent_undos_take_back_one_decision_each() {
    const MANY: usize = 10;
    let test = TestEnvironment::new();
    let store = store(&test);
    let ids: Vec<FindingId> = (0..MANY).map(|n| format!("f_{n:016x}").parse().expect("an id")).collect();
    for (n, id) in ids.iter().enumerate() {
        let line = Disposition {
            finding_id: id.clone(),
            status: FindingStatus::Addressed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: format!("t_{n}"),
            run_id: None,
        };
        store.append_dispositions(&[line]).expect("written");
    }
    let undos: Vec<_> = (0..MANY)
        .map(|_| {
            let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
            command.arg("undo").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("revdeck starts")
        })
        .collect();
    let mut said: Vec<String> = undos
        .into_iter()
        .map(|undo| {
            let output = undo.wait_with_output().expect("it ends");
            assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
            out(&output).split_whitespace().next().unwrap_or_default().to_owned()
        })
        .collect();
    said.sort();
    let expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "each says another finding");
    for id in &ids {
        assert_eq!(store.status(id).expect("readable"), FindingStatus::Open, "{id}");
    }
    assert!(run(&test, &["undo"], DONE).0.contains("nothing to take back"));
}
