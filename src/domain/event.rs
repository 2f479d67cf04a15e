//! The journal of a run: what its worker did, in order, so that a restart can go on where it ended.

use serde::{Deserialize, Serialize};

use super::{CancelReason, ErrorClass, FileCoverage, Finding, LeftOut, RunStatus, Time};

/// One line of `events/<run_id>.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Grows by one from 0.
    pub seq: u64,
    pub at: Time,
    #[serde(flatten)]
    pub event: RunEvent,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker took the run on; `attempt` counts from 1.
    Started { attempt: u32, worker: u32 },
    /// The run moved to another status.
    Phase { status: RunStatus },
    /// What is to be reviewed: all changed files in scope, those left out included, and the hunks of the others.
    Planned { files: u32, hunks: u32, left_out: Vec<LeftOut> },
    /// A finding was reported, deduplicated and accepted.
    Finding { finding: Box<Finding> },
    /// This file's hunks were put before the reviewer and its findings are recorded above this line.
    Covered { file: FileCoverage },
    /// A file that could not be reviewed after all.
    LeftOut { file: LeftOut },
    /// A line for a person.
    Note { text: String },
    /// Somebody asked for an end.
    CancelAsked { reason: CancelReason },
    /// The reviewer or the worker failed.
    Failed { class: ErrorClass, summary: String },
    /// The last line of a run that ended in order.
    Finished { status: RunStatus },
    /// A line of a newer revdeck.
    #[serde(other)]
    Unknown,
}
