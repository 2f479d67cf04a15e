//! Client of the protocol: one JSON object per line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{TestEnvironment, wait_for_end};

/// Time after which a message is missed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server process and its pipes. Its end is awaited on drop.
pub struct McpClient {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    /// Notifications that arrived while the client waited for something else.
    pub notifications: Vec<Value>,
}

impl McpClient {
    /// Starts the server without a word.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("revdeck starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Self { process, input, lines, next_id: 0, notifications: Vec::new() }
    }

    /// Returns the command of a server in the repository of a test.
    pub fn command(test: &TestEnvironment, arguments: &[&str]) -> Command {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.arg("mcp").args(arguments);
        command
    }

    /// Starts a server and begins a session.
    #[track_caller]
    pub fn start(test: &TestEnvironment, arguments: &[&str]) -> Self {
        let mut client = Self::spawn(Self::command(test, arguments));
        client.initialize();
        client
    }

    /// Begins a session and returns what the server says about itself.
    #[track_caller]
    pub fn initialize(&mut self) -> Value {
        let parameters = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "claude-code", "version": "1" },
        });
        let told = self.request("initialize", parameters);
        self.notify("notifications/initialized", json!({}));
        told
    }

    /// Writes a line as it is.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).expect("the server reads");
    }

    pub fn notify(&mut self, method: &str, parameters: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }).to_string());
    }

    /// Sends a request and returns its id, without waiting for the answer.
    pub fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }).to_string());
        id
    }

    /// Returns the answer to a request: the message with its `result` or `error`.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.message(deadline).unwrap_or_else(|| panic!("no answer to request {id}"));
            if message["id"] == id {
                return message;
            }
            self.keep(message);
        }
    }

    /// Waits for a notification that fulfils a condition.
    #[track_caller]
    pub fn notification(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.notifications.iter().position(&condition) {
            return self.notifications.remove(at);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.message(deadline).unwrap_or_else(|| panic!("no notification: {what}"));
            if condition(&message) {
                return message;
            }
            self.keep(message);
        }
    }

    fn keep(&mut self, message: Value) {
        // Errors about input that is no request have no id.
        let is_expected = message.get("method").is_some() || message["id"].is_null();
        assert!(is_expected, "an answer that nobody asked for: {message}");
        self.notifications.push(message);
    }

    /// Returns the next message; `None` after the end of the output or of the time. Each line must be JSON.
    fn message(&mut self, deadline: Instant) -> Option<Value> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON: {error}: {line:?}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub fn request(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that the protocol refuses, and returns the message.
    #[track_caller]
    pub fn refused(&mut self, method: &str, parameters: Value) -> String {
        let id = self.send(method, parameters);
        let answer = self.answer(id);
        super::text(&answer["error"]["message"])
    }

    /// Calls a tool and returns its whole result.
    #[track_caller]
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool that succeeds and returns its structured result.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments);
        assert_ne!(result["isError"], true, "{name}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails and returns its text.
    #[track_caller]
    pub fn failure(&mut self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        super::text(&result["content"][0]["text"])
    }

    /// Closes the server's input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the end of the server and returns how long it took.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> (ExitStatus, Duration) {
        wait_for_end(&mut self.process, PATIENCE)
    }

    /// Returns what the server wrote to standard error, after its end.
    pub fn errors(&mut self) -> String {
        let mut errors = String::new();
        let mut pipe = self.process.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut pipe, &mut errors).expect("text");
        errors
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
