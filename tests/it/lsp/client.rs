//! Client of the protocol: messages with a header.

use std::io::{BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{TestEnvironment, wait_for_end};

/// Time after which a message is missed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server process and its pipes. Its end is awaited on drop.
pub struct LspClient {
    process: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    /// Messages of the server that arrived while the client waited for something else.
    pub kept: Vec<Value>,
}

/// Reads one message; `None` at the end. Anything but a message is a failure of the server.
fn read_message(output: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).expect("text") == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                length = Some(line.strip_prefix("Content-Length: ").expect(line).parse::<usize>().expect(line));
            }
        }
    }
    let mut body = vec![0; length.expect("a length")];
    output.read_exact(&mut body).expect("a whole message");
    let message: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    Some(message)
}

impl LspClient {
    /// Starts the server without a word.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("revdeck starts");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Self { process, input, messages, next_id: 0, kept: Vec::new() }
    }

    /// Returns the command of a server.
    pub fn command(test: &TestEnvironment, arguments: &[&str]) -> Command {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.arg("lsp").args(arguments);
        command
    }

    /// Returns the capabilities of an ordinary editor.
    pub fn capabilities() -> Value {
        json!({
            "textDocument": {
                "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix"] } } },
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "publishDiagnostics": { "versionSupport": true },
            },
            "workspace": { "workspaceEdit": { "documentChanges": true }, "workspaceFolders": true },
        })
    }

    /// Starts a server and begins a session in the repository of a test.
    #[track_caller]
    pub fn start(test: &TestEnvironment) -> Self {
        let mut client = Self::spawn(Self::command(test, &[]));
        client.initialize(&[&super::uri(test, "")], Self::capabilities());
        client
    }

    /// Begins a session with workspace folders and returns what the server offers.
    #[track_caller]
    pub fn initialize(&mut self, folders: &[&str], capabilities: Value) -> Value {
        let folders: Vec<Value> = folders.iter().map(|uri| json!({ "uri": uri, "name": "folder" })).collect();
        let parameters =
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities, "workspaceFolders": folders });
        let offered = self.request("initialize", parameters);
        self.notify("initialized", json!({}));
        offered
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open pipe");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    fn send_message(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, parameters: Value) {
        self.send_message(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    /// Sends a request and returns its id, without waiting for the answer.
    pub fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_message(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        id
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub fn request(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        let answer = self.wait_for(&format!("answer to {method}"), |message| message["id"] == id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that is refused, and returns code and message.
    #[track_caller]
    pub fn refused(&mut self, method: &str, parameters: Value) -> (i64, String) {
        let id = self.send(method, parameters);
        let answer = self.wait_for(&format!("answer to {method}"), |message| message["id"] == id);
        (answer["error"]["code"].as_i64().expect("a code"), super::text(&answer["error"]["message"]))
    }

    /// Waits for a message that fulfils a condition.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&condition) {
            return self.kept.remove(at);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) if condition(&message) => return message,
                Ok(message) => self.kept.push(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no message: {what}; kept: {:?}", self.kept)
                }
            }
        }
    }

    /// Waits for the next diagnostics of a file.
    #[track_caller]
    pub fn published(&mut self, uri: &str) -> Value {
        let message = self.wait_for(&format!("diagnostics of {uri}"), |message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri
        });
        message["params"].clone()
    }

    /// Waits until a file has no diagnostics any more.
    #[track_caller]
    pub fn cleared(&mut self, uri: &str) {
        self.wait_for(&format!("the end of the diagnostics of {uri}"), |message| {
            let params = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["diagnostics"] == json!([])
        });
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "python", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Replaces the whole text of an open document.
    pub fn replace(&mut self, uri: &str, version: u32, text: &str) {
        let document = json!({ "uri": uri, "version": version });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
        );
    }

    /// Returns the actions at a line (0-based).
    #[track_caller]
    pub fn actions(&mut self, uri: &str, line: u32) -> Vec<Value> {
        let at = json!({ "line": line, "character": 0 });
        let parameters = json!({
            "textDocument": { "uri": uri }, "range": { "start": at, "end": at }, "context": { "diagnostics": [] },
        });
        self.request("textDocument/codeAction", parameters).as_array().expect("actions").clone()
    }

    /// Executes the command of an action.
    #[track_caller]
    pub fn execute(&mut self, actions: &[Value], title: &str) -> Value {
        let action = actions.iter().find(|action| action["title"] == title).expect(title);
        self.request("workspace/executeCommand", action["command"].clone())
    }

    /// Ends the session as the protocol wants it.
    #[track_caller]
    pub fn shut_down(&mut self) {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        let (status, _) = self.wait_for_end();
        assert!(status.success(), "{status}: {}", self.errors());
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
        self.process.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        errors
    }
}

impl Drop for LspClient {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
