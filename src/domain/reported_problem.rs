//! Defines problems as a model reported them, before revdeck checks them against the code.

use serde::{Deserialize, Serialize};

use super::{Confidence, Kind, LineRange, Priority, Severity};

/// Problem report parsed from a model's answer. Every field is the model's claim; nothing is checked against the code
/// yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedProblem {
    pub path: String,
    /// First line (1-based); 0 when the model named no line.
    pub line_start: u32,
    pub line_end: u32,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Title on one line.
    pub title: String,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<LineRange>,
}

/// Report that failed a check. It is stored but not shown as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedReport {
    pub report: ReportedProblem,
    /// Failed check and its cause, written for a person.
    pub reason: String,
}
