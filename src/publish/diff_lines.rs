//! The lines of a pull request's diff: the only lines that hosts accept inline comments for.

use std::collections::{BTreeMap, HashMap};

use crate::domain::LineRange;
use crate::domain::patch::PatchLineKind;
use crate::domain::unified_diff::{DiffItem, parse_diff_lines};

/// Line of the new side of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSideLine {
    /// Number of the hunk in its file. The lines of a comment must be in one hunk.
    pub hunk: usize,
    /// The line on the old side (1-based); `None` for an added line.
    pub old_line: Option<u32>,
}

/// The diff of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Path on the old side; the same as the new path unless the file was renamed.
    pub old_path: String,
    /// Lines on the new side by number (1-based).
    lines: BTreeMap<u32, NewSideLine>,
}

impl FileDiff {
    /// Parses the hunks of one file, without the names of the file, as the APIs of hosts return them.
    pub fn parse(old_path: &str, hunks: &str) -> Self {
        let mut lines = BTreeMap::new();
        // The parser looks for hunks below the names of a file only.
        let text = format!("--- a\n+++ b\n{hunks}");
        let text: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
        let mut number = 0;
        for item in parse_diff_lines(&text) {
            let DiffItem::Hunk { header, lines: found, .. } = item.item else { continue };
            let (mut old, mut new) = (header.old_start, header.new_start);
            for line in found {
                match line.kind {
                    Some(PatchLineKind::Removed) => old = old.saturating_add(1),
                    Some(PatchLineKind::Added) => {
                        lines.insert(new, NewSideLine { hunk: number, old_line: None });
                        new = new.saturating_add(1);
                    }
                    Some(PatchLineKind::Context) => {
                        lines.insert(new, NewSideLine { hunk: number, old_line: Some(old) });
                        (old, new) = (old.saturating_add(1), new.saturating_add(1));
                    }
                    // A damaged hunk: the numbers of the lines below are unknown.
                    None => break,
                }
            }
            number += 1;
        }
        Self { old_path: old_path.to_owned(), lines }
    }

    /// Returns a line of the new side; `None` if it is not in the diff.
    pub fn line(&self, number: u32) -> Option<NewSideLine> {
        self.lines.get(&number).copied()
    }

    /// Returns `true` if all lines of a range are in one hunk.
    pub fn is_in_one_hunk(&self, range: LineRange) -> bool {
        let mut found = self.lines.range(range.start..=range.end);
        let Some((_, first)) = found.next() else { return false };
        let others = found.try_fold(1_u32, |count, (_, line)| (line.hunk == first.hunk).then_some(count + 1));
        others == Some(range.count())
    }

    /// Returns the first added line of a range, or its first line in the diff; `None` if the range is not in the diff.
    pub fn first_line(&self, range: LineRange) -> Option<u32> {
        let mut found = self.lines.range(range.start..=range.end);
        let added = found.clone().find(|(_, line)| line.old_line.is_none());
        added.or_else(|| found.next()).map(|(number, _)| *number)
    }
}

/// The diff of a change by the new path of each file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffLines {
    files: HashMap<String, FileDiff>,
}

impl DiffLines {
    /// Adds the diff of a file.
    pub fn insert(&mut self, path: String, file: FileDiff) {
        self.files.insert(path, file);
    }

    /// Returns the diff of a file; `None` if the change does not touch it.
    pub fn file(&self, path: &str) -> Option<&FileDiff> {
        self.files.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "@@ -1,3 +1,4 @@ fn a\n one\n-two\n+zwei\n+drei\n three\n@@ -20 +21,2 @@\n twenty\n+more\n\\ No newline at end of file";

    #[test]
    fn lines_of_a_patch_have_their_numbers() {
        let file = FileDiff::parse("a.rs", PATCH);
        let line = |hunk, old_line| Some(NewSideLine { hunk, old_line });
        for (number, expected) in [
            (1, line(0, Some(1))),
            (2, line(0, None)),
            (3, line(0, None)),
            (4, line(0, Some(3))),
            (5, None),
            (21, line(1, Some(20))),
            (22, line(1, None)),
            (23, None),
        ] {
            assert_eq!(file.line(number), expected, "line {number}");
        }
    }

    #[test]
    fn ranges_are_in_one_hunk_or_have_a_first_line() {
        let file = FileDiff::parse("a.rs", PATCH);
        for ((start, end), whole, first) in [
            ((1, 4), true, Some(2)),
            ((4, 4), true, Some(4)),
            ((4, 5), false, Some(4)),
            ((4, 21), false, Some(4)),
            ((5, 20), false, None),
            ((1, u32::MAX), false, Some(2)),
        ] {
            let range = LineRange::new(start, end);
            assert_eq!((file.is_in_one_hunk(range), file.first_line(range)), (whole, first), "{start}-{end}");
        }
    }

    #[test]
    fn a_damaged_or_missing_patch_has_no_lines_to_trust() {
        assert_eq!(FileDiff::parse("a.rs", "").first_line(LineRange::new(1, 100)), None);
        let file = FileDiff::parse("a.rs", "@@ -1,3 +1,3 @@\n one\nnonsense\n three");
        assert_eq!((file.line(1).is_some(), file.line(2)), (true, None));
    }
}
