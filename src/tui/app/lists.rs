//! Holds the rows, the selection and the scroll position of each list.

use std::collections::HashSet;
use std::sync::Arc;

use crate::tui::filter::{FilterOverrides, FindingFilter};
use crate::tui::message::FileListRow;
use crate::tui::request_counter::RequestCounter;

/// Selected row of a list, and the first row on the screen (both 0-based).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the selected row; 0 in an empty list.
    pub selected: usize,
    /// Index of the first row on the screen.
    pub offset: usize,
}

impl Cursor {
    /// Selects row `at` and scrolls as little as possible.
    pub fn select(&mut self, at: usize, rows: usize, height: usize) {
        self.selected = at.min(rows.saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height.max(1)), self.selected);
        self.offset = self.offset.min(rows.saturating_sub(height.max(1)));
    }

    /// Selects row `at` after the rows changed, so that the selected row keeps its position on the screen.
    pub fn select_in_place(&mut self, at: usize, rows: usize, height: usize) {
        let place = self.selected.saturating_sub(self.offset);
        self.offset = at.saturating_sub(place);
        self.select(at, rows, height);
    }
}

/// Row of the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEntry {
    /// Index of the run in [`crate::store::StoreView`].
    pub index: u32,
    /// The run was superseded and is listed below its replacement.
    pub nested: bool,
    /// Number of superseded runs that are folded away below this run.
    pub folded: u32,
    /// The run superseded others, which are shown below it.
    pub unfolded: bool,
}

/// List of runs.
#[derive(Debug, Default)]
pub struct RunList {
    /// Rows of the list.
    pub entries: Vec<RunEntry>,
    /// Selected row and scroll position.
    pub cursor: Cursor,
    /// Indices of the runs that have not ended, newest first.
    pub active: Vec<u32>,
    /// Runs whose superseded runs are shown below them.
    pub unfolded: HashSet<String>,
    /// Run to select as soon as the view of the store contains it.
    pub awaited: Option<String>,
}

/// List of findings and its filter.
#[derive(Debug)]
pub struct FindingList {
    /// Indices of the findings that match the filter.
    pub rows: Vec<u32>,
    /// Selected row and scroll position.
    pub cursor: Cursor,
    /// Filter as the user typed it.
    pub filter_text: String,
    /// Parsed form of `filter_text`.
    pub filter: FindingFilter,
    /// Knowledge that the view lacks.
    pub overrides: Arc<FilterOverrides>,
    /// Requests to the filter thread, and which of them `rows` answers.
    pub filter_requests: RequestCounter,
    /// Ids of the marked findings.
    pub marks: HashSet<String>,
    /// Row at which the range being marked starts; `None` outside range marking.
    pub mark_range_start: Option<usize>,
}

/// List of the files of a run.
#[derive(Debug, Default)]
pub struct FileList {
    /// Rows of the list, sorted by path.
    pub rows: Vec<FileListRow>,
    /// Selected row and scroll position.
    pub cursor: Cursor,
    /// Id of the run whose files are listed; empty before the first.
    pub run: String,
    /// Id of the run whose files were requested last; empty when they must be requested again.
    pub requested: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selected_row_keeps_its_place_on_the_screen() {
        let mut cursor = Cursor::default();
        cursor.select(7, 100, 10);
        assert_eq!(cursor, Cursor { selected: 7, offset: 0 });
        cursor.select_in_place(12, 105, 10);
        assert_eq!(cursor, Cursor { selected: 12, offset: 5 }, "five rows came in above");
        cursor.select_in_place(0, 3, 10);
        assert_eq!(cursor, Cursor { selected: 0, offset: 0 });
        cursor.select(99, 3, 10);
        assert_eq!(cursor.selected, 2);
        cursor.select(5, 0, 10);
        assert_eq!(cursor, Cursor::default());
    }
}
