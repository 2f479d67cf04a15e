//! A fix: a patch that does something about findings, from the wish for it to what became of it.
//!
//! It has a record of its own because the run that raised the findings has ended, and what has ended never changes its
//! status; the run only counts the reviews that were made of its fixes (`follow_up_count`).

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, FixId, RunId, Source, Time, Usage};

word_enum!(
    /// Where a fix is in its life. Only a person's word leads on from `offered`.
    FixStatus {
        /// Its worker makes the patch.
        Working = "working",
        /// The patch is there and is being reviewed.
        Reviewing = "reviewing",
        /// It waits for somebody to look at it.
        Offered = "offered",
        /// It is in the user's files.
        Applied = "applied",
        Dropped = "dropped",
        /// There is no patch; `reason` says why.
        Failed = "failed",
        /// It was applied, and the user's files are as they were before.
        Undone = "undone",
    }
);

impl FixStatus {
    /// Whether a worker is, or should be, at it.
    pub fn is_working(self) -> bool {
        matches!(self, Self::Working | Self::Reviewing)
    }

    /// Whether its patch can be put into the user's files.
    pub fn is_applicable(self) -> bool {
        matches!(self, Self::Offered | Self::Undone)
    }
}

/// A finding that the patch does nothing about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfixedFinding {
    pub finding_id: FindingId,
    pub reason: String,
}

/// A file of the patch, in the order of the patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiffStat {
    pub path: String,
    /// Lines.
    pub added: u32,
    pub removed: u32,
}

/// A file that applying writes: what it was and what it becomes. The bytes from before are in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedFile {
    pub path: String,
    /// Hash of the content before; absent when there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Hash of the content after; absent when the file goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Permissions before; 0 when there was no file.
    #[serde(default)]
    pub mode: u32,
    /// Folders above it that had to be made, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

/// One line of `fixes.ndjson`: a fix as it stands after a change. The last line of a fix wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    pub fix_id: FixId,
    pub status: FixStatus,
    pub created_at: Time,
    pub updated_at: Time,
    pub source: Source,
    /// Nothing is learned from it: whoever asked for it opted out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// What it is to do something about.
    pub findings: Vec<FindingId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<UnfixedFinding>,
    /// The run in whose snapshot the patch is made.
    pub run_id: RunId,
    pub snapshot_commit: String,
    /// What that run held its snapshot against.
    #[serde(default)]
    pub base_commit: String,
    /// The snapshot with the patch in it; kept from gc by the run that reviewed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fixed_commit: String,
    /// Who makes it: `builtin` puts exact suggestions in.
    pub reviewer: String,
    #[serde(default)]
    pub model: String,
    /// Reviews of the patch after which it was made again.
    #[serde(default)]
    pub follow_up_count: u32,
    /// The runs that reviewed the patch, the last one as it is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<RunId>,
    /// What the last of them says: "clean", "2 findings".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDiffStat>,
    /// Hash of the patch that `files` is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch_hash: String,
    /// Spent on making the patch; its reviews have accounts of their own.
    #[serde(default)]
    pub tokens: Usage,
    /// In US dollars.
    #[serde(default)]
    pub cost: f64,
    /// Milliseconds spent on making the patch.
    #[serde(default)]
    pub resolve_ms: u64,
    /// Why it failed or was dropped, or what a person should know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Where it was applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worktree: String,
    /// The files that applying writes, recorded before the first of them is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<AppliedFile>,
}

impl Fix {
    /// Findings that one fix is made for at most.
    pub const MAX_FINDINGS: usize = 50;
    /// Files of a patch at most; more is no fix any more.
    pub const MAX_FILES: usize = 100;
    /// Bytes of a patch at most.
    pub const MAX_PATCH_BYTES: usize = 1024 * 1024;

    /// The findings that the patch is for.
    pub fn fixed_findings(&self) -> impl Iterator<Item = &FindingId> {
        let left_out = |id: &FindingId| self.left_out.iter().any(|unfixed| unfixed.finding_id == *id);
        self.findings.iter().filter(move |id| !left_out(id))
    }

    /// Whether applying began and did not come to its end: the worker or the cockpit died in between.
    pub fn is_half_applied(&self) -> bool {
        self.status.is_applicable() && !self.touched.is_empty()
    }

    /// `2 files, +3 -1`.
    pub fn format_diff_stat(&self) -> String {
        let sum = |of: fn(&FileDiffStat) -> u32| self.files.iter().map(of).fold(0, u32::saturating_add);
        let files = super::text::format_count(self.files.len(), "file");
        format!("{files}, +{} -{}", sum(|file| file.added), sum(|file| file.removed))
    }
}
