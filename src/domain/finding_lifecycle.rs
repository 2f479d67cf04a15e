//! What a run found out about findings beside those it raised: kept in its output, rewritten never.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{Finding, FindingId, Kind, LineRange, Time};

word_enum!(
    /// Why a report is kept and not raised.
    SuppressionReason {
        /// It was dismissed, and its code is what it was.
        Dismissed = "dismissed",
        /// The user has muted its kind.
        Muted = "muted",
        /// It is new, not urgent, and about lines that an earlier review of the change looked at as they are.
        Late = "late",
        /// It is about a fix that is only offered.
        OfAFix = "of_a_fix",
    }
);

/// A report that is kept and not raised as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressedReport {
    pub finding: Finding,
    pub because: SuppressionReason,
    /// For a person: when and why.
    pub reason: String,
}

/// Where an earlier finding stands in the run's snapshot, when that is not where it stood before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFinding {
    pub finding_id: FindingId,
    pub path: String,
    pub line_start: u32,
    pub line_end: u32,
}

impl MovedFinding {
    pub fn new(finding_id: FindingId, path: &str, lines: LineRange) -> Self {
        Self { finding_id, path: path.to_owned(), line_start: lines.start, line_end: lines.end }
    }
}

/// A finding of the run that asks for the code as it was before an earlier finding was addressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlipFlop {
    pub finding_id: FindingId,
    /// The earlier one.
    pub undoes: FindingId,
}

/// A report that was recognised as a finding with another id than its own: in a file of another name, in edited code or
/// in other words. What the code shows is the report; whoever carries it over starts from that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingAlias {
    pub finding_id: FindingId,
    /// The id that kind, path and code give.
    pub reported_as: FindingId,
}

word_enum!(
    /// Whether reports of a kind are raised.
    MuteAction { Mute = "mute", Unmute = "unmute" }
);

/// One line of `mutes.ndjson`: the user's own, for one repository. The last line of a kind wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mute {
    pub kind: Kind,
    pub action: MuteAction,
    pub at: Time,
}
