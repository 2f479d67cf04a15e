//! A bare repository over smart HTTP on loopback: `git http-backend` behind a small CGI server, whose connections a test may
//! cut. The variables are those of `man git-http-backend`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

/// Request during which a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutRequest {
    /// The one that asks for objects.
    Fetch,
    /// The one that sends objects and moves a ref.
    Push,
}

/// Place in a request where its connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutPoint {
    /// git gets half of the request.
    InRequest,
    /// git does what was asked, and the client does not hear of it.
    BeforeAnswer,
    /// The client gets half of the answer.
    InAnswer,
}

impl CutPoint {
    pub const ALL: [Self; 3] = [Self::InRequest, Self::BeforeAnswer, Self::InAnswer];
}

/// Answer of a server in front of git that does not let a request through.
#[derive(Debug, Clone, Copy)]
pub struct HttpRefusal {
    pub requests: RefusedRequests,
    /// Code and name of the state, such as `403 Forbidden`.
    pub state: &'static str,
    /// Text of the answer, which git shows.
    pub text: &'static str,
}

/// Requests that a server in front of git does not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedRequests {
    All,
    /// All of a push.
    Pushes,
    /// The one that sends objects and moves a ref.
    Objects,
}

/// Connections of one client.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    /// Number of requests.
    pub requests: usize,
    /// Number of requests that git has compressed.
    pub compressed: usize,
    /// Number of requests that came in chunks.
    pub chunked: usize,
    /// Number of connections that were cut in the middle.
    pub cuts: usize,
    /// The next request of this kind is cut.
    next_cut: Option<(CutRequest, CutPoint)>,
    /// True if all connections are closed without an answer.
    is_closed: bool,
    refusal: Option<HttpRefusal>,
}

/// Server of one repository. It ends with the test process.
pub struct HttpRemote {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// Folder of the repository.
    folder: PathBuf,
    /// Name of the repository in its folder.
    name: String,
    lines: Mutex<HashMap<String, Line>>,
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        self.lines.lock().expect("a lock")
    }
}

/// Returns true if git can serve and use smart HTTP here.
fn is_installed() -> bool {
    let output = Command::new("git").arg("--exec-path").output().expect("git starts");
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    ["git-http-backend", "git-remote-http"].iter().all(|program| folder.join(program).exists())
}

impl HttpRemote {
    /// Serves a bare repository; returns `None`, with a note, where git comes without `git http-backend`.
    pub fn start(repository: &Path) -> Option<Self> {
        if !is_installed() {
            assert!(std::env::var_os("CI").is_none(), "git http-backend is not installed, and git's package has it");
            let _ = std::io::stderr().write_all(b"skipped: git http-backend is not installed\n");
            return None;
        }
        let allowed = Command::new("git")
            .arg("--git-dir")
            .arg(repository)
            .args(["config", "http.receivepack", "true"])
            .status()
            .expect("git starts");
        assert!(allowed.success(), "git config");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let folder = repository.parent().expect("a folder").to_owned();
        let name = repository.file_name().expect("a name").to_str().expect("text").to_owned();
        let shared = Arc::new(Shared { folder, name, lines: Mutex::default() });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || serve(connection, &shared));
            }
        });
        Some(Self { address, shared })
    }

    /// Returns the URL for a client, by which the server tells clients apart.
    pub fn url(&self, client: &str) -> String {
        format!("http://{}/{client}/{}", self.address, self.shared.name)
    }

    /// Returns what has happened on the connections of a client.
    pub fn line(&self, client: &str) -> Line {
        self.shared.lines().get(client).copied().unwrap_or_default()
    }

    /// Cuts the next request of this kind.
    pub fn cut_next(&self, client: &str, request: CutRequest, point: CutPoint) {
        self.shared.lines().entry(client.to_owned()).or_default().next_cut = Some((request, point));
    }

    /// Refuses requests of a client from now on, or lets all through again.
    pub fn refuse(&self, client: &str, refusal: Option<HttpRefusal>) {
        self.shared.lines().entry(client.to_owned()).or_default().refusal = refusal;
    }

    /// Closes all connections of a client from now on, or lets it in again. Forgets a cut that has not come.
    pub fn close(&self, client: &str, is_closed: bool) {
        let mut lines = self.shared.lines();
        let line = lines.entry(client.to_owned()).or_default();
        (line.is_closed, line.next_cut) = (is_closed, None);
    }
}

/// Request of git, read whole.
struct Request {
    method: String,
    /// Path with the client in front.
    path: String,
    query: String,
    /// Content type.
    kind: String,
    /// Content encoding; empty if the body is not compressed.
    encoding: String,
    /// Version of git's protocol.
    protocol: String,
    is_chunked: bool,
    body: Vec<u8>,
}

impl Request {
    fn read(connection: &mut TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(connection.try_clone().ok()?);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut words = first.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            kind: String::new(),
            encoding: String::new(),
            protocol: String::new(),
            is_chunked: false,
            body: Vec::new(),
        };
        let (mut length, mut waits_for_continue) = (0, false);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "content-type" => request.kind = value.to_owned(),
                "content-encoding" => request.encoding = value.to_owned(),
                "git-protocol" => request.protocol = value.to_owned(),
                "transfer-encoding" => request.is_chunked = value.eq_ignore_ascii_case("chunked"),
                "expect" => waits_for_continue = value.eq_ignore_ascii_case("100-continue"),
                _ => {}
            }
        }
        if waits_for_continue {
            connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        request.body = match request.is_chunked {
            true => read_chunks(&mut reader)?,
            false => read_exactly(&mut reader, length)?,
        };
        Some(request)
    }

    /// Returns what the request is for; `None` if it only asks for refs and versions.
    fn purpose(&self) -> Option<CutRequest> {
        let is_for = |service: &str| self.method == "POST" && self.path.ends_with(service);
        // A push whose size git does not know begins with a request of four bytes that tries whether it is let in.
        if is_for("/git-receive-pack") && self.body.len() > 4 {
            return Some(CutRequest::Push);
        }
        let asks_for_refs = self.body.windows(15).any(|part| part == b"command=ls-refs");
        (is_for("/git-upload-pack") && !asks_for_refs).then_some(CutRequest::Fetch)
    }

    fn is_among(&self, requests: RefusedRequests) -> bool {
        match requests {
            RefusedRequests::All => true,
            RefusedRequests::Pushes => format!("{}?{}", self.path, self.query).contains("git-receive-pack"),
            RefusedRequests::Objects => self.purpose() == Some(CutRequest::Push),
        }
    }
}

/// Answers one request as a CGI server does, unless its connection is to be cut.
fn serve(mut connection: TcpStream, shared: &Shared) -> Option<()> {
    let mut request = Request::read(&mut connection)?;
    let (client, path) = request.path.trim_start_matches('/').split_once('/')?;
    let (client, path) = (client.to_owned(), format!("/{path}"));
    let (cut, refusal) = {
        let mut lines = shared.lines();
        let line = lines.entry(client).or_default();
        line.requests += 1;
        line.compressed += usize::from(!request.encoding.is_empty());
        line.chunked += usize::from(request.is_chunked);
        if line.is_closed {
            return None;
        }
        let cut = match line.next_cut {
            Some((wanted, point)) if request.purpose() == Some(wanted) => {
                (line.next_cut, line.cuts) = (None, line.cuts + 1);
                Some(point)
            }
            _ => None,
        };
        (cut, line.refusal.filter(|refusal| request.is_among(refusal.requests)))
    };
    if let Some(HttpRefusal { state, text, .. }) = refusal {
        let headers = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}", text.len());
        return write!(connection, "HTTP/1.1 {state}\r\n{headers}\r\nConnection: close\r\n\r\n{text}").ok();
    }
    if cut == Some(CutPoint::InRequest) {
        request.body.truncate(request.body.len() / 2);
    }
    let answer = run_backend(shared, &path, &request)?;
    if matches!(cut, Some(CutPoint::InRequest | CutPoint::BeforeAnswer)) {
        return None;
    }
    let split = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let (head, content) = (String::from_utf8_lossy(&answer[..split]), &answer[split + 4..]);
    let state = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let headers: String =
        head.lines().filter(|line| !line.starts_with("Status")).map(|line| format!("{line}\r\n")).collect();
    let length = content.len();
    write!(connection, "HTTP/1.1 {state}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n").ok()?;
    let sent = if cut.is_some() { length / 2 } else { length };
    connection.write_all(&content[..sent]).ok()
}

/// Has git answer, and returns its answer with the headers.
fn run_backend(shared: &Shared, path: &str, request: &Request) -> Option<Vec<u8>> {
    let mut git = Command::new("git")
        .arg("http-backend")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", &shared.folder)
        .env("GIT_PROJECT_ROOT", &shared.folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "somebody")
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", &request.kind)
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", &request.encoding)
        .env("GIT_PROTOCOL", &request.protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = git.stdin.take()?;
    // git may answer before it has read all.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = input.write_all(&request.body);
        });
        git.wait_with_output()
    });
    Some(output.ok()?.stdout)
}

fn read_exactly(reader: &mut impl Read, length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn read_chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        body.extend(read_exactly(reader, size)?);
        reader.read_line(&mut String::new()).ok()?;
        if size == 0 {
            return Some(body);
        }
    }
}
