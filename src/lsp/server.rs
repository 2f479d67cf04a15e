//! Dispatch of requests and notifications, and publication of diagnostics.
//!
//! The server is a value that takes events and collects messages; it neither reads nor writes the pipes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gen_lsp_types::{
    CodeActionKind, Diagnostic, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentDiagnosticParams,
    ErrorCodes, ExecuteCommandParams, Hover, HoverParams, InitializeResult, LspErrorCodes, MarkupContent, MarkupKind,
    MessageType, PublishDiagnosticsParams, Range, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, ServerInfo, ShowMessageParams, TextDocumentIdentifier, Uri,
};
use gen_lsp_types::{Contents, FullDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ServerOptions;
use super::actions::{ActionTarget, MAX_FINDINGS, OfferedFinding, build_actions, build_edit};
use super::commands::{CommandArgument, Decider, EditorCommand, clean_message, dismiss, mark_addressed};
use super::diagnostics::to_diagnostic;
use super::document::DocumentText;
use super::features::{ClientFeatures, offer_capabilities};
use super::file_uri::{path_from_uri, uri_from_path};
use super::folders::{ChangeSender, OpenFolders, RepositoryFile};
use super::frame::{ClientMessage, build_answer, build_error};
use super::hover::{describe_finding, render_markdown, render_plain};
use super::repository::{PlacedFinding, TextVersion};
use crate::domain::{FindingId, LineRange};

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

/// Parameters of `textDocument/codeAction` that are of use. Diagnostics of other servers are not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActionQuery {
    text_document: TextDocumentIdentifier,
    range: Range,
    #[serde(default)]
    context: ActionContext,
}

#[derive(Default, Deserialize)]
struct ActionContext {
    only: Option<Vec<CodeActionKind>>,
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
        let path = |folder: gen_lsp_types::WorkspaceFolder| path_from_uri(&folder.uri.0);
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

    /// Lets diagnostics be published after a pause without further changes.
    fn schedule(&mut self, pause: Duration) {
        let now = Instant::now();
        let first = self.due.map_or(now, |(_, first)| first);
        let due = (now + pause).min(first + MAX_PUBLISH_DELAY);
        // What is due at once stays so.
        let due = self.due.filter(|(before, _)| *before <= now).map_or(due, |(before, _)| before);
        self.due = Some((due, first));
    }

    /// Reads changed stores, and sends the diagnostics that differ from those that were sent.
    pub fn publish(&mut self) {
        self.due = None;
        self.refresh_stores();
        let has_new_findings = std::mem::take(&mut self.has_new_findings);
        let (mut wanted, mut open_files, mut is_outdated) = (BTreeMap::new(), BTreeSet::new(), false);
        for (uri, document) in &self.documents {
            let Some(file) = self.open.find_file(&document.path) else { continue };
            let diagnostics = to_diagnostics(&locate_document(&mut self.open, &file, document));
            open_files.insert(file);
            if self.features.pulls_diagnostics {
                is_outdated |= self.pulled.get(uri).map_or(&[][..], Vec::as_slice) != diagnostics;
                self.pulled.insert(uri.clone(), diagnostics);
            } else {
                wanted.insert(uri.clone(), (Some(document.version), diagnostics));
            }
        }
        for (root, repository) in &mut self.open.repositories {
            let paths: Vec<String> = repository.paths().map(str::to_owned).collect();
            for path in paths {
                let file = RepositoryFile { root: root.clone(), path };
                if open_files.contains(&file) {
                    continue;
                }
                let Some(uri) = uri_from_path(&repository.client_path(&file.path)) else { continue };
                wanted.insert(uri.0, (None, to_diagnostics(&repository.locate_on_disk(&file.path))));
            }
        }
        self.send_changed(wanted);
        if is_outdated && has_new_findings {
            self.request("workspace/diagnostic/refresh", None);
        }
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

    /// Reads the findings of the stores that have changed.
    fn refresh_stores(&mut self) {
        for root in std::mem::take(&mut self.changed_stores) {
            let Some(repository) = self.open.repositories.get_mut(&root) else { continue };
            self.has_new_findings = true;
            if let Err(error) = repository.refresh() {
                // A store that cannot be read now may be readable after the next change.
                tracing::warn!(root = %root.display(), %error, "the findings cannot be read");
            }
        }
    }

    fn send_changed(&mut self, mut wanted: BTreeMap<String, (Option<i32>, Vec<Diagnostic>)>) {
        wanted.retain(|_, (_, diagnostics)| !diagnostics.is_empty());
        let mut changed: Vec<PublishDiagnosticsParams> = Vec::new();
        for uri in self.published.keys().filter(|uri| !wanted.contains_key(*uri)) {
            let version = self.documents.get(uri).map(|document| document.version);
            changed.push(PublishDiagnosticsParams { uri: Uri(uri.clone()), version, diagnostics: Vec::new() });
        }
        for (uri, (version, diagnostics)) in &wanted {
            if self.published.get(uri) != Some(diagnostics) {
                let (uri, version, diagnostics) = (Uri(uri.clone()), *version, diagnostics.clone());
                changed.push(PublishDiagnosticsParams { uri, version, diagnostics });
            }
        }
        self.published = wanted.into_iter().map(|(uri, (_, diagnostics))| (uri, diagnostics)).collect();
        for params in changed {
            self.notify("textDocument/publishDiagnostics", &params);
        }
    }

    fn notify(&mut self, method: &str, params: &impl serde::Serialize) {
        match serde_json::to_value(params) {
            Ok(params) => self.outgoing.push(json!({ "jsonrpc": "2.0", "method": method, "params": params })),
            Err(error) => tracing::warn!(method, %error, "a notification cannot be encoded"),
        }
    }

    /// Returns the findings of a document or of a file on disk, with the file's repository and path.
    fn locate_uri(&mut self, uri: &str) -> Option<(RepositoryFile, Arc<Vec<PlacedFinding>>)> {
        self.refresh_stores();
        if let Some(document) = self.documents.get(uri) {
            let file = self.open.find_file(&document.path)?;
            let placed = locate_document(&mut self.open, &file, document);
            return Some((file, placed));
        }
        let file = self.open.find_file(&path_from_uri(uri)?)?;
        let placed = self.open.repositories.get_mut(&file.root)?.locate_on_disk(&file.path);
        Some((file, placed))
    }

    fn report_diagnostics(&mut self, params: &DocumentDiagnosticParams) -> Result<Value, RequestError> {
        let uri = &params.text_document.uri.0;
        let items = self.locate_uri(uri).map(|(_, placed)| to_diagnostics(&placed)).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        items.hash(&mut hasher);
        let result_id = format!("{:016x}", hasher.finish());
        if self.documents.contains_key(uri) {
            self.pulled.insert(uri.clone(), items.clone());
        }
        if params.previous_result_id.as_ref() == Some(&result_id) {
            return encode(&RelatedUnchangedDocumentDiagnosticReport {
                unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
                ..RelatedUnchangedDocumentDiagnosticReport::default()
            });
        }
        encode(&RelatedFullDocumentDiagnosticReport {
            full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id: Some(result_id), items },
            ..RelatedFullDocumentDiagnosticReport::default()
        })
    }

    fn hover(&mut self, params: &HoverParams) -> Result<Value, RequestError> {
        let at = &params.text_document_position_params;
        let Some((_, placed)) = self.locate_uri(&at.text_document.uri.0) else { return Ok(Value::Null) };
        let line = at.position.line.saturating_add(1);
        let here = find_overlapping(&placed, LineRange::new(line, line));
        let Some(first) = here.first() else { return Ok(Value::Null) };
        let content = match self.features.markdown_hover {
            true => MarkupContent { kind: MarkupKind::Markdown, value: render_markdown(&here) },
            false => MarkupContent { kind: MarkupKind::PlainText, value: render_plain(&here) },
        };
        encode(&Hover { contents: Contents::MarkupContent(content), range: Some(first.range) })
    }

    fn offer_actions(&mut self, query: &ActionQuery) -> Result<Value, RequestError> {
        let takes = |kind: &CodeActionKind| {
            let wanted = String::from(kind.clone());
            wanted.is_empty() || wanted == "quickfix"
        };
        if query.context.only.as_ref().is_some_and(|only| !only.iter().any(takes)) {
            return Ok(json!([]));
        }
        let uri = &query.text_document.uri;
        let Some((file, placed)) = self.locate_uri(&uri.0) else { return Ok(json!([])) };
        let lines = LineRange::new(query.range.start.line.saturating_add(1), query.range.end.line.saturating_add(1));
        let mut here = find_overlapping(&placed, lines);
        here.truncate(MAX_FINDINGS);
        let fixes: Vec<_> = here.iter().map(|placed| self.build_fix(&uri.0, &file, placed)).collect();
        let offered: Vec<OfferedFinding<'_>> =
            here.iter().zip(&fixes).map(|(placed, fix)| OfferedFinding { placed, fix: fix.as_ref() }).collect();
        let target = ActionTarget {
            uri,
            version: self.documents.get(&uri.0).map(|document| document.version),
            repository: &file.root.to_string_lossy(),
            actor: self.options.actor,
            features: self.features,
        };
        encode(&build_actions(&offered, &target))
    }

    /// Builds the edit of a finding's exact fix, if its lines are unchanged in the document or in the file on disk.
    fn build_fix(
        &mut self,
        uri: &str,
        file: &RepositoryFile,
        placed: &PlacedFinding,
    ) -> Option<gen_lsp_types::TextEdit> {
        let finding = &placed.exported.finding;
        let replacement = finding.suggestion.as_ref()?.replacement.as_deref()?;
        let repository = self.open.repositories.get_mut(&file.root)?;
        let on_disk;
        let text = match self.documents.get(uri) {
            Some(document) => &document.text,
            None => {
                on_disk = repository.read_file(&file.path)?;
                &on_disk
            }
        };
        let lines = repository.locate_fix(&finding.finding_id, text)?;
        build_edit(text, lines, replacement, self.features.unit)
    }

    fn execute(&mut self, params: ExecuteCommandParams) -> Result<Value, RequestError> {
        let Some(command) = EditorCommand::from_name(&params.command) else {
            let known = EditorCommand::ALL.map(EditorCommand::name).join(", ");
            let message = format!("there is no command {}; there are {known}", clean_message(&params.command));
            return Err(RequestError::new(ErrorCodes::InvalidParams, message));
        };
        let argument = params.arguments.unwrap_or_default().into_iter().next().unwrap_or_default();
        let argument: CommandArgument = parse(argument)?;
        let (root, id) = self.find_finding(&argument)?;
        let Some(repository) = self.open.repositories.get(&root) else { return Ok(Value::Null) };
        let decider = Decider { actor: self.options.actor, refusal_hint: &self.options.refusal_hint };
        let done = match command {
            EditorCommand::Dismiss => dismiss(&repository.services, &id, &argument.reason, decider),
            EditorCommand::MarkAddressed => mark_addressed(&repository.services, &id, &argument.reason, decider),
            EditorCommand::ShowDetails => {
                let details = repository.finding(&id).map(describe_finding).unwrap_or_default();
                let shown = ShowMessageParams { kind: MessageType::Info, message: details };
                self.notify("window/showMessage", &shown);
                return Ok(Value::Null);
            }
        };
        done.map_err(RequestError::failed)?;
        self.changed_stores.insert(root);
        self.schedule(Duration::ZERO);
        Ok(Value::Null)
    }

    /// Finds the finding that a command names, in the repositories that are open.
    fn find_finding(&mut self, argument: &CommandArgument) -> Result<(PathBuf, FindingId), RequestError> {
        self.refresh_stores();
        let unknown = || {
            let named = clean_message(&argument.finding);
            RequestError::failed(format!("{named} is no undecided finding of the repositories that are open"))
        };
        let id: FindingId = argument.finding.parse().map_err(|_| unknown())?;
        let is_meant = |root: &Path| argument.repository.as_ref().is_none_or(|named| Path::new(named) == root);
        let mut holders = self.open.repositories.iter().filter(|(root, _)| is_meant(root));
        let holder = holders.find(|(_, repository)| repository.finding(&id).is_some());
        holder.map(|(root, _)| (root.clone(), id)).ok_or_else(unknown)
    }
}

fn locate_document(open: &mut OpenFolders, file: &RepositoryFile, document: &OpenDocument) -> Arc<Vec<PlacedFinding>> {
    match open.repositories.get_mut(&file.root) {
        Some(repository) => repository.locate(&file.path, TextVersion::Open(document.change), &document.text),
        None => Arc::default(),
    }
}

fn to_diagnostics(placed: &[PlacedFinding]) -> Vec<Diagnostic> {
    placed.iter().map(to_diagnostic).collect()
}

/// Returns the findings that share a line with the given ones, most urgent first.
fn find_overlapping(placed: &[PlacedFinding], lines: LineRange) -> Vec<&PlacedFinding> {
    let mut here: Vec<&PlacedFinding> = placed.iter().filter(|placed| placed.lines.overlaps(lines)).collect();
    here.sort_by_key(|placed| (placed.exported.finding.priority, placed.lines.count()));
    here
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
