//! Requests about findings: hovers, actions and commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gen_lsp_types::{
    CodeActionKind, Contents, ErrorCodes, ExecuteCommandParams, Hover, HoverParams, MarkupContent, MarkupKind,
    MessageType, Range, ShowMessageParams, TextDocumentIdentifier, TextEdit,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LanguageServer, RequestError, encode, parse};
use crate::domain::{FindingId, LineRange};
use crate::lsp::actions::{ActionTarget, MAX_FINDINGS, OfferedFinding, build_actions, build_edit};
use crate::lsp::commands::{CommandArgument, Decider, EditorCommand, clean_message, dismiss, mark_addressed};
use crate::lsp::folders::RepositoryFile;
use crate::lsp::hover::{describe_finding, render_markdown, render_plain};
use crate::lsp::repository::PlacedFinding;

/// Parameters of `textDocument/codeAction` that are of use. Diagnostics of other servers are not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionQuery {
    text_document: TextDocumentIdentifier,
    range: Range,
    #[serde(default)]
    context: ActionContext,
}

#[derive(Default, Deserialize)]
struct ActionContext {
    only: Option<Vec<CodeActionKind>>,
}

impl LanguageServer {
    pub(super) fn hover(&mut self, params: &HoverParams) -> Result<Value, RequestError> {
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

    pub(super) fn offer_actions(&mut self, query: &ActionQuery) -> Result<Value, RequestError> {
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
    fn build_fix(&mut self, uri: &str, file: &RepositoryFile, placed: &PlacedFinding) -> Option<TextEdit> {
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

    pub(super) fn execute(&mut self, params: ExecuteCommandParams) -> Result<Value, RequestError> {
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

/// Returns the findings that share a line with the given ones, most urgent first.
fn find_overlapping(placed: &[PlacedFinding], lines: LineRange) -> Vec<&PlacedFinding> {
    let mut here: Vec<&PlacedFinding> = placed.iter().filter(|placed| placed.lines.overlaps(lines)).collect();
    here.sort_by_key(|placed| (placed.exported.finding.priority, placed.lines.count()));
    here
}
