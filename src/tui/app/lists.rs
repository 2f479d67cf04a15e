//! Holds the rows, the selection and the scroll position of the list of findings.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::tui::filter::{FilterOverrides, FindingFilter};
use crate::tui::finding_order::{FindingArrangement, FindingQuery, FindingTotals, ListedFindings};
use crate::tui::finding_texts::FindingTextCache;
use crate::tui::request_counter::RequestCounter;
use crate::tui::saved_filters::SavedFilters;

/// Selected row of a list, and the first row on the screen (both 0-based).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the selected row; 0 in an empty list.
    pub selected: usize,
    /// Index of the first row on the screen.
    pub offset: usize,
}

/// Most lines that a list scrolls when a step passes its edge.
const MAX_LINES_AHEAD: usize = 6;

impl Cursor {
    /// Scrolls further after a step past an edge of the screen: a quarter of the screen at once, so that most of the
    /// following steps move only the bar. A step that scrolls rewrites every row, about 2.3 KB at 200x60 against 0.3 KB.
    /// `before` is the first line before the step; `lines` is the length of the list.
    pub fn scroll_ahead(&mut self, before: usize, lines: usize, height: usize) {
        let ahead = (height / 4).min(MAX_LINES_AHEAD);
        if self.offset.abs_diff(before) >= ahead {
            return;
        }
        match self.offset.cmp(&before) {
            Ordering::Greater => self.offset = (before + ahead).min(lines.saturating_sub(height)),
            Ordering::Less => self.offset = before.saturating_sub(ahead),
            Ordering::Equal => {}
        }
    }

    /// Selects row `at` and scrolls as little as possible.
    pub fn select(&mut self, at: usize, rows: usize, height: usize) {
        self.selected = at.min(rows.saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height.max(1)), self.selected);
        self.offset = self.offset.min(rows.saturating_sub(height.max(1)));
    }

    /// Scrolls by a number of rows; the selection moves only as far as it must to stay on the screen.
    pub fn scroll(&mut self, by: isize, rows: usize, height: usize) {
        let height = height.max(1);
        self.offset = self.offset.saturating_add_signed(by).min(rows.saturating_sub(height));
        self.selected = self.selected.clamp(self.offset, self.offset + height - 1).min(rows.saturating_sub(1));
    }

    /// Selects row `at` after the rows changed, so that the selected row keeps its position on the screen.
    pub fn select_in_place(&mut self, at: usize, rows: usize, height: usize) {
        let place = self.selected.saturating_sub(self.offset);
        self.offset = at.saturating_sub(place);
        self.select(at, rows, height);
    }
}

/// List of findings and its filter. On the screen, each group has a header above its findings, and each finding is one or
/// two lines high.
#[derive(Debug, Default)]
pub struct FindingList {
    /// Indices of the findings that match the filter, in the order of the list.
    pub rows: Vec<u32>,
    /// Position in `rows` at which each group starts, ascending; empty without groups.
    pub groups: Vec<u32>,
    /// Counts of all findings.
    pub totals: FindingTotals,
    /// Order and groups that `rows` and `groups` have.
    pub arrangement: FindingArrangement,
    /// Lines of a finding on the screen; 0 counts as 1.
    pub row_height: usize,
    /// Selected finding as a position in `rows`, and the first line on the screen, headers counted.
    pub cursor: Cursor,
    /// Filter as the user typed it.
    pub filter_text: String,
    /// Saved filters, which the prompt replaces by their texts.
    pub saved_filters: SavedFilters,
    /// Choices of runs and files that led to `filter_text`, the last one at the end.
    pub narrowed: Vec<FilterStep>,
    /// Parsed form of `filter_text`.
    pub filter: FindingFilter,
    /// Knowledge that the view lacks.
    pub overrides: Arc<FilterOverrides>,
    /// Requests to the filter thread, and which of them `rows` answers.
    pub filter_requests: RequestCounter,
    /// Finding to select as soon as the rows contain it.
    pub awaited: Option<String>,
    /// Ids of the marked findings.
    pub marks: HashSet<String>,
    /// Row at which the range being marked starts; `None` outside range marking.
    pub mark_range_start: Option<usize>,
    /// Texts of the rows on the screen.
    pub texts: FindingTextCache,
}

/// Change of the filter by the choice of a run or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterStep {
    /// Filter before the choice.
    pub before: String,
    /// Filter that it led to.
    pub after: String,
}

/// Line of the list of findings on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingListLine {
    /// Header of the group with this number (0-based).
    Header(usize),
    /// Line of a finding.
    Finding {
        /// Position of the finding in the list.
        at: usize,
        /// Line of the finding, 0-based.
        line: usize,
    },
}

impl FindingList {
    /// Returns the question that the rows answer.
    pub fn query(&self) -> FindingQuery {
        FindingQuery {
            filter: self.filter.clone(),
            overrides: Arc::clone(&self.overrides),
            arrangement: self.arrangement,
        }
    }

    /// Returns the number of undecided findings that are new and were not selected.
    pub fn new_count(&self) -> usize {
        self.totals.new.saturating_sub(self.overrides.seen.len().saturating_sub(self.totals.seen))
    }

    /// Replaces the rows and groups.
    pub fn set_rows(&mut self, listed: ListedFindings) {
        (self.rows, self.groups, self.totals) = (listed.rows, listed.groups, listed.totals);
    }

    /// Returns the rows of the range being marked; `None` outside range marking.
    pub fn mark_range(&self) -> Option<RangeInclusive<usize>> {
        let (from, to) = (self.mark_range_start?, self.cursor.selected);
        let last = self.rows.len().checked_sub(1)?;
        Some(from.min(to)..=from.max(to).min(last))
    }

    fn row_lines(&self) -> usize {
        self.row_height.max(1)
    }

    /// Returns the number of lines of the whole list, headers included.
    pub fn line_count(&self) -> usize {
        self.rows.len() * self.row_lines() + self.groups.len()
    }

    /// Returns the number of findings that fit on a screen of `height` lines (at least 1).
    pub fn rows_per_page(&self, height: usize) -> usize {
        (height / self.row_lines()).max(1)
    }

    /// Returns the first line of the finding at a position.
    pub fn line_of(&self, at: usize) -> usize {
        at * self.row_lines() + self.groups.partition_point(|start| *start as usize <= at)
    }

    /// Returns the content of a line; `None` below the end of the list.
    pub fn line(&self, line: usize) -> Option<FindingListLine> {
        let height = self.row_lines();
        let header_line = |group: usize| self.groups[group] as usize * height + group;
        let (mut low, mut high) = (0, self.groups.len());
        while low < high {
            let middle = (low + high) / 2;
            if header_line(middle) <= line { low = middle + 1 } else { high = middle }
        }
        let (start, below) = match low.checked_sub(1) {
            Some(group) if header_line(group) == line => return Some(FindingListLine::Header(group)),
            Some(group) => (self.groups[group] as usize, line - header_line(group) - 1),
            None => (0, line),
        };
        let at = start + below / height;
        (at < self.rows.len()).then_some(FindingListLine::Finding { at, line: below % height })
    }

    /// Scrolls by a number of lines; the selection moves only as far as it must to stay on the screen.
    pub fn scroll(&mut self, by: isize, height: usize) {
        let height = height.max(1);
        let last = self.line_count().saturating_sub(height);
        self.cursor.offset = self.cursor.offset.saturating_add_signed(by).min(last);
        let (top, bottom) = (self.cursor.offset, self.cursor.offset + height);
        let shown = (top..bottom).filter_map(|line| match self.line(line)? {
            FindingListLine::Finding { at, .. } => {
                let first = self.line_of(at);
                (first >= top && first + self.row_lines() <= bottom).then_some(at)
            }
            FindingListLine::Header(_) => None,
        });
        let (first, last) = shown.fold((usize::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
        if first <= last {
            self.cursor.selected = self.cursor.selected.clamp(first, last);
        }
    }

    /// Returns the number of findings in a group.
    pub fn group_len(&self, group: usize) -> usize {
        let end = self.groups.get(group + 1).map_or(self.rows.len(), |start| *start as usize);
        self.groups.get(group).map_or(0, |start| end.saturating_sub(*start as usize))
    }

    /// Returns the position of a finding, given by its index in the view; `None` if it is not listed.
    pub fn position_of(&self, index: usize) -> Option<usize> {
        let index = u32::try_from(index).ok()?;
        self.rows.iter().position(|row| *row == index)
    }

    /// Selects the finding at a position and scrolls as little as possible. The header above the first finding of a group
    /// is shown with it if there is room.
    pub fn select(&mut self, at: usize, height: usize) {
        let height = height.max(1);
        self.cursor.selected = at.min(self.rows.len().saturating_sub(1));
        let first = self.line_of(self.cursor.selected);
        let is_first = self.groups.binary_search(&u32::try_from(self.cursor.selected).unwrap_or(u32::MAX)).is_ok();
        let end = first + self.row_lines();
        self.cursor.offset = self.cursor.offset.min(first - usize::from(is_first)).max(end.saturating_sub(height));
        self.cursor.offset = self.cursor.offset.min(self.line_count().saturating_sub(height));
    }

    /// Selects the finding at a position as a step of the user does.
    pub fn step_to(&mut self, at: usize, height: usize) {
        let before = self.cursor.offset;
        self.select(at, height);
        let lines = self.line_count();
        self.cursor.scroll_ahead(before, lines, height);
    }

    /// Returns the line of the screen on which the selected finding starts.
    pub fn selected_line(&self) -> usize {
        self.line_of(self.cursor.selected).saturating_sub(self.cursor.offset)
    }

    /// Selects the finding at a position after the rows changed, so that it stands on line `line` of the screen.
    pub fn select_on_line(&mut self, at: usize, line: usize, height: usize) {
        self.cursor.offset = self.line_of(at.min(self.rows.len().saturating_sub(1))).saturating_sub(line);
        self.select(at, height);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a list of `rows` findings with groups that start at these positions.
    fn list(rows: u32, groups: &[u32], row_height: usize) -> FindingList {
        FindingList { rows: (0..rows).collect(), groups: groups.to_vec(), row_height, ..FindingList::default() }
    }

    #[test]
    fn headers_are_lines_of_their_own() {
        for (groups, height, expected) in [
            (&[][..], 1, "0 1 2 3 4"),
            (&[0, 1, 4], 1, "# 0 # 1 2 3 # 4"),
            (&[0, 1, 4], 2, "# 0 0' # 1 1' 2 2' 3 3' # 4 4'"),
        ] {
            let list = list(5, groups, height);
            let describe = |line: usize| match list.line(line) {
                Some(FindingListLine::Header(_)) => "#".to_owned(),
                Some(FindingListLine::Finding { at, line }) => format!("{at}{}", "'".repeat(line)),
                None => "none".to_owned(),
            };
            let lines: Vec<String> = (0..list.line_count()).map(describe).collect();
            assert_eq!(lines.join(" "), expected);
            assert_eq!(list.line(list.line_count()), None);
            for at in 0..5 {
                assert_eq!(list.line(list.line_of(at)), Some(FindingListLine::Finding { at, line: 0 }), "{expected}");
            }
        }
        let list = list(5, &[0, 1, 4], 1);
        assert_eq!([0, 1, 2, 3].map(|group| list.group_len(group)), [1, 3, 1, 0]);
        assert_eq!((list.position_of(3), list.position_of(9)), (Some(3), None));
    }

    #[test]
    fn the_selected_finding_is_always_on_the_screen() {
        for (rows, groups) in [(0, &[][..]), (1, &[0]), (9, &[0, 1, 4]), (40, &[])] {
            for row_height in [1, 2] {
                for height in 1..8 {
                    let mut list = list(rows, groups, row_height);
                    for at in [0, 3, 99, 4, 1, 0, 8] {
                        list.select(at, height);
                        let first = list.line_of(list.cursor.selected);
                        let hint = format!("{rows} rows of {row_height} lines, {height} lines of screen, row {at}");
                        if rows > 0 && height >= row_height {
                            assert!(list.cursor.offset <= first, "{hint}");
                            assert!(first + row_height <= list.cursor.offset + height, "{hint}");
                        }
                    }
                }
            }
        }
        let mut list = list(9, &[0, 1, 4], 1);
        list.select(8, 4);
        list.select(4, 4);
        assert_eq!(
            list.line(list.cursor.offset),
            Some(FindingListLine::Header(2)),
            "the header comes with its first row"
        );
        list.select(0, 4);
        assert_eq!(list.cursor, Cursor { selected: 0, offset: 0 });
        list.select_on_line(5, 2, 4);
        assert_eq!(list.selected_line(), 2);
    }

    #[test]
    fn a_step_past_the_edge_scrolls_a_quarter_of_the_screen() {
        let list_at = |offset: usize, selected: usize| {
            let mut list = list(100, &[0, 30, 60], 1);
            list.cursor = Cursor { selected, offset };
            list
        };
        for (offset, from, to, expected, why) in [
            (0, 5, 6, 0, "inside the screen"),
            (0, 18, 19, 5, "past the lower edge"),
            (20, 19, 18, 15, "past the upper edge"),
            (3, 2, 1, 0, "not above the first line"),
            (80, 96, 97, 83, "not below the last line"),
            (0, 0, 70, 54, "a leap shows its row as before"),
        ] {
            let mut list = list_at(offset, from);
            list.step_to(to, 20);
            assert_eq!(list.cursor, Cursor { selected: to, offset: expected }, "{why}");
        }
        for height in 1..40 {
            let mut list = list_at(0, 0);
            for at in (0..100).chain((0..100).rev()) {
                list.step_to(at, height);
                let line = list.line_of(at);
                let shown = list.cursor.offset..list.cursor.offset + height;
                assert!(shown.contains(&line), "row {at} at {height} lines of screen");
            }
        }
    }

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
        cursor.select(7, 100, 10);
        for (by, expected) in [
            (3, Cursor { selected: 7, offset: 3 }),
            (6, Cursor { selected: 9, offset: 9 }),
            (-9, Cursor { selected: 9, offset: 0 }),
            (isize::MAX, Cursor { selected: 90, offset: 90 }),
            (isize::MIN, Cursor { selected: 9, offset: 0 }),
        ] {
            cursor.scroll(by, 100, 10);
            assert_eq!(cursor, expected, "scrolled by {by}");
        }
        cursor.scroll(5, 0, 10);
        assert_eq!(cursor, Cursor::default());
    }
}
