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
