//! Defines the run record: the reviewed code, the reviewer, the cost and the end of a run.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    Coverage, Finding, FindingAlias, FindingId, FixId, FlipFlop, MovedFinding, Priority, RejectedReport, RunId,
    SCHEMA_VERSION, Scope, SuppressedReport, Time,
};

word_enum!(
    /// Status of a run. A terminal status never changes again.
    RunStatus {
        Pending = "pending",
        Snapshotting = "snapshotting",
        Reviewing = "reviewing",
        Resolving = "resolving",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Superseded = "superseded",
        Skipped = "skipped",
        Lost = "lost",
    }
);
word_enum!(
    /// Part of revdeck that requested a run.
    Source { Cockpit = "cockpit", Cli = "cli", Watch = "watch", Hook = "hook", Assistant = "assistant" }
);
word_enum!(
    /// Allowed reasons to cancel a run. Elapsed time is not a reason.
    CancelReason {
        UserStop = "user_stop",
        Superseded = "superseded",
        Obsolete = "obsolete",
        DeadProcess = "dead_process",
        BudgetExhausted = "budget_exhausted",
        Duplicate = "duplicate",
    }
);
word_enum!(
    /// Class of the failure that ended a run, for a reader that must decide on the next step.
    ErrorClass {
        Git = "git",
        Store = "store",
        Reviewer = "reviewer",
        Configuration = "configuration",
        WorkerDied = "worker_died",
        Internal = "internal",
        /// The API key is missing, wrong, or lacks permission.
        Auth = "auth",
        /// The account has no credit left.
        Quota = "quota",
        RateLimit = "rate_limit",
        Overloaded = "overloaded",
        ContextTooLong = "context_too_long",
        Network = "network",
        /// The response does not follow the provider's protocol.
        Malformed = "malformed",
        Timeout = "timeout",
        /// The model refused to review.
        Refused = "refused",
    }
);

impl CancelReason {
    /// Returns the status of a run that ends for this reason.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Superseded => RunStatus::Superseded,
            _ => RunStatus::Cancelled,
        }
    }
}

impl RunStatus {
    /// Returns true if the run has ended, successfully or not.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Superseded | Self::Skipped | Self::Lost)
    }

    /// Returns true if a worker holds, or should hold, the run's lock.
    pub fn is_working(self) -> bool {
        matches!(self, Self::Snapshotting | Self::Reviewing | Self::Resolving)
    }
}

/// Token counts as the provider reported them; all 0 for the built-in reviewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    /// Returns all billed tokens: input (with cached input), output and reasoning.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.reasoning)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.output = self.output.saturating_add(more.output);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}

/// Durations of the phases in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseTimings {
    pub queued_ms: u64,
    pub snapshot_ms: u64,
    pub review_ms: u64,
    pub resolve_ms: u64,
    /// Time from the request to the first byte of the first answer that the run paid for. `None` before the first
    /// answer, and for reviewers without token usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Time from the request to the first recorded finding; `None` without findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_finding_ms: Option<u64>,
}

/// Usage of one reviewer in a run: the run's own reviewer, or a reviewer that took over from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewerUsage {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Model as the provider names it. The name may be more exact than the name in the settings.
    pub model: String,
    pub reasoning_effort: String,
    /// Number of answers that the run paid for.
    pub turns: u32,
    pub tokens: Usage,
}

/// Number of findings of a run by priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingCounts {
    pub p0: u32,
    pub p1: u32,
    pub p2: u32,
    pub p3: u32,
}

impl FindingCounts {
    pub fn from_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            counts.add(finding.priority);
        }
        counts
    }

    pub fn add(&mut self, priority: Priority) {
        *match priority {
            Priority::P0 => &mut self.p0,
            Priority::P1 => &mut self.p1,
            Priority::P2 => &mut self.p2,
            Priority::P3 => &mut self.p3,
        } += 1;
    }

    /// Returns the counts in the order p0, p1, p2, p3.
    pub fn by_priority(&self) -> [u32; 4] {
        [self.p0, self.p1, self.p2, self.p3]
    }

    pub fn total(&self) -> u32 {
        self.by_priority().iter().sum()
    }
}

/// Line of `runs.ndjson`: the state of a run after a change. The last line of a run wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub status: RunStatus,
    pub created_at: Time,
    pub updated_at: Time,
    pub source: Source,
    /// Requester, as `user@host`.
    #[serde(default)]
    pub owner: String,
    /// Short name of the branch; empty when HEAD is detached.
    #[serde(default)]
    pub branch: String,
    /// Root folder of the working tree.
    #[serde(default)]
    pub worktree: String,
    /// Commit or tree that the changes are compared with; empty when there is none (unborn HEAD, scope `all`).
    #[serde(default)]
    pub base_commit: String,
    /// Commit with the snapshot's tree, protected by `refs/revdeck/snapshots/<run_id>`.
    #[serde(default)]
    pub snapshot_commit: String,
    #[serde(default)]
    pub head_commit: String,
    #[serde(default)]
    pub epoch: u64,
    /// Length of `triage.ndjson` in bytes when the snapshot was taken, or when it was last found equal to the current
    /// code. A disposition after this offset was made later, whatever the clock said. `None` in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triage_bytes: Option<u64>,
    pub scope: Scope,
    /// Hash of everything except the content that decides what is reviewed (whole tree or change, ignored paths).
    #[serde(default)]
    pub scope_hash: String,
    /// Hash of both sides' content of all changes. Scopes with equal fingerprints show a reviewer the same code.
    #[serde(default)]
    pub diff_fingerprint: String,
    /// Hash of the prompts, the thresholds and the built-in reviewer's rules.
    #[serde(default)]
    pub prompt_policy_version: String,
    /// First [`RunRecord::MAX_PATHS`] changed paths; `coverage.files_total` counts all of them.
    #[serde(default)]
    pub changed_paths: Vec<String>,
    pub reviewer: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub reasoning_effort: String,
    #[serde(default)]
    pub attempt: u32,
    /// Number of reviews of patches made for this run's findings.
    #[serde(default)]
    pub follow_up_count: u32,
    /// Fix whose patch this run reviews. Its findings are not in the user's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up_of: Option<FixId>,
    #[serde(default)]
    pub phase_timings: PhaseTimings,
    #[serde(default)]
    pub prompt_estimate: u64,
    #[serde(default)]
    pub tokens: Usage,
    /// Cost in US dollars.
    #[serde(default)]
    pub cost: f64,
    #[serde(default)]
    pub window_peak: u64,
    /// Usage by reviewer, in the order of their first answers; empty for reviewers that do not work in turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<ReviewerUsage>,
    #[serde(default)]
    pub saved_token_estimate: u64,
    /// Coverage counts; the run's output holds the lists.
    #[serde(default)]
    pub coverage: Coverage,
    #[serde(default)]
    pub finding_counts: FindingCounts,
    /// Ids of the first [`RunRecord::MAX_DIGESTS`] findings.
    #[serde(default)]
    pub finding_digests: Vec<FindingId>,
    #[serde(default)]
    pub summary: String,
    /// Reason for the policy's decision when the run was requested.
    #[serde(default)]
    pub decision: String,
    /// Number of later requests that this run answered, by reuse after its end or by adoption while it was active.
    /// The fields about the original request stay unchanged; `saved_token_estimate` adds up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reuse_count: u32,
    /// Part of `reuse_count`: adoptions while the run was active. Records from before this counter count every reuse
    /// as a reuse after the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub adopted_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reused_at: Option<Time>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_reuse_reason: String,
    /// HEAD at the last reuse: a later commit with the same content to review.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_reuse_head: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_over_from: Option<RunId>,
    /// Run that ended early and whose journal this run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    /// Older run that may finish first; its results are carried over to this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<RunId>,
    /// If true, everything is sent, even what earlier runs reviewed (`--force`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// If true, nothing is learned from the run: its requester opted out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// If true, a person paused the run, and its worker sends no request until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// Note of the person who cancelled the run; for a superseded run, the reason why it could not finish.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cancel_note: String,
    /// Reason why the run continues although newer code was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finish_note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_summary: String,
}

impl RunRecord {
    /// Maximum number of changed paths in a record.
    pub const MAX_PATHS: usize = 200;
    /// Prefix of the scope hash of a run that reviews a fix. The prefix keeps such a run from answering other
    /// requests, because its findings are not in the user's files.
    pub const FIX_SCOPE_PREFIX: &'static str = "fix:";
    /// Maximum number of finding ids in a record.
    pub const MAX_DIGESTS: usize = 200;

    /// Returns true if the run waits for a person to resume it.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.status.is_terminal()
    }

    /// Returns the newest HEAD at which the run is known to match the code.
    pub fn last_matching_head(&self) -> &str {
        if self.last_reuse_head.is_empty() { &self.head_commit } else { &self.last_reuse_head }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Full result of a run, stored once as `outputs/<run_id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutput {
    pub version: u32,
    pub run: RunRecord,
    pub findings: Vec<Finding>,
    /// Coverage with the lists of files.
    pub coverage: Coverage,
    /// Notes about the run for a person, one line each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Model reports that failed a check against the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedReport>,
    /// Reports that are not findings of the run, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<SuppressedReport>,
    /// Earlier findings at a new location in this run's snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFinding>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flip_flops: Vec<FlipFlop>,
    /// Findings and suppressed reports that were matched to an earlier finding with another id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<FindingAlias>,
}

impl RunOutput {
    /// Creates an empty result.
    pub fn new(run: RunRecord) -> Self {
        Self {
            version: SCHEMA_VERSION,
            coverage: run.coverage.clone(),
            run,
            findings: Vec::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            held_back: Vec::new(),
            moved: Vec::new(),
            flip_flops: Vec::new(),
            recognised: Vec::new(),
        }
    }
}
