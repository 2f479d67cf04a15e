//! Kinds of findings that are always dismissed in a language: findings about a whole function, a class or a copy have no
//! form, and what their dismissals teach is told by the kind alone.
//!
//! Invariants: only smells that [may be lowered](crate::domain::Kind::is_never_lowered) are counted; of a file nothing is
//! kept but a salted digest; each finding counts once for a verdict. It is this machine's own and is not exported.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::{Kind, Time, word_enum};
use crate::reviewers::analyzer::language::Language;

/// Dismissals after which new findings of the kind are lowered. Own: of five out of five the share that is dismissed is more
/// than a half, with a confidence of 95 % (Wilson: 0.57).
pub const MIN_DISMISSALS: u32 = 5;
/// So many files they must be of: one file that is as it is says nothing of others. Own.
pub const MIN_FILES: usize = 2;

word_enum!(
    /// What was decided about a finding.
    FindingVerdict {
        /// It is none, or not worth a change.
        Dismissed = "dismissed",
        /// It was right: it was addressed, or a fix for it applied.
        Addressed = "addressed",
    }
);

/// A verdict on a finding of a kind.
#[derive(Debug, Clone)]
pub struct KindVerdict {
    pub language: Language,
    pub kind: Kind,
    pub verdict: FindingVerdict,
    /// Which file of which repository it is about; only a salted digest is kept.
    pub file: String,
    /// The finding, by its id. It counts once for a verdict.
    pub source: String,
}

/// What was decided about the findings of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTally {
    #[serde(default)]
    pub dismissed: u32,
    #[serde(default)]
    pub addressed: u32,
    /// Salted digests of files with dismissed ones: the first [`FILES`] that differ.
    #[serde(default)]
    pub files: BTreeSet<u32>,
    /// When it was counted last.
    pub last_seen: Time,
    /// Counted, and not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
    /// What this version does not know.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// By kind.
pub type KindTallies = BTreeMap<Kind, KindTally>;

impl KindTally {
    /// How often findings of the kind were dismissed, where they always are and often enough to lower new ones.
    pub fn lowering_dismissals(&self) -> Option<u32> {
        let is_always = self.addressed == 0 && self.dismissed >= MIN_DISMISSALS && self.files.len() >= MIN_FILES;
        (is_always && !self.muted).then_some(self.dismissed)
    }

    pub(super) fn record_verdict(&mut self, verdict: FindingVerdict, file: u32, now: Time) {
        let counted = match verdict {
            FindingVerdict::Dismissed => &mut self.dismissed,
            FindingVerdict::Addressed => &mut self.addressed,
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

    use super::FindingVerdict::{Addressed, Dismissed};
    use super::*;

    #[rstest]
    #[case::always(&[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3), (Dismissed, 1)], Some(5))]
    #[case::too_few(&[(Dismissed, 1), (Dismissed, 1), (Dismissed, 2), (Dismissed, 3)], None)]
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
