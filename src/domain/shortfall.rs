//! Names what a run that ended by itself did not review. What was not reviewed is never clean.

use super::RunStatus;

/// Shortfall of a run that ended by itself: it reviewed less than its whole change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// Something should have been reviewed and was not.
    Gaps,
    /// No file was reviewed, because every changed file was left out.
    NothingReviewed,
}

impl Shortfall {
    /// Returns what a run did not review. `files` and `hunks` are the numbers of all that were to be reviewed, and of those that
    /// were; carried hunks count among all. A run with `findings` is not called unreviewed: the texts of left-out files are
    /// searched for secrets.
    pub fn of_run(
        (status, is_incomplete): (RunStatus, bool),
        (files, files_reviewed): (u32, u32),
        (hunks, hunks_reviewed): (u32, u32),
        findings: u32,
    ) -> Option<Self> {
        let reviewed_nothing = files > 0 && (files_reviewed, hunks, hunks_reviewed, findings) == (0, 0, 0, 0);
        match is_incomplete {
            true => Some(Self::Gaps),
            false => (status == RunStatus::Completed && reviewed_nothing).then_some(Self::NothingReviewed),
        }
    }

    /// Returns the word that lists show instead of `completed`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gaps => "incomplete",
            Self::NothingReviewed => "not reviewed",
        }
    }
}
