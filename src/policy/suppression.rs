//! Which reports are kept without being raised: of muted kinds, and late ones.
//!
//! Invariants: nothing urgent is late; security and correctness are never muted; nothing is held back without a word.

use thiserror::Error;

use super::DETERMINISTIC_REVIEWER;
use crate::domain::{FindingStatus, Kind, LineRange, Priority};

/// So many findings of a kind have to be dismissed, and none addressed, before muting it is offered. Own: five of five
/// are no accident.
pub const MIN_DISMISSALS_TO_OFFER_MUTE: u32 = 5;

/// A kind that is always raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is never muted: what it is about costs too much when it is missed")]
pub struct NeverMutedKind(pub Kind);

/// Whether a kind may be muted.
pub fn may_mute(kind: Kind) -> Result<(), NeverMutedKind> {
    if kind.is_never_hidden() { Err(NeverMutedKind(kind)) } else { Ok(()) }
}

/// A kind that the user has only ever dismissed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MuteOffer {
    pub kind: Kind,
    /// How often.
    pub dismissed: u32,
}

/// The kinds that are offered for muting, the most dismissed one first. `findings` is every finding there is.
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

/// How a review looks at code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewerProfile<'a> {
    pub reviewer: &'a str,
    pub model: &'a str,
    pub reasoning_effort: &'a str,
    pub policy_version: &'a str,
}

impl ReviewerProfile<'_> {
    /// Whether what a review with these eyes finds in code that an earlier one with the same eyes looked at comes late.
    /// Other eyes were chosen on purpose and may see what they see. The built-in reviewer is exempt: it says the same
    /// about the same code, so what is new there comes of a change elsewhere, and that is news.
    pub fn is_repeat_of(&self, earlier: &Self) -> bool {
        self == earlier && self.reviewer != DETERMINISTIC_REVIEWER
    }
}

/// An earlier review of the same lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorCoverage<'a> {
    /// What it covered of the file.
    pub hunks: &'a [LineRange],
    /// Where the lines stood then, the same as now.
    pub lines: LineRange,
}

/// Whether a new report is late: not urgent, and about lines that an earlier review with the same eyes covered as they
/// are. From the second review of a change on nothing but p0 and p1 is found in what was looked at before, so that
/// fixing what is found comes to an end.
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
