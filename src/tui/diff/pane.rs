//! State of a shown diff: rows of all files, cursor, scroll position, folds.
//!
//! - Rows are counted over all files. When the rows of a file change, cursor and scroll position stay at their lines.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::message::DetailSubject;
use super::columns::DiffColumns;
use super::file_pane::{FilePane, TextState};
use super::finding_text::render_finding_text;
use super::layout::{CodeRow, DiffPageRow, FileLayout, HiddenLines, LayoutInput, lay_out_file};
use super::model::{DiffFile, DiffFinding, DiffPage, DiffPageSide, DiffTexts, TextHighlights};
use super::moves::DiffMove;
use super::range::RangeStart;
use crate::domain::LineRange;

/// Fewest columns for two sides beside each other, if the user has not chosen.
const MIN_SIDE_BY_SIDE_COLUMNS: usize = 120;
/// Rows between the cursor and the edge of the screen.
const SCROLL_MARGIN: usize = 3;
/// Rows above a line to which the user jumps.
const JUMP_MARGIN: usize = 6;
/// Hidden lines that one step shows at each end of a gap.
const EXPANDED_LINES: u32 = 20;
/// Most lines of texts that are kept; texts of files that are far away are dropped.
const MAX_KEPT_LINES: usize = 400_000;
/// Place of a row that survives a change of the rows.
#[derive(Debug, Clone, Copy)]
struct RowAnchor {
    file: usize,
    row: DiffPageRow,
    /// Row within the file, for rows without an identity.
    at: usize,
}

/// A row with its file.
#[derive(Debug, Clone, Copy)]
pub struct PlacedRow {
    pub file: usize,
    pub row: DiffPageRow,
}

/// Ways to show a diff that settings choose and keys switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// Long lines are continued in the next row.
    pub wraps: bool,
    /// Changes of white space are not shown.
    pub ignores_space: bool,
}

/// Shown diff.
#[derive(Debug, Default)]
pub struct DiffPane {
    page: Arc<DiffPage>,
    /// Subject of the page.
    subject: Option<DetailSubject>,
    files: Vec<FilePane>,
    /// First row of each file, and the number of all rows.
    starts: Vec<usize>,
    cursor: usize,
    top: usize,
    /// Columns by which the code is shifted to the left.
    pub(super) shift: usize,
    columns: DiffColumns,
    height: usize,
    /// The user's choice between unified (false) and side by side; by width without one.
    chosen: Option<bool>,
    /// The screen is for a screen reader: two sides would mix two texts in every line.
    is_plain: bool,
    options: DiffOptions,
    /// Moved lines by file and side, in the order of their lines; `None` before they are looked for.
    moves: Option<HashMap<(usize, DiffPageSide), Vec<DiffMove>>>,
    /// Start of the marked range, which ends at the cursor.
    pub(super) range: Option<RangeStart>,
    /// Line that the mouse has pressed, where a range begins if it is dragged.
    pub(super) pressed: Option<RangeStart>,
}

impl DiffPane {
    /// Creates an empty pane.
    pub fn new(options: DiffOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns what the user has chosen.
    pub fn options(&self) -> DiffOptions {
        self.options
    }

    /// Returns the shown page.
    pub fn page(&self) -> &Arc<DiffPage> {
        &self.page
    }

    /// Returns the state of each file.
    pub fn files(&self) -> &[FilePane] {
        &self.files
    }

    /// Returns the row of the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns the first row on the screen.
    pub fn top(&self) -> usize {
        self.top
    }

    /// Returns the columns by which the code is shifted to the left.
    pub fn shift(&self) -> usize {
        self.shift
    }

    /// Returns where numbers and texts of files with two sides stand.
    pub fn columns(&self) -> DiffColumns {
        self.columns
    }

    /// Returns where numbers and texts of a file stand, given by its index.
    pub fn columns_of(&self, file: usize) -> DiffColumns {
        self.file(file).map_or(self.columns, |(known, _)| self.columns.of_file(known))
    }

    /// Returns the number of rows on the screen.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of rows of all files.
    pub fn row_count(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the number of unfolded files whose texts are not read.
    pub fn unread_count(&self) -> usize {
        self.files.iter().filter(|file| !file.is_folded && file.is_waiting()).count()
    }

    /// Returns the first row of a file.
    pub fn file_start(&self, file: usize) -> usize {
        self.starts.get(file).copied().unwrap_or_else(|| self.row_count())
    }

    /// Returns a file and its state.
    pub fn file(&self, index: usize) -> Option<(&DiffFile, &FilePane)> {
        self.page.files.get(index).zip(self.files.get(index))
    }

    /// Returns the state of a file, to change it.
    pub fn file_mut(&mut self, index: usize) -> Option<&mut FilePane> {
        self.files.get_mut(index)
    }

    /// Returns the row with this number.
    pub fn row(&self, row: usize) -> Option<PlacedRow> {
        let file = self.file_at(row)?;
        let inside = row - self.starts[file];
        self.files[file].layout.row(inside).map(|row| PlacedRow { file, row })
    }

    /// Returns the file to which a row belongs.
    pub fn file_at(&self, row: usize) -> Option<usize> {
        if row >= self.row_count() {
            return None;
        }
        self.starts.partition_point(|start| *start <= row).checked_sub(1)
    }

    /// Shows a page. Texts that were read stay if they are the same; folds, cursor and scroll position stay if the page of
    /// the same subject was read again.
    pub fn show(&mut self, page: Arc<DiffPage>, subject: &DetailSubject) {
        let is_again = self.subject.as_ref() == Some(subject);
        if !is_again || !page.has_same_change(&self.page) {
            (self.range, self.pressed) = (None, None);
        }
        self.subject = Some(subject.clone());
        if !page.has_same_change(&self.page) {
            self.moves = None;
        }
        let before = is_again.then(|| (self.anchor(self.cursor), self.anchor(self.top)));
        let old = std::mem::replace(&mut self.page, page);
        let mut known: HashMap<&str, (usize, FilePane)> = HashMap::new();
        for (index, pane) in std::mem::take(&mut self.files).into_iter().enumerate() {
            if let Some(file) = old.files.get(index) {
                known.insert(&file.path, (index, pane));
            }
        }
        let is_same_change = (&old.from, &old.to, old.mask) == (&self.page.from, &self.page.to, self.page.mask);
        let page = Arc::clone(&self.page);
        self.files = page
            .files
            .iter()
            .map(|file| {
                // A file that the settings leave out has no blocks yet; one that the run did not reach matters like the others.
                let is_quiet = file.left_out.is_some() && file.blocks.is_empty() && page.files.len() > 1;
                let fresh = FilePane {
                    is_folded: is_quiet || file.is_viewed,
                    is_viewed: file.is_viewed,
                    viewed_changes: file.viewed_changes.clone(),
                    ignores_space: self.options.ignores_space,
                    ..FilePane::default()
                };
                let Some((index, mut pane)) = known.remove(file.path.as_str()) else { return fresh };
                let was = &old.files[index];
                let is_same_text = is_same_change && was.has_same_texts(file);
                if !is_same_text || matches!(pane.texts, TextState::Requested | TextState::Failed(_)) {
                    pane.forget_texts();
                }
                if !is_again {
                    return FilePane { texts: pane.texts, highlights: pane.highlights, ..fresh };
                }
                let is_open = |finding: &DiffFinding| {
                    let at = was.findings.iter().position(|known| known.id == finding.id);
                    at.is_some_and(|at| pane.open_findings.contains(&at))
                };
                let open: BTreeSet<usize> = file
                    .findings
                    .iter()
                    .enumerate()
                    .filter(|(_, finding)| is_open(finding))
                    .map(|(at, _)| at)
                    .collect();
                pane.open_findings = open;
                pane.is_viewed = file.is_viewed;
                pane.viewed_changes.clone_from(&file.viewed_changes);
                pane
            })
            .collect();
        self.shift = if is_again { self.shift } else { 0 };
        self.columns.is_side_by_side = self.fits_side_by_side(self.columns.width);
        self.lay_out_all();
        match before {
            Some((cursor, top)) => {
                let place = |anchor: Option<RowAnchor>| {
                    let anchor = anchor?;
                    let path = &old.files.get(anchor.file)?.path;
                    let file = self.page.files.iter().position(|file| file.path == *path)?;
                    Some(self.find_anchor(RowAnchor { file, ..anchor }))
                };
                let (cursor, top) = (place(cursor), place(top));
                self.cursor = cursor.unwrap_or(0);
                self.top = top.unwrap_or(0);
                self.clamp();
            }
            None => self.go_to_selected(),
        }
    }

    /// Notes that the moves are looked for; returns false if they were looked for already.
    pub fn request_moves(&mut self) -> bool {
        let is_new = self.moves.is_none();
        self.moves.get_or_insert_default();
        is_new
    }

    /// Stores the lines that moved.
    pub fn set_moves(&mut self, moves: Vec<DiffMove>) {
        let mut sorted: HashMap<(usize, DiffPageSide), Vec<DiffMove>> = HashMap::new();
        for found in moves {
            sorted.entry((found.old_file, DiffPageSide::Old)).or_default().push(found.clone());
            sorted.entry((found.new_file, DiffPageSide::New)).or_default().push(found);
        }
        for (key, moves) in &mut sorted {
            moves.sort_by_key(|found| found.lines(key.1).start);
        }
        self.moves = Some(sorted);
    }

    /// Returns the move of which a line is a part.
    pub fn find_move(&self, file: usize, side: DiffPageSide, line: u32) -> Option<&DiffMove> {
        let moves = self.moves.as_ref()?.get(&(file, side))?;
        let at = moves.partition_point(|found| found.lines(side).start <= line).checked_sub(1)?;
        moves.get(at).filter(|found| found.lines(side).end >= line)
    }

    /// Goes to the selected finding and shows its text; without one, to the first row.
    fn go_to_selected(&mut self) {
        (self.cursor, self.top) = (0, 0);
        let page = Arc::clone(&self.page);
        let Some(selected) = &page.selected else { return };
        let place = page.files.iter().enumerate().find_map(|(file, known)| {
            known.findings.iter().position(|finding| finding.id == *selected).map(|index| (file, index))
        });
        if let Some((file, index)) = place {
            self.open_finding(file, index);
        }
    }

    /// Unfolds a file and the text of one of its findings, and goes to the finding's line.
    pub fn open_finding(&mut self, file: usize, index: usize) {
        if let Some(pane) = self.files.get_mut(file) {
            pane.is_folded = false;
            pane.open_findings.insert(index);
        }
        self.lay_out(file);
        if let Some(row) = self.finding_row(file, index) {
            self.jump_to(row);
        }
    }

    /// Returns the row of a finding's first line, else of its text, else of its file.
    pub fn finding_row(&self, file: usize, index: usize) -> Option<usize> {
        let (known, pane) = self.file(file)?;
        let line = known.findings.get(index)?.lines.start.max(1);
        let layout = &pane.layout;
        let inside = layout.row_of_line(DiffPageSide::New, line).or_else(|| layout.row_of_text(index)).unwrap_or(0);
        Some(self.starts[file] + inside)
    }

    /// Keeps the diff unified, whatever its width and the user's choice, on a screen for a screen reader.
    pub fn set_plain(&mut self, is_plain: bool) {
        self.is_plain = is_plain;
    }

    /// Adapts the layout to the size of the pane.
    pub fn resize(&mut self, width: usize, height: usize) {
        let is_side_by_side = self.fits_side_by_side(width);
        let columns = DiffColumns { width, is_side_by_side, is_wrapped: self.options.wraps };
        if height != self.height {
            self.height = height;
            self.clamp();
        }
        if columns != self.columns {
            self.columns = columns;
            self.keep_place(Self::lay_out_all);
        }
    }

    /// Returns true if two sides can stand beside each other: never on a plain screen. Without an old side, as for a whole
    /// tree, the same lines would stand on both; among new and deleted files only, one side would be empty.
    pub fn has_two_sides(&self) -> bool {
        !self.is_plain && !self.page.from.is_empty() && self.page.files.iter().any(|file| !file.has_one_side())
    }

    /// Returns true if two sides stand beside each other at this width.
    fn fits_side_by_side(&self, width: usize) -> bool {
        self.has_two_sides() && self.chosen.unwrap_or(width >= MIN_SIDE_BY_SIDE_COLUMNS)
    }

    /// Switches between unified and side by side; returns true for side by side. A change without two sides stays
    /// unified.
    pub fn toggle_side_by_side(&mut self) -> bool {
        if !self.has_two_sides() {
            return false;
        }
        self.chosen = Some(!self.columns.is_side_by_side);
        self.resize(self.columns.width, self.height);
        self.columns.is_side_by_side
    }

    /// Switches between long lines that continue in the next row and those that are cut; returns true for the former.
    pub fn toggle_wrap(&mut self) -> bool {
        self.options.wraps = !self.options.wraps;
        self.shift = 0;
        self.resize(self.columns.width, self.height);
        self.options.wraps
    }

    /// Switches between changes with and without those of white space; returns true if they are ignored.
    pub fn toggle_space(&mut self) -> bool {
        self.options.ignores_space = !self.options.ignores_space;
        for file in &mut self.files {
            file.ignores_space = self.options.ignores_space;
        }
        self.keep_place(Self::lay_out_all);
        self.options.ignores_space
    }

    /// Stores the texts of a file.
    pub fn set_texts(&mut self, file: usize, texts: Result<Arc<DiffTexts>, String>) {
        if file >= self.files.len() {
            return;
        }
        let texts = match texts {
            Ok(texts) => TextState::Read(texts),
            Err(error) => TextState::Failed(error),
        };
        self.keep_place(|diff| {
            let pane = &mut diff.files[file];
            pane.highlights.clear();
            pane.texts = texts;
            diff.lay_out(file);
        });
        self.drop_distant_texts();
    }

    /// Drops the texts of files far from the screen if too many lines are kept.
    fn drop_distant_texts(&mut self) {
        let lines =
            |pane: &FilePane| pane.read_texts().map_or(0, |texts| (texts.old.count() + texts.new.count()) as usize);
        let mut kept: usize = self.files.iter().map(lines).sum();
        if kept <= MAX_KEPT_LINES {
            return;
        }
        let Some(here) = self.file_at(self.top) else { return };
        let last = self.file_at((self.top + self.height).min(self.row_count().saturating_sub(1))).unwrap_or(here);
        let mut others: Vec<usize> = (0..self.files.len())
            .filter(|at| self.files[*at].read_texts().is_some() && !(here..=last).contains(at))
            .collect();
        others.sort_by_key(|at| std::cmp::Reverse(at.abs_diff(here)));
        for at in others {
            if kept <= MAX_KEPT_LINES {
                break;
            }
            kept -= lines(&self.files[at]);
            self.files[at].forget_texts();
            // Only then the height of the file changes: the end of its text is unknown again, and its lines take one row.
            self.keep_place(|pane| pane.lay_out(at));
        }
    }

    /// Folds or unfolds a file.
    pub fn set_folded(&mut self, file: usize, is_folded: bool) {
        if let Some(pane) = self.files.get_mut(file) {
            pane.is_folded = is_folded;
        }
        self.keep_place(|pane| pane.lay_out(file));
    }

    /// Unfolds the files that are folded because the user has viewed them, for a view in which no key folds a file.
    pub fn unfold_viewed(&mut self) {
        let is_left_out = |at: usize| self.page.files.get(at).is_some_and(|file| file.left_out.is_some());
        let viewed: Vec<usize> = (0..self.files.len())
            .filter(|at| self.files[*at].is_folded && self.files[*at].is_viewed && !is_left_out(*at))
            .collect();
        if viewed.is_empty() {
            return;
        }
        for at in viewed {
            self.files[at].is_folded = false;
        }
        self.keep_place(Self::lay_out_all);
    }

    /// Shows the texts of the findings that satisfy a condition, and hides those of all others.
    pub fn open_findings(&mut self, is_open: impl Fn(&DiffFinding) -> bool) {
        let page = Arc::clone(&self.page);
        for (at, file) in page.files.iter().enumerate() {
            let numbered = file.findings.iter().enumerate();
            let open: BTreeSet<usize> = numbered.filter(|(_, finding)| is_open(finding)).map(|(at, _)| at).collect();
            let Some(pane) = self.files.get_mut(at).filter(|pane| pane.open_findings != open) else { continue };
            pane.open_findings = open;
            self.keep_place(|pane| pane.lay_out(at));
        }
    }

    /// Stores highlighted lines, if one of the files has the text.
    pub fn apply_highlights(&mut self, highlights: &TextHighlights) {
        let TextHighlights { serial, side, block, spans } = highlights;
        let has_text = |file: &&mut FilePane| file.read_texts().is_some_and(|texts| texts.serial == *serial);
        if let Some(file) = self.files.iter_mut().find(has_text) {
            file.set_highlights(*serial, *side, *block, spans.clone());
        }
    }

    /// Shows or hides the texts of findings of a file.
    pub fn toggle_findings(&mut self, file: usize, findings: &[usize]) {
        let Some(pane) = self.files.get_mut(file) else { return };
        let are_open = findings.iter().all(|index| pane.open_findings.contains(index));
        for index in findings {
            match are_open {
                true => drop(pane.open_findings.remove(index)),
                false => drop(pane.open_findings.insert(*index)),
            }
        }
        // The text stands below the line, so that the cursor stays above it.
        if let Some(PlacedRow { row: DiffPageRow::Finding { index, .. }, .. }) = self.row(self.cursor)
            && let Some(row) = self.finding_row(file, index)
        {
            self.cursor = row;
        }
        self.keep_place(|pane| pane.lay_out(file));
        self.reveal_cursor(SCROLL_MARGIN);
    }

    /// Shows more of the unchanged lines of a gap.
    pub fn expand(&mut self, file: usize, hidden: HiddenLines) {
        let Some((known, pane)) = self.file(file) else { return };
        let end = hidden.new + hidden.lines;
        let has_above = hidden.new > 1;
        let total = pane.read_texts().map(|texts| texts.new.count());
        let has_below =
            total.is_some_and(|total| end <= total) || known.findings.iter().any(|at| at.lines.start >= end);
        let ranges = match hidden.lines {
            ..=40 => vec![LineRange::new(hidden.new, end - 1)],
            _ if !has_below => vec![LineRange::new(hidden.new, hidden.new + EXPANDED_LINES - 1)],
            _ if !has_above => vec![LineRange::new(end - EXPANDED_LINES, end - 1)],
            _ => vec![
                LineRange::new(hidden.new, hidden.new + EXPANDED_LINES - 1),
                LineRange::new(end - EXPANDED_LINES, end - 1),
            ],
        };
        let Some(pane) = self.files.get_mut(file) else { return };
        pane.expanded.extend(ranges);
        self.keep_place(|pane| pane.lay_out(file));
        let layout = &self.files[file].layout;
        // On the rest of the gap, so that the next key shows more.
        let rest = (hidden.new..end).step_by(EXPANDED_LINES as usize / 2).find_map(|line| layout.row_of_gap(line));
        if let Some(row) = rest.or_else(|| layout.row_of_line(DiffPageSide::New, hidden.new)) {
            self.move_to(self.starts[file] + row);
        }
    }

    /// Moves the cursor to a row and scrolls as little as needed.
    pub fn move_to(&mut self, row: usize) {
        self.cursor = row.min(self.row_count().saturating_sub(1));
        self.reveal_cursor(SCROLL_MARGIN);
    }

    /// Moves the cursor to a row that the mouse points at. A row in sight does not scroll away from the pointer.
    pub fn point_at(&mut self, row: usize) {
        self.cursor = row.min(self.row_count().saturating_sub(1));
        let is_covered = self.cursor <= self.top && self.top > 0;
        if is_covered || self.cursor >= self.top + self.height {
            self.reveal_cursor(SCROLL_MARGIN);
        }
    }

    /// Moves the cursor to a row and shows the rows below it.
    pub fn jump_to(&mut self, row: usize) {
        self.cursor = row.min(self.row_count().saturating_sub(1));
        let is_visible = self.cursor > self.top && self.cursor + 2 * JUMP_MARGIN < self.top + self.height;
        if !is_visible {
            let margin = JUMP_MARGIN.min(self.height / 3);
            let file = self.file_at(self.cursor).map_or(0, |file| self.starts[file]);
            // A header stands at the top of the screen, and nothing of another file above it.
            self.top = self.cursor.saturating_sub(margin).max(file);
        }
        self.clamp();
    }

    /// Scrolls by a number of rows; the cursor stays on the screen.
    pub fn scroll_by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
        self.clamp_top();
        let margin = SCROLL_MARGIN.min(self.height / 4).max(1);
        let low = if self.top == 0 { 0 } else { self.top + margin };
        let high = (self.top + self.height).saturating_sub(margin + 1).max(low);
        self.cursor = self.cursor.clamp(low, high).min(self.row_count().saturating_sub(1));
    }

    /// Scrolls and moves the cursor by the same number of rows.
    pub fn page_by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
        self.cursor = self.cursor.saturating_add_signed(rows).min(self.row_count().saturating_sub(1));
        self.clamp_top();
        self.reveal_cursor(SCROLL_MARGIN);
    }

    fn reveal_cursor(&mut self, margin: usize) {
        let margin = margin.min(self.height / 4);
        // The first row is covered by the header of its file.
        let low = self.cursor.saturating_sub(margin.max(1));
        let high = (self.cursor + margin + 1).saturating_sub(self.height.max(1));
        self.top = self.top.clamp(high.min(low), low);
        self.clamp_top();
    }

    fn clamp_top(&mut self) {
        self.top = self.top.min(self.row_count().saturating_sub(self.height.max(1)));
    }

    fn clamp(&mut self) {
        self.cursor = self.cursor.min(self.row_count().saturating_sub(1));
        self.reveal_cursor(1);
    }

    fn anchor(&self, row: usize) -> Option<RowAnchor> {
        let PlacedRow { file, row: placed } = self.row(row)?;
        let placed = match placed {
            // Behind a header whose file is not read, the end of the file is not what the user has gone to.
            DiffPageRow::Blank if self.files[file].is_waiting() => DiffPageRow::Header,
            placed => placed,
        };
        Some(RowAnchor { file, row: placed, at: row - self.starts[file] })
    }

    /// Returns the row of an anchor after a change of the rows, or the next best one.
    fn find_anchor(&self, anchor: RowAnchor) -> usize {
        let Some(pane) = self.files.get(anchor.file) else { return 0 };
        let layout = &pane.layout;
        let line = |side, line: Option<u32>| line.and_then(|line| layout.row_of_line(side, line));
        let inside = match anchor.row {
            DiffPageRow::Header | DiffPageRow::Note { .. } => Some(anchor.at),
            DiffPageRow::Code(CodeRow { old, new, part, .. }) => line(DiffPageSide::New, new)
                .or_else(|| line(DiffPageSide::Old, old))
                .map(|row| row + part as usize)
                .or_else(|| layout.row_of_gap(new?)),
            DiffPageRow::Gap(hidden) => {
                layout.row_of_gap(hidden.new).or_else(|| line(DiffPageSide::New, Some(hidden.new)))
            }
            DiffPageRow::Finding { index, line } => layout.row_of_text(index).map(|row| row + line),
            DiffPageRow::Blank => layout.rows().checked_sub(1),
        };
        let last = layout.rows().saturating_sub(1);
        self.starts[anchor.file] + inside.unwrap_or(anchor.at).min(last)
    }

    /// Changes rows while cursor and scroll position stay at their lines; the cursor stays at its height on the screen.
    fn keep_place(&mut self, change: impl FnOnce(&mut Self)) {
        let depth = self.cursor.saturating_sub(self.top);
        let cursor = self.anchor(self.cursor);
        change(self);
        if let Some(cursor) = cursor {
            self.cursor = self.find_anchor(cursor);
            self.top = self.cursor.saturating_sub(depth);
        }
        self.clamp();
    }

    fn lay_out_all(&mut self) {
        for index in 0..self.files.len() {
            self.lay_out_file(index);
        }
        self.sum_rows(0);
    }

    fn lay_out(&mut self, index: usize) {
        self.lay_out_file(index);
        self.sum_rows(index);
    }

    fn lay_out_file(&mut self, index: usize) {
        let Some((file, pane)) = self.file(index) else { return };
        let layout = lay_out_file(LayoutInput {
            file,
            blocks: pane.blocks(file),
            partners: pane.partners(),
            texts: pane.read_texts().map(Arc::as_ref),
            is_folded: pane.is_folded,
            open_findings: &self.render_texts(file, pane, self.columns.width),
            expanded: &pane.expanded,
            columns: self.columns.of_file(file),
            note: pane.note(file),
            caption: pane.caption(),
        });
        self.files[index].layout = layout;
    }

    fn render_texts(
        &self,
        file: &DiffFile,
        pane: &FilePane,
        width: usize,
    ) -> Vec<(usize, Vec<super::super::doc::DocLine>)> {
        let texts = pane.read_texts().map(Arc::as_ref);
        let room = width.saturating_sub(FINDING_INDENT + 2);
        let open = pane.open_findings.iter().filter_map(|index| Some((*index, file.findings.get(*index)?)));
        open.map(|(index, finding)| (index, render_finding_text(finding, texts, room))).collect()
    }

    fn sum_rows(&mut self, from: usize) {
        self.starts.resize(self.files.len() + 1, 0);
        for index in from..self.files.len() {
            self.starts[index + 1] = self.starts[index] + self.files[index].layout.rows();
        }
    }

    /// Lays out one file for another place on the screen, with the text of one finding.
    pub fn lay_out_around(&self, finding: &str, columns: DiffColumns) -> Option<(usize, usize, FileLayout)> {
        let (index, at) = self.page.files.iter().enumerate().find_map(|(index, file)| {
            file.findings.iter().position(|known| known.id == finding).map(|at| (index, at))
        })?;
        let (file, pane) = self.file(index)?;
        let room = columns.width.saturating_sub(FINDING_INDENT + 2);
        let texts = pane.read_texts().map(Arc::as_ref);
        let open = vec![(at, render_finding_text(&file.findings[at], texts, room))];
        let layout = lay_out_file(LayoutInput {
            file,
            blocks: pane.blocks(file),
            partners: pane.partners(),
            texts,
            is_folded: false,
            open_findings: &open,
            expanded: &[],
            columns,
            note: pane.note(file),
            caption: pane.caption(),
        });
        Some((index, at, layout))
    }

    /// Returns the findings that cover the line at the cursor, or whose text stands there, by file and index.
    pub fn findings_at_cursor(&self) -> (usize, Vec<usize>) {
        let Some(PlacedRow { file, row }) = self.row(self.cursor) else { return (0, Vec::new()) };
        let findings = &self.page.files[file].findings;
        let found = match row {
            DiffPageRow::Finding { index, .. } => vec![index],
            DiffPageRow::Code(CodeRow { new: Some(line), .. }) => {
                let covering = |begins: bool| {
                    let covers = |finding: &DiffFinding| match begins {
                        true => finding.lines.start.max(1) == line,
                        false => (finding.lines.start..=finding.lines.end).contains(&line),
                    };
                    findings.iter().enumerate().filter(|(_, at)| covers(at)).map(|(index, _)| index).collect::<Vec<_>>()
                };
                let begins = covering(true);
                if begins.is_empty() { covering(false) } else { begins }
            }
            _ => Vec::new(),
        };
        (file, found)
    }
}

/// Columns before the text of a finding.
pub const FINDING_INDENT: usize = 4;
