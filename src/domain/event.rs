//! Defines the journal of a run: its worker's actions in order, from which a restarted worker continues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    BudgetStop, CancelReason, CarriedFile, ChatResponse, ContextRecord, ErrorClass, FileCoverage, Finding, FindingId,
    OmittedFile, RejectedReport, RunStatus, SteeredKind, Time, is_default,
};

word_enum!(
    /// Purpose of a turn in a conversation.
    TurnPhase {
        /// The model finds out what the change does and touches.
        Investigate = "investigate",
        /// The model settles its suspicions.
        Analyse = "analyse",
        /// The model reports what is left, or gives second opinions.
        Finish = "finish",
    }
);
word_enum!(
    /// Result of a tool call.
    ToolOutcome {
        /// The model received the result.
        Answered = "answered",
        /// The call was not allowed: a path outside the repository, or a secret file.
        Refused = "refused",
        /// The call was invalid or failed; the model received the reason.
        Failed = "failed",
    }
);

word_enum!(
    /// Second opinion on a finding.
    Opinion {
        /// The shown code confirms the problem.
        Real = "real",
        /// The shown code refutes the problem.
        False = "false",
        /// The answer has no verdict, or the verdict depends on code that was not shown.
        Unsure = "unsure",
    }
);

impl Opinion {
    /// Returns true if the reviewer could tell.
    pub fn is_verdict(self) -> bool {
        matches!(self, Self::Real | Self::False)
    }
}

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
    /// Time at which the entry was written.
    pub at: Time,
    /// Content of the entry.
    #[serde(flatten)]
    pub event: RunEvent,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker took on the run; `attempt` counts from 1.
    Started {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Process id of the worker.
        worker: u32,
    },
    /// The run changed its status.
    Phase {
        /// New status.
        status: RunStatus,
    },
    /// The plan of the review: the number of all changed files in scope (with the omitted files), and the number of
    /// hunks in the files that are not omitted.
    Planned {
        /// Number of changed files in scope, including `left_out`.
        files: u32,
        /// Number of hunks in the files to review.
        hunks: u32,
        /// Files that the plan omits.
        left_out: Vec<OmittedFile>,
    },
    /// A finding was reported, deduplicated and accepted.
    Finding {
        /// Finding with its run ids and time.
        finding: Box<Finding>,
    },
    /// The reviewer has given its verdict on the hunks of this file. Its findings are recorded above this line.
    Covered {
        /// Reviewed hunks of one file.
        file: FileCoverage,
    },
    /// Hunks that are not sent, because an earlier run reviewed them unchanged. The findings that are carried over
    /// with them are recorded above this line.
    Carried {
        /// Carried hunks of one file from one earlier run.
        carried: Box<CarriedFile>,
    },
    /// A planned file could not be reviewed.
    LeftOut {
        /// Omitted file with the reason.
        file: OmittedFile,
        /// Number of changed hunks in the file; 0 in journals of older versions.
        #[serde(default, skip_serializing_if = "is_default")]
        hunks: u32,
    },
    /// An earlier attempt ran out of memory while it parsed these texts. No later attempt parses them.
    OutOfMemory {
        /// Texts whose parsing had begun and not ended.
        parsing: Vec<InterruptedParse>,
    },
    /// A message for a person, on one line.
    Note {
        /// Text for the person, on one line.
        text: String,
    },
    /// A cancellation was requested.
    CancelAsked {
        /// Reason of the cancellation.
        reason: CancelReason,
    },
    /// The run stops, or ends after this turn, because it has reached a limit.
    BudgetReached {
        /// The limit.
        #[serde(flatten)]
        stop: BudgetStop,
    },
    /// The reviewer or the worker failed.
    Failed {
        /// Class of the failure.
        class: ErrorClass,
        /// Description of the failure for a person.
        summary: String,
    },
    /// The last line of a run that ended normally.
    Finished {
        /// Terminal status of the run.
        status: RunStatus,
    },
    /// A request is sent; `turn` counts from 1.
    TurnAsked {
        /// Number of the request. Requests for second opinions are numbered after the turns.
        turn: u32,
        /// Purpose of the turn.
        phase: TurnPhase,
        /// New content of the request since the previous turn; long text is truncated.
        asked: String,
        /// Size of the request.
        window: WindowUse,
    },
    /// The complete paid answer, recorded before it is processed. A restart continues from here.
    TurnAnswered {
        /// Number of the answered request.
        turn: u32,
        /// Answer with its token usage.
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
    /// A request failed, could not be sent, or got an answer without a verdict that was asked for, and the conversation continued
    /// without it.
    Unanswered {
        /// Number of the failed request.
        turn: u32,
        /// Class of the failure; `malformed` for an answer without a verdict.
        class: ErrorClass,
        /// Description of the failure for a person.
        summary: String,
    },
    /// The reviewer cannot continue. From this turn on, another reviewer is asked until the attempt ends.
    TookOver {
        /// Number of the failed request, which the new reviewer is sent.
        turn: u32,
        /// Name of the new reviewer in the settings.
        reviewer: String,
        /// Model of the new reviewer in the settings.
        model: String,
        /// Reasoning effort of the new reviewer; empty for the provider's default.
        reasoning_effort: String,
    },
    /// revdeck waits for the provider, or sends a request again.
    Waiting {
        /// Number of the waiting request.
        turn: u32,
        /// Cause of the wait, for a person.
        reason: String,
        /// Length of the wait in milliseconds.
        wait_ms: u64,
    },
    /// A tool was run for the model.
    ToolAnswered {
        /// Turn in which the model called the tool, from 1.
        turn: u32,
        /// Name of the called tool.
        name: String,
        /// Arguments on one line.
        arguments: String,
        /// Success or failure of the call.
        outcome: ToolOutcome,
        /// Size of the result in tokens.
        tokens: u64,
        /// Summary of the result on one line, for a person.
        result: String,
    },
    /// A finding of this run was reported again, with a stronger or clearer text. The new version replaces the old
    /// one with the same id.
    Restated {
        /// Turn of the new report, from 1.
        turn: u32,
        /// Improved finding, with the id of the old one.
        finding: Box<Finding>,
    },
    /// A finding was reported again without improvement.
    Repeated {
        /// Turn of the repeated report, from 1.
        turn: u32,
        /// Finding that the report repeats.
        finding_id: FindingId,
        /// First line of the repeated report (1-based).
        line_start: u32,
        /// Last line of the repeated report (inclusive).
        line_end: u32,
        /// Title of the repeated report.
        title: String,
    },
    /// A report failed a check against the code.
    Rejected {
        /// Turn of the report, from 1.
        turn: u32,
        /// Report with the failed check.
        #[serde(flatten)]
        rejected: Box<RejectedReport>,
    },
    /// A second opinion arrived. A finding with the opinion `false` is set aside.
    Judged {
        /// Judged finding.
        finding_id: FindingId,
        /// Verdict of the model.
        opinion: Opinion,
        /// Model's reason for the verdict.
        reason: String,
    },
    /// Summary after every answer of a model, and after every unit of the built-in reviewer: the number of new findings
    /// and of all findings.
    CodeSmellsAccumulated {
        /// Number of findings that this answer or unit added.
        #[serde(rename = "newIssues")]
        new_issues: u32,
        /// Number of all findings so far; in a conversation including known findings of earlier runs.
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        /// Turn of the answer, or number of the unit, from 1.
        #[serde(rename = "loop")]
        turn: u32,
        /// Number of all findings so far by the word of their kind; empty in journals of older versions.
        #[serde(rename = "issuesByType", default, skip_serializing_if = "BTreeMap::is_empty")]
        issues_by_type: BTreeMap<String, u32>,
    },
    /// Messages slid out of the window.
    SlidingWindowApplied {
        /// Turn whose request has the smaller window, from 1.
        #[serde(rename = "loop")]
        turn: u32,
        /// Number of messages that left the window for this request.
        #[serde(rename = "messagesRemoved")]
        messages_removed: u32,
        /// Number of messages that the request keeps, including the pinned task.
        #[serde(rename = "messagesKept")]
        messages_kept: u32,
    },
    /// Summary at the end of a run.
    FinalCodeSmellsSummary {
        /// Number of findings, without those that a second opinion called false.
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        /// Number of turns, or of units of the built-in reviewer.
        loops: u32,
        /// Number of findings by the word of their kind.
        #[serde(rename = "issuesByType")]
        issues_by_type: BTreeMap<String, u32>,
    },
    /// Context that the reviewer receives about the project, the change and the code around the change.
    Surrounded {
        /// Sent and omitted sections.
        context: Box<ContextRecord>,
    },
    /// Kinds about which the reviewer is almost always wrong, recorded once before the review: a model is warned of them,
    /// and findings of these kinds are lowered by one priority. A later attempt goes by this record.
    Steered {
        /// The kinds with the decisions that show it.
        kinds: Vec<SteeredKind>,
    },
    /// A person paused the run; no request is sent until it is resumed.
    Paused,
    /// A person resumed the run, or it was cancelled while paused.
    Resumed,
    /// An event of a newer revdeck version.
    #[serde(other)]
    Unknown,
}
