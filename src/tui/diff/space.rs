//! Compares changed lines without their white space.

use std::borrow::Cow;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::model::{ChangeBlock, LineTable};

/// Most lines of a block, of both sides, that are compared line by line; the time grows with their square.
const MAX_COMPARED_LINES: u32 = 4_000;

/// Returns the changed blocks without the lines that differ only in white space. Of a large block, only such lines at its
/// beginning and its end are left out.
pub fn drop_space_changes(blocks: &[ChangeBlock], old: &LineTable, new: &LineTable) -> Vec<ChangeBlock> {
    let mut kept = Vec::with_capacity(blocks.len());
    for block in blocks {
        if block.old_lines == 0 || block.new_lines == 0 {
            kept.push(*block);
            continue;
        }
        let strip = |table: &LineTable, first: u32, lines: u32| -> Vec<String> {
            (first..first + lines).map(|line| strip_space(table.line(line).unwrap_or("")).into_owned()).collect()
        };
        let before = strip(old, block.old, block.old_lines);
        let after = strip(new, block.new, block.new_lines);
        let start = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(|(a, b)| a == b).count();
        let (before, after) = (&before[start..before.len() - end], &after[start..after.len() - end]);
        let part = |old: std::ops::Range<usize>, new: std::ops::Range<usize>| ChangeBlock {
            old: block.old + (start + old.start) as u32,
            old_lines: old.len() as u32,
            new: block.new + (start + new.start) as u32,
            new_lines: new.len() as u32,
        };
        if before.is_empty() && after.is_empty() {
            continue;
        }
        if block.old_lines.saturating_add(block.new_lines) > MAX_COMPARED_LINES {
            kept.push(part(0..before.len(), 0..after.len()));
            continue;
        }
        let changed = capture_diff_slices(Algorithm::Myers, before, after).into_iter();
        kept.extend(
            changed.filter(|op| !matches!(op, DiffOp::Equal { .. })).map(|op| part(op.old_range(), op.new_range())),
        );
    }
    kept
}

/// Returns a line without its white space.
pub fn strip_space(line: &str) -> Cow<'_, str> {
    match line.contains(char::is_whitespace) {
        true => line.split_whitespace().collect::<String>().into(),
        false => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_only_in_white_space_are_no_change() {
        // Old text, new text, blocks that are left: old start+lines>new start+lines.
        for (old, new, expected) in [
            ("a\n", "  a\n", ""),
            ("a b\n", "ab\n", ""),
            ("a\r\n", "a\n", ""),
            ("\ta\nb\nc\n", "  a\nB\n  c\n", "2+1>2+1"),
            ("if x {\n    a\n}\n", "if x {\n  y\n  a\n}\n", "2+0>2+1"),
            ("a\nb\n", " a\n", "2+1>2+0"),
            ("a\n", "\n a\n", "1+0>1+1"),
            ("a\n", "b\n", "1+1>1+1"),
            ("", "a\n", "1+0>1+1"),
        ] {
            let (before, after) = (LineTable::new(old.to_owned()), LineTable::new(new.to_owned()));
            let block = ChangeBlock { old: 1, old_lines: before.count(), new: 1, new_lines: after.count() };
            let blocks = drop_space_changes(&[block], &before, &after);
            let written: Vec<String> = blocks
                .iter()
                .map(|block| format!("{}+{}>{}+{}", block.old, block.old_lines, block.new, block.new_lines))
                .collect();
            assert_eq!(written.join(" "), expected, "{old:?} and {new:?}");
        }
    }

    #[test]
    fn a_large_block_is_not_compared_line_by_line() {
        let lines = |indent: &str, last: &str| -> String {
            (0..3_000).map(|n| format!("{indent}line {n} {last}\n")).collect::<String>()
        };
        let old = LineTable::new(format!("x\n{}", lines("", "a")));
        let new = LineTable::new(format!("  x\n{}", lines("  ", "b")));
        let block = ChangeBlock { old: 1, old_lines: 3_001, new: 1, new_lines: 3_001 };
        let expected = ChangeBlock { old: 2, old_lines: 3_000, new: 2, new_lines: 3_000 };
        assert_eq!(drop_space_changes(&[block], &old, &new), [expected]);
    }
}
