//! Reviewers: the parts that read code and report problems.
//!
//! The built-in analyzer needs no network and no key; [`http`] sends the code to language models; [`command`] runs
//! command-line agents.
//!
//! - A reviewer reads the objects of the snapshot only, never the working tree.
//! - A reviewer records nothing. Its report is data for the review engine.

pub mod analyzer;
pub mod chat;
pub mod command;
pub mod http;

use thiserror::Error;

use crate::domain::{ErrorClass, Finding, OmittedFile};
use crate::git::FileChange;

/// A piece of review work for a [`Reviewer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewerUnit {
    /// Review each of these files by itself.
    EachFile(Vec<FileChange>),
    /// Look for problems that are visible only across files. The list holds the changed files; the reviewer may read
    /// the rest of the snapshot too.
    CrossFile(Vec<FileChange>),
}

/// A file that the reviewer read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerFile {
    pub path: String,
    /// Number of lines in the file.
    pub lines: u32,
}

/// The answer of a reviewer to a [`ReviewerUnit`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewerReport {
    /// Findings in the order of the unit's files, so that two reviews of the same unit report the same findings in the
    /// same order. The caller sets run ids and times.
    pub findings: Vec<Finding>,
    pub read: Vec<ReviewerFile>,
    /// Files of the unit that could not be reviewed.
    pub left_out: Vec<OmittedFile>,
    /// Messages for the user, one line each.
    pub notes: Vec<String>,
    /// Bytes of unchanged files that the reviewer had to read because the index did not know their content.
    pub unindexed_bytes: u64,
}

/// The reason why a review returned no [`ReviewerReport`].
#[derive(Debug, Error)]
pub enum ReviewerError {
    /// The `cancelled` callback returned `true`.
    #[error("cancelled")]
    Cancelled,
    #[error("{summary}")]
    Failed { class: ErrorClass, summary: String },
}

/// A reviewer that reads code and reports problems.
pub trait Reviewer: Send {
    /// Reviews a unit. Calls `cancelled` often enough to stop within 100 ms.
    ///
    /// # Errors
    ///
    /// [`ReviewerError::Cancelled`] after `cancelled` returned `true`, [`ReviewerError::Failed`] when the review is
    /// impossible.
    fn review(&mut self, unit: &ReviewerUnit, cancelled: &dyn Fn() -> bool) -> Result<ReviewerReport, ReviewerError>;

    /// Returns a version that changes whenever the same code could lead to other reports: new rules, thresholds or
    /// prompts.
    fn policy_version(&self) -> String;

    /// Returns the number of files for one unit: large enough to pay for the durable writes, small enough to lose
    /// little work after a crash.
    fn files_per_unit(&self) -> usize;

    /// Returns `true` if the last unit of a run must be a [`ReviewerUnit::CrossFile`].
    fn has_cross_file_unit(&self) -> bool;
}
