//! Defines a run's conclusions about findings besides its own reports. They are stored in the run's output and never
//! rewritten.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{Finding, FindingId, Kind, LineRange, Time};

word_enum!(
    /// Reason why a report is stored but not raised as a finding.
    SuppressionReason {
        /// The user dismissed the finding, and its code has not changed since.
        Dismissed = "dismissed",
        /// The user has muted the kind.
        Muted = "muted",
        /// The report is new and not urgent, and an earlier review of the change already looked at the same unchanged
        /// lines.
        Late = "late",
        /// The report is about a fix that is only offered.
        OfAFix = "of_a_fix",
    }
);

/// Report that is stored but not raised as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressedReport {
    /// Report in the form of a finding.
    pub finding: Finding,
    /// Class of the reason.
    pub because: SuppressionReason,
    /// When and why the report was suppressed, written for a person.
    pub reason: String,
}

/// Report that a run of another machine did not raise because the finding is dismissed there. The report itself stays there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldBackPlace {
    /// Finding that was reported.
    pub finding_id: FindingId,
    /// Path of the report, relative to the repository root.
    pub path: String,
}

/// New location of an earlier finding in the run's snapshot. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFinding {
    /// Earlier finding.
    pub finding_id: FindingId,
    /// New path, relative to the repository root.
    pub path: String,
    /// First line at the new location.
    pub line_start: u32,
    /// Last line at the new location.
    pub line_end: u32,
}

impl MovedFinding {
    /// Creates the record of a finding that now stands at `lines` of `path`.
    pub fn new(finding_id: FindingId, path: &str, lines: LineRange) -> Self {
        Self { finding_id, path: path.to_owned(), line_start: lines.start, line_end: lines.end }
    }
}

/// Finding that asks to undo the fix of an earlier finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlipFlop {
    /// Finding of this run.
    pub finding_id: FindingId,
    /// Earlier finding whose fix would be undone.
    pub undoes: FindingId,
}

/// Report that was matched to a finding with another id: the file was renamed, the code was edited, or the report was
/// worded differently. The code in the snapshot matches the new report, so a run that carries the finding over starts
/// from the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingAlias {
    /// Earlier finding that the report was matched to.
    pub finding_id: FindingId,
    /// Id computed from the report's own kind, path and code.
    pub reported_as: FindingId,
}

word_enum!(
    /// Action on all findings of one kind.
    MuteAction { Mute = "mute", Unmute = "unmute" }
);

/// Line of `mutes.ndjson`: the user's setting for one kind in one repository. The last line of a kind wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mute {
    /// Kind that is muted or unmuted.
    pub kind: Kind,
    /// New setting of the kind.
    pub action: MuteAction,
    /// Time at which the user changed the setting.
    pub at: Time,
}
