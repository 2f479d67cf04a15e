//! Defines problems as a model reported them, before revdeck checks them against the code.

use serde::{Deserialize, Serialize};

use super::{Confidence, Kind, LineRange, Priority, Severity};

/// Problem report parsed from a model's answer. Every field is the model's claim; nothing is checked against the code
/// yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedProblem {
    /// Path as the model named it; it may be no path of the repository.
    pub path: String,
    /// First line (1-based); 0 when the model named no line.
    pub line_start: u32,
    /// Last line (1-based, inclusive); 0 when the model named no line.
    pub line_end: u32,
    /// Class of the problem, mapped from the model's words.
    pub kind: Kind,
    /// Severity; `None` when the model gave none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Priority; `None` when the model gave none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Confidence; `None` when the model gave none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Title on one line.
    pub title: String,
    /// Explanation of the problem; may be empty.
    #[serde(default)]
    pub explanation: String,
    /// Code that the model claims to stand at these lines; empty when the report quotes none.
    #[serde(default)]
    pub quoted_code: String,
    /// Suggested change in words.
    #[serde(default)]
    pub suggestion: String,
    /// New text for the lines in `replaced`, or for the report's own lines when `replaced` is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// Lines that `replacement` replaces; `None` without a replacement, and for the report's own lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<LineRange>,
}

/// Report that failed a check. It is stored but not shown as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedReport {
    /// Report as the model gave it.
    pub report: ReportedProblem,
    /// Failed check and its cause, written for a person.
    pub reason: String,
}
