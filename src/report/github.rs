//! Renders findings as workflow commands of GitHub Actions, which show them beside the lines of a pull request.

use super::export::{ExportLevel, FindingExport};
use crate::domain::text::sanitize_line;

/// Renders one workflow command for each standing finding. GitHub shows P0 and P1 as errors, P2 as warnings and P3 as
/// notices.
pub fn render_github(export: &FindingExport) -> String {
    let mut text = String::new();
    if let Some(said) = &export.incomplete {
        let title = encode_property("revdeck: the review is incomplete");
        text.push_str(&format!("::error title={title}::{}\n", encode_data(said)));
    }
    for exported in export.standing() {
        let finding = &exported.finding;
        let command = match ExportLevel::from(finding.priority) {
            ExportLevel::Error => "error",
            ExportLevel::Warning => "warning",
            ExportLevel::Note => "notice",
        };
        let said = exported.describe();
        let origin = format!("{} {} {}", finding.priority, finding.kind, finding.finding_id);
        let message = if said.is_empty() { origin } else { format!("{said}\n{origin}") };
        text.push_str(&format!(
            "::{command} file={},line={},endLine={},title={}::{}\n",
            encode_property(&sanitize_line(&finding.repo_relative_path)),
            finding.line_start,
            finding.line_end,
            encode_property(&finding.title),
            encode_data(&message)
        ));
    }
    text
}

/// Encodes the message of a command. A line end would begin a line that the runner could take for another command.
fn encode_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Encodes the value of a command's property, which ends at `,` and `:`.
fn encode_property(text: &str) -> String {
    encode_data(text).replace(':', "%3A").replace(',', "%2C")
}
