//! Publication of diagnostics, after a pause and only where they differ from those that the client has.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gen_lsp_types::{
    Diagnostic, DocumentDiagnosticParams, FullDocumentDiagnosticReport, PublishDiagnosticsParams,
    RelatedFullDocumentDiagnosticReport, RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport,
    Uri,
};
use serde_json::Value;

use super::{LanguageServer, MAX_PUBLISH_DELAY, OpenDocument, RequestError, encode};
use crate::lsp::diagnostics::to_diagnostic;
use crate::lsp::file_uri::{path_from_uri, uri_from_path};
use crate::lsp::folders::{OpenFolders, RepositoryFile};
use crate::lsp::repository::{PlacedFinding, TextVersion};

impl LanguageServer {
    /// Lets diagnostics be published after a pause without further changes.
    pub(super) fn schedule(&mut self, pause: Duration) {
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

    /// Reads the findings of the stores that have changed.
    pub(super) fn refresh_stores(&mut self) {
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

    /// Returns the findings of a document or of a file on disk, with the file's repository and path.
    pub(super) fn locate_uri(&mut self, uri: &str) -> Option<(RepositoryFile, Arc<Vec<PlacedFinding>>)> {
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

    pub(super) fn report_diagnostics(&mut self, params: &DocumentDiagnosticParams) -> Result<Value, RequestError> {
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
