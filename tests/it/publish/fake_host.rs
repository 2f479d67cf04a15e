//! A code host on loopback with a state: comments, threads, pages, rules for lines, and faults on demand.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::server::read_request;

/// Request as the host sees it.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    pub body: Value,
    /// Headers, in lower case.
    pub head: String,
}

impl Call {
    /// Returns `true` for a request that posts comments.
    pub fn is_create(&self) -> bool {
        let ends = ["/reviews", "/comments", "/discussions", "/notes"];
        self.method == "POST" && ends.iter().any(|end| self.path.ends_with(end))
    }
}

/// Answer of the host.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

impl Answer {
    pub fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    pub fn ok(body: Value) -> Self {
        Self::new(200, body)
    }

    /// Adds a header that lets the client go on at once.
    pub fn at_once(self) -> Self {
        self.with("retry-after", "0")
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// Failure instead of an answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The host does nothing and answers so.
    Refuse(Answer),
    /// The host does its work, but answers so.
    Lose(Answer),
    /// The host does its work and closes the connection.
    HangUp,
}

/// Returns the answer of a proxy whose server does not answer.
pub fn bad_gateway() -> Answer {
    Answer::new(502, json!({ "message": "Server Error" })).at_once()
}

/// Decides about a fault; the number counts the requests from 0.
pub type FaultPlan = Box<dyn FnMut(usize, &Call) -> Option<Fault> + Send>;
/// Does the work of a request.
pub type Api = fn(&mut HostState, &Call) -> Answer;

/// State of the host.
pub struct HostState {
    /// Account of the token.
    pub login: String,
    /// `true` if the token is one of an app, which may not ask who it is.
    pub is_app_token: bool,
    pub may_resolve: bool,
    /// Commits of the change.
    pub head: String,
    pub base: String,
    /// Path and patch of the changed files.
    pub files: Vec<(String, String)>,
    /// Inline comments (GitHub), or discussions (GitLab).
    pub inline: Vec<Value>,
    /// Comments without a place.
    pub comments: Vec<Value>,
    /// Ids of first comments of resolved threads.
    pub resolved: HashSet<u64>,
    /// Maximum number of rows of a page, whatever the client asks for.
    pub page_rows: usize,
    pub calls: Vec<Call>,
    next_id: u64,
    faults: FaultPlan,
}

impl HostState {
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Returns `true` if a line is on the new side of a file's patch.
    pub fn has_line(&self, path: &str, line: u64) -> bool {
        let Some((_, patch)) = self.files.iter().find(|(name, _)| name == path) else { return false };
        patch.lines().filter_map(|line| line.strip_prefix("@@ ")).any(|header| {
            let new = header.split(' ').nth(1).and_then(|side| side.strip_prefix('+')).expect("a new side");
            let (start, count) = new.split_once(',').unwrap_or((new, "1"));
            let start: u64 = start.parse().expect("a number");
            (start..start + count.parse::<u64>().expect("a number")).contains(&line)
        })
    }

    /// Returns a page of rows, with the header that names the next one.
    pub fn page(&self, call: &Call, rows: &[Value]) -> Answer {
        let number =
            |name: &str, default: usize| call.query.get(name).map_or(default, |text| text.parse().expect("a number"));
        let (size, page) = (number("per_page", 30).min(self.page_rows), number("page", 1));
        let found: Vec<Value> = rows.iter().skip((page - 1) * size).take(size).cloned().collect();
        let answer = Answer::ok(Value::from(found));
        match page * size < rows.len() {
            true => answer.with("link", &format!("<http://elsewhere.example/?page={}>; rel=\"next\"", page + 1)),
            false => answer,
        }
    }
}

/// The host; it stops with the test.
pub struct FakeHost {
    address: SocketAddr,
    state: Arc<Mutex<HostState>>,
}

impl FakeHost {
    /// Starts a host with the change of a repository.
    pub fn start(api: Api, head: String, base: String, files: Vec<(String, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = HostState {
            login: "me".to_owned(),
            is_app_token: false,
            may_resolve: true,
            head,
            base,
            files,
            inline: Vec::new(),
            comments: Vec::new(),
            resolved: HashSet::new(),
            page_rows: 100,
            calls: Vec::new(),
            next_id: 100,
            faults: Box::new(|_, _| None),
        };
        let state = Arc::new(Mutex::new(state));
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = serve(stream, api, &served);
            }
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes or reads the state.
    pub fn with<T>(&self, work: impl FnOnce(&mut HostState) -> T) -> T {
        work(&mut self.state.lock().expect("no panic before"))
    }

    /// Sets the faults. Requests are counted from 0 again.
    pub fn plan_faults(&self, faults: impl FnMut(usize, &Call) -> Option<Fault> + Send + 'static) {
        self.with(|state| {
            state.calls.clear();
            state.faults = Box::new(faults);
        });
    }

    /// Returns the requests since the last call, and forgets them.
    pub fn take_calls(&self) -> Vec<Call> {
        self.with(|state| std::mem::take(&mut state.calls))
    }

    /// Returns the first lines of all comments: the markers.
    pub fn markers(&self) -> Vec<String> {
        self.with(|state| {
            let body = |row: &Value| {
                let body = row["body"].as_str().or_else(|| row["notes"][0]["body"].as_str()).unwrap_or_default();
                body.lines().next().unwrap_or_default().to_owned()
            };
            state.inline.iter().chain(&state.comments).map(body).collect()
        })
    }
}

fn serve(mut stream: TcpStream, api: Api, state: &Mutex<HostState>) -> std::io::Result<()> {
    let request = read_request(&mut stream)?;
    let mut words = request.line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let head = request.head.to_ascii_lowercase();
    let call = Call { method: method.to_owned(), path: path.to_owned(), query, body: request.body, head };
    let answer = {
        let mut state = state.lock().expect("no panic before");
        let number = state.calls.len();
        state.calls.push(call.clone());
        match (state.faults)(number, &call) {
            None => api(&mut state, &call),
            Some(Fault::Refuse(answer)) => answer,
            Some(Fault::Lose(answer)) => {
                api(&mut state, &call);
                answer
            }
            Some(Fault::HangUp) => {
                api(&mut state, &call);
                return Ok(());
            }
        }
    };
    let body = if answer.body.is_null() { String::new() } else { answer.body.to_string() };
    let mut text = format!("HTTP/1.1 {} Status\r\ncontent-type: application/json\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    write!(stream, "{text}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())?;
    stream.flush()
}
