//! Range of lines in a diff that the user marks to write about.

use super::layout::DiffPageRow;
use super::model::DiffPageSide;
use super::pane::{DiffPane, PlacedRow};
use crate::domain::LineRange;

/// Line where a range begins: its file and its number on the new side. It survives changes of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeStart {
    file: usize,
    line: u32,
    /// The mouse has marked the range, so that the next click ends it.
    is_dragged: bool,
}

impl DiffPane {
    /// Begins a range at the cursor, or ends the present one; on a removed line it begins with the next one that is left.
    /// Returns false if the row of the cursor has no line.
    pub fn toggle_range(&mut self) -> bool {
        if self.range.take().is_none() {
            self.range = self.start_range(false);
            return self.range.is_some();
        }
        true
    }

    fn start_range(&self, is_dragged: bool) -> Option<RangeStart> {
        self.line_at_or_below(self.cursor()).map(|(file, line)| RangeStart { file, line, is_dragged })
    }

    /// Puts the cursor at a row that the mouse has pressed, and ends a range that the mouse has marked.
    pub fn press_row(&mut self, row: usize) {
        self.range = self.range.filter(|range| !range.is_dragged);
        self.point_at(row);
        self.pressed = self.start_range(true);
    }

    /// Marks the lines from the pressed row to another one, where the cursor goes. A row without a line begins no range.
    pub fn drag_to(&mut self, row: usize) {
        if self.pressed.is_some() && row != self.cursor() {
            self.range = self.pressed;
            self.point_at(row);
        }
    }

    /// Ends the range. Returns true if there was one.
    pub fn clear_range(&mut self) -> bool {
        self.range.take().is_some()
    }

    /// Returns true while a range is marked.
    pub fn has_range(&self) -> bool {
        self.range.is_some()
    }

    /// Returns the marked lines and their file; `None` without a range, or with the cursor in another file.
    pub fn marked_lines(&self) -> Option<(usize, LineRange)> {
        let RangeStart { file, line, .. } = self.range?;
        // On a removed line the range ends with the nearest line towards its start.
        let above = || self.line_above(self.cursor()).filter(|(other, above)| *other == file && *above >= line);
        let end = self.line_at(self.cursor()).or_else(above).or_else(|| self.line_at_or_below(self.cursor()))?;
        (end.0 == file).then(|| (file, LineRange::new(line.min(end.1), line.max(end.1))))
    }

    /// Returns true for a row whose line is among marked lines.
    pub fn is_among(&self, row: usize, (file, lines): (usize, LineRange)) -> bool {
        self.line_at(row).is_some_and(|(other, line)| other == file && (lines.start..=lines.end).contains(&line))
    }

    /// Returns file and line of the new side of a row.
    fn line_at(&self, row: usize) -> Option<(usize, u32)> {
        let PlacedRow { file, row: DiffPageRow::Code(code) } = self.row(row)? else { return None };
        Some((file, code.line(DiffPageSide::New)?))
    }

    /// Returns file and line of the new side of a row of code, else of the next row below it that has one.
    fn line_at_or_below(&self, row: usize) -> Option<(usize, u32)> {
        let here = self.row(row).filter(|placed| matches!(placed.row, DiffPageRow::Code(_)))?.file;
        (row..self.row_count())
            .map_while(|row| self.row(row).filter(|placed| placed.file == here).map(|_| row))
            .find_map(|row| self.line_at(row))
    }

    /// Returns file and line of the nearest row above that has a line of the new side.
    pub fn line_above(&self, row: usize) -> Option<(usize, u32)> {
        let here = self.file_at(row)?;
        (self.file_start(here)..row).rev().find_map(|row| self.line_at(row))
    }
}
