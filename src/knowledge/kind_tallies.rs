//! Counts verdicts by kind of finding, to lower kinds that are always dismissed in a language. Findings about a whole
//! function, a class or a copy have no form, so their dismissals are counted only by kind.
//!
//! - Only smells that [may be lowered](crate::domain::Kind::is_never_lowered) are counted.
//! - Of a file, only a salted digest is stored.
//! - Each finding counts once per verdict.
//! - The tallies belong to this machine and are not exported.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::{Kind, Time, is_default, word_enum};
use crate::syntax::language::Language;

/// Number of dismissals from which new findings of the kind are lowered. With five dismissals of five findings, the
/// lower bound of the dismissed share is above a half at 95 % confidence (Wilson: 0.57).
pub const MIN_DISMISSALS: u32 = 5;
/// Minimum number of real dismissals among them.
const MIN_REAL_DISMISSALS: u32 = 3;
/// Number of fixes that failed their check, were dropped or were undone that weigh as much as a dismissal: a fix may be
/// wrong where the finding is right.
const SETBACKS_PER_DISMISSAL: u32 = 3;
/// Minimum number of files among the dismissals; one unusual file says nothing about others.
pub const MIN_FILES: usize = 2;

word_enum!(
    /// Verdict on a finding.
    FindingVerdict {
        /// The finding is wrong, or not worth a change.
        Dismissed = "dismissed",
        /// The finding is right: it was addressed, or a fix for it was applied.
        Addressed = "addressed",
        /// A fix for the finding failed its check, was dropped or was undone.
        SetBack = "set_back",
    }
);

/// Verdict on a finding of a kind.
#[derive(Debug, Clone)]
pub struct KindVerdict {
    pub language: Language,
    pub kind: Kind,
    pub verdict: FindingVerdict,
    /// Repository and file of the finding; only a salted digest is stored.
    pub file: String,
    /// Id of the finding, which counts once per verdict.
    pub source: String,
}

/// Verdicts on the findings of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTally {
    #[serde(default)]
    pub dismissed: u32,
    #[serde(default)]
    pub addressed: u32,
    /// Number of findings whose fix failed its check, was dropped or was undone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub setbacks: u32,
    /// Salted digests of the files with dismissals: the first [`MIN_FILES`] distinct ones.
    #[serde(default)]
    pub files: BTreeSet<u32>,
    /// Time of the last count.
    pub last_seen: Time,
    /// If true, verdicts are counted but not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// Tallies by kind.
pub type KindTallies = BTreeMap<Kind, KindTally>;

impl KindTally {
    /// Returns the number of dismissals if they lower new findings of the kind: the kind is always dismissed, often
    /// enough and in enough files. `None` otherwise.
    pub fn lowering_dismissals(&self) -> Option<u32> {
        let weight = self.dismissed.saturating_add(self.setbacks / SETBACKS_PER_DISMISSAL);
        let is_always = self.addressed == 0
            && self.dismissed >= MIN_REAL_DISMISSALS
            && weight >= MIN_DISMISSALS
            && self.files.len() >= MIN_FILES;
        (is_always && !self.muted).then_some(self.dismissed)
    }

    pub(super) fn record_verdict(&mut self, verdict: FindingVerdict, file: u32, now: Time) {
        let counted = match verdict {
            FindingVerdict::Dismissed => &mut self.dismissed,
            FindingVerdict::Addressed => &mut self.addressed,
            FindingVerdict::SetBack => &mut self.setbacks,
        };
        *counted = counted.saturating_add(1);
        if verdict == FindingVerdict::Dismissed && self.files.len() < MIN_FILES {
            self.files.insert(file);
        }
        self.last_seen = now;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::FindingVerdict::{Addressed, Dismissed, SetBack};
    use super::*;

    #[rstest]
    #[case::always(&[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3), (Dismissed, 1)], Some(5))]
    #[case::too_few(&[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3)], None)]
    #[case::three_setbacks_are_a_dismissal(
        &[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3), (SetBack, 1), (SetBack, 2), (SetBack, 3)],
        Some(4)
    )]
    #[case::two_setbacks_are_none(
        &[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3), (SetBack, 1), (SetBack, 2)],
        None
    )]
    #[case::setbacks_alone(
        &[
            (SetBack, 1), (SetBack, 2), (SetBack, 3), (SetBack, 4), (SetBack, 5), (SetBack, 6), (SetBack, 7), (SetBack, 8),
            (SetBack, 9), (SetBack, 10), (Dismissed, 1), (Dismissed, 2),
        ],
        None
    )]
    #[case::one_file(&[(Dismissed, 1), (Dismissed, 1), (Dismissed, 1), (Dismissed, 1), (Dismissed, 1)], None)]
    #[case::one_was_right(
        &[(Dismissed, 1), (Dismissed, 1), (Addressed, 4), (Dismissed, 2), (Dismissed, 3), (Dismissed, 1)],
        None
    )]
    fn kinds_that_are_always_dismissed(#[case] verdicts: &[(FindingVerdict, u32)], #[case] expected: Option<u32>) {
        let mut tally = KindTally::default();
        for &(verdict, file) in verdicts {
            tally.record_verdict(verdict, file, Time::UNIX_EPOCH);
        }
        assert_eq!(tally.lowering_dismissals(), expected, "{tally:?}");
        assert!(tally.files.len() <= MIN_FILES);
        let muted = KindTally { muted: true, ..tally };
        assert_eq!(muted.lowering_dismissals(), None);
    }
}
