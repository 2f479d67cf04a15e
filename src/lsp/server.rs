//! Dispatch of requests and notifications; documents and folders of the session.
//!
//! The server is a value that takes events and collects messages; it neither reads nor writes the pipes.

mod publication;
mod requests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gen_lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, ErrorCodes, InitializeResult, LspErrorCodes, ServerInfo,
    WorkspaceFolder,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ServerOptions;
use super::commands::clean_message;
use super::document::DocumentText;
use super::features::{ClientFeatures, offer_capabilities};
use super::file_uri::path_from_uri;
use super::folders::{ChangeSender, OpenFolders, RepositoryFile};
use super::frame::{ClientMessage, build_answer, build_error};

/// Time without a change of a document after which its diagnostics are sent.
const EDIT_PAUSE: Duration = Duration::from_millis(150);
/// Time after a change of a store until its findings are read, so that several changes are read at once.
const STORE_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time that a change waits for further changes.
const MAX_PUBLISH_DELAY: Duration = Duration::from_millis(500);

/// State of the session, as the protocol defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionState {
    /// Nothing but `initialize` is answered.
    New,
    Running,
    /// Nothing but `exit` is awaited.
    ShutDown,
    /// The client asked for the end; true if it shut the session down before.
    Exited(bool),
}

/// Document that is open in the editor.
struct OpenDocument {
    path: PathBuf,
    version: i32,
    /// Number of this state among all states of all documents.
    change: u64,
    text: DocumentText,
}

/// Error that answers a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestError {
    code: i32,
    message: String,
}

impl RequestError {
    fn new(code: ErrorCodes, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// Creates the error of a valid request that could not be done.
    fn failed(message: impl Into<String>) -> Self {
        Self { code: LspErrorCodes::RequestFailed.into(), message: message.into() }
    }
}

/// The server of one client.
pub struct LanguageServer {
    options: Arc<ServerOptions>,
    changes: ChangeSender,
    state: SessionState,
    features: ClientFeatures,
    /// Folders that `initialize` named, opened once the client is ready.
    named_folders: Vec<PathBuf>,
    open: OpenFolders,
    documents: BTreeMap<String, OpenDocument>,
    document_changes: u64,
    /// Diagnostics that were sent, by address. Files without any are left out.
    published: BTreeMap<String, Vec<Diagnostic>>,
    /// Diagnostics of open documents that the client pulls, as they were computed last.
    pulled: HashMap<String, Vec<Diagnostic>>,
    /// Repositories whose store has changed.
    changed_stores: BTreeSet<PathBuf>,
    /// True if a changed store was read since diagnostics were published.
    has_new_findings: bool,
    /// Time at which diagnostics are due, and time of the first change since they were sent.
    due: Option<(Instant, Instant)>,
    requests: u64,
    outgoing: Vec<Value>,
}

impl LanguageServer {
    /// Creates the server of a client that has not said anything yet.
    pub fn new(options: Arc<ServerOptions>, changes: ChangeSender) -> Self {
        let features = ClientFeatures::default();
        Self {
            open: OpenFolders::new(Arc::clone(&options), Arc::clone(&changes), features.unit),
            options,
            changes,
            state: SessionState::New,
            features,
            named_folders: Vec::new(),
            documents: BTreeMap::new(),
            document_changes: 0,
            published: BTreeMap::new(),
            pulled: HashMap::new(),
            changed_stores: BTreeSet::new(),
            has_new_findings: false,
            due: None,
            requests: 0,
            outgoing: Vec::new(),
        }
    }

    /// Returns the messages to send, in order.
    pub fn take_outgoing(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the time until diagnostics are to be published; `None` while nothing has changed.
    pub fn time_to_publish(&self) -> Option<Duration> {
        self.due.map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    /// Returns true if diagnostics are long overdue, because one message follows the other.
    pub fn is_publishing_late(&self) -> bool {
        self.due.is_some_and(|(_, first)| first.elapsed() > 2 * MAX_PUBLISH_DELAY)
    }

    /// Returns whether the client asked for the end: true if it shut the session down before.
    pub fn ended(&self) -> Option<bool> {
        match self.state {
            SessionState::Exited(was_shut_down) => Some(was_shut_down),
            _ => None,
        }
    }

    /// Notes a change of the store of a repository.
    pub fn note_store_change(&mut self, root: PathBuf) {
        self.changed_stores.insert(root);
        self.schedule(STORE_PAUSE);
    }

    /// Handles a message of the client.
    pub fn handle(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::Request { id, method, params } => {
                let answer = match self.answer(&method, params) {
                    Ok(result) => build_answer(&id, result),
                    Err(error) => build_error(&id, error.code, &error.message),
                };
                self.outgoing.push(answer);
            }
            ClientMessage::Notification { method, params } => {
                if let Err(error) = self.notice(&method, params) {
                    tracing::warn!(method, error = error.message, "a notification is not understood");
                }
            }
            ClientMessage::Response => {}
            ClientMessage::Broken { id, code, message } => {
                tracing::warn!(message, "a message is broken");
                self.outgoing.push(build_error(&id, code.into(), &message));
            }
        }
    }

    fn answer(&mut self, method: &str, params: Value) -> Result<Value, RequestError> {
        match (self.state, method) {
            (SessionState::New, "initialize") => self.initialize(&params),
            (SessionState::New, _) => {
                Err(RequestError::new(ErrorCodes::ServerNotInitialized, "the first request is initialize"))
            }
            (SessionState::Running, "shutdown") => {
                self.state = SessionState::ShutDown;
                Ok(Value::Null)
            }
            (SessionState::Running, "textDocument/codeAction") => self.offer_actions(&parse(params)?),
            (SessionState::Running, "textDocument/hover") => self.hover(&parse(params)?),
            (SessionState::Running, "textDocument/diagnostic") => self.report_diagnostics(&parse(params)?),
            (SessionState::Running, "workspace/executeCommand") => self.execute(parse(params)?),
            (SessionState::Running, "initialize") => {
                Err(RequestError::new(ErrorCodes::InvalidRequest, "the session is initialized already"))
            }
            (SessionState::Running, _) => Err(RequestError::new(
                ErrorCodes::MethodNotFound,
                format!("there is no request {}", clean_message(method)),
            )),
            (SessionState::ShutDown | SessionState::Exited(_), _) => {
                Err(RequestError::new(ErrorCodes::InvalidRequest, "the session is shut down"))
            }
        }
    }

    fn notice(&mut self, method: &str, params: Value) -> Result<(), RequestError> {
        match (self.state, method) {
            (state, "exit") => self.state = SessionState::Exited(state == SessionState::ShutDown),
            (SessionState::Running, "initialized") => self.open_named_folders(),
            (SessionState::Running, "textDocument/didOpen") => self.open_document(parse(params)?),
            (SessionState::Running, "textDocument/didChange") => self.change_document(parse(params)?),
            (SessionState::Running, "textDocument/didClose") => self.close_document(&parse(params)?),
            (SessionState::Running, "textDocument/didSave") => self.schedule(Duration::ZERO),
            (SessionState::Running, "workspace/didChangeWatchedFiles") => self.note_file_changes(&parse(params)?),
            (SessionState::Running, "workspace/didChangeWorkspaceFolders") => self.change_folders(parse(params)?),
            _ => {}
        }
        Ok(())
    }

    fn initialize(&mut self, params: &Value) -> Result<Value, RequestError> {
        self.features = ClientFeatures::from_parameters(params);
        self.open = OpenFolders::new(Arc::clone(&self.options), Arc::clone(&self.changes), self.features.unit);
        self.named_folders = name_folders(params);
        self.state = SessionState::Running;
        let result = InitializeResult {
            capabilities: offer_capabilities(self.features),
            server_info: Some(ServerInfo {
                name: "revdeck".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        encode(&result)
    }

    fn open_named_folders(&mut self) {
        for folder in std::mem::take(&mut self.named_folders) {
            let opened = self.open.add(folder);
            self.changed_stores.extend(opened);
        }
        if self.features.watches_files {
            let watchers = json!({ "watchers": [{ "globPattern": "**/*" }] });
            let method = "workspace/didChangeWatchedFiles";
            let watching = json!({ "id": "revdeck-files", "method": method, "registerOptions": watchers });
            self.request("client/registerCapability", Some(json!({ "registrations": [watching] })));
        }
        self.schedule(Duration::ZERO);
    }

    /// Notes that files have changed on disk. Most of them, such as those that a build writes, have no findings.
    fn note_file_changes(&mut self, params: &DidChangeWatchedFilesParams) {
        let changed = params.changes.iter().filter_map(|change| path_from_uri(&change.uri.0));
        let mut files = changed.filter_map(|path| self.open.find_file(&path));
        let has_findings = |file: RepositoryFile| {
            self.open.repositories.get(&file.root).is_some_and(|repository| repository.has_findings(&file.path))
        };
        if files.any(has_findings) {
            self.schedule(EDIT_PAUSE);
        }
    }

    fn change_folders(&mut self, params: DidChangeWorkspaceFoldersParams) {
        let path = |folder: WorkspaceFolder| path_from_uri(&folder.uri.0);
        let documents: Vec<&Path> = self.documents.values().map(|document| document.path.as_path()).collect();
        for folder in params.event.removed.into_iter().filter_map(path) {
            self.open.remove(&folder, &documents);
        }
        for folder in params.event.added.into_iter().filter_map(path) {
            let opened = self.open.add(folder);
            self.changed_stores.extend(opened);
        }
        self.schedule(Duration::ZERO);
    }

    fn open_document(&mut self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let Some(path) = path_from_uri(&document.uri.0) else { return };
        // A repository inside of a folder, or one that no folder of the workspace is in.
        let opened = path.parent().and_then(|folder| self.open.open_around(folder));
        self.changed_stores.extend(opened);
        self.document_changes += 1;
        let open = OpenDocument {
            path,
            version: document.version,
            change: self.document_changes,
            text: DocumentText::new(document.text),
        };
        self.documents.insert(document.uri.0, open);
        self.schedule(Duration::ZERO);
    }

    fn change_document(&mut self, params: DidChangeTextDocumentParams) {
        let Some(document) = self.documents.get_mut(&params.text_document.text_document_identifier.uri.0) else {
            return;
        };
        for change in params.content_changes {
            document.text.apply(change, self.features.unit);
        }
        self.document_changes += 1;
        document.change = self.document_changes;
        document.version = params.text_document.version;
        self.schedule(EDIT_PAUSE);
    }

    fn close_document(&mut self, params: &DidCloseTextDocumentParams) {
        self.documents.remove(&params.text_document.uri.0);
        self.pulled.remove(&params.text_document.uri.0);
        self.schedule(Duration::ZERO);
    }

    /// Sends a request. Its answer does not matter.
    fn request(&mut self, method: &str, params: Option<Value>) {
        self.requests += 1;
        let mut message = json!({ "jsonrpc": "2.0", "id": format!("revdeck-{}", self.requests), "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        self.outgoing.push(message);
    }

    fn notify(&mut self, method: &str, params: &impl serde::Serialize) {
        match serde_json::to_value(params) {
            Ok(params) => self.outgoing.push(json!({ "jsonrpc": "2.0", "method": method, "params": params })),
            Err(error) => tracing::warn!(method, %error, "a notification cannot be encoded"),
        }
    }
}

/// Returns the folders that a client names in `initialize`: its workspace folders, or its only folder.
fn name_folders(params: &Value) -> Vec<PathBuf> {
    let folders = params["workspaceFolders"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named: Vec<PathBuf> = folders.iter().filter_map(|folder| path_from_uri(folder["uri"].as_str()?)).collect();
    if !named.is_empty() {
        return named;
    }
    let root = params["rootUri"].as_str().and_then(path_from_uri);
    root.or_else(|| params["rootPath"].as_str().map(PathBuf::from)).into_iter().collect()
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, RequestError> {
    serde_json::from_value(params)
        .map_err(|error| RequestError::new(ErrorCodes::InvalidParams, clean_message(&error.to_string())))
}

fn encode(result: &impl serde::Serialize) -> Result<Value, RequestError> {
    serde_json::to_value(result).map_err(|error| RequestError::new(ErrorCodes::InternalError, error.to_string()))
}
