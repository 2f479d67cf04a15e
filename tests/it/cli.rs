//! Integration tests: the real binary, its commands, exit codes, JSON shapes and settings.

mod actor;
mod config;
mod json;
mod output;
mod repos;
mod review;
mod triage;
mod turns;
mod usage;

use std::fs;
use std::process::{Command, Stdio};

use insta::{allow_duplicates, assert_snapshot};
use revdeck::domain::{RunId, RunRecord, RunStatus};
use rstest::rstest;
use serde_json::Value;

use crate::env::{
    DONE, FINDINGS, INCOMPLETE, INTERRUPTED, TestEnvironment, USAGE, err, lines_with, long_function, out, run,
};
use crate::runner::place::wait_for;

#[track_caller]
fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is missing in {value}");
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is no list in {value}"))
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
    let value = test.json(&["findings", "--status", "all", "--format", "json"], DONE);
    list(&value, "findings").iter().map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}
