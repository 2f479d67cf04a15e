//! Measures the columns of a diff: where numbers and texts stand, and which part of a line a row shows.

use super::model::DiffFile;
use crate::tui::doc::TextColumns;
use unicode_segmentation::UnicodeSegmentation;

/// Columns of a diff: where numbers and texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffColumns {
    /// Width of the whole diff in cells.
    pub width: usize,
    pub is_side_by_side: bool,
    /// Long lines are continued in the next row.
    pub is_wrapped: bool,
}

impl DiffColumns {
    /// Returns the columns for a file: a new or deleted one is unified, because the half of its other side would be empty.
    pub fn of_file(self, file: &DiffFile) -> Self {
        Self { is_side_by_side: self.is_side_by_side && !file.has_one_side(), ..self }
    }

    /// Returns the width of the text of a line, if the numbers have this many digits.
    pub fn text_width(self, digits: usize) -> usize {
        let used = match self.is_side_by_side {
            // Mark, number, sign, and blanks between them.
            true => self.half_width() - self.half_width().min(digits + 5),
            // Mark, two numbers, sign, and blanks between them.
            false => self.width.saturating_sub(2 * digits + 6),
        };
        used.max(8)
    }

    /// Returns the width of one side of two.
    pub fn half_width(self) -> usize {
        self.width.saturating_sub(1) / 2
    }
}

/// Returns the number of rows that a line takes in a width.
pub fn count_rows(line: &str, width: usize) -> u32 {
    if line.is_ascii() {
        return line.len().div_ceil(width).max(1) as u32;
    }
    let mut rows = 0;
    let mut at = 0;
    loop {
        let (_, end) = fit_columns(line, at, width);
        rows += 1;
        if end <= at || end >= line.len() {
            return rows;
        }
        at = end;
    }
}

/// Returns the byte range of a row of a wrapped line.
pub fn wrapped_part(line: &str, part: u32, width: usize) -> (usize, usize) {
    let mut start = 0;
    for _ in 0..part {
        start = fit_columns(line, start, width).1;
    }
    (start, fit_columns(line, start, width).1)
}

/// Returns the columns and the end, as a byte index, of the text from `start` on that fits into a width.
pub fn fit_columns(line: &str, start: usize, width: usize) -> (usize, usize) {
    let rest = line.get(start..).unwrap_or("");
    if rest.is_ascii() {
        let used = rest.len().min(width);
        return (used, start + used);
    }
    let mut used = 0;
    for (at, grapheme) in rest.grapheme_indices(true) {
        let size = grapheme.width();
        if used + size > width {
            return (used, start + at);
        }
        used += size;
    }
    (used, line.len())
}
