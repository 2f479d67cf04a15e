//! A problem as a model reported it, before anybody checked that it is there.

use serde::{Deserialize, Serialize};

use super::{Confidence, Kind, LineRange, Priority, Severity};

/// A report that was understood as far as it can be without the code. What it says is a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedProblem {
    pub path: String,
    /// From 1; 0 when the model named no line.
    pub line_start: u32,
    pub line_end: u32,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// One line.
    pub title: String,
    #[serde(default)]
    pub explanation: String,
    /// The code the model says stands there; empty when it quoted none.
    #[serde(default)]
    pub quoted_code: String,
    /// What to do, in words.
    #[serde(default)]
    pub suggestion: String,
    /// New text for `replaced`, or for the report's own lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<LineRange>,
}

/// A report that is kept and not shown as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedReport {
    pub report: ReportedProblem,
    /// Which check it failed and why, for a person.
    pub reason: String,
}
