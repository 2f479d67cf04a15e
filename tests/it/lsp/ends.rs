//! Beginnings and ends: broken messages, order of the session, closed pipes, signals.

use std::time::Duration;

use super::*;

/// Time within which the server ends, with room for a busy machine: the promise is a second.
const MAX_END: Duration = Duration::from_secs(3);

#[test]
fn broken_messages_are_answered_and_the_server_lives_on() {
    let test = reviewed();
    let mut client = LspClient::start(&test);
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    for (input, id, code) in [
        ("nonsense\r\n".to_owned(), Value::Null, -32700),
        ("Content-Length: many\r\n\r\n".to_owned(), Value::Null, -32700),
        (frame("{"), Value::Null, -32700),
        (frame("[]"), Value::Null, -32600),
        (frame("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":7}"), json!("x"), -32600),
        (frame("{\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"no/such\"}"), json!("y"), -32601),
        (frame("{\"jsonrpc\":\"2.0\",\"id\":\"z\",\"method\":\"textDocument/hover\"}"), json!("z"), -32602),
        (format!("Content-Length: 40000000\r\n\r\n{}", " ".repeat(40_000_000)), Value::Null, -32700),
    ] {
        client.write(input.as_bytes());
        let answer = client.wait_for("an error", |message| message.get("error").is_some());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{answer}");
    }
    // Notifications are never answered.
    client.notify("textDocument/didChange", json!({ "textDocument": 7 }));
    client.notify("textDocument/didOpen", Value::Null);
    client.notify("$/unknown", json!({}));
    client.published(&uri(&test, "long.py"));
    client.shut_down();
}

#[test]
fn a_session_begins_with_initialize_and_ends_with_shutdown() {
    let test = reviewed();
    let mut client = LspClient::spawn(LspClient::command(&test, &[]));
    assert_eq!(client.refused("textDocument/hover", json!({})).0, -32002);
    client.initialize(&[], LspClient::capabilities());
    assert_eq!(client.refused("initialize", json!({})).0, -32600);
    client.request("shutdown", Value::Null);
    assert_eq!(client.refused("textDocument/hover", json!({})).0, -32600);
    client.notify("exit", Value::Null);
    let (status, took) = client.wait_for_end();
    assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    assert_eq!(client.errors(), "");
    // The protocol wants another exit code without shutdown.
    let mut client = LspClient::start(&test);
    client.notify("exit", Value::Null);
    assert_eq!(client.wait_for_end().0.code(), Some(1));
}

#[test]
fn the_server_ends_with_its_input_and_on_a_signal() {
    let test = reviewed();
    let mut client = LspClient::start(&test);
    client.published(&uri(&test, "long.py"));
    client.close();
    let (status, took) = client.wait_for_end();
    assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    assert_eq!(client.errors(), "");
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut client = LspClient::start(&test);
        client.published(&uri(&test, "long.py"));
        let pid = rustix::process::Pid::from_raw(client.pid().try_into().expect("a number")).expect("a process");
        rustix::process::kill_process(pid, signal).expect("there");
        let (status, took) = client.wait_for_end();
        assert!(status.success() && took < MAX_END, "{status} after {took:?}");
    }
}
