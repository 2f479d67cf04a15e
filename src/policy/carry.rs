//! Decides which hunks of a change need no new review, because a run with the same reviewer profile has reviewed the
//! same code.
//!
//! Invariants:
//! - A hunk is matched by its key alone. The key covers everything that a verdict about the hunk depends on.
//! - If several hunks of a file have the same key, as many are carried over as the earlier run had.
//! - A hunk that was never put before a reviewer, or that has no key, is never carried over.
//! - Newer runs are searched first.
//!
//! The runner makes the keys. For a model, a key covers the text of both sides and the code around it. For the built-in
//! reviewer, whose findings depend on whole files, it covers both files and their names. Checks on the whole snapshot
//! (code duplication) are repeated in every run and never carried over.

use std::collections::HashMap;

use crate::domain::LineRange;

/// Maximum number of earlier runs to search: the newest with the same reviewer profile. Carried hunks are recorded
/// again in every run, so the last few runs know everything that still exists.
pub const MAX_EARLIER_RUNS: usize = 64;

/// Hunk of the change that needs a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkToReview<'a> {
    /// Path on the new side, relative to the repository root.
    pub path: &'a str,
    /// Old path, if the file was renamed.
    pub old_path: Option<&'a str>,
    /// Key of the hunk. Empty if its code could not be read.
    pub key: &'a str,
}

/// Hunk that an earlier run put before its reviewer or carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewedHunk<'a> {
    /// Path on the new side of the earlier run.
    pub path: &'a str,
    /// Key of the hunk; empty if it is not known.
    pub key: &'a str,
}

/// Decision about a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HunkDecision {
    /// Carry over: the hunk equals hunk `hunk` of earlier run `run` (0-based indexes).
    Carry {
        /// Index of the earlier run in the order of the search.
        run: usize,
        /// Index of the hunk among the hunks of that run.
        hunk: usize,
    },
    /// Send the hunk to the reviewer.
    Send(SendReason),
}

/// Reason for sending a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendReason {
    /// Nobody has reviewed this code.
    New,
    /// The hunk has no key.
    NoKey,
    /// A finding in the hunk is on code that has changed since.
    Touched,
    /// A finding was reported here on other code; only a new review can tell if it is fixed.
    ToJudge,
}

/// Decides about each hunk in `wanted`, in order. `earlier` yields the runs, newest first; it is not read further than
/// needed.
pub fn carry_over<'a>(
    wanted: &[HunkToReview<'_>],
    earlier: impl IntoIterator<Item = Vec<ReviewedHunk<'a>>>,
) -> Vec<HunkDecision> {
    let mut fates: Vec<HunkDecision> = wanted
        .iter()
        .map(|hunk| HunkDecision::Send(if hunk.key.is_empty() { SendReason::NoKey } else { SendReason::New }))
        .collect();
    // Undecided hunks by key, in their order.
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, hunk) in wanted.iter().enumerate().filter(|(_, hunk)| !hunk.key.is_empty()) {
        open.entry(hunk.key).or_default().push(index);
    }
    let mut earlier = earlier.into_iter().take(MAX_EARLIER_RUNS).enumerate();
    while !open.is_empty()
        && let Some((run, reviewed)) = earlier.next()
    {
        for (hunk, ReviewedHunk { path, key }) in reviewed.into_iter().enumerate() {
            let Some(alike) = open.get_mut(key) else { continue };
            let named = alike.iter().position(|&index| wanted[index].path == path);
            let renamed = || alike.iter().position(|&index| wanted[index].old_path == Some(path));
            if let Some(at) = named.or_else(renamed) {
                fates[alike.remove(at)] = HunkDecision::Carry { run, hunk };
                if alike.is_empty() {
                    open.remove(key);
                }
            }
        }
    }
    fates
}

/// Returns the index of the hunk that a finding belongs to: the nearest one, where hunks that share a line with the
/// finding are nearest of all, and the first among equals. `None` without hunks.
pub fn find_nearest_hunk(finding: LineRange, hunks: &[LineRange]) -> Option<usize> {
    let apart = |hunk: &LineRange| hunk.start.saturating_sub(finding.end).max(finding.start.saturating_sub(hunk.end));
    hunks.iter().enumerate().min_by_key(|(index, hunk)| (apart(hunk), *index)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn wanted<'a>(path: &'a str, key: &'a str) -> HunkToReview<'a> {
        HunkToReview { path, old_path: None, key }
    }

    fn reviewed<'a>(path: &'a str, key: &'a str) -> ReviewedHunk<'a> {
        ReviewedHunk { path, key }
    }

    const NEW: HunkDecision = HunkDecision::Send(SendReason::New);

    fn from(run: usize, hunk: usize) -> HunkDecision {
        HunkDecision::Carry { run, hunk }
    }

    #[rstest]
    #[case::nothing_before(vec![wanted("a", "1")], vec![], vec![NEW])]
    #[case::as_it_was(vec![wanted("a", "1")], vec![vec![reviewed("a", "1")]], vec![from(0, 0)])]
    #[case::edited(vec![wanted("a", "2")], vec![vec![reviewed("a", "1")]], vec![NEW])]
    #[case::the_same_text_in_another_file(vec![wanted("b", "1")], vec![vec![reviewed("a", "1")]], vec![NEW])]
    #[case::renamed(
        vec![HunkToReview { old_path: Some("a"), ..wanted("b", "1") }], vec![vec![reviewed("a", "1")]], vec![from(0, 0)]
    )]
    #[case::no_key(vec![wanted("a", "")], vec![vec![reviewed("a", "")]], vec![HunkDecision::Send(SendReason::NoKey)])]
    #[case::the_newest_first(
        vec![wanted("a", "1")], vec![vec![reviewed("a", "0")], vec![reviewed("a", "1")], vec![reviewed("a", "1")]],
        vec![from(1, 0)]
    )]
    #[case::one_of_two_alike(
        vec![wanted("a", "1"), wanted("a", "1")], vec![vec![reviewed("a", "1")]], vec![from(0, 0), NEW]
    )]
    #[case::two_of_two_in_their_order(
        vec![wanted("a", "1"), wanted("a", "1")],
        vec![vec![reviewed("a", "1"), reviewed("b", "1"), reviewed("a", "1")]],
        vec![from(0, 0), from(0, 2)]
    )]
    #[case::from_several_runs(
        vec![wanted("a", "1"), wanted("a", "2"), wanted("a", "3")],
        vec![vec![reviewed("a", "2")], vec![reviewed("a", "1"), reviewed("a", "2")]],
        vec![from(1, 0), from(0, 0), NEW]
    )]
    fn hunks_are_recognised(
        #[case] wanted: Vec<HunkToReview<'static>>,
        #[case] earlier: Vec<Vec<ReviewedHunk<'static>>>,
        #[case] expected: Vec<HunkDecision>,
    ) {
        assert_eq!(carry_over(&wanted, earlier), expected);
    }

    #[test]
    fn no_more_runs_are_asked_than_are_needed() {
        let mut asked = 0;
        let one = wanted("a", "1");
        let runs = std::iter::repeat_with(|| {
            asked += 1;
            vec![reviewed("a", if asked == 3 { "1" } else { "0" })]
        });
        assert_eq!(carry_over(&[one], runs.take(9)), [from(2, 0)]);
        assert_eq!(asked, 3);
        let mut asked = 0;
        let never = std::iter::repeat_with(|| {
            asked += 1;
            vec![reviewed("a", "0")]
        });
        assert_eq!(carry_over(&[one], never.take(1_000)), [NEW]);
        assert_eq!(asked, MAX_EARLIER_RUNS, "the newest ones only");
    }

    proptest! {
        /// A carried hunk exists and is carried once; no hunk that is sent has a carried counterpart left.
        #[test]
        fn every_carried_hunk_stands_for_one_that_was_reviewed(
            new in prop::collection::vec((0..3_u8, 0..4_u8), 0..12),
            old in prop::collection::vec(prop::collection::vec((0..3_u8, 0..4_u8), 0..8), 0..5),
        ) {
            let text = |(path, key): &(u8, u8)| (path.to_string(), if *key == 0 { String::new() } else { key.to_string() });
            let new: Vec<(String, String)> = new.iter().map(text).collect();
            let old: Vec<Vec<(String, String)>> = old.iter().map(|run| run.iter().map(text).collect()).collect();
            let wanted: Vec<HunkToReview<'_>> = new.iter().map(|(path, key)| HunkToReview { path, old_path: None, key }).collect();
            let earlier: Vec<Vec<ReviewedHunk<'_>>> =
                old.iter().map(|run| run.iter().map(|(path, key)| ReviewedHunk { path, key }).collect()).collect();
            let fates = carry_over(&wanted, earlier);
            prop_assert_eq!(fates.len(), wanted.len());
            let mut left: BTreeMap<(usize, usize), &(String, String)> = BTreeMap::new();
            for (run, hunks) in old.iter().enumerate() {
                left.extend(hunks.iter().enumerate().map(|(hunk, it)| ((run, hunk), it)));
            }
            for (fate, hunk) in fates.iter().zip(&new) {
                match fate {
                    HunkDecision::Carry { run, hunk: number } => prop_assert_eq!(left.remove(&(*run, *number)), Some(hunk)),
                    HunkDecision::Send(SendReason::NoKey) => prop_assert!(hunk.1.is_empty()),
                    HunkDecision::Send(why) => prop_assert_eq!(*why, SendReason::New),
                }
            }
            for (fate, hunk) in fates.iter().zip(&new) {
                prop_assert!(*fate != NEW || left.values().all(|other| *other != hunk), "{:?} was there", hunk);
            }
        }
    }

    #[rstest]
    #[case((3, 3), Some(0))]
    #[case((9, 14), Some(1))]
    #[case((5, 5), Some(0))]
    #[case((7, 7), Some(0))]
    #[case((8, 8), Some(1))]
    #[case((99, 99), Some(2))]
    fn findings_belong_to_hunks(#[case] (start, end): (u32, u32), #[case] expected: Option<usize>) {
        let hunks = [LineRange::new(2, 4), LineRange::new(10, 12), LineRange::new(40, 50)];
        assert_eq!(find_nearest_hunk(LineRange::new(start, end), &hunks), expected);
        assert_eq!(find_nearest_hunk(LineRange::new(start, end), &[]), None);
    }
}
