//! Maps lines of one version of a file to another version, by the edits between them.

use super::line_hashes::HashedLines;
use crate::domain::LineRange;

/// Edit as in a unified diff without context, 1-based. A side without lines names the line before. The edits of a file
/// are in order and do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchorEdit {
    pub old_start: u32,
    pub old_lines: u32,
    pub new_start: u32,
    pub new_lines: u32,
}

impl AnchorEdit {
    /// Returns the range of added lines. `None` if the edit only removes lines.
    pub fn added_lines(&self) -> Option<LineRange> {
        let last = self.new_start.saturating_add(self.new_lines);
        (self.new_lines > 0).then(|| LineRange::new(self.new_start, last.saturating_sub(1)))
    }

    /// Returns the edit in the opposite direction.
    pub fn reversed(self) -> Self {
        Self {
            old_start: self.new_start,
            old_lines: self.new_lines,
            new_start: self.old_start,
            new_lines: self.old_lines,
        }
    }
}

/// Edit as two spans, each from the first line to the line after the last one.
#[derive(Debug, Clone, Copy)]
struct EditSpans {
    old: (u32, u32),
    new: (u32, u32),
}

impl From<AnchorEdit> for EditSpans {
    fn from(edit: AnchorEdit) -> Self {
        let span = |start: u32, lines: u32| match lines {
            0 => (start.saturating_add(1), start.saturating_add(1)),
            lines => (start, start.saturating_add(lines)),
        };
        Self { old: span(edit.old_start, edit.old_lines), new: span(edit.new_start, edit.new_lines) }
    }
}

impl EditSpans {
    /// Returns true if each old line is replaced by exactly one new line.
    fn is_line_by_line(&self) -> bool {
        self.old.1 - self.old.0 == self.new.1 - self.new.0
    }
}

/// Result of mapping lines within their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedLines {
    /// The same code, perhaps at other line numbers.
    Unchanged(LineRange),
    /// Other code is at its place. `stayed` of its `of` letters and digits are unchanged.
    Changed { lines: LineRange, unchanged_weight: u64, total_weight: u64 },
    /// Nothing is at its place, after line `after` (0 for the top of the file).
    Gone { after: u32 },
}

/// Maps `lines` of `old` to `new`, which differs by `edits`.
pub fn map_lines(old: &HashedLines, new: &HashedLines, edits: &[AnchorEdit], lines: LineRange) -> MappedLines {
    let (first, last) = (lines.start, lines.end);
    let before = edits.partition_point(|&edit| EditSpans::from(edit).old.1 <= first);
    let until = edits.partition_point(|&edit| EditSpans::from(edit).old.0 <= last);
    // Returns the new number of a line after an edit.
    let moved = |line: u32, edit: Option<&AnchorEdit>| match edit.copied().map(EditSpans::from) {
        Some(edit) => (line + edit.new.1).saturating_sub(edit.old.1),
        None => line,
    };
    let earlier = before.checked_sub(1).and_then(|at| edits.get(at));
    let touching = edits.get(before..until).unwrap_or_default();
    let (Some(top), Some(bottom)) = (touching.first(), touching.last()) else {
        return MappedLines::Unchanged(LineRange::new(moved(first, earlier), moved(last, earlier)));
    };
    let (top, bottom_spans) = (EditSpans::from(*top), EditSpans::from(*bottom));
    let start = match top.old.0 <= first {
        true if top.is_line_by_line() => top.new.0 + (first - top.old.0),
        true => top.new.0,
        false => moved(first, earlier),
    };
    // The line after the last one.
    let end = match bottom_spans.old.1 > last {
        true if bottom_spans.is_line_by_line() => bottom_spans.new.0 + (last + 1 - bottom_spans.old.0),
        true => bottom_spans.new.1,
        false => moved(last, Some(bottom)) + 1,
    };
    if end <= start {
        return MappedLines::Gone { after: start.saturating_sub(1) };
    }
    let region = LineRange::new(start, end - 1);
    if let Some(lines) = find_same_code(old, lines, new, region) {
        return MappedLines::Unchanged(lines);
    }
    let removed: u64 = touching
        .iter()
        .map(|&edit| EditSpans::from(edit).old)
        .filter(|(from, to)| from < to)
        .map(|(from, to)| old.range_weight(LineRange::new(from.max(first), (to - 1).min(last))))
        .sum();
    let of = old.range_weight(lines);
    MappedLines::Changed { lines: region, unchanged_weight: of.saturating_sub(removed), total_weight: of }
}

/// Finds the same code in a region, in case only white space around it or in it changed.
fn find_same_code(old: &HashedLines, lines: LineRange, new: &HashedLines, region: LineRange) -> Option<LineRange> {
    let wanted: Vec<u64> = old.nonblank_lines(lines).map(|line| old.hash(line)).collect();
    if wanted.is_empty() {
        return None;
    }
    let there: Vec<u32> = new.nonblank_lines(region).collect();
    let found = there
        .windows(wanted.len())
        .find(|window| window.iter().map(|&line| new.hash(line)).eq(wanted.iter().copied()))?;
    Some(LineRange::new(*found.first()?, *found.last()?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Returns the edits between two texts. Each letter is a line.
    pub fn edits(old: &str, new: &str) -> Vec<AnchorEdit> {
        let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
        super::super::tests::edits(&old, &new)
    }

    fn text(letters: &str) -> HashedLines {
        let lines: String =
            letters.chars().map(|c| if c == '.' { "\n".to_owned() } else { format!("{c}\n") }).collect();
        HashedLines::from_text(lines.as_bytes())
    }

    const fn line_range(start: u32, end: u32) -> LineRange {
        LineRange { start, end }
    }

    fn changed(start: u32, end: u32) -> Option<LineRange> {
        Some(line_range(start, end))
    }

    #[rstest]
    #[case::nothing("abcdef", "abcdef", (2, 3), MappedLines::Unchanged(line_range(2, 3)))]
    #[case::inserted_above("abcdef", "xyabcdef", (2, 3), MappedLines::Unchanged(line_range(4, 5)))]
    #[case::inserted_right_above("abcdef", "axbcdef", (2, 3), MappedLines::Unchanged(line_range(3, 4)))]
    #[case::inserted_right_below("abcdef", "abcxdef", (2, 3), MappedLines::Unchanged(line_range(2, 3)))]
    #[case::removed_above("abcdef", "bcdef", (2, 3), MappedLines::Unchanged(line_range(1, 2)))]
    #[case::removed("abcdef", "adef", (2, 3), MappedLines::Gone { after: 1 })]
    #[case::removed_with_its_neighbours("abcdef", "af", (3, 4), MappedLines::Gone { after: 1 })]
    #[case::removed_at_the_top("abcdef", "def", (1, 3), MappedLines::Gone { after: 0 })]
    #[case::everything_removed("abc", "", (2, 2), MappedLines::Gone { after: 0 })]
    #[case::blank_lines_between("abcdef", "ab..cdef", (2, 3), MappedLines::Unchanged(line_range(2, 5)))]
    fn what_is_the_same_or_gone(
        #[case] old: &str,
        #[case] new: &str,
        #[case] (first, last): (u32, u32),
        #[case] expected: MappedLines,
    ) {
        assert_eq!(map_lines(&text(old), &text(new), &edits(old, new), line_range(first, last)), expected);
    }

    #[rstest]
    #[case::replaced("abcdef", "abXdef", (3, 3), changed(3, 3), 0)]
    #[case::replaced_line_by_line("abcdef", "aWXYZf", (3, 4), changed(3, 4), 0)]
    #[case::replaced_by_more("abcdef", "abXYZdef", (3, 3), changed(3, 5), 0)]
    #[case::inserted_inside("abcdef", "abcXdef", (3, 4), changed(3, 5), 2)]
    #[case::the_first_line_removed("abcdef", "acdef", (2, 4), changed(2, 3), 2)]
    #[case::the_last_line_replaced("abcdef", "abcXef", (2, 4), changed(2, 4), 2)]
    #[case::replaced_across_its_end("abcdef", "abXf", (2, 4), changed(2, 3), 1)]
    fn what_changed(
        #[case] old: &str,
        #[case] new: &str,
        #[case] (first, last): (u32, u32),
        #[case] expected: Option<LineRange>,
        #[case] stay: u64,
    ) {
        match map_lines(&text(old), &text(new), &edits(old, new), line_range(first, last)) {
            MappedLines::Changed { lines, unchanged_weight: stayed, total_weight: of } => {
                assert_eq!((Some(lines), stayed, of), (expected, stay, u64::from(last - first + 1)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn code_that_is_only_indented_anew_is_the_same() {
        let old = HashedLines::from_text(b"a\nif x:\n  y()\nz\n");
        let new = HashedLines::from_text(b"a\nwith t:\n\n    if x:\n      y()\nz\n");
        let edits = [AnchorEdit { old_start: 2, old_lines: 2, new_start: 2, new_lines: 4 }];
        assert_eq!(map_lines(&old, &new, &edits, line_range(2, 3)), MappedLines::Unchanged(line_range(4, 5)));
    }

    #[test]
    fn edits_can_be_turned_round() {
        let edit = AnchorEdit { old_start: 4, old_lines: 2, new_start: 7, new_lines: 0 };
        assert_eq!((edit.added_lines(), edit.reversed().added_lines()), (None, Some(line_range(4, 5))));
        assert_eq!(edit.reversed().reversed(), edit);
    }
}
