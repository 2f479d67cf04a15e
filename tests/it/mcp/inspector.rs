//! The command line of the official MCP inspector, which converts arguments by the input schemas and checks results.

use super::*;
use crate::env::{err, out};

/// Variable with the program of the npm package `@modelcontextprotocol/inspector`.
const INSPECTOR_VARIABLE: &str = "REVDECK_MCP_INSPECTOR";

/// Calls a method through the inspector and returns the result.
#[track_caller]
fn inspect(test: &TestEnvironment, arguments: &[&str]) -> Value {
    let inspector = std::env::var(INSPECTOR_VARIABLE).expect("REVDECK_MCP_INSPECTOR names the inspector's program");
    let server = [env!("CARGO_BIN_EXE_revdeck"), "mcp"];
    // The inspector hands only a few variables on to the server.
    let home = format!("REVDECK_HOME={}", test.home().display());
    let mut command = test.command(inspector);
    // Without `--cli` in front of all, it opens a page in the browser.
    command.args(["--cli", "-e", home.as_str()]).args(server).args(arguments);
    let output = command.output().expect("the inspector starts");
    assert!(output.status.success(), "{arguments:?}: {}{}", out(&output), err(&output));
    serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", out(&output)))
}

/// Calls a tool that succeeds and returns its structured result.
#[track_caller]
fn call(test: &TestEnvironment, name: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["--method", "tools/call", "--tool-name", name];
    arguments.iter().for_each(|argument| all.extend(["--tool-arg", *argument]));
    let result = inspect(test, &all);
    assert_ne!(result["isError"], true, "{name}: {result}");
    result["structuredContent"].clone()
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn the_inspector_calls_everything() {
    let test = reviewed();
    let listed = inspect(&test, &["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(9));
    let findings = call(&test, "list_findings", &["limit=1", "kind=[\"LONG_METHOD\"]"]);
    let finding = text(&findings["findings"][0]["finding_id"]);
    let run_id = text(&call(&test, "list_runs", &["limit=5"])["runs"][0]["run_id"]);
    assert!(text(&call(&test, "auto_review_ledger", &[])["ledger"]).contains(&finding));
    let (of_run, of_finding) = (format!("run_id={run_id}"), format!("finding_id={finding}"));
    let details = call(&test, "auto_review_details", &[&of_run, &of_finding, "max_bytes=3000"]);
    assert_eq!(details["findings"][0]["repo_relative_path"], "long.py");
    assert_eq!(call(&test, "review_status", &[])["undecided"]["total"], 2);
    assert_eq!(call(&test, "request_review", &["scope=all", "wait_seconds=60"])["ended"], true);
    assert_eq!(call(&test, "claim_addressed", &[&of_finding, "note=split"])["changed"], true);
    assert_eq!(call(&test, "dispute", &[&of_finding, "reason=intended"])["recorded"], true);
    assert_eq!(call(&test, "request_cancel", &[&of_run, "reason=late"])["outcome"], "already_ended");
    let resources = inspect(&test, &["--method", "resources/list"]);
    for resource in resources["resources"].as_array().expect("resources") {
        let uri = text(&resource["uri"]);
        let read = inspect(&test, &["--method", "resources/read", "--uri", &uri]);
        assert_eq!(read["contents"][0]["uri"], uri);
    }
    let prompts = inspect(&test, &["--method", "prompts/list"]);
    let prompt = text(&prompts["prompts"][0]["name"]);
    let told = inspect(&test, &["--method", "prompts/get", "--prompt-name", &prompt, "--prompt-args", "priority=p3"]);
    assert!(text(&told["messages"][0]["content"]["text"]).contains("wide.py"), "{told}");
}
