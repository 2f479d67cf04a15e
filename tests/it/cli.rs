//! Integration tests: the real binary, its commands, exit codes, JSON shapes and settings.

mod config;
mod json;
mod output;
mod review;
mod triage;
mod turns;
mod usage;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use revdeck::domain::{RunId, RunRecord, RunStatus};
use rstest::rstest;
use serde_json::Value;

use crate::env::{TestEnvironment, err, out, run};
use crate::runner::place::wait_for;

const DONE: i32 = 0;
const FINDINGS: i32 = 1;
const USAGE: i32 = 2;
const INCOMPLETE: i32 = 3;
const INTERRUPTED: i32 = 130;

/// Works as [`run`] for a command that fails; returns its standard error.
#[track_caller]
fn fails(test: &TestEnvironment, arguments: &[&str], code: i32) -> String {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    assert_eq!(out(&output), "", "{arguments:?} prints although it fails");
    err(&output)
}

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    let text = run(test, arguments, code);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
    assert_eq!(value["version"], 1, "{arguments:?}");
    value
}

#[track_caller]
fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is missing in {value}");
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is no list in {value}"))
}

/// Returns a function of 200 lines: a p1 finding.
fn long_function(name: &str) -> String {
    let body: String = (0..200).map(|line| format!("    {name}_total = add({name}_total, {name}_{line})\n")).collect();
    format!("def {name}({name}_total):\n{body}    return {name}_total\n")
}

/// Returns a function with too many parameters: a p3 finding.
fn wide_function(name: &str) -> String {
    format!("def {name}(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n")
}

/// Creates a repository with a p1 and a p3 finding that a review has recorded.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.commit("two findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

fn finding_ids(test: &TestEnvironment) -> Vec<String> {
    let value = json(test, &["findings", "--status", "all", "--format", "json"], DONE);
    list(&value, "findings").iter().map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}
