//! Shifts the code of a diff to the side: by keys, and to a match of the search.

use super::layout::DiffPageRow;
use super::model::DiffPageSide;
use super::pane::{DiffPane, PlacedRow};
use crate::tui::doc::TextColumns;

/// Columns of a step to the side.
pub const SHIFT_STEP: usize = 8;

impl DiffPane {
    /// Returns true if a line on the screen is longer than its room, or the code is shifted.
    pub fn can_shift(&self) -> bool {
        !self.options().wraps && (self.shift > 0 || self.widest_visible_line() > self.visible_text_width())
    }

    /// Shifts the code by a number of columns, until the longest line on the screen is visible to its end.
    pub fn shift_by(&mut self, columns: isize) {
        let most = self.widest_visible_line().saturating_sub(self.visible_text_width()).max(self.shift);
        self.shift = self.shift.saturating_add_signed(columns).min(most);
    }

    /// Shifts the code so that a text (in lower case) in the row of the cursor is in sight.
    pub fn reveal_match(&mut self, wanted: &str) {
        let width = self.visible_text_width().saturating_sub(1);
        let Some(columns) = self.find_match(wanted).filter(|_| !self.options().wraps) else { return };
        if columns.end <= width {
            self.shift = 0;
        } else if columns.start < self.shift || columns.end > self.shift + width {
            // In the middle, so that what stands around it is visible, too.
            self.shift = columns.start.saturating_sub(width.saturating_sub(columns.len()) / 2);
        }
    }

    /// Returns the columns of a text in the code at the cursor.
    fn find_match(&self, wanted: &str) -> Option<std::ops::Range<usize>> {
        let PlacedRow { file, row: DiffPageRow::Code(code) } = self.row(self.cursor())? else { return None };
        let texts = self.files()[file].read_texts()?;
        [DiffPageSide::New, DiffPageSide::Old].into_iter().find_map(|side| {
            let line = texts.side(side).line(code.line(side)?)?;
            let lower = line.to_lowercase();
            let at = lower.find(wanted).filter(|_| !wanted.is_empty() && lower.len() == line.len())?;
            let start = line.get(..at)?.width();
            Some(start..start + line.get(at..at + wanted.len())?.width())
        })
    }

    /// Returns the width of the texts of the narrowest file on the screen.
    fn visible_text_width(&self) -> usize {
        let last = (self.top() + self.height()).min(self.row_count()).saturating_sub(1);
        let (Some(first), Some(last)) = (self.file_at(self.top()), self.file_at(last)) else {
            return self.columns().text_width(2);
        };
        let width = |file| self.columns_of(file).text_width(self.files()[file].layout.digits);
        (first..=last).map(width).min().unwrap_or_else(|| width(first))
    }

    fn widest_visible_line(&self) -> usize {
        let rows = self.top()..(self.top() + self.height()).min(self.row_count());
        let widths = rows.filter_map(|row| {
            let PlacedRow { file, row: DiffPageRow::Code(code) } = self.row(row)? else { return None };
            let texts = self.files()[file].read_texts()?;
            let width = |side, line: Option<u32>| texts.side(side).line(line?).map(TextColumns::width);
            width(DiffPageSide::Old, code.old.filter(|_| code.new.is_none() || self.columns_of(file).is_side_by_side))
                .max(width(DiffPageSide::New, code.new))
        });
        widths.max().unwrap_or(0)
    }
}
