//! Renders findings as lines of a compiler's output (`PATH:LINE:1: warning: TITLE`), which Vim, Emacs and others jump by.

use super::export::{ExportLevel, FindingExport};
use crate::domain::text::sanitize_line;

/// Renders one line for each standing finding. Paths are relative to the root of the repository.
pub fn render_quickfix(export: &FindingExport) -> String {
    let mut text = String::new();
    if let Some(said) = &export.incomplete {
        text.push_str(&format!("{}:1:1: error: the review is incomplete: {said}\n", sanitize_line(export.place())));
    }
    for exported in export.standing() {
        let finding = &exported.finding;
        text.push_str(&format!(
            "{}:{}:1: {}: {} [{} {}]\n",
            sanitize_line(&finding.repo_relative_path),
            finding.line_start,
            ExportLevel::from(finding.priority).word(),
            finding.title,
            finding.kind,
            finding.finding_id
        ));
    }
    text
}
