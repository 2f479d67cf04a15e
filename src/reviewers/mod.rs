//! Reviewers: the parts that read code and report problems.
//!
//! The built-in analyzer needs no network and no key; [`http`] sends the code to language models; [`command`] runs
//! command-line agents. `local` finds servers of models on this machine.
//!
//! - A reviewer reads the objects of the snapshot only, never the working tree.
//! - A reviewer records nothing. Its report is data for the review engine.

pub mod analyzer;
pub mod chat;
pub mod command;
mod error_class;
pub mod http;
mod json_access;
pub(crate) mod local;

use thiserror::Error;

use crate::domain::{ErrorClass, ReviewUnitKind, UnitReport};
use crate::git::FileChange;

/// The reason why a review returned no [`UnitReport`].
#[derive(Debug, Error)]
pub enum ReviewerError {
    /// The `cancelled` callback returned `true`.
    #[error("cancelled")]
    Cancelled,
    /// The review is impossible.
    #[error("{summary}")]
    Failed {
        /// Class of the failure.
        class: ErrorClass,
        /// Description of the failure for a person.
        summary: String,
    },
}

/// A reviewer that reads code and reports problems.
pub trait Reviewer: Send {
    /// Reviews the changed `files` of a unit. For [`ReviewUnitKind::CrossFile`] the reviewer may read the rest of the
    /// snapshot too. Calls `cancelled` often enough to stop within 100 ms.
    ///
    /// # Errors
    ///
    /// [`ReviewerError::Cancelled`] after `cancelled` returned `true`, [`ReviewerError::Failed`] when the review is
    /// impossible.
    fn review(
        &mut self,
        kind: ReviewUnitKind,
        files: &[FileChange],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<UnitReport, ReviewerError>;

    /// Returns the number of files for one unit: large enough to pay for the durable writes, small enough to lose
    /// little work after a crash.
    fn files_per_unit(&self) -> usize;

    /// Returns `true` if the last unit of a run must be a [`ReviewUnitKind::CrossFile`].
    fn has_cross_file_unit(&self) -> bool;
}
