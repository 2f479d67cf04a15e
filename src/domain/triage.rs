//! Dispositions: what became of a finding, who said so, why and when. Appended, never rewritten.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, FindingStatus, RunId, Time};

word_enum!(
    /// Who set a status.
    Actor { User = "user", Assistant = "assistant", Engine = "engine" }
);
word_enum!(
    /// How a line of the triage file came about. Undo takes back the last set by its sequence, redo sets it again.
    TriageAction { Set = "set", Undo = "undo", Redo = "redo" }
);

/// One line of `triage.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disposition {
    pub finding_id: FindingId,
    /// The status from here on.
    pub status: FindingStatus,
    /// The status before, so that an undo needs no search.
    pub previous: FindingStatus,
    pub actor: Actor,
    /// Why; required for a dismissal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub at: Time,
    pub action: TriageAction,
    /// Findings triaged by one key share a group, and one undo takes back all of it.
    pub group: String,
    /// The run in which the engine saw its evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}
