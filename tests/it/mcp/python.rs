//! The official Python client, which validates each result against the schema of its tool.

use super::*;
use crate::env::{err, out};

/// Variable with a Python that has the package `mcp`: `python -m venv V && V/bin/pip install mcp`.
const PYTHON_VARIABLE: &str = "REVDECK_MCP_PYTHON";

#[test]
#[ignore = "needs a Python with the package mcp: REVDECK_MCP_PYTHON names it"]
fn the_python_client_calls_everything() {
    let python = std::env::var(PYTHON_VARIABLE).expect("REVDECK_MCP_PYTHON names a Python with the package mcp");
    let test = reviewed();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.py");
    let repo = test.repo();
    let output =
        test.command(python).args([script, env!("CARGO_BIN_EXE_revdeck")]).arg(&repo).output().expect("Python starts");
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    assert_eq!(out(&output), "9 tools, 6 resources\n");
}
