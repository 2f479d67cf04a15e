//! Cuts rows at blank lines; used without a syntax tree.

use super::lines::{RowRange, RowTable};

/// Smallest window in lines: from this length a window ends at the next blank line.
const MIN_WINDOW_LINES: u32 = 30;
/// Largest window in lines: one and a half screens.
const MAX_WINDOW_LINES: u32 = 80;
/// Size in bytes from which a window ends at the end of the line; keeps a window of code below 2,000 tokens.
const MAX_WINDOW_BYTES: usize = 6_000;

/// Cuts rows into windows. Blank lines belong to the window before them. Avoids a last window that is much shorter than
/// the others.
pub fn cut_windows(lines: &RowTable<'_>, (first, last): RowRange) -> Vec<RowRange> {
    let mut windows = Vec::new();
    let (mut start, mut bytes, mut after_blank) = (first, 0usize, false);
    for row in first..=last {
        let (length, is_blank) = (lines.line(row).len(), lines.is_blank(row));
        let at_blank =
            after_blank && !is_blank && row - start >= MIN_WINDOW_LINES && last - row >= MIN_WINDOW_LINES / 3;
        if row > start && (at_blank || row - start >= MAX_WINDOW_LINES || bytes + length > MAX_WINDOW_BYTES) {
            windows.push((start, row - 1));
            (start, bytes) = (row, 0);
        }
        bytes += length;
        after_blank = is_blank;
    }
    windows.push((start, last));
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_blank_lines_and_are_bounded() {
        let paragraph = format!("{}\n", "text\n".repeat(24));
        let long = "x".repeat(20_000);
        for (text, expected) in [
            ("\n".to_owned(), vec![(0, 0)]),
            ("a".to_owned(), vec![(0, 0)]),
            ("text\n".repeat(170), vec![(0, 79), (80, 159), (160, 169)]),
            (paragraph.repeat(4), vec![(0, 49), (50, 99)]),
            (format!("a\n{long}\nb\n"), vec![(0, 0), (1, 1), (2, 2)]),
            (format!("{}\nend\n", "text\n".repeat(40)), vec![(0, 41)]),
        ] {
            let lines = RowTable::new(&text);
            assert_eq!(cut_windows(&lines, (0, lines.count() - 1)), expected, "{} lines", lines.count());
        }
    }
}
