//! Reviewers: who reads the code. `builtin` needs no network and no key; `http` talks to models.
//!
//! Invariants: a reviewer reads the snapshot's objects only, never the working tree; it records nothing itself, what it
//! reports is data for the engine.

pub mod analyzer;
pub mod chat;
pub mod command;
pub mod http;

use thiserror::Error;

use crate::domain::{ErrorClass, Finding, OmittedFile};
use crate::git::FileChange;

/// What a reviewer is asked to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewerUnit {
    /// Each of these files by itself.
    EachFile(Vec<FileChange>),
    /// What can only be seen across files: these are the changed ones, the rest of the snapshot may be read.
    CrossFile(Vec<FileChange>),
}

/// A file as the reviewer saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerFile {
    pub path: String,
    /// Lines in the file.
    pub lines: u32,
}

/// A reviewer's answer about a [`Unit`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewerReport {
    /// In the order of the unit's files, so that two reviews of one unit report the same in the same order. Run ids and
    /// times are whoever called's to set.
    pub findings: Vec<Finding>,
    pub read: Vec<ReviewerFile>,
    /// Files of the unit that could not be reviewed after all.
    pub left_out: Vec<OmittedFile>,
    /// Lines for a person.
    pub notes: Vec<String>,
    /// Bytes of files that did not change and had to be read, since what is looked for in them was not known.
    pub unindexed_bytes: u64,
}

/// Why there is no [`Report`].
#[derive(Debug, Error)]
pub enum ReviewerError {
    /// The caller's question was answered with yes.
    #[error("cancelled")]
    Cancelled,
    #[error("{summary}")]
    Failed { class: ErrorClass, summary: String },
}

/// Somebody or something that reads code and reports problems.
pub trait Reviewer: Send {
    /// Reviews a unit. Asks `cancelled` often enough to stop within 100 ms, and then answers
    /// [`ReviewerError::Cancelled`].
    fn review(&mut self, unit: &ReviewerUnit, cancelled: &dyn Fn() -> bool) -> Result<ReviewerReport, ReviewerError>;

    /// Changes whenever the same code could lead to other reports: rules, thresholds, prompts.
    fn policy_version(&self) -> String;

    /// Files that make a good unit: large enough to pay for the durable writes, small enough to lose little.
    fn files_per_unit(&self) -> usize;

    /// Whether it wants a [`Unit::Whole`] last.
    fn has_cross_file_unit(&self) -> bool;
}
