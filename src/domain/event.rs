//! Defines the journal of a run: its worker's actions in order, from which a restarted worker continues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    CancelReason, CarriedFile, ChatResponse, ContextRecord, ErrorClass, FileCoverage, Finding, FindingId, OmittedFile,
    RejectedReport, RunStatus, Time,
};

word_enum!(
    /// Purpose of a turn in a conversation.
    TurnPhase { Investigate = "investigate", Analyse = "analyse", Finish = "finish" }
);
word_enum!(
    /// Result of a tool call.
    ToolOutcome {
        Answered = "answered",
        /// The call was not allowed: a path outside the repository, or a secret file.
        Refused = "refused",
        /// The call was invalid or failed; the model received the reason.
        Failed = "failed",
    }
);

word_enum!(
    /// Second opinion on a finding.
    Opinion { Real = "real", False = "false", Unsure = "unsure" }
);

/// Size of the next request, in tokens of the model's encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowUse {
    /// Total, including the system prompt and the tools.
    pub tokens: u64,
    /// Maximum of `tokens`.
    pub limit: u64,
    /// Part of `tokens`: system prompt, tools and pinned task.
    pub pinned: u64,
    /// Part of `tokens`: the local summary of messages that slid out of the window.
    pub summarized: u64,
    /// Number of messages sent.
    pub messages: u32,
    /// Number of sent tool results that are replaced by one line each.
    pub masked: u32,
    /// Number of conversation messages that are no longer sent.
    pub removed: u32,
    /// True if another encoding than the model's was used, because the model's encoding is not public.
    pub approximate: bool,
}

/// Text that was being parsed when a worker ran out of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptedParse {
    /// Path of the file; empty if the reader of the text did not know it.
    pub path: String,
    /// Hash of the text, see [`super::content_hash`].
    pub content: String,
}

impl InterruptedParse {
    /// Reason why the file is left out.
    pub const REASON: &str = "parsing it took more memory than the worker may use";

    /// Returns the message for a person; `None` without a path.
    pub fn note(&self) -> Option<String> {
        (!self.path.is_empty()).then(|| format!("{}: {}", self.path, Self::REASON))
    }
}

/// Line of `events/<run_id>.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Sequence number, from 0, growing by 1.
    pub seq: u64,
    pub at: Time,
    #[serde(flatten)]
    pub event: RunEvent,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker took on the run; `attempt` counts from 1.
    Started {
        attempt: u32,
        worker: u32,
    },
    /// The run changed its status.
    Phase {
        status: RunStatus,
    },
    /// The plan of the review: the number of all changed files in scope (with the omitted files), and the number of
    /// hunks in the files that are not omitted.
    Planned {
        files: u32,
        hunks: u32,
        left_out: Vec<OmittedFile>,
    },
    /// A finding was reported, deduplicated and accepted.
    Finding {
        finding: Box<Finding>,
    },
    /// The hunks of this file were shown to the reviewer. Its findings are recorded above this line.
    Covered {
        file: FileCoverage,
    },
    /// Hunks that are not sent, because an earlier run reviewed them unchanged. The findings that are carried over
    /// with them are recorded above this line.
    Carried {
        carried: Box<CarriedFile>,
    },
    /// A planned file could not be reviewed.
    LeftOut {
        file: OmittedFile,
        /// Number of changed hunks in the file; 0 in journals of older versions.
        #[serde(default, skip_serializing_if = "is_zero")]
        hunks: u32,
    },
    /// An earlier attempt ran out of memory while it parsed these texts. No later attempt parses them.
    OutOfMemory {
        parsing: Vec<InterruptedParse>,
    },
    /// A message for a person, on one line.
    Note {
        text: String,
    },
    /// A cancellation was requested.
    CancelAsked {
        reason: CancelReason,
    },
    /// The reviewer or the worker failed.
    Failed {
        class: ErrorClass,
        summary: String,
    },
    /// The last line of a run that ended normally.
    Finished {
        status: RunStatus,
    },
    /// A request is sent; `turn` counts from 1.
    TurnAsked {
        turn: u32,
        phase: TurnPhase,
        /// New content of the request since the previous turn; long text is truncated.
        asked: String,
        window: WindowUse,
    },
    /// The complete paid answer, recorded before it is processed. A restart continues from here.
    TurnAnswered {
        turn: u32,
        response: Box<ChatResponse>,
        /// Cost in US dollars; 0 when the model has no known price.
        cost: f64,
        /// Milliseconds from the request to the first byte of the answer.
        first_ms: u64,
        /// Milliseconds from the request to the end of the answer.
        took_ms: u64,
        /// True if an earlier run of the same content paid for the answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        taken_over: bool,
    },
    /// A request failed, and the conversation continued without its answer.
    Unanswered {
        turn: u32,
        class: ErrorClass,
        summary: String,
    },
    /// The reviewer cannot continue. From this turn on, another reviewer is asked until the attempt ends.
    TookOver {
        turn: u32,
        /// Name of the new reviewer in the settings.
        reviewer: String,
        model: String,
        reasoning_effort: String,
    },
    /// revdeck waits for the provider, or sends a request again.
    Waiting {
        turn: u32,
        reason: String,
        wait_ms: u64,
    },
    /// A tool was run for the model.
    ToolAnswered {
        turn: u32,
        name: String,
        /// Arguments on one line.
        arguments: String,
        outcome: ToolOutcome,
        tokens: u64,
        /// Summary of the result on one line, for a person.
        result: String,
    },
    /// A finding of this run was reported again, with a stronger or clearer text. The new version replaces the old
    /// one with the same id.
    Restated {
        turn: u32,
        finding: Box<Finding>,
    },
    /// A finding was reported again without improvement.
    Repeated {
        turn: u32,
        finding_id: FindingId,
        line_start: u32,
        line_end: u32,
        title: String,
    },
    /// A report failed a check against the code.
    Rejected {
        turn: u32,
        #[serde(flatten)]
        rejected: Box<RejectedReport>,
    },
    /// A second opinion arrived. A finding with the opinion `false` is set aside.
    Judged {
        finding_id: FindingId,
        opinion: Opinion,
        reason: String,
    },
    /// Summary after every answer: the number of new findings and of all findings.
    CodeSmellsAccumulated {
        #[serde(rename = "newIssues")]
        new_issues: u32,
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        #[serde(rename = "loop")]
        turn: u32,
    },
    /// Messages slid out of the window.
    SlidingWindowApplied {
        #[serde(rename = "loop")]
        turn: u32,
        #[serde(rename = "messagesRemoved")]
        messages_removed: u32,
        #[serde(rename = "messagesKept")]
        messages_kept: u32,
    },
    /// Summary at the end of a conversation.
    FinalCodeSmellsSummary {
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        loops: u32,
        #[serde(rename = "issuesByType")]
        issues_by_type: BTreeMap<String, u32>,
    },
    /// Context that the reviewer receives about the project, the change and the code around the change.
    Surrounded {
        context: Box<ContextRecord>,
    },
    /// A person paused the run; no request is sent until it is resumed.
    Paused,
    Resumed,
    /// An event of a newer revdeck version.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
