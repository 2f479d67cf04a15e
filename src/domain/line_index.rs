//! Finds the ranges of lines that overlap given lines, without looking at all ranges of a file.

use std::collections::BTreeMap;

use super::LineRange;

/// Ranges of lines of one file, each with an index. The caller keeps the items that the indices stand for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LineIndex {
    /// From first line and index to last line.
    by_start: BTreeMap<(u32, usize), u32>,
    /// The greatest difference of last and first line, of removed ranges too.
    longest: u32,
}

impl LineIndex {
    /// Adds a range. Records from elsewhere may hold a reversed one.
    pub fn insert(&mut self, lines: LineRange, index: usize) {
        self.longest = self.longest.max(lines.end.saturating_sub(lines.start));
        self.by_start.insert((lines.start, index), lines.end);
    }

    /// Removes a range that was added with this index.
    pub fn remove(&mut self, lines: LineRange, index: usize) {
        self.by_start.remove(&(lines.start, index));
    }

    /// Returns the indices of the ranges that share a line with `lines`, from the bottom up.
    pub fn overlapping(&self, lines: LineRange) -> impl Iterator<Item = usize> + use<'_> {
        let LineRange { start: first, end: last } = lines;
        let from = first.saturating_sub(self.longest).min(last);
        let row = self.by_start.range((from, 0)..=(last, usize::MAX)).rev();
        row.filter(move |(_, end)| **end >= first).map(|(&(_, index), _)| index)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_found_as_if_all_were_compared(
            ranges in prop::collection::vec((1..60_u32, 0..15_u32), 0..40),
            removed in 0..40_usize,
            (start, more) in (1..60_u32, 0..15_u32),
        ) {
            let ranges: Vec<LineRange> =
                ranges.into_iter().map(|(start, more)| LineRange::new(start, start + more)).collect();
            let mut index = LineIndex::default();
            for (at, range) in ranges.iter().enumerate() {
                index.insert(*range, at);
            }
            if let Some(range) = ranges.get(removed) {
                index.remove(*range, removed);
            }
            let lines = LineRange::new(start, start + more);
            let mut expected: Vec<usize> =
                (0..ranges.len()).filter(|at| *at != removed && ranges[*at].overlaps(lines)).collect();
            expected.sort_by_key(|at| Reverse((ranges[*at].start, *at)));
            prop_assert_eq!(index.overlapping(lines).collect::<Vec<_>>(), expected);
        }
    }
}
