//! Finds the ranges of lines that contain a line or a whole range, for many queries.

use crate::domain::LineRange;

/// Ranges sorted by start, each with the largest end so far: a query costs a binary search plus the ranges that it
/// visits.
#[derive(Debug, Default)]
pub struct IndexedLineRanges(Vec<(LineRange, u32)>);

impl IndexedLineRanges {
    /// Returns whether one range contains all of `lines`.
    pub fn contains_range(&self, lines: LineRange) -> bool {
        let begun = self.0.partition_point(|(range, _)| range.start <= lines.start);
        self.0[..begun].last().is_some_and(|(_, furthest)| lines.end <= *furthest)
    }

    /// Returns the ranges that contain a line, sorted by start.
    pub fn ranges_at(&self, line: u32) -> impl Iterator<Item = LineRange> {
        let begun = self.0.partition_point(|(range, _)| range.start <= line);
        let over = self.0.partition_point(|(_, furthest)| *furthest < line).min(begun);
        self.0[over..begun].iter().map(|(range, _)| *range).filter(move |range| line <= range.end)
    }
}

impl FromIterator<LineRange> for IndexedLineRanges {
    fn from_iter<I: IntoIterator<Item = LineRange>>(ranges: I) -> Self {
        let mut ranges: Vec<LineRange> = ranges.into_iter().collect();
        ranges.sort_by_key(|range| range.start);
        let mut furthest = 0;
        let with_ends = ranges.into_iter().map(|range| {
            furthest = range.end.max(furthest);
            (range, furthest)
        });
        Self(with_ends.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn answers_are_those_of_a_look_at_every_range(
            ranges in prop::collection::vec((0u32..60, 0u32..60), 0..20),
            asked in (0u32..60, 0u32..60),
        ) {
            let ranges: Vec<LineRange> = ranges.into_iter().map(|(from, to)| LineRange::new(from, to)).collect();
            let (spans, asked) = (ranges.iter().copied().collect::<IndexedLineRanges>(), LineRange::new(asked.0, asked.1));
            let holds = ranges.iter().any(|range| range.start <= asked.start && asked.end <= range.end);
            prop_assert_eq!(spans.contains_range(asked), holds);
            let mut at: Vec<LineRange> =
                ranges.into_iter().filter(|range| range.start <= asked.start && asked.start <= range.end).collect();
            at.sort_by_key(|range| range.start);
            prop_assert_eq!(spans.ranges_at(asked.start).collect::<Vec<_>>(), at);
        }
    }
}
