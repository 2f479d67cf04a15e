//! Finds the findings that overlap given lines, without looking at all findings of a file.

use std::collections::BTreeMap;

use crate::domain::Finding;

/// Indices of findings by their lines; the caller keeps the findings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FindingLineIndex {
    /// From first line and index to last line.
    by_start: BTreeMap<(u32, usize), u32>,
    /// The greatest difference of last and first line, of removed findings too.
    longest: u32,
}

impl FindingLineIndex {
    pub fn insert(&mut self, finding: &Finding, index: usize) {
        self.longest = self.longest.max(finding.line_end.saturating_sub(finding.line_start));
        self.by_start.insert((finding.line_start, index), finding.line_end);
    }

    pub fn remove(&mut self, finding: &Finding, index: usize) {
        self.by_start.remove(&(finding.line_start, index));
    }

    /// Returns the indices of the findings with a line from `first` to `last` (1-based, inclusive), from the bottom up.
    /// An invalid range (`last` before `first`) overlaps nothing; the engines reject it.
    pub fn overlapping(&self, first: u32, last: u32) -> impl Iterator<Item = usize> + use<'_> {
        let from = first.saturating_sub(self.longest).min(last);
        let row = self.by_start.range((from, 0)..=(last, usize::MAX)).rev();
        row.filter(move |(_, end)| **end >= first).map(|(&(_, index), _)| index)
    }
}
