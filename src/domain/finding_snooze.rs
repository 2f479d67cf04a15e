//! Defines snoozes of findings: for a time, a finding is neither listed nor told to assistants. A snooze decides nothing.

use serde::{Deserialize, Serialize};

use super::{Actor, FindingId, Time, TriageAction};

/// Event that ends a snooze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnoozeEnd {
    /// The time has come.
    Time(Time),
    /// The file has other content than at the begin of the snooze.
    FileChange {
        /// Path relative to the repository root.
        path: String,
        /// [`super::content_hash`] of the file in the worktree; empty if there was none.
        content: String,
    },
}

/// Line of `snoozes.ndjson`. The last line of a finding holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingSnooze {
    /// Finding that is snoozed.
    pub finding_id: FindingId,
    /// End of the snooze; `None` ends it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<SnoozeEnd>,
    /// End before this line; an undo needs no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<SnoozeEnd>,
    /// Author of the line.
    pub actor: Actor,
    /// Time of the line.
    pub at: Time,
    /// Origin of the line.
    pub action: TriageAction,
    /// Group id of all findings snoozed by one keypress; one undo reverts the whole group.
    pub group: String,
}
