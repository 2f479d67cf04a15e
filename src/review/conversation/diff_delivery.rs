//! Tracks which changed lines were shown to the model, and which of them it has given a verdict on.

use std::collections::HashMap;

use crate::domain::{DiffPart, FileCoverage, LineRange};
use crate::review::plan::PlannedFile;

/// Returns how many of the leading parts fit into `tokens`; at least 1 if there are any parts.
pub(super) fn count_fitting<'a>(parts: impl Iterator<Item = &'a DiffPart>, tokens: u64) -> usize {
    let mut left = tokens;
    let fits = |(at, part): &(usize, &DiffPart)| {
        let fits = *at == 0 || part.tokens <= left;
        left = left.saturating_sub(part.tokens);
        fits
    };
    parts.enumerate().take_while(fits).count()
}

/// The delivery state of the diff.
#[derive(Debug, Default)]
pub(super) struct DiffDelivery {
    files: Vec<PlannedFile>,
    parts: Vec<DiffPart>,
    sent: Vec<bool>,
    /// Lines that a part or a tool has shown; by path, sorted and disjoint.
    shown: HashMap<String, Vec<LineRange>>,
    /// Lines that were shown before the last verdict; by path, sorted and disjoint.
    reviewed: HashMap<String, Vec<LineRange>>,
    complete: Vec<bool>,
}

impl DiffDelivery {
    pub fn new(files: Vec<PlannedFile>, parts: Vec<DiffPart>) -> Self {
        let (sent, complete) = (vec![false; parts.len()], vec![false; files.len()]);
        Self { files, parts, sent, complete, ..Self::default() }
    }

    /// Returns the next parts that fit into `tokens`, at least one if there are any, and marks them as sent.
    pub fn take_next_parts(&mut self, tokens: u64) -> Vec<&DiffPart> {
        let mut taken: Vec<usize> = (0..self.parts.len()).filter(|index| !self.is_settled(*index)).collect();
        taken.truncate(count_fitting(taken.iter().map(|index| &self.parts[*index]), tokens));
        for part in taken.iter().map(|index| &self.parts[*index]) {
            let shown = self.shown.entry(part.path.clone()).or_default();
            part.hunks.iter().for_each(|lines| insert_range(shown, *lines));
        }
        for index in &taken {
            self.sent[*index] = true;
        }
        taken.into_iter().map(|index| &self.parts[index]).collect()
    }

    /// Adds lines that a tool shows to the model.
    pub fn mark_shown(&mut self, path: &str, lines: LineRange) {
        insert_range(self.shown.entry(path.to_owned()).or_default(), lines);
    }

    /// Marks everything that was shown as reviewed, because the model has given its verdict. Returns the files that are
    /// now complete.
    pub fn mark_reviewed(&mut self) -> Vec<FileCoverage> {
        self.reviewed.clone_from(&self.shown);
        let mut complete = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            if !self.complete[index]
                && self.has_sent_parts(file)
                && file.hunks.iter().all(|hunk| contains_lines(&self.reviewed, &file.path, *hunk))
            {
                self.complete[index] = true;
                complete.push(file.coverage());
            }
        }
        complete
    }

    /// Returns the incomplete files of which the model reviewed at least one hunk, with these hunks.
    pub fn partial_files(&self) -> Vec<FileCoverage> {
        let open = self.files.iter().enumerate().filter(|(index, _)| !self.complete[*index]);
        open.filter_map(|(_, file)| {
            let part = file.partial_coverage(|hunk| contains_lines(&self.reviewed, &file.path, hunk));
            (!part.hunks.is_empty()).then_some(part)
        })
        .collect()
    }

    /// Returns the paths of incomplete files.
    pub fn open_paths(&self) -> Vec<&str> {
        let open = self.files.iter().enumerate().filter(|(index, _)| !self.complete[*index]);
        open.map(|(_, file)| file.path.as_str()).collect()
    }

    /// Returns the number of parts that were neither sent nor otherwise shown.
    pub fn parts_left(&self) -> usize {
        (0..self.parts.len()).filter(|&index| !self.is_settled(index)).count()
    }

    /// Returns the tokens of these parts.
    pub fn tokens_left(&self) -> u64 {
        (0..self.parts.len()).filter(|&index| !self.is_settled(index)).map(|index| self.parts[index].tokens).sum()
    }

    fn is_settled(&self, index: usize) -> bool {
        let part = &self.parts[index];
        let is_shown = |lines: &LineRange| contains_lines(&self.shown, &part.path, *lines);
        self.sent[index] || (!part.hunks.is_empty() && part.hunks.iter().all(is_shown))
    }

    /// Returns `true` if a file without lines on the new side has no unsent parts. Returns `true` for every other file.
    fn has_sent_parts(&self, file: &PlannedFile) -> bool {
        !file.hunks.is_empty()
            || self.parts.iter().zip(&self.sent).filter(|(part, _)| part.path == file.path).all(|(_, sent)| *sent)
    }
}

/// Returns `true` if one of the ranges of a path contains all of these lines.
fn contains_lines(ranges: &HashMap<String, Vec<LineRange>>, path: &str, lines: LineRange) -> bool {
    ranges.get(path).is_some_and(|ranges| ranges.iter().any(|range| range.contains(lines)))
}

/// Inserts a range into sorted, disjoint ranges and merges adjacent ranges.
fn insert_range(ranges: &mut Vec<LineRange>, new: LineRange) {
    let mut merged = new;
    ranges.retain(|range| {
        let touches = range.start <= merged.end.saturating_add(1) && merged.start <= range.end.saturating_add(1);
        if touches {
            merged = LineRange { start: range.start.min(merged.start), end: range.end.max(merged.end) };
        }
        !touches
    });
    let at = ranges.partition_point(|range| range.start < merged.start);
    ranges.insert(at, merged);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(start: u32, end: u32) -> LineRange {
        LineRange { start, end }
    }

    fn part(path: &str, hunks: &[LineRange], tokens: u64) -> DiffPart {
        DiffPart { path: path.to_owned(), hunks: hunks.to_vec(), text: format!("{path} {hunks:?}"), tokens }
    }

    fn file(path: &str, hunks: &[LineRange]) -> PlannedFile {
        PlannedFile { path: path.to_owned(), hunks: hunks.to_vec(), keys: Vec::new(), added_lines: 1 }
    }

    #[test]
    fn a_hunk_in_pieces_is_covered_when_all_pieces_are_reviewed() {
        let hunk = lines(1, 900);
        let parts =
            vec![part("a", &[lines(1, 400)], 40), part("a", &[lines(401, 900)], 50), part("b", &[lines(5, 5)], 1)];
        let mut delivery = DiffDelivery::new(vec![file("a", &[hunk]), file("b", &[lines(5, 5)])], parts);
        assert_eq!(delivery.take_next_parts(60).len(), 1);
        assert_eq!(delivery.mark_reviewed(), []);
        assert_eq!((delivery.parts_left(), delivery.tokens_left()), (2, 51));
        assert_eq!(delivery.take_next_parts(10).len(), 1, "more than fits, as nothing smaller is next");
        assert_eq!(delivery.mark_reviewed(), [file("a", &[hunk]).coverage()]);
        assert_eq!(delivery.open_paths(), ["b"]);
    }

    #[test]
    fn what_a_tool_has_shown_need_not_be_sent() {
        let mut delivery = DiffDelivery::new(vec![file("b", &[lines(5, 7)])], vec![part("b", &[lines(5, 7)], 9)]);
        delivery.mark_shown("b", lines(1, 6));
        assert_eq!(delivery.mark_reviewed(), []);
        assert_eq!(delivery.parts_left(), 1);
        delivery.mark_shown("b", lines(7, 40));
        assert_eq!(delivery.mark_reviewed().len(), 1);
        assert_eq!(delivery.parts_left(), 0);
    }

    #[test]
    fn what_is_shown_stays_open_until_the_verdict() {
        let files = vec![file("a", &[lines(1, 3)]), file("b", &[lines(5, 7)])];
        let parts = vec![part("a", &[lines(1, 3)], 9), part("b", &[lines(5, 7)], 9)];
        let mut delivery = DiffDelivery::new(files, parts);
        assert_eq!(delivery.take_next_parts(9).len(), 1);
        delivery.mark_shown("b", lines(1, 40));
        assert_eq!((delivery.parts_left(), delivery.open_paths()), (0, vec!["a", "b"]));
        assert_eq!(delivery.partial_files(), []);
        assert_eq!(delivery.mark_reviewed().len(), 2);
        assert!(delivery.open_paths().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_taken_alone_and_once() {
        let parts = vec![part("b", &[lines(5, 7)], 9), part("b", &[lines(9, 9)], 1)];
        let mut delivery = DiffDelivery::new(vec![file("b", &[lines(5, 7), lines(9, 9)])], parts);
        assert_eq!(delivery.take_next_parts(8).len(), 1);
        assert_eq!(delivery.take_next_parts(99).len(), 1);
        assert!(delivery.take_next_parts(99).is_empty());
    }
}
