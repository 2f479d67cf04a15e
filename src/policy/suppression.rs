//! Decides which reports are recorded but not raised: reports of muted kinds, and late reports.
//!
//! Invariants:
//! - An urgent report is never late.
//! - Security and correctness are never muted.
//! - Every suppressed report is recorded with a reason.

use thiserror::Error;

use super::DETERMINISTIC_REVIEWER;
use crate::domain::{FindingStatus, Kind, LineRange, Priority};

/// Number of dismissed findings of a kind, with none addressed, from which muting it is offered: five of five are no
/// accident.
pub const MIN_DISMISSALS_TO_OFFER_MUTE: u32 = 5;

/// Error for a kind that must not be muted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is never muted: what it is about costs too much when it is missed")]
pub struct NeverMutedKind(pub Kind);

/// Checks that a kind may be muted.
///
/// # Errors
/// Returns [`NeverMutedKind`] for kinds that are always raised.
pub fn may_mute(kind: Kind) -> Result<(), NeverMutedKind> {
    if kind.is_never_hidden() { Err(NeverMutedKind(kind)) } else { Ok(()) }
}

/// Offer to mute a kind, because the user has only dismissed its findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MuteOffer {
    pub kind: Kind,
    /// Number of dismissed findings.
    pub dismissed: u32,
}

/// Returns the kinds to offer for muting, most dismissed first. `findings` must yield every recorded finding.
pub fn list_mute_offers(
    findings: impl IntoIterator<Item = (Kind, FindingStatus)>,
    is_muted: impl Fn(Kind) -> bool,
) -> Vec<MuteOffer> {
    let mut counts = [(0_u32, 0_u32); Kind::ALL.len()];
    for (kind, status) in findings {
        let Some((dismissed, addressed)) = counts.get_mut(kind as usize) else { continue };
        match status {
            FindingStatus::Dismissed => *dismissed += 1,
            FindingStatus::Addressed => *addressed += 1,
            FindingStatus::Open | FindingStatus::Unresolved | FindingStatus::Obsolete => {}
        }
    }
    let mut offers: Vec<MuteOffer> = Kind::ALL
        .iter()
        .zip(counts)
        .filter(|(kind, (dismissed, addressed))| {
            *dismissed >= MIN_DISMISSALS_TO_OFFER_MUTE
                && *addressed == 0
                && may_mute(**kind).is_ok()
                && !is_muted(**kind)
        })
        .map(|(&kind, (dismissed, _))| MuteOffer { kind, dismissed })
        .collect();
    offers.sort_by_key(|offer| (std::cmp::Reverse(offer.dismissed), offer.kind));
    offers
}

/// Profile of a review: everything that determines how it reads code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewerProfile<'a> {
    pub reviewer: &'a str,
    pub model: &'a str,
    pub reasoning_effort: &'a str,
    pub policy_version: &'a str,
}

impl ReviewerProfile<'_> {
    /// Returns true if a review with this profile repeats one with `earlier`. A new report about code that the earlier
    /// review covered is then late. Another profile was chosen on purpose and may report what it sees. The built-in
    /// reviewer is exempt: it is deterministic, so a new report comes from a change elsewhere and is news.
    pub fn is_repeat_of(&self, earlier: &Self) -> bool {
        self == earlier && self.reviewer != DETERMINISTIC_REVIEWER
    }
}

/// Coverage of some lines by an earlier review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorCoverage<'a> {
    /// Hunks of the file that the review covered.
    pub hunks: &'a [LineRange],
    /// Range of the unchanged lines at that time.
    pub lines: LineRange,
}

/// Returns true if a new report is late: it is not urgent (P2 or P3), and an earlier review with the same profile
/// covered the same lines. From the second review of a change on, only P0 and P1 are raised in code that was covered
/// before, so that fixing findings comes to an end.
pub fn is_late<'a>(priority: Priority, looked_at: impl IntoIterator<Item = PriorCoverage<'a>>) -> bool {
    let covered = |looked: PriorCoverage<'_>| looked.hunks.iter().any(|hunk| hunk.overlaps(looked.lines));
    priority >= Priority::P2 && looked_at.into_iter().any(covered)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use FindingStatus::{Addressed, Dismissed, Obsolete, Open};

    #[rstest]
    #[case::too_few(Kind::MagicNumbers, &[(Dismissed, 4)], None)]
    #[case::often_enough(Kind::MagicNumbers, &[(Dismissed, 5), (Open, 9), (Obsolete, 2)], Some(5))]
    #[case::one_was_worth_it(Kind::MagicNumbers, &[(Dismissed, 50), (Addressed, 1)], None)]
    #[case::never_security(Kind::Security, &[(Dismissed, 50)], None)]
    #[case::never_correctness(Kind::Correctness, &[(Dismissed, 50)], None)]
    #[case::muted_already(Kind::Docs, &[(Dismissed, 50)], None)]
    fn what_is_offered(#[case] kind: Kind, #[case] counts: &[(FindingStatus, usize)], #[case] expected: Option<u32>) {
        let findings = counts.iter().flat_map(|&(status, n)| std::iter::repeat_n((kind, status), n));
        let offered = list_mute_offers(findings, |kind| kind == Kind::Docs);
        assert_eq!(offered, expected.map(|dismissed| MuteOffer { kind, dismissed }).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_dismissed_most_is_offered_first() {
        let many = |kind, n| std::iter::repeat_n((kind, Dismissed), n);
        let findings = many(Kind::Docs, 5).chain(many(Kind::Tests, 7)).chain(many(Kind::Api, 5));
        let kinds: Vec<Kind> = list_mute_offers(findings, |_| false).into_iter().map(|offer| offer.kind).collect();
        assert_eq!(kinds, [Kind::Tests, Kind::Api, Kind::Docs]);
    }

    #[rstest]
    #[case(Priority::P0, 12, false)]
    #[case(Priority::P1, 12, false)]
    #[case(Priority::P2, 12, true)]
    #[case(Priority::P3, 12, true)]
    #[case::not_covered_then(Priority::P3, 30, false)]
    fn late_reports(#[case] priority: Priority, #[case] line: u32, #[case] expected: bool) {
        let hunks = [LineRange::new(1, 3), LineRange::new(10, 20)];
        let looked = PriorCoverage { hunks: &hunks, lines: LineRange::new(line, line + 1) };
        assert_eq!(is_late(priority, [looked]), expected);
        assert!(!is_late(priority, []), "the first review of these lines");
    }

    #[test]
    fn only_the_same_eyes_look_a_second_time() {
        let eyes = ReviewerProfile { reviewer: "opus", model: "m", reasoning_effort: "high", policy_version: "p1" };
        assert!(eyes.is_repeat_of(&eyes));
        for other in [
            ReviewerProfile { reviewer: "haiku", ..eyes },
            ReviewerProfile { model: "n", ..eyes },
            ReviewerProfile { reasoning_effort: "low", ..eyes },
            ReviewerProfile { policy_version: "p2", ..eyes },
        ] {
            assert!(!eyes.is_repeat_of(&other), "{other:?}");
        }
        let builtin = ReviewerProfile { reviewer: DETERMINISTIC_REVIEWER, ..eyes };
        assert!(!builtin.is_repeat_of(&builtin));
    }
}
