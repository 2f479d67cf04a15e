//! Capabilities: those of the client that matter here, and those of the server.

use gen_lsp_types::{
    ChangeNotifications, CodeActionKind, CodeActionOptions, CodeActionProvider, DiagnosticOptions, DiagnosticProvider,
    ExecuteCommandOptions, HoverProvider, Save, ServerCapabilities, TextDocumentSync, TextDocumentSyncKind,
    TextDocumentSyncOptions, WorkspaceFoldersServerCapabilities, WorkspaceOptions,
};
use serde_json::Value;

use super::commands::EditorCommand;
use super::diagnostics::SOURCE_NAME;
use super::document::ColumnUnit;

/// Capabilities of a client. Unknown ones are missing: no client is refused for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientFeatures {
    /// Unit of columns.
    pub unit: ColumnUnit,
    /// True if the client asks for diagnostics of open documents and can be told to ask again. Then they are not sent too:
    /// editors would show both.
    pub pulls_diagnostics: bool,
    /// True if edits may name the version of their document.
    pub versioned_edits: bool,
    /// True if actions may have a kind and an edit; otherwise they are bare commands.
    pub action_literals: bool,
    /// True if hovers may be Markdown.
    pub markdown_hover: bool,
    /// True if the client tells changes of files on disk when it is asked to.
    pub watches_files: bool,
}

impl ClientFeatures {
    /// Reads the parameters of `initialize`.
    pub fn from_parameters(parameters: &Value) -> Self {
        let at = |path: &str| parameters.pointer(&format!("/capabilities/{path}"));
        let is_true = |path: &str| at(path).and_then(Value::as_bool).unwrap_or(false);
        let lists = |path: &str, word: &str| {
            at(path).and_then(Value::as_array).is_some_and(|words| words.iter().any(|known| known == word))
        };
        let takes_utf8 = lists("general/positionEncodings", "utf-8");
        Self {
            unit: if takes_utf8 { ColumnUnit::Utf8 } else { ColumnUnit::Utf16 },
            pulls_diagnostics: at("textDocument/diagnostic").is_some_and(Value::is_object)
                && is_true("workspace/diagnostics/refreshSupport"),
            versioned_edits: is_true("workspace/workspaceEdit/documentChanges"),
            action_literals: at("textDocument/codeAction/codeActionLiteralSupport").is_some_and(Value::is_object),
            watches_files: is_true("workspace/didChangeWatchedFiles/dynamicRegistration"),
            markdown_hover: lists("textDocument/hover/contentFormat", "markdown"),
        }
    }
}

/// Returns what the server offers to a client.
pub fn offer_capabilities(client: ClientFeatures) -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::Incremental),
        save: Some(Save::Bool(true)),
        ..TextDocumentSyncOptions::default()
    };
    let actions =
        CodeActionOptions { code_action_kinds: Some(vec![CodeActionKind::QuickFix]), ..CodeActionOptions::default() };
    let commands = EditorCommand::ALL.map(|command| command.name().to_owned()).to_vec();
    let diagnostics = DiagnosticOptions { identifier: Some(SOURCE_NAME.to_owned()), ..DiagnosticOptions::default() };
    let folders = WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(ChangeNotifications::Bool(true)),
    };
    ServerCapabilities {
        position_encoding: Some(client.unit.kind()),
        text_document_sync: Some(TextDocumentSync::Options(sync)),
        hover_provider: Some(HoverProvider::Bool(true)),
        code_action_provider: Some(CodeActionProvider::CodeActionOptions(actions)),
        execute_command_provider: Some(ExecuteCommandOptions { commands, ..ExecuteCommandOptions::default() }),
        diagnostic_provider: client.pulls_diagnostics.then_some(DiagnosticProvider::DiagnosticOptions(diagnostics)),
        workspace: Some(WorkspaceOptions { workspace_folders: Some(folders), ..WorkspaceOptions::default() }),
        ..ServerCapabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_utf_16_unless_the_client_offers_utf_8() {
        for (general, expected) in [
            (json!({}), ColumnUnit::Utf16),
            (json!({ "positionEncodings": ["utf-16"] }), ColumnUnit::Utf16),
            (json!({ "positionEncodings": ["utf-32"] }), ColumnUnit::Utf16),
            (json!({ "positionEncodings": ["utf-16", "utf-8"] }), ColumnUnit::Utf8),
            (json!({ "positionEncodings": "utf-8" }), ColumnUnit::Utf16),
        ] {
            let features = ClientFeatures::from_parameters(&json!({ "capabilities": { "general": general } }));
            assert_eq!(features.unit, expected, "{general}");
        }
    }

    #[test]
    fn diagnostics_are_pulled_only_by_clients_that_can_be_told_to_pull_again() {
        for (text_document, workspace, expected) in [
            (json!({}), json!({}), false),
            (json!({ "diagnostic": {} }), json!({}), false),
            (json!({}), json!({ "diagnostics": { "refreshSupport": true } }), false),
            (json!({ "diagnostic": {} }), json!({ "diagnostics": { "refreshSupport": true } }), true),
        ] {
            let capabilities = json!({ "textDocument": text_document, "workspace": workspace });
            let features = ClientFeatures::from_parameters(&json!({ "capabilities": capabilities }));
            assert_eq!(features.pulls_diagnostics, expected, "{capabilities}");
            assert_eq!(offer_capabilities(features).diagnostic_provider.is_some(), expected);
        }
        assert_eq!(ClientFeatures::from_parameters(&Value::Null), ClientFeatures::default());
    }

    #[test]
    fn the_server_offers_what_it_does() {
        let offered = serde_json::to_string_pretty(&offer_capabilities(ClientFeatures::default())).expect("JSON");
        insta::assert_snapshot!(offered, @r#"
        {
          "positionEncoding": "utf-16",
          "textDocumentSync": {
            "openClose": true,
            "change": 2,
            "save": true
          },
          "hoverProvider": true,
          "codeActionProvider": {
            "codeActionKinds": [
              "quickfix"
            ]
          },
          "executeCommandProvider": {
            "commands": [
              "revdeck.dismiss",
              "revdeck.markAddressed",
              "revdeck.showDetails"
            ]
          },
          "workspace": {
            "workspaceFolders": {
              "supported": true,
              "changeNotifications": true
            }
          }
        }
        "#);
    }
}
