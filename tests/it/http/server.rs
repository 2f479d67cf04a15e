//! A server on loopback that sends exactly the bytes of its script, and a watcher that records its events.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use revdeck::config::ReviewerKind;
use revdeck::domain::{ChatMessage, ChatRequest, ChatResponse, ToolSpec};
use revdeck::reviewers::chat::AnswerTimeouts;
use revdeck::reviewers::chat::{Chat, ChatError, ChatObserver, ChatProgress};
use revdeck::reviewers::http::{BackoffClock, Endpoint, HttpChat, open_with};
use serde_json::{Value, json};

/// A key that may appear only in the header.
pub const KEY: &str = "sk-test-0123456789abcdefghijklmnop";

/// A server action on a connection. After the last action the server closes the connection.
#[derive(Debug, Clone)]
pub enum Act {
    Say(Vec<u8>),
    /// Sends the bytes again and again, as fast as the client reads, or with a pause that ends early if the client
    /// disconnects.
    Repeat(Vec<u8>, Option<Duration>),
    /// Sends no bytes until the client disconnects.
    Hold,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub line: String,
    pub head: String,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Vec<Act>>,
    requests: Vec<Request>,
}

pub struct Server {
    pub port: u16,
    shared: Arc<Mutex<Shared>>,
    gone: Receiver<()>,
}

impl Server {
    /// Starts a server. Each connection uses the next entry of the script; without an entry the server closes it at
    /// once.
    pub fn new(script: Vec<Vec<Act>>) -> Self {
        Self::over(script, |stream| Ok(Box::new(stream)))
    }

    /// Starts a server with a layer (TLS) over the connection.
    pub fn over<F>(script: Vec<Vec<Act>>, layer: F) -> Self
    where
        F: Fn(TcpStream) -> std::io::Result<Box<dyn Stream>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Mutex::new(Shared { script: script.into(), requests: Vec::new() }));
        let (sender, gone) = channel();
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Keeps the connection open, so that the server notices a disconnect between two pieces.
                let _ = stream.set_nodelay(true);
                if let Ok(stream) = layer(stream) {
                    let _ = serve(stream, &ours, &sender);
                }
            }
        });
        Self { port, shared, gone }
    }

    pub fn script(&self, script: Vec<Vec<Act>>) {
        *self.shared.lock().expect("no panic before") = Shared { script: script.into(), requests: Vec::new() };
    }

    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().expect("no panic before").requests.clone()
    }

    /// Waits until a client disconnects from a held connection.
    pub fn client_is_gone(&self) -> bool {
        self.gone.recv_timeout(Duration::from_secs(20)).is_ok()
    }

    pub fn endpoint(&self, kind: ReviewerKind) -> Endpoint {
        Endpoint {
            kind,
            model: "the-model".to_owned(),
            base_url: Some(format!("http://127.0.0.1:{}", self.port)),
            key: Some(KEY.into()),
            effort: None,
            connect_timeout: Duration::from_secs(10),
            timeouts: AnswerTimeouts { idle: Duration::from_secs(10), total: Duration::from_secs(20) },
            attempts: 3,
            insecure_http: false,
            ca_file: None,
            name: "mine".to_owned(),
            window: None,
        }
    }

    pub fn chat(&self, kind: ReviewerKind) -> HttpChat {
        open(self.endpoint(kind))
    }
}

pub trait Stream: Read + Write {
    fn pause(&mut self, time: Option<Duration>);
}

impl Stream for TcpStream {
    fn pause(&mut self, time: Option<Duration>) {
        let _ = self.set_read_timeout(time);
    }
}

fn serve(mut stream: Box<dyn Stream>, shared: &Mutex<Shared>, gone: &Sender<()>) -> std::io::Result<()> {
    let request = read_request(stream.as_mut())?;
    let acts = {
        let mut shared = shared.lock().expect("no panic before");
        shared.requests.push(request);
        shared.script.pop_front().unwrap_or_default()
    };
    for act in acts {
        match act {
            Act::Say(bytes) => {
                stream.write_all(&bytes)?;
                stream.flush()?;
            }
            Act::Repeat(bytes, pause) => {
                stream.pause(pause);
                loop {
                    if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
                        let _ = gone.send(());
                        return Ok(());
                    }
                    // The pause is a read: it ends early when the client disconnects.
                    if pause.is_some() && matches!(stream.read(&mut [0]), Ok(0)) {
                        let _ = gone.send(());
                        return Ok(());
                    }
                }
            }
            Act::Hold => {
                stream.pause(None);
                while stream.read(&mut [0]).is_ok_and(|read| read > 0) {}
                let _ = gone.send(());
            }
        }
    }
    Ok(())
}

pub fn read_request(stream: &mut (impl Read + ?Sized)) -> std::io::Result<Request> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:").map(str::trim).map(str::to_owned)
            })
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap_or(0);
        while bytes.len() < end + 4 + length {
            let read = stream.read(&mut piece)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(&piece[..read]);
        }
        let (line, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
        let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
        return Ok(Request { line: line.to_owned(), head: rest.to_owned(), body });
    }
}

/// Returns a response without a length: it ends with the connection.
pub fn reply(status: &str, kind: &str, headers: &[(&str, &str)], body: &str) -> Vec<Act> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![Act::Say(format!("{text}\r\n{body}").into_bytes())]
}

pub fn streamed(body: &str) -> Vec<Act> {
    reply("200 OK", "text/event-stream", &[], body)
}

pub fn error(status: &str, body: &Value) -> Vec<Act> {
    reply(status, "application/json", &[], &body.to_string())
}

/// Returns the body in chunks of 61 bytes, cut at arbitrary places.
pub fn chunked(body: &str) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.as_bytes().chunks(61) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

pub fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A clock that does not sleep and records each requested wait.
#[derive(Clone, Default)]
pub struct Quick(pub Arc<Mutex<Vec<Duration>>>);

impl BackoffClock for Quick {
    fn random(&mut self) -> f64 {
        0.5
    }

    fn sleep(&mut self, time: Duration) {
        self.0.lock().expect("no panic before").push(time);
    }
}

pub fn open(endpoint: Endpoint) -> HttpChat {
    open_with(endpoint, Box::new(Quick::default())).expect("an endpoint that can be used")
}

/// A watcher that records events and cancels when `until` returns true.
#[derive(Default)]
pub struct Notes {
    pub seen: Vec<ChatProgress>,
    pub until: Option<fn(&[ChatProgress]) -> bool>,
    pub asked: RefCell<usize>,
}

impl Notes {
    pub fn text(&self) -> String {
        self.seen
            .iter()
            .filter_map(|progress| match progress {
                ChatProgress::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub fn waits(&self) -> Vec<u64> {
        self.seen
            .iter()
            .filter_map(|progress| match progress {
                ChatProgress::Waiting { wait_ms, .. } => Some(*wait_ms),
                _ => None,
            })
            .collect()
    }
}

impl ChatObserver for Notes {
    fn on_progress(&mut self, progress: ChatProgress) {
        self.seen.push(progress);
    }

    fn is_cancelled(&self) -> bool {
        *self.asked.borrow_mut() += 1;
        self.until.is_some_and(|until| until(&self.seen))
    }
}

/// Returns a request with a tool.
pub fn request() -> ChatRequest {
    ChatRequest {
        system: "You review.".to_owned(),
        messages: vec![ChatMessage::User { text: "The task.".to_owned() }],
        tools: vec![ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        }],
        max_output: 4096,
        temperature: Some(0.2),
        pinned: 1,
    }
}

pub fn ask(chat: &mut HttpChat) -> (Result<ChatResponse, ChatError>, Notes) {
    let mut notes = Notes::default();
    (chat.respond(&request(), &mut notes), notes)
}
