//! Actions on findings: the exact fix as an edit of the document, decisions as commands.

use std::collections::HashMap;

use gen_lsp_types::{
    CodeAction, CodeActionKind, CodeActionResponse, Command, DocumentChange, Edit,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextDocumentIdentifier, TextEdit, Uri, WorkspaceEdit,
};
use serde_json::{Value, json};

use super::commands::EditorCommand;
use super::diagnostics::to_diagnostic;
use super::document::{ColumnUnit, DocumentText};
use super::features::ClientFeatures;
use super::repository::PlacedFinding;
use crate::domain::{Actor, Disposition, LineRange};
use crate::review::apply_replacement;

/// Maximum number of findings for which actions are offered at once. Each has up to eight.
pub const MAX_FINDINGS: usize = 4;
/// Maximum length of a finding's title in the title of an action, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// Document for which actions are offered.
#[derive(Debug, Clone)]
pub struct ActionTarget<'a> {
    /// Address of the document, as the client writes it.
    pub uri: &'a Uri,
    /// Version of the open document; `None` for a file on disk.
    pub version: Option<i32>,
    /// Root of the repository, by which a command finds it again.
    pub repository: &'a str,
    /// Actor of decisions.
    pub actor: Actor,
    /// Capabilities of the client.
    pub features: ClientFeatures,
}

/// Finding with the edit of its fix, if that fits the text.
#[derive(Debug, Clone, Copy)]
pub struct OfferedFinding<'a> {
    pub placed: &'a PlacedFinding,
    pub fix: Option<&'a TextEdit>,
}

/// Builds the actions of findings at one place, most useful first.
pub fn build_actions(findings: &[OfferedFinding<'_>], target: &ActionTarget<'_>) -> Vec<CodeActionResponse> {
    let mut actions = Vec::new();
    for offered in findings {
        let of = match findings.len() {
            1 => String::new(),
            _ => format!(" ({})", cut_title(&offered.placed.exported.finding.title)),
        };
        if let Some(fix) = offered.fix.filter(|_| target.features.action_literals) {
            actions.push(build_fix(offered.placed, fix, target, &of).into());
        }
        for (title, command, reason) in list_commands(target.actor) {
            actions.push(build_command(offered.placed, target, (format!("{title}{of}"), command, reason)));
        }
    }
    actions
}

/// Lists the commands that an actor may use, with the reason of a dismissal.
fn list_commands(actor: Actor) -> Vec<(String, EditorCommand, Option<&'static str>)> {
    let (marks, reasons) = match actor {
        Actor::Assistant => ("Claim as addressed", &[][..]),
        Actor::User | Actor::Engine => ("Mark addressed", &Disposition::REASONS[..]),
    };
    let mut commands = vec![(marks.to_owned(), EditorCommand::MarkAddressed, None)];
    let dismiss = |reason: &&'static str| (format!("Dismiss: {reason}"), EditorCommand::Dismiss, Some(*reason));
    commands.extend(reasons.iter().map(dismiss));
    commands.push(("Show details".to_owned(), EditorCommand::ShowDetails, None));
    commands
}

fn build_fix(placed: &PlacedFinding, fix: &TextEdit, target: &ActionTarget<'_>, of: &str) -> CodeAction {
    let edit = match target.features.versioned_edits {
        true => {
            let text_document = OptionalVersionedTextDocumentIdentifier {
                version: target.version,
                text_document_identifier: TextDocumentIdentifier { uri: target.uri.clone() },
            };
            let change = TextDocumentEdit { text_document, edits: vec![Edit::TextEdit(fix.clone())] };
            let changes = vec![DocumentChange::TextDocumentEdit(change)];
            WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
        }
        false => {
            let changes = HashMap::from([(target.uri.clone(), vec![fix.clone()])]);
            WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
        }
    };
    CodeAction {
        title: format!("Apply fix of revdeck{of}"),
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![to_diagnostic(placed)]),
        is_preferred: Some(true),
        edit: Some(edit),
        ..CodeAction::default()
    }
}

fn build_command(
    placed: &PlacedFinding,
    target: &ActionTarget<'_>,
    (title, command, reason): (String, EditorCommand, Option<&str>),
) -> CodeActionResponse {
    let mut argument = json!({
        "finding": placed.exported.finding.finding_id,
        "repository": target.repository,
    });
    if let Some(reason) = reason {
        argument["reason"] = Value::from(reason);
    }
    let command = Command {
        title: title.clone(),
        tooltip: None,
        command: command.name().to_owned(),
        arguments: Some(vec![argument]),
    };
    if !target.features.action_literals {
        return command.into();
    }
    let action = CodeAction {
        title,
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![to_diagnostic(placed)]),
        command: Some(command),
        ..CodeAction::default()
    };
    action.into()
}

fn cut_title(title: &str) -> String {
    match title.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

/// Builds the edit that replaces lines of a text (1-based, inclusive). Line ends are those of the text. Returns `None` if
/// the edit would change nothing.
pub fn build_edit(text: &DocumentText, lines: LineRange, replacement: &str, unit: ColumnUnit) -> Option<TextEdit> {
    let old = text.text();
    let new = apply_replacement(old, lines, replacement);
    if new == old {
        return None;
    }
    // Everything behind the lines stays. Before them, only the line end of the line above can go.
    let end = text.line_start(lines.end.saturating_add(1));
    let kept = old.len() - end;
    let start = text.line_start(lines.start).min(new.len().checked_sub(kept)?);
    let new_text = new.get(start..new.len() - kept)?.to_owned();
    let range = gen_lsp_types::Range::new(text.position_at(start, unit), text.position_at(end, unit));
    Some(TextEdit { range, new_text })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::Finding;
    use crate::report::ExportedFinding;

    fn placed(title: &str, text: &DocumentText) -> PlacedFinding {
        let finding: Finding = serde_json::from_value(json!({
            "finding_id": "f_3b1f0c9d2a7e4851", "first_run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E",
            "last_run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "priority": 1, "severity": "high", "confidence": "high",
            "kind": "CORRECTNESS", "title": title, "explanation": "The last row is lost.\u{1b}[2J",
            "repo_relative_path": "src/a.rs", "line_start": 2, "line_end": 2, "quoted_code": "for i in 0..n - 1 {",
            "suggestion": { "text": "Go to n.", "replacement": "for i in 0..n {" }, "status": "open", "detail_ref": "",
            "reported_at": "2026-09-21T14:13:20Z",
        }))
        .expect("a finding");
        let exported = Arc::new(ExportedFinding::new(&finding, None));
        PlacedFinding::new(exported, LineRange::new(2, 2), text, ColumnUnit::Utf16)
    }

    fn sample() -> DocumentText {
        DocumentText::new("fn a() {\n    for i in 0..n - 1 {\n    }\n}\n".to_owned())
    }

    fn target(uri: &Uri, actor: Actor, features: ClientFeatures) -> ActionTarget<'_> {
        ActionTarget { uri, version: Some(7), repository: "/repo", actor, features }
    }

    fn titles(actions: &[CodeActionResponse]) -> Vec<&str> {
        let titles = actions.iter().map(|action| match action {
            CodeActionResponse::Command(command) => command.title.as_str(),
            CodeActionResponse::CodeAction(action) => action.title.as_str(),
        });
        titles.collect()
    }

    #[test]
    fn a_fix_is_an_edit_and_decisions_are_commands() {
        let (text, uri) = (sample(), Uri("file:///repo/src/a.rs".to_owned()));
        let placed = placed("off by one", &text);
        let fix = build_edit(&text, LineRange::new(2, 2), "    for i in 0..n {", ColumnUnit::Utf16);
        let features = ClientFeatures { versioned_edits: true, action_literals: true, ..ClientFeatures::default() };
        let offered = OfferedFinding { placed: &placed, fix: fix.as_ref() };
        let actions = build_actions(&[offered], &target(&uri, Actor::User, features));
        insta::assert_snapshot!(serde_json::to_string_pretty(&actions[..2]).expect("JSON"));
        assert_eq!(
            titles(&actions),
            [
                "Apply fix of revdeck",
                "Mark addressed",
                "Dismiss: not worth it",
                "Dismiss: false alarm",
                "Dismiss: intended",
                "Dismiss: generated",
                "Dismiss: fixed elsewhere",
                "Show details",
            ]
        );
    }

    #[test]
    fn an_assistant_is_offered_no_decision_and_an_old_client_commands_only() {
        let (text, uri) = (sample(), Uri("file:///repo/src/a.rs".to_owned()));
        let placed = placed(&"x".repeat(100), &text);
        let fix = build_edit(&text, LineRange::new(2, 2), "", ColumnUnit::Utf16);
        let offered = OfferedFinding { placed: &placed, fix: fix.as_ref() };
        let literals = ClientFeatures { action_literals: true, ..ClientFeatures::default() };
        let actions = build_actions(&[offered], &target(&uri, Actor::Assistant, literals));
        assert_eq!(titles(&actions), ["Apply fix of revdeck", "Claim as addressed", "Show details"]);
        let actions = build_actions(&[offered; 2], &target(&uri, Actor::Assistant, ClientFeatures::default()));
        let of = format!("({}…)", "x".repeat(60));
        let [details, claim] = ["Show details", "Claim as addressed"].map(|title| format!("{title} {of}"));
        assert_eq!(titles(&actions), [&claim, &details, &claim, &details]);
        assert!(actions.iter().all(|action| matches!(action, CodeActionResponse::Command(_))));
    }

    #[test]
    fn an_edit_replaces_whole_lines_and_nothing_else() {
        for (text, lines, replacement) in [
            ("a\nb\nc\n", (2, 2), "x"),
            ("a\nb\nc\n", (2, 2), "x\ny\n"),
            ("a\nb\nc\n", (2, 3), ""),
            ("a\r\nb\r\nc\r\n", (1, 1), "x\ny"),
            ("a\nb", (2, 2), "x"),
            ("a\nb", (2, 2), ""),
            ("a", (1, 1), ""),
            ("a\n😀b\nc", (2, 3), "x"),
        ] {
            let lines = LineRange::new(lines.0, lines.1);
            for unit in [ColumnUnit::Utf8, ColumnUnit::Utf16] {
                let mut document = DocumentText::new(text.to_owned());
                let edit = build_edit(&document, lines, replacement, unit).expect("an edit");
                let change = json!({ "range": edit.range, "text": edit.new_text });
                document.apply(serde_json::from_value(change).expect("a change"), unit);
                assert_eq!(document.text(), apply_replacement(text, lines, replacement), "{text:?} {lines:?}");
            }
        }
        let same = DocumentText::new("a\nb\n".to_owned());
        assert_eq!(build_edit(&same, LineRange::new(2, 2), "b", ColumnUnit::Utf16), None);
    }
}
