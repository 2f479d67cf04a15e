//! Defines a fix: a patch for one or more findings, from the request to its application.
//!
//! A fix has its own record, because the run that raised the findings has ended and an ended run never changes its
//! status. The run only counts the reviews of its fixes (`follow_up_count`).

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, FixId, RunId, Source, Time, Usage};

word_enum!(
    /// Status of a fix. Only a person's decision leads on from `offered`.
    FixStatus {
        /// A worker is making the patch.
        Working = "working",
        /// The patch exists and is being reviewed.
        Reviewing = "reviewing",
        /// The patch waits for a person's decision.
        Offered = "offered",
        /// The patch is in the user's files.
        Applied = "applied",
        /// The offer, or the fix in progress, was dropped.
        Dropped = "dropped",
        /// No patch exists; `reason` says why.
        Failed = "failed",
        /// The patch was applied and reverted; the user's files are as before.
        Undone = "undone",
    }
);

impl FixStatus {
    /// Returns true if a worker is, or should be, working on the fix.
    pub fn is_working(self) -> bool {
        matches!(self, Self::Working | Self::Reviewing)
    }

    /// Returns true if the patch can be applied to the user's files.
    pub fn is_applicable(self) -> bool {
        matches!(self, Self::Offered | Self::Undone)
    }
}

/// Finding that the patch does not address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfixedFinding {
    /// One of [`Fix::findings`].
    pub finding_id: FindingId,
    /// Reason for a person.
    pub reason: String,
}

/// File of the patch with its diff statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiffStat {
    /// Path relative to the repository root.
    pub path: String,
    /// Added lines; `removed` counts removed lines.
    pub added: u32,
    /// Removed lines.
    pub removed: u32,
}

/// File that applying the patch writes, with its states before and after. The store holds the original bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedFile {
    /// Path relative to the repository root.
    pub path: String,
    /// Content hash before; `None` when the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Content hash after; `None` when the patch deletes the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Permission bits before; 0 when the file did not exist.
    #[serde(default)]
    pub mode: u32,
    /// Parent folders that had to be created, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

/// Line of `fixes.ndjson`: the state of a fix after a change. The last line of a fix wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    /// Identity of the fix; the same in all of its lines.
    pub fix_id: FixId,
    /// Status after the change.
    pub status: FixStatus,
    /// Time of the request.
    pub created_at: Time,
    /// Time of the last change; never decreases.
    pub updated_at: Time,
    /// Part of revdeck that requested the fix.
    pub source: Source,
    /// If true, nothing is learned from the fix: its requester opted out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// True if a reviewer answered and its last patch failed the check: its edits did not fit, or changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfit: bool,
    /// Findings to fix.
    pub findings: Vec<FindingId>,
    /// Findings in `findings` that the patch does not address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<UnfixedFinding>,
    /// Run in whose snapshot the patch is made.
    pub run_id: RunId,
    /// Commit with the snapshot of that run; the patch is relative to it.
    pub snapshot_commit: String,
    /// Base commit or tree of that run.
    #[serde(default)]
    pub base_commit: String,
    /// Commit with the patched snapshot; the run that reviewed it protects it from garbage collection.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fixed_commit: String,
    /// Reviewer that makes the patch; `builtin` applies exact suggestions.
    pub reviewer: String,
    /// Model that makes the patch; empty for `builtin` and when it is not known.
    #[serde(default)]
    pub model: String,
    /// Number of reviews after which the patch was made again.
    #[serde(default)]
    pub follow_up_count: u32,
    /// Runs that reviewed the patch; the last one reviewed its current version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<RunId>,
    /// Verdict of the last review: "clean", "2 findings".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// Files of the patch; empty before the patch exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDiffStat>,
    /// Hash of the patch that `files` describes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch_hash: String,
    /// Tokens spent on making the patch; its reviews count their own.
    #[serde(default)]
    pub tokens: Usage,
    /// Cost in US dollars.
    #[serde(default)]
    pub cost: f64,
    /// Time spent on making the patch, in milliseconds.
    #[serde(default)]
    pub resolve_ms: u64,
    /// Reason for a failure or a drop, or a note for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Working tree in which the fix was applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worktree: String,
    /// Files that applying writes, recorded before the first write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<AppliedFile>,
}

impl Fix {
    /// Creates the record of a fix that `reviewer` begins to make in the snapshot of `run_id`. It names no findings, no
    /// commits and no model yet.
    pub fn new(fix_id: FixId, run_id: RunId, source: Source, reviewer: String, now: Time) -> Self {
        Self {
            fix_id,
            status: FixStatus::Working,
            created_at: now,
            updated_at: now,
            source,
            private: false,
            unfit: false,
            findings: Vec::new(),
            left_out: Vec::new(),
            run_id,
            snapshot_commit: String::new(),
            base_commit: String::new(),
            fixed_commit: String::new(),
            reviewer,
            model: String::new(),
            follow_up_count: 0,
            reviews: Vec::new(),
            verdict: String::new(),
            files: Vec::new(),
            patch_hash: String::new(),
            tokens: Usage::default(),
            cost: 0.0,
            resolve_ms: 0,
            reason: String::new(),
            worktree: String::new(),
            touched: Vec::new(),
        }
    }

    /// Maximum number of findings per fix.
    pub const MAX_FINDINGS: usize = 50;
    /// Maximum number of files in a patch; a larger change is no longer a fix.
    pub const MAX_FILES: usize = 100;
    /// Maximum size of a patch in bytes.
    pub const MAX_PATCH_BYTES: usize = 1024 * 1024;

    /// Returns the findings that the patch addresses.
    pub fn fixed_findings(&self) -> impl Iterator<Item = &FindingId> {
        let left_out = |id: &FindingId| self.left_out.iter().any(|unfixed| unfixed.finding_id == *id);
        self.findings.iter().filter(move |id| !left_out(id))
    }

    /// Returns the findings about which the end of the fix says something: its patch was applied and undone, was
    /// dropped by a person, or failed its check. A fix that ended for another reason says nothing.
    pub fn setback_findings(&self) -> Vec<&FindingId> {
        match self.status {
            FixStatus::Undone => self.fixed_findings().collect(),
            FixStatus::Dropped if !self.files.is_empty() => self.fixed_findings().collect(),
            FixStatus::Failed if self.unfit => self.findings.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns true if applying began and did not finish, because the worker or the cockpit died.
    pub fn is_half_applied(&self) -> bool {
        self.status.is_applicable() && !self.touched.is_empty()
    }

    /// Formats the diff statistics: `2 files, +3 -1`.
    pub fn format_diff_stat(&self) -> String {
        let sum = |of: fn(&FileDiffStat) -> u32| self.files.iter().map(of).fold(0, u32::saturating_add);
        let files = super::text::format_count(self.files.len(), "file");
        format!("{files}, +{} -{}", sum(|file| file.added), sum(|file| file.removed))
    }
}
