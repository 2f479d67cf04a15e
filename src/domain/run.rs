//! A run record: what was reviewed, by whom, at what price and why it ended.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    Coverage, Finding, FindingAlias, FindingId, FixId, FlipFlop, MovedFinding, Priority, RejectedReport, RunId,
    SCHEMA_VERSION, Scope, SuppressedReport, Time,
};

word_enum!(
    /// Where a run is in its life. Terminal ones never change again.
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
    /// Who asked for a run.
    Source { Cockpit = "cockpit", Cli = "cli", Watch = "watch", Hook = "hook", Assistant = "assistant" }
);
word_enum!(
    /// The only reasons for which a run may be cancelled; elapsed time is not among them.
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
    /// What sort of failure ended a run, for a reader that has to decide what to do next.
    ErrorClass {
        Git = "git",
        Store = "store",
        Reviewer = "reviewer",
        Configuration = "configuration",
        WorkerDied = "worker_died",
        Internal = "internal",
        /// A key is missing, wrong or not allowed to do this.
        Auth = "auth",
        /// The account has nothing left.
        Quota = "quota",
        RateLimit = "rate_limit",
        Overloaded = "overloaded",
        ContextTooLong = "context_too_long",
        Network = "network",
        /// What came back is not what the provider's protocol says.
        Malformed = "malformed",
        Timeout = "timeout",
        /// The model declined to review.
        Refused = "refused",
    }
);

impl CancelReason {
    /// The status of a run that ends for this reason.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Superseded => RunStatus::Superseded,
            _ => RunStatus::Cancelled,
        }
    }
}

impl RunStatus {
    /// Whether the run has ended, well or not.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Superseded | Self::Skipped | Self::Lost)
    }

    /// Whether a worker holds (or should hold) the run's lock.
    pub fn is_working(self) -> bool {
        matches!(self, Self::Snapshotting | Self::Reviewing | Self::Resolving)
    }
}

/// Tokens, as the provider counted them; all 0 for the built-in reviewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    /// All tokens that were paid for in some way: input (cached ones included), output and reasoning.
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

/// How long the phases took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseTimings {
    pub queued_ms: u64,
    pub snapshot_ms: u64,
    pub review_ms: u64,
    pub resolve_ms: u64,
    /// From the request until the first byte of the first answer that the run paid for; absent where nobody answers in
    /// tokens, and before the first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// From the request until the first finding was on record; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_finding_ms: Option<u64>,
}

/// Who gave answers of a run: its reviewer, or one that took over from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewerUsage {
    /// Its name in the settings.
    pub reviewer: String,
    /// By the provider's word, which may be more exact than the settings.
    pub model: String,
    pub reasoning_effort: String,
    /// Answers that the run paid for.
    pub turns: u32,
    pub tokens: Usage,
}

/// Findings of a run by priority.
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

    pub fn by_priority(&self) -> [u32; 4] {
        [self.p0, self.p1, self.p2, self.p3]
    }

    pub fn total(&self) -> u32 {
        self.by_priority().iter().sum()
    }
}

/// One line of `runs.ndjson`: a run as it stands after a change. The last line of a run wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub status: RunStatus,
    pub created_at: Time,
    pub updated_at: Time,
    pub source: Source,
    /// Who asked, as `user@host`.
    #[serde(default)]
    pub owner: String,
    /// The branch's short name; empty when HEAD is detached.
    #[serde(default)]
    pub branch: String,
    /// The working tree's folder.
    #[serde(default)]
    pub worktree: String,
    /// The commit or tree that the changes are held against; empty when there is none (unborn HEAD, `all`).
    #[serde(default)]
    pub base_commit: String,
    /// The commit that holds the snapshot's tree; kept by `refs/revdeck/snapshots/<run_id>`.
    #[serde(default)]
    pub snapshot_commit: String,
    #[serde(default)]
    pub head_commit: String,
    #[serde(default)]
    pub epoch: u64,
    /// Bytes of `triage.ndjson` when the snapshot was frozen, or last found to be the code as it is: a disposition that
    /// stands behind them was made later, whatever the clock said. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triage_bytes: Option<u64>,
    pub scope: Scope,
    /// Over everything but the content that decides what is reviewed (whole tree or change, paths ignored).
    #[serde(default)]
    pub scope_hash: String,
    /// Over both sides' content of everything changed; two scopes with one fingerprint show a reviewer the same.
    #[serde(default)]
    pub diff_fingerprint: String,
    /// Over prompts, thresholds and the built-in reviewer's rules.
    #[serde(default)]
    pub prompt_policy_version: String,
    /// The first [`RunRecord::MAX_PATHS`] of the changed paths; `coverage.files_total` counts all.
    #[serde(default)]
    pub changed_paths: Vec<String>,
    pub reviewer: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub reasoning_effort: String,
    #[serde(default)]
    pub attempt: u32,
    /// Reviews of patches that were made for its findings.
    #[serde(default)]
    pub follow_up_count: u32,
    /// The fix whose patch it reviews: what it finds is not in the user's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up_of: Option<FixId>,
    #[serde(default)]
    pub phase_timings: PhaseTimings,
    #[serde(default)]
    pub prompt_estimate: u64,
    #[serde(default)]
    pub tokens: Usage,
    /// In US dollars.
    #[serde(default)]
    pub cost: f64,
    #[serde(default)]
    pub window_peak: u64,
    /// Who answered, in the order of their first answers; empty where nobody is asked in turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<ReviewerUsage>,
    #[serde(default)]
    pub saved_token_estimate: u64,
    /// Counts only; the lists are in the run's output.
    #[serde(default)]
    pub coverage: Coverage,
    #[serde(default)]
    pub finding_counts: FindingCounts,
    /// The ids of the findings, at most [`RunRecord::MAX_DIGESTS`].
    #[serde(default)]
    pub finding_digests: Vec<FindingId>,
    #[serde(default)]
    pub summary: String,
    /// Why the harness decided as it did when the run was asked for.
    #[serde(default)]
    pub decision: String,
    /// How often a later request was answered by this run (reused, or adopted while it was on its way). What the run
    /// itself was asked for and about stays as it is; `saved_token_estimate` adds up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reuse_count: u32,
    /// Of `reuse_count`: while it was on its way. Before this was counted, all of them count as reused.
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
    /// The run that ended early and whose journal this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    /// An older run that may finish first: what it yields is carried over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<RunId>,
    /// Everything is sent, whatever earlier runs have reviewed: it was asked for with `--force`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Nothing is learned from what it sees: whoever asked for it opted out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// A person has stopped it for a while; its worker asks for nothing until that is taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// What the person who cancelled said; of a superseded run why it was not let finish.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cancel_note: String,
    /// Why it goes on although newer code was asked about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finish_note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_summary: String,
}

impl RunRecord {
    /// Changed paths kept in a record.
    pub const MAX_PATHS: usize = 200;
    /// Begins the scope hash of a review of a fix: nobody who asks for a review is answered with one, and what it reports is
    /// not in the user's files.
    pub const FIX_SCOPE_PREFIX: &'static str = "fix:";
    /// Finding ids kept in a record.
    pub const MAX_DIGESTS: usize = 200;

    /// Whether it waits for a person to let it go on.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.status.is_terminal()
    }

    /// The newest HEAD at which the run is known to speak of the code.
    pub fn last_matching_head(&self) -> &str {
        if self.last_reuse_head.is_empty() { &self.head_commit } else { &self.last_reuse_head }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// `outputs/<run_id>.json`: the full result of a run, written once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutput {
    pub version: u32,
    pub run: RunRecord,
    pub findings: Vec<Finding>,
    /// With the lists of files.
    pub coverage: Coverage,
    /// What a person should know about the run, a line each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Reports of a model that did not hold against the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedReport>,
    /// Reports that are no findings of the run, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<SuppressedReport>,
    /// Earlier findings that stand elsewhere in this run's snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFinding>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flip_flops: Vec<FlipFlop>,
    /// Findings and held back reports that were reported under another id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<FindingAlias>,
}

impl RunOutput {
    /// A result without anything in it.
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
