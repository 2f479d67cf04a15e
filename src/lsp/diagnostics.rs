//! Findings as diagnostics.

use gen_lsp_types::{Code, Diagnostic, DiagnosticSeverity, Message};
use serde_json::Value;

use super::repository::PlacedFinding;
use crate::domain::Priority;
use crate::report::{ExportLevel, ExportedFinding};

/// Name of the source in editors.
pub const SOURCE_NAME: &str = "revdeck";
/// Maximum size of a message in bytes. The whole text is in the hover.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Converts a finding at its place into a diagnostic. The id is its data, and returns with a request for actions.
pub fn to_diagnostic(placed: &PlacedFinding) -> Diagnostic {
    let finding = &placed.exported.finding;
    Diagnostic {
        range: placed.range,
        severity: Some(to_severity(finding.priority)),
        code: Some(Code::String(finding.kind.word().to_owned())),
        code_description: None,
        source: Some(SOURCE_NAME.to_owned()),
        message: Message::String(to_message(&placed.exported)),
        tags: None,
        related_information: None,
        data: Some(Value::String(finding.finding_id.to_string())),
    }
}

/// Converts a priority: p0 and p1 are errors, p2 is a warning, p3 is information.
fn to_severity(priority: Priority) -> DiagnosticSeverity {
    match ExportLevel::from(priority) {
        ExportLevel::Error => DiagnosticSeverity::Error,
        ExportLevel::Warning => DiagnosticSeverity::Warning,
        ExportLevel::Note => DiagnosticSeverity::Information,
    }
}

fn to_message(exported: &ExportedFinding) -> String {
    let finding = &exported.finding;
    let mut message = finding.title.clone();
    if !finding.explanation.is_empty() {
        message.push('\n');
        message.push_str(&finding.explanation);
    }
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES - "…".len()));
        message.push('…');
    }
    message
}
