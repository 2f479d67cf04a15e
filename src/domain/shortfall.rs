//! Names what a run that ended by itself did not review. What was not reviewed is never clean.

/// Shortfall of a run that ended by itself: it reviewed less than its whole change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// Something should have been reviewed and was not.
    Gaps,
    /// No file was reviewed, because every changed file was left out.
    NothingReviewed,
}

impl Shortfall {
    /// Returns the word that lists show instead of `completed`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gaps => "incomplete",
            Self::NothingReviewed => "not reviewed",
        }
    }
}
