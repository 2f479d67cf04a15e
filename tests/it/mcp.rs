//! `revdeck mcp`: a real process over pipes that speaks the Model Context Protocol.

pub mod client;
mod details;
mod ends;
mod inspector;
mod notifications;
mod python;
mod requests;
mod session;

use serde_json::{Value, json};

use crate::env::{DONE, TestEnvironment, long_function, run};

use client::McpClient;

/// Returns a repository whose last commit has a p1 finding in `long.py` and a p3 finding in `wide.py`.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", "def wide(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n");
    test.commit("two findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

/// Returns the ids of all undecided findings, most urgent first.
#[track_caller]
fn finding_ids(client: &mut McpClient) -> Vec<String> {
    let listed = client.tool("list_findings", json!({}));
    let findings = listed["findings"].as_array().expect("findings");
    findings.iter().map(|finding| text(&finding["finding_id"])).collect()
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
