//! The journal of a run: what its worker did, in order, so that a restart can go on where it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    CancelReason, CarriedFile, ChatResponse, ContextRecord, ErrorClass, FileCoverage, Finding, FindingId, OmittedFile,
    RejectedReport, RunStatus, Time,
};

word_enum!(
    /// What a turn of a conversation is for.
    TurnPhase { Investigate = "investigate", Analyse = "analyse", Finish = "finish" }
);
word_enum!(
    /// What came of a tool call.
    ToolOutcome {
        Answered = "answered",
        /// The call was not allowed: a path outside the repository, a secret file.
        Refused = "refused",
        /// It could not be understood or carried out; the model was told why.
        Failed = "failed",
    }
);

word_enum!(
    /// What a second opinion says about a finding.
    Opinion { Real = "real", False = "false", Unsure = "unsure" }
);

/// What the next request holds, in tokens by the model's encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowUse {
    /// All of it, the system prompt and the tools included.
    pub tokens: u64,
    /// The most it may be.
    pub limit: u64,
    /// Of `tokens`: system prompt, tools and pinned task.
    pub pinned: u64,
    /// Of `tokens`: the local summary of what slid out.
    pub summarized: u64,
    /// Messages sent.
    pub messages: u32,
    /// Tool results among them that a line stands for.
    pub masked: u32,
    /// Messages of the conversation that are not sent any more.
    pub removed: u32,
    /// Whether the counts are of another encoding than the model's, which is not public.
    pub approximate: bool,
}

/// One line of `events/<run_id>.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Grows by one from 0.
    pub seq: u64,
    pub at: Time,
    #[serde(flatten)]
    pub event: RunEvent,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker took the run on; `attempt` counts from 1.
    Started {
        attempt: u32,
        worker: u32,
    },
    /// The run moved to another status.
    Phase {
        status: RunStatus,
    },
    /// What is to be reviewed: all changed files in scope, those left out included, and the hunks of the others.
    Planned {
        files: u32,
        hunks: u32,
        left_out: Vec<OmittedFile>,
    },
    /// A finding was reported, deduplicated and accepted.
    Finding {
        finding: Box<Finding>,
    },
    /// This file's hunks were put before the reviewer and its findings are recorded above this line.
    Covered {
        file: FileCoverage,
    },
    /// Hunks that are not sent, because an earlier run has reviewed them as they are; the findings that come along with
    /// them are recorded above this line.
    Carried {
        carried: Box<CarriedFile>,
    },
    /// A file that could not be reviewed after all.
    LeftOut {
        file: OmittedFile,
        /// Changed hunks in it; 0 in journals of older versions.
        #[serde(default, skip_serializing_if = "is_zero")]
        hunks: u32,
    },
    /// A line for a person.
    Note {
        text: String,
    },
    /// Somebody asked for an end.
    CancelAsked {
        reason: CancelReason,
    },
    /// The reviewer or the worker failed.
    Failed {
        class: ErrorClass,
        summary: String,
    },
    /// The last line of a run that ended in order.
    Finished {
        status: RunStatus,
    },
    /// A request goes out; `turn` counts from 1.
    TurnAsked {
        turn: u32,
        phase: TurnPhase,
        /// What is asked for beside what was said before; cut where it is long.
        asked: String,
        window: WindowUse,
    },
    /// The paid answer, whole, before anything is made of it: a restart goes on from here.
    TurnAnswered {
        turn: u32,
        response: Box<ChatResponse>,
        /// In US dollars; 0 when the model has no known price.
        cost: f64,
        /// Milliseconds from the request to the first byte of the answer.
        first_ms: u64,
        /// Milliseconds from the request to the end of the answer.
        took_ms: u64,
        /// It was paid for by an earlier run of the same content.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        taken_over: bool,
    },
    /// A request failed, and the conversation went on without an answer to it.
    Unanswered {
        turn: u32,
        class: ErrorClass,
        summary: String,
    },
    /// The reviewer cannot go on: from this turn on another one is asked, until the attempt ends.
    TookOver {
        turn: u32,
        /// Its name in the settings.
        reviewer: String,
        model: String,
        reasoning_effort: String,
    },
    /// The provider makes us wait, or a request is sent again.
    Waiting {
        turn: u32,
        reason: String,
        wait_ms: u64,
    },
    /// A tool was run for the model.
    ToolAnswered {
        turn: u32,
        name: String,
        /// One line.
        arguments: String,
        outcome: ToolOutcome,
        tokens: u64,
        /// One line about the result, for a person.
        result: String,
    },
    /// The report of a finding that the run has already made it stronger or clearer: it replaces the one of its id.
    Restated {
        turn: u32,
        finding: Box<Finding>,
    },
    /// A finding was reported again.
    Repeated {
        turn: u32,
        finding_id: FindingId,
        line_start: u32,
        line_end: u32,
        title: String,
    },
    /// A report that did not hold against the code.
    Rejected {
        turn: u32,
        #[serde(flatten)]
        rejected: Box<RejectedReport>,
    },
    /// A second opinion; a finding that it calls false is set aside.
    Judged {
        finding_id: FindingId,
        opinion: Opinion,
        reason: String,
    },
    /// After every answer: how many findings it brought and how many there are.
    CodeSmellsAccumulated {
        #[serde(rename = "newIssues")]
        new_issues: u32,
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        #[serde(rename = "loop")]
        turn: u32,
    },
    /// Messages left the window.
    SlidingWindowApplied {
        #[serde(rename = "loop")]
        turn: u32,
        #[serde(rename = "messagesRemoved")]
        messages_removed: u32,
        #[serde(rename = "messagesKept")]
        messages_kept: u32,
    },
    /// At the end of a conversation.
    FinalCodeSmellsSummary {
        #[serde(rename = "totalIssues")]
        total_issues: u32,
        loops: u32,
        #[serde(rename = "issuesByType")]
        issues_by_type: BTreeMap<String, u32>,
    },
    /// What is told of the project, the change and the code around it.
    Surrounded {
        context: Box<ContextRecord>,
    },
    /// A person stopped the run for a while; nothing is asked until it is resumed.
    Paused,
    Resumed,
    /// A line of a newer revdeck.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
