//! The official Python client, which validates each result against the schema of its tool.

use super::*;
use crate::env::{err, out};
use crate::runner::place::Place;

/// Variable with a Python that has the package `mcp`.
const PYTHON_VARIABLE: &str = "REVDECK_MCP_PYTHON";

/// Runs a script with the program and a repository, and returns what it prints.
#[track_caller]
fn run_script(test: &TestEnvironment, script: &str) -> String {
    let python = std::env::var(PYTHON_VARIABLE).expect("REVDECK_MCP_PYTHON names a Python with the package mcp");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp").join(script);
    let mut command = test.command(python);
    let output =
        command.arg(script).arg(env!("CARGO_BIN_EXE_revdeck")).arg(test.repo()).output().expect("Python starts");
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    out(&output)
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn the_python_client_calls_everything() {
    assert_eq!(run_script(&reviewed(), "client.py"), "9 tools, 6 resources\n");
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn the_python_client_waits_is_told_and_cancels() {
    let place = Place::new();
    place.hold_reviews("");
    place.modules("new", 1);
    assert_eq!(run_script(&place.test, "client_waits.py"), "waited; 5 reading tools\n");
}
