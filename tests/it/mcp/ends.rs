//! Beginnings and ends: no repository, bad input, closed pipes, signals.

use std::time::Duration;

use super::*;
use crate::runner::place::Place;

/// Time within which the server ends, with room for a busy machine: the promise is a second.
const MAX_END: Duration = Duration::from_secs(3);

#[test]
fn without_a_repository_each_call_says_so_and_the_server_stays() {
    let test = TestEnvironment::new();
    let outside = tempfile::tempdir().expect("a folder");
    let mut command = McpClient::command(&test, &[]);
    command.current_dir(outside.path());
    let mut client = McpClient::spawn(command);
    client.initialize();
    for (name, arguments) in [
        ("auto_review_ledger", json!({})),
        ("auto_review_details", json!({ "run_id": "latest" })),
        ("list_findings", json!({})),
        ("list_runs", json!({})),
        ("review_status", json!({})),
        ("request_review", json!({})),
    ] {
        let said = client.failure(name, arguments);
        assert!(said.ends_with("\nhint: change into a repository, or make one with `git init`"), "{said}");
    }
    assert_eq!(client.request("resources/list", json!({}))["resources"].as_array().map(Vec::len), Some(3));
    let said = client.refused("resources/read", json!({ "uri": "revdeck://ledger" }));
    assert!(said.contains("git init"), "{said}");
    // A repository that is made meanwhile is found by the next call.
    let made = test.command("git").current_dir(outside.path()).args(["init", "-q"]).status().expect("git starts");
    assert!(made.success());
    assert_eq!(client.tool("review_status", json!({}))["undecided"]["total"], 0);
}

#[test]
fn mistakes_in_the_settings_are_failures_of_requests_only() {
    let test = reviewed();
    test.settings("no_such_setting = 1\n");
    let mut client = McpClient::start(&test, &[]);
    assert_eq!(client.tool("list_findings", json!({}))["total"], 2);
    let said = client.failure("request_review", json!({}));
    assert!(said.contains("no_such_setting"), "{said}");
}

#[test]
fn input_that_is_no_message_gets_an_error_and_the_session_goes_on() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        (&"[".repeat(10_000), -32700),
        ("[]", -32600),
        ("null", -32600),
        // Longer than a message may be.
        (&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"more\":\"{}\"}}", "x".repeat(17 << 20)), -32600),
    ] {
        client.write(line);
        let start: String = line.chars().take(40).collect();
        let refused = client.notification(&start, |message| message["id"].is_null() && message["error"].is_object());
        assert_eq!(refused["error"]["code"], code, "{start}: {refused}");
    }
    client.write("");
    client.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/other\"}");
    assert_eq!(client.tool("review_status", json!({}))["undecided"]["total"], 2);
    assert_eq!(client.notifications, [] as [Value; 0]);
}

#[test]
fn wrong_parameters_and_unknown_methods_are_told_apart() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    for (method, parameters, code) in [
        ("no/such/method", json!({}), -32601),
        ("tools/call", Value::Null, -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 1 }), -32602),
        ("prompts/get", json!({}), -32602),
        ("resources/read", json!({ "uri": [] }), -32602),
    ] {
        let id = client.send(method, parameters.clone());
        let answer = client.answer(id);
        assert_eq!(answer["error"]["code"], code, "{method} {parameters}: {answer}");
    }
    client.write("{\"jsonrpc\":\"2.0\",\"id\":\"none\",\"method\":\"tools/call\"}");
    let refused = client.notification("the answer", |message| message["id"] == "none");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn the_server_ends_with_its_input() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    client.tool("review_status", json!({}));
    client.close();
    let (status, took) = client.wait_for_end();
    assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    assert_eq!(client.errors(), "");
}

#[test]
fn a_client_that_says_nothing_is_no_error() {
    let test = TestEnvironment::new();
    let mut client = McpClient::spawn(McpClient::command(&test, &[]));
    client.close();
    let (status, took) = client.wait_for_end();
    assert!(status.success() && took < MAX_END, "{status} after {took:?}: {}", client.errors());
}

#[test]
fn the_server_ends_with_its_input_while_a_call_waits() {
    let place = Place::new();
    place.hold_reviews("");
    place.modules("new", 1);
    let mut client = McpClient::start(&place.test, &[]);
    let arguments = json!({ "scope": "worktree", "wait_seconds": 600 });
    let call = json!({ "name": "request_review", "arguments": arguments, "_meta": { "progressToken": 1 } });
    client.send("tools/call", call);
    client.notification("progress", |message| message["method"] == "notifications/progress");
    client.close();
    let (status, took) = client.wait_for_end();
    assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    // The review is a process of its own and goes on.
    let run = place.test.json(&["review", "--format", "json", "worktree"], DONE);
    assert_eq!(run["decision"]["action"], "adopt", "{run}");
    place.let_end();
    let run = place.test.json(&["review", "--wait", "--format", "json", "worktree"], DONE);
    assert_eq!(run["run"]["status"], "completed", "{run}");
}

#[test]
fn the_server_ends_on_a_signal() {
    let test = reviewed();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut client = McpClient::start(&test, &[]);
        client.tool("review_status", json!({}));
        let pid = rustix::process::Pid::from_raw(client.pid().try_into().expect("a number")).expect("a process");
        rustix::process::kill_process(pid, signal).expect("there");
        let (status, took) = client.wait_for_end();
        assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    }
}
