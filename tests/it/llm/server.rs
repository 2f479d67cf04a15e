//! A model on loopback that sends scripted answers in the wire format of OpenAI's chat completions.
//!
//! A gate can hold a turn back until the test opens it, so that a test can kill a process or read the store in
//! between.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::http::server::read_request;

/// A scripted action of the model in one turn.
#[derive(Debug, Clone)]
pub enum Turn {
    Say {
        text: String,
        calls: Vec<(String, Value)>,
        stop: String,
    },
    /// Answers with an error status, further headers and a body.
    Refuse {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Sends the beginning of this answer and closes the connection.
    Break {
        text: String,
    },
}

/// Returns a turn that sends a text and ends the conversation.
pub fn says(text: impl Into<String>) -> Turn {
    Turn::Say { text: text.into(), calls: Vec::new(), stop: "stop".to_owned() }
}

/// Returns a turn that calls tools.
pub fn calls(calls: &[(&str, Value)]) -> Turn {
    let calls = calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.clone())).collect();
    Turn::Say { text: String::new(), calls, stop: "tool_calls".to_owned() }
}

/// Chooses the answer to a request.
type Answer = Box<dyn Fn(&Value) -> Turn + Send>;

#[derive(Default)]
struct State {
    script: Vec<Turn>,
    /// Takes the place of the script.
    answer: Option<Answer>,
    /// The bodies of the requests, in order.
    requests: Vec<Value>,
    keys: Vec<String>,
    /// The number of turns that may be answered; `None` for all.
    open: Option<usize>,
}

/// The server; it stops on drop.
pub struct Model {
    address: std::net::SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Model {
    /// Starts a server with a script; it answers further requests with an empty list of findings.
    pub fn start(script: Vec<Turn>) -> Self {
        Self::listen(State { script, ..State::default() })
    }

    /// Starts a server whose answers depend on the requests alone, in whatever order they come.
    pub fn start_answering(answer: impl Fn(&Value) -> Turn + Send + 'static) -> Self {
        Self::listen(State { answer: Some(Box::new(answer)), ..State::default() })
    }

    fn listen(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }

    /// Answers only the first `turns` requests from now on; the others wait.
    pub fn hold_after(&self, turns: usize) {
        self.shared.0.lock().expect("a lock").open = Some(turns);
    }

    /// Has held requests look at their number again.
    pub fn wake(&self) {
        self.shared.1.notify_all();
    }

    pub fn let_go(&self) {
        self.shared.0.lock().expect("a lock").open = None;
        self.shared.1.notify_all();
    }

    /// Replaces the answers to all further requests.
    pub fn answer_from_now_on(&self, turns: Vec<Turn>) {
        let mut state = self.shared.0.lock().expect("a lock");
        let asked = state.requests.len();
        state.script.truncate(asked);
        while state.script.len() < asked {
            state.script.push(says("```json\n{\"findings\": []}\n```"));
        }
        state.script.extend(turns);
    }

    pub fn requests(&self) -> Vec<Value> {
        self.shared.0.lock().expect("a lock").requests.clone()
    }

    pub fn asked(&self) -> usize {
        self.shared.0.lock().expect("a lock").requests.len()
    }

    pub fn keys(&self) -> Vec<String> {
        self.shared.0.lock().expect("a lock").keys.clone()
    }
}

fn serve(mut stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    while let Ok(request) = read_request(&mut stream) {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        let body = request.body;
        let (lock, condition) = shared;
        let mut state = lock.lock().expect("a lock");
        let number = state.requests.len();
        state.requests.push(body.clone());
        state.keys.push(key);
        condition.notify_all();
        while state.open.is_some_and(|open| number >= open) {
            state = condition.wait(state).expect("a lock");
        }
        let turn = match &state.answer {
            Some(answer) => Some(answer(&body)),
            None => state.script.get(number).cloned(),
        };
        drop(state);
        let turn = turn.unwrap_or_else(|| says("```json\n{\"findings\": []}\n```"));
        if answer(&mut stream, &body, turn).is_err() {
            return;
        }
    }
}

fn answer(stream: &mut TcpStream, request: &Value, turn: Turn) -> std::io::Result<()> {
    let model = request["model"].as_str().unwrap_or("model").to_owned();
    let chunk = |delta: Value, stop: Value| {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": stop }]);
        let event =
            json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choice });
        format!("data: {event}\n\n")
    };
    let (text, calls, stop) = match turn {
        Turn::Refuse { status, headers, body } => {
            write!(
                stream,
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            )?;
            for (name, value) in headers {
                write!(stream, "{name}: {value}\r\n")?;
            }
            write!(stream, "\r\n{body}")?;
            return stream.flush();
        }
        Turn::Break { text } => {
            let body = chunk(json!({ "role": "assistant", "content": text }), Value::Null);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
                body.len() + 500
            )?;
            stream.flush()?;
            stream.shutdown(std::net::Shutdown::Both)?;
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        Turn::Say { text, calls, stop } => (text, calls, stop),
    };
    let mut body = String::new();
    if !text.is_empty() {
        body.push_str(&chunk(json!({ "role": "assistant", "content": text }), Value::Null));
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!([{ "index": index, "id": format!("call_{index}"), "type": "function", "function": function }]);
        body.push_str(&chunk(json!({ "tool_calls": call }), Value::Null));
    }
    body.push_str(&chunk(json!({}), json!(stop)));
    // The formula of OpenAI's cookbook: three tokens for each message, and three for the start of the answer.
    let messages = request["messages"].as_array().map_or(0, Vec::len) as u64;
    let prompt = tokens(&prompt_text(request)) + 3 * messages + 3;
    let usage = json!({ "prompt_tokens": prompt, "completion_tokens": tokens(&text).max(1), "total_tokens": prompt + 1,
        "prompt_tokens_details": { "cached_tokens": prompt / 2 } });
    let last = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [], "usage": usage });
    body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// Returns all text that a service would bill as input.
fn prompt_text(request: &Value) -> String {
    let mut text = String::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        match &message["content"] {
            Value::String(content) => text.push_str(content),
            other => text.push_str(&other.to_string()),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            text.push_str(call["function"]["name"].as_str().unwrap_or(""));
            text.push_str(call["function"]["arguments"].as_str().unwrap_or(""));
        }
    }
    for tool in request["tools"].as_array().into_iter().flatten() {
        text.push_str(&tool["function"].to_string());
    }
    text
}

fn tokens(text: &str) -> u64 {
    revdeck::tokens::count_tokens(revdeck::tokens::Encoding::O200kBase, text) as u64
}
