//! Names what a run did not review. What was not reviewed is never clean.

use super::{CancelReason, ErrorClass, RunStatus};

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

/// Part of its change that a run has reviewed. A run without findings says that the code is clean after [`ReviewReach::Whole`]
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewReach {
    /// The run has not ended.
    Unfinished,
    /// The run ended and has reviewed nothing.
    Nothing,
    /// The run ended and has reviewed a part.
    Part,
    /// The run has reviewed all that it should have.
    Whole,
}

/// Facts of a run from which follows what it has reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewedParts {
    /// Status of the run.
    pub status: RunStatus,
    /// The run ended by itself, or was skipped, and did not review all that it should have.
    pub is_incomplete: bool,
    /// Number of changed files.
    pub files: u32,
    /// Number of changed files that the run itself has reviewed.
    pub files_reviewed: u32,
    /// Number of hunks that were to be reviewed; carried hunks count among them.
    pub hunks: u32,
    /// Number of hunks that the run itself has reviewed.
    pub hunks_reviewed: u32,
    /// Files or hunks are carried over: an earlier run has reviewed them unchanged.
    pub has_carried: bool,
    /// Number of findings.
    pub findings: u32,
    /// The run goes on with what an earlier run has reviewed.
    pub continues_earlier: bool,
    /// Another run answers the request of this one.
    pub has_other_answer: bool,
}

impl ReviewedParts {
    /// Returns what a run that ended by itself did not review. A run with findings is not called unreviewed: the texts of
    /// left-out files are searched for secrets. Nor is one that carries files over, as [`super::Coverage::has_reviewed_nothing`]
    /// says of its coverage.
    pub fn shortfall(&self) -> Option<Shortfall> {
        let is_untouched =
            (self.files_reviewed, self.hunks, self.hunks_reviewed, self.findings) == (0, 0, 0, 0) && !self.has_carried;
        match self.is_incomplete {
            true => Some(Shortfall::Gaps),
            false => (self.status == RunStatus::Completed && self.files > 0 && is_untouched)
                .then_some(Shortfall::NothingReviewed),
        }
    }

    /// Returns the part of its change that the run has reviewed, however it ended.
    pub fn reach(&self) -> ReviewReach {
        let has_reviewed = self.files_reviewed > 0 || self.hunks_reviewed > 0 || self.has_carried;
        let has_begun = self.continues_earlier || has_reviewed || self.findings > 0;
        match (self.status, self.shortfall()) {
            (status, _) if !status.is_terminal() => ReviewReach::Unfinished,
            (_, Some(Shortfall::NothingReviewed)) => ReviewReach::Nothing,
            (RunStatus::Completed, None) => ReviewReach::Whole,
            _ if has_begun => ReviewReach::Part,
            _ => ReviewReach::Nothing,
        }
    }

    /// Returns why a run that has ended reviewed less than its whole change, as a part of a sentence: `it failed: rate limit`.
    /// `None` for a run that reviewed all of it, or has not ended.
    pub fn describe_reason(&self, cancelled: Option<CancelReason>, error: Option<ErrorClass>) -> Option<String> {
        if matches!(self.reach(), ReviewReach::Unfinished | ReviewReach::Whole) {
            return None;
        }
        let class = error.map(|error| format!(": {}", error.word().replace('_', " "))).unwrap_or_default();
        Some(match (self.status, self.shortfall()) {
            (_, Some(Shortfall::NothingReviewed)) => "every changed file was left out".to_owned(),
            (RunStatus::Failed, _) => format!("it failed{class}"),
            (RunStatus::Lost, _) => "its worker is gone".to_owned(),
            (RunStatus::Superseded, _) => CancelReason::Superseded.describe().to_owned(),
            (RunStatus::Cancelled, _) => cancelled.map_or("it was cancelled", CancelReason::describe).to_owned(),
            (RunStatus::Skipped, _) if self.has_other_answer => "another review answers for it".to_owned(),
            (RunStatus::Skipped, _) => "there was nothing to review in it".to_owned(),
            _ if error.is_some() => format!("a part of it failed{class}"),
            _ if self.reach() == ReviewReach::Nothing => "its files could not be reviewed".to_owned(),
            _ => "a part is missing".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of a run that has reviewed 2 files with 5 hunks and found nothing.
    fn reviewed(status: RunStatus) -> ReviewedParts {
        ReviewedParts {
            status,
            is_incomplete: false,
            files: 2,
            files_reviewed: 2,
            hunks: 5,
            hunks_reviewed: 5,
            has_carried: false,
            findings: 0,
            continues_earlier: false,
            has_other_answer: false,
        }
    }

    /// Returns the parts of a run that ended before it read anything.
    fn unread(status: RunStatus) -> ReviewedParts {
        ReviewedParts { files_reviewed: 0, hunks_reviewed: 0, ..reviewed(status) }
    }

    #[test]
    fn an_end_without_a_review_is_never_a_whole_one_and_says_why() {
        use ReviewReach::{Nothing, Part, Unfinished, Whole};
        use RunStatus as S;
        let (budget, user) = (Some(CancelReason::BudgetExhausted), Some(CancelReason::UserStop));
        let limit = Some(ErrorClass::RateLimit);
        let gaps = |parts: ReviewedParts| ReviewedParts { is_incomplete: true, ..parts };
        let left_out = ReviewedParts { hunks: 0, ..unread(S::Completed) };
        let unplanned = ReviewedParts { files: 0, hunks: 0, ..unread(S::Failed) };
        let answered = ReviewedParts { has_other_answer: true, ..unread(S::Skipped) };
        for (title, parts, cancelled, error, reach, reason) in [
            ("the whole change", reviewed(S::Completed), None, None, Whole, None),
            ("nothing has changed", ReviewedParts { files: 0, ..left_out }, None, None, Whole, None),
            ("all left out", left_out, None, None, Nothing, Some("every changed file was left out")),
            (
                "all carried over, without hunks",
                ReviewedParts { has_carried: true, ..left_out },
                None,
                None,
                Whole,
                None,
            ),
            ("a secret in what was left out", ReviewedParts { findings: 1, ..left_out }, None, None, Whole, None),
            ("a gap", gaps(reviewed(S::Completed)), None, None, Part, Some("a part is missing")),
            ("a part failed", gaps(reviewed(S::Completed)), None, limit, Part, Some("a part of it failed: rate limit")),
            ("gaps only", gaps(unread(S::Completed)), None, None, Nothing, Some("its files could not be reviewed")),
            ("working", unread(S::Reviewing), None, None, Unfinished, None),
            ("waiting", unread(S::Pending), None, None, Unfinished, None),
            ("failed at once", unplanned, None, limit, Nothing, Some("it failed: rate limit")),
            ("failed half way", reviewed(S::Failed), None, None, Part, Some("it failed")),
            ("lost", unread(S::Lost), None, None, Nothing, Some("its worker is gone")),
            ("stopped", unread(S::Cancelled), user, None, Nothing, Some("stopped by the user")),
            ("budget", reviewed(S::Cancelled), budget, None, Part, Some("budget reached")),
            ("superseded", unread(S::Superseded), None, None, Nothing, Some("newer code was requested")),
            ("skipped", unread(S::Skipped), None, None, Nothing, Some("there was nothing to review in it")),
            ("answered", answered, None, None, Nothing, Some("another review answers for it")),
            (
                "failed after it took parts over",
                ReviewedParts { continues_earlier: true, ..unread(S::Failed) },
                None,
                None,
                Part,
                Some("it failed"),
            ),
        ] {
            assert_eq!(parts.reach(), reach, "{title}");
            assert_eq!(parts.describe_reason(cancelled, error).as_deref(), reason, "{title}");
        }
    }
}
