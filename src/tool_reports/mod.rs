//! Reports of other tools as plain data: SARIF, rdjsonl and checkstyle.
//!
//! - A report is hostile input: its size, the number of its problems and the length of its texts are limited.
//! - Nothing here opens a file or believes a path; see [`path`] for what a path may be.
//! - A report is taken whole or refused. If a part were dropped, a missing problem would look fixed.
//!
//! To add a format: one file with its parser, and one row in [`ReportFormat`].

mod checkstyle;
pub(crate) mod path;
mod rdjsonl;
mod rule_kinds;
mod sarif;
mod text_fix;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use clap::ValueEnum;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::domain::text::format_thousands;
use crate::domain::{Confidence, Kind, LineRange, Severity};

pub use text_fix::ToolFix;

/// Maximum size of a report in bytes. Not from the literature: ten times the report of a scan of a large repository.
pub const MAX_REPORT_BYTES: u64 = 64 << 20;
/// Maximum number of problems in a report. Not from the literature: nobody triages more.
pub const MAX_PROBLEMS: usize = 20_000;
/// Maximum number of tools in a report. Each one has a run of its own, and no collection of reports names as many.
const MAX_TOOLS: usize = 50;
/// Maximum length of a message, a rule's name or a help text in characters; the rest is cut.
const MAX_TEXT_CHARS: usize = 2_000;
/// Maximum length of a title in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of a tool's name in characters.
const MAX_NAME_CHARS: usize = 40;
/// Maximum length of a path in bytes, as on Linux.
const MAX_PATH_BYTES: usize = 4_096;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// SARIF 2.1.0: CodeQL, semgrep, eslint, ruff, clippy-sarif
    Sarif,
    /// Diagnostics of reviewdog, one JSON object on each line
    Rdjsonl,
    /// Checkstyle XML: checkstyle, eslint, phpcs, ktlint, shellcheck
    Checkstyle,
}

/// Report of one run of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolReport {
    /// Name in lower case, of letters, digits and `-._`, at most 40 characters; empty if the report does not name the
    /// tool.
    pub tool: String,
    /// Problems in the order of the report.
    pub problems: Vec<ToolProblem>,
    /// Files that the report names, with problems or without.
    pub covered: Vec<ReportedPath>,
    /// Message of the tool about its own failure; `None` if it ended well.
    pub failure: Option<String>,
    /// Number of results that the tool itself suppresses or calls no problem.
    pub suppressed: usize,
    /// Problems that the tool still sees, but suppresses, for example because of a comment in the code. They are not
    /// raised, and they are not fixed.
    pub silenced: Vec<ToolProblem>,
}

/// Path as a report names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReportedPath {
    /// Path or `file:` URI, with decoded `%XX`.
    pub path: String,
    /// Folder that a relative path starts from, as far as the report names it; else empty.
    pub base: String,
}

/// Problem as a tool reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProblem {
    /// Name of the rule; empty if there is none.
    pub rule: String,
    /// File of the problem.
    pub path: ReportedPath,
    /// Lines (1-based); `None` if the report names only the file.
    pub lines: Option<LineRange>,
    /// Message of the tool, of one line or more.
    pub message: String,
    /// Help of the rule; may be empty.
    pub help: String,
    /// Class of the problem.
    pub kind: Kind,
    /// Severity by the score of the rule, or by the level and the kind.
    pub severity: Severity,
    /// Precision of the rule.
    pub confidence: Confidence,
    /// Change that the tool proposes.
    pub fix: Option<ToolFix>,
}

/// Error of a report that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportError {
    /// The file does not have the format.
    #[error("it is no {format} report: {reason}")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// First fault, with its place.
        reason: String,
    },
    /// There are more problems than anybody can triage.
    #[error(
        "it has more than {} problems; let the tool report fewer rules, or check fewer files at once",
        format_thousands(MAX_PROBLEMS as u64)
    )]
    TooManyProblems,
    /// There are more tools than anybody runs.
    #[error("it names more than {MAX_TOOLS} tools; import the report of each tool by itself")]
    TooManyTools,
}

impl ReportedPath {
    /// Creates the path for a file name of a report. Only a `file:` URI is decoded, because `%` is plain in a name.
    fn from_name(name: &str) -> Self {
        let path = if path::strip_file_scheme(name).is_some() { decode(name) } else { name.to_owned() };
        Self { path, base: String::new() }
    }
}

impl ToolProblem {
    /// Returns the beginning of the problem's title: tool and rule.
    pub fn title_prefix(&self, tool: &str) -> String {
        if self.rule.is_empty() { format!("{tool}: ") } else { format!("{tool} {}: ", self.rule) }
    }

    /// Returns the title on one line: tool, rule and the first line of the message.
    pub fn title(&self, tool: &str) -> String {
        let first = self.message.lines().next().unwrap_or_default();
        cut(&format!("{}{first}", self.title_prefix(tool)), MAX_TITLE_CHARS)
    }

    /// Returns the rest of the message, and the help of the rule.
    pub fn explanation(&self, tool: &str) -> String {
        let message = self.message.trim();
        let is_whole = !message.contains('\n') && message.chars().count() < MAX_TITLE_CHARS / 2;
        let parts = [if is_whole { "" } else { message }, self.help.trim()];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let origin = format!("Reported by {tool}.");
        said.into_iter().chain([origin.as_str()]).collect::<Vec<_>>().join("\n")
    }
}

/// Parses a report, with or without a byte order mark. Returns the reports of the tools that it names, in the order of
/// their first problem. A tool that ran several times may have several reports.
///
/// # Errors
///
/// Returns an error if the bytes do not have the format, hold more than [`MAX_PROBLEMS`] problems, or name more than 50
/// tools.
pub fn parse_report(format: ReportFormat, bytes: &[u8]) -> Result<Vec<ToolReport>, ReportError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let reports = match format {
        ReportFormat::Sarif => sarif::parse(bytes)?,
        ReportFormat::Rdjsonl => rdjsonl::parse(bytes)?,
        ReportFormat::Checkstyle => checkstyle::parse(bytes)?,
    };
    if reports.iter().map(|report| report.problems.len()).sum::<usize>() > MAX_PROBLEMS {
        return Err(ReportError::TooManyProblems);
    }
    match reports.iter().map(|report| report.tool.as_str()).collect::<HashSet<_>>().len() > MAX_TOOLS {
        true => Err(ReportError::TooManyTools),
        false => Ok(reports),
    }
}

/// Converts the name of a tool to a form that is safe in a store, a file name and a list: `Semgrep OSS` becomes
/// `semgrep-oss`.
pub fn tool_name(given: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let words = given.split(|c: char| !is_plain(c)).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    name.chars().take(MAX_NAME_CHARS).collect()
}

/// Cuts a text to a number of characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Decodes the `%XX` of a URI. A text that is too long for a path stays too long, and is cut.
fn decode(uri: &str) -> String {
    percent_decode_str(uri).decode_utf8_lossy().chars().take(MAX_PATH_BYTES + 1).collect()
}

/// Returns the severity for the level of a tool. Many tools call everything an error, so an error is only of medium
/// severity, unless it is about security.
fn severity_from_level(level: &str, kind: Kind) -> Severity {
    let is_danger = matches!(kind, Kind::Security | Kind::HardcodedConfiguration);
    match (level.to_ascii_lowercase().as_str(), is_danger) {
        ("error" | "fatal", true) => Severity::High,
        ("error" | "fatal", false) | ("warning", true) => Severity::Medium,
        _ => Severity::Low,
    }
}
