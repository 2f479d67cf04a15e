//! Remembers the lines of `team/own.ndjson` that the settings kept here when it was their turn to be sent.
//!
//! Such a line is never sent: those behind it were. When the settings change, its record counts as one that was not made yet, so it is
//! made anew, at the end of the file, as the settings say then.

use std::collections::HashSet;

use super::{TeamSync, own_records};
use crate::domain::TeamRecord;
use crate::store::{StoreError, TeamProgress};
use crate::team::OutgoingFilter;

/// Lines of `team/own.ndjson` as they may leave now.
#[derive(Debug, Default)]
pub(super) struct OutgoingLines {
    pub(super) records: Vec<TeamRecord>,
    /// Places of the lines that stay here, as in [`TeamProgress::held_back`].
    pub(super) held_back: Vec<(u64, u64)>,
}

/// Records which lines stayed here, when all lines from byte `from` on were judged. Places beside the joined one come later to the
/// same lines: what one of them did not get counts as held back for all.
pub(super) fn note_held_back(held_back: &[(u64, u64)], from: u64, progress: &mut TeamProgress) {
    if from == 0 {
        progress.held_back.clear();
    }
    let mut ranges = [std::mem::take(&mut progress.held_back), held_back.to_vec()].concat();
    ranges.sort_unstable();
    ranges.into_iter().for_each(|(start, end)| add_range(&mut progress.held_back, start, end));
}

impl TeamSync<'_> {
    /// Returns the records of lines, each with its place, as they may leave now: the settings may have changed since the lines were
    /// written. A line that a killed process left torn is no record.
    pub(super) fn clean_lines(
        &self,
        lines: &[(u64, String)],
        filter: &OutgoingFilter<'_>,
    ) -> Result<OutgoingLines, StoreError> {
        let view = if filter.excludes_paths() { Some(self.services.store.view()?) } else { None };
        let may_leave = |record: &TeamRecord| match (record, &view) {
            (TeamRecord::Decision(decision), Some(view)) => own_records::may_leave(view, filter, &decision.finding_id),
            _ => true,
        };
        let mut outgoing = OutgoingLines::default();
        // Where the whole file is sent again, a record that was held back once may stand in it twice.
        let mut known = HashSet::new();
        for (place, line) in lines {
            let Ok(record) = serde_json::from_str::<TeamRecord>(line) else { continue };
            let identity = match &record {
                TeamRecord::Decision(decision) => Some((decision.finding_id.to_string(), Some(decision.id.clone()))),
                TeamRecord::Review(review) => Some((review.run.run_id.to_string(), None)),
                TeamRecord::Patterns(_) => None,
            };
            match Some(record).filter(may_leave).and_then(|record| filter.clean_record(record)) {
                Some(record) => {
                    if identity.is_none_or(|identity| known.insert(identity)) {
                        outgoing.records.push(record);
                    }
                }
                None => add_range(&mut outgoing.held_back, *place, *place + line.len() as u64),
            }
        }
        Ok(outgoing)
    }
}

/// Adds the place of a line, which begins before none of the others. Lines that follow each other are one range.
fn add_range(ranges: &mut Vec<(u64, u64)>, start: u64, end: u64) {
    match ranges.last_mut() {
        // A newline stands between them.
        Some((_, last)) if start <= *last + 1 => *last = end.max(*last),
        _ => ranges.push((start, end)),
    }
}

/// Returns true if a line begins in one of the ranges, which are sorted.
pub(super) fn is_held_back(ranges: &[(u64, u64)], place: u64) -> bool {
    let next = ranges.partition_point(|(_, end)| *end <= place);
    ranges.get(next).is_some_and(|(start, _)| *start <= place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_follow_each_other_are_one_range() {
        let mut ranges = Vec::new();
        for (start, end) in [(0, 9), (10, 20), (30, 35), (36, 40), (50, 51)] {
            add_range(&mut ranges, start, end);
        }
        assert_eq!(ranges, [(0, 20), (30, 40), (50, 51)]);
        let held_back: Vec<u64> =
            [0, 10, 21, 29, 30, 36, 41, 50, 52, 99].into_iter().filter(|at| is_held_back(&ranges, *at)).collect();
        assert_eq!(held_back, [0, 10, 30, 36, 50]);
        assert!(!is_held_back(&[], 0));
    }

    #[test]
    fn a_file_that_is_sent_again_from_its_start_is_judged_anew() {
        let mut progress = TeamProgress { held_back: vec![(0, 20)], ..TeamProgress::default() };
        note_held_back(&[(30, 40)], 25, &mut progress);
        assert_eq!(progress.held_back, [(0, 20), (30, 40)]);
        note_held_back(&[(30, 40)], 0, &mut progress);
        assert_eq!(progress.held_back, [(30, 40)]);
    }

    #[test]
    fn what_a_place_that_is_behind_did_not_get_stands_between_the_others() {
        let mut progress = TeamProgress { held_back: vec![(30, 40), (60, 70)], ..TeamProgress::default() };
        for (held_back, expected) in [
            (vec![(10, 20), (60, 70)], vec![(10, 20), (30, 40), (60, 70)]),
            (vec![(10, 29), (35, 40), (71, 75)], vec![(10, 40), (60, 75)]),
            (vec![], vec![(10, 40), (60, 75)]),
        ] {
            note_held_back(&held_back, 5, &mut progress);
            assert_eq!(progress.held_back, expected);
        }
    }
}
