//! Draws the files of a run, as a list or as a tree of folders: findings by priority, coverage, what was viewed; the files
//! that were left out are one row.

use ratatui::layout::Rect;

use super::super::app::{App, FileFolder, FileListEntry, Pane};
use super::super::doc::shorten;
use super::super::layout::PaneArea;
use super::super::message::{FileListRow, FileListState};
use super::super::theme::Role;
use super::painter::Painter;
use super::{frame, runs};
use crate::domain::{FindingStatus, ReviewReach, RunStatus, text};
use crate::tui::doc::TextColumns;

/// Columns of the numbers of findings by priority.
const COUNTS_COLUMNS: u16 = 16;
/// Fewest columns of the name of the run in the title.
const MIN_LABEL_COLUMNS: usize = 6;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    let list = &app.file_list;
    if list.row_count() == 0 {
        painter.draw_text(body.x, body.y, body.width, describe_no_files(app), Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Files);
    for y in body.y..body.y + body.height {
        let at = list.cursor.offset + usize::from(y - body.y);
        let Some(row) = list.row(at) else { break };
        let line = Rect::new(body.x, y, body.width, 1);
        if at == list.cursor.selected {
            painter.fill(line, bar);
            painter.set_overlay_style(Some(bar));
        }
        match row {
            FileListEntry::File { file, depth, name } => draw_file(painter, file, (name, depth), line),
            FileListEntry::Folder(folder) => draw_folder(painter, folder, line),
            FileListEntry::LeftOut(count) => {
                painter.draw_text(line.x, y, 1, fold_sign(painter, !list.unfolded), Role::Faint);
                let text = format!("{} left out", format_number(count, list.has_more_left_out()));
                painter.draw_text(line.x + 2, y, line.width.saturating_sub(2), &text, Role::Faint);
            }
        }
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, list.cursor.offset, list.row_count());
}

/// Says why the list is empty: a run that has reviewed nothing is none without files.
pub(super) fn describe_no_files(app: &App) -> &'static str {
    let run = app.store.view.run_index(&app.file_list.run).map(|index| app.store.view.run(index));
    match run.map(|run| run.review_reach()) {
        Some(ReviewReach::Unfinished) => "no file yet",
        Some(ReviewReach::Nothing) => "no file was reviewed",
        Some(ReviewReach::Part | ReviewReach::Whole) | None => "no file",
    }
}

/// Draws the title: `3 Files  of a0c3bec  12 with findings, 141 clean, 9 left out`. Facts are shortened before the names of
/// the columns are left out, whose numbers stand below.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    const NAME: &str = "Files";
    let app = painter.app;
    let list = &app.file_list;
    let header = if list.with_findings > 0 { runs::COUNTS_HEADER } else { "" };
    let run = app.store.view.run_index(&list.run).map(|index| app.store.view.run(index));
    let label = run.map_or_else(String::new, |run| format!("of {}", app.label_run(&run)));
    let room = match header {
        "" => usize::MAX,
        header => frame::room_for_facts(app, area, (Pane::Files, NAME), header),
    };
    let gap = usize::from(frame::FACT_GAP);
    let columns = |fact: &str| if fact.is_empty() { 0 } else { gap + fact.width() };
    let counts = list_counts(app);
    let mut shown = (0..=counts.len()).rev().map(|shown| counts[..shown].join(", "));
    let counts = shown.find(|counts| columns(&label) + columns(counts) <= room).unwrap_or_default();
    // The label of a range may be longer than the title.
    let label = match room.saturating_sub(gap) {
        width if label.width() <= width => label,
        0..MIN_LABEL_COLUMNS => String::new(),
        width => shorten(&label, width, app.display.glyphs.ellipsis),
    };
    let is_chosen = run.is_some_and(|run| app.chosen_run() == Some(run.id));
    let facts = [(label, if is_chosen { Role::Accent } else { Role::Faint }), (counts, Role::Muted)];
    frame::draw_title(painter, area, Pane::Files, NAME, &facts, header);
}

/// Describes the numbers of files by group, the most important first; a group without files is not named.
fn list_counts(app: &App) -> Vec<String> {
    let list = &app.file_list;
    // A file that waits, or was reviewed in part, is not clean.
    let clean = list.files().len() - list.with_findings - list.partial - list.waiting - list.left_out;
    let parts = [
        (list.with_findings, false, "with findings"),
        (clean, list.has_more_clean(), "clean"),
        (list.partial, list.has_more_partial(), "partly reviewed"),
        (list.waiting, false, "waiting"),
        (list.left_out, list.has_more_left_out(), "left out"),
    ];
    let parts = parts.into_iter().filter(|(count, has_more, _)| *count > 0 || *has_more);
    parts.map(|(count, has_more, word)| format!("{} {word}", format_number(count, has_more))).collect()
}

/// Formats a number of files; `+` says that there are more.
fn format_number(count: usize, has_more: bool) -> String {
    format!("{}{}", text::format_thousands(count as u64), if has_more { "+" } else { "" })
}

fn fold_sign(painter: &Painter<'_>, is_folded: bool) -> &'static str {
    let glyphs = painter.app.display.glyphs;
    if is_folded { glyphs.folded } else { glyphs.unfolded }
}

/// Columns by which a row is indented for each folder above it.
const INDENT: usize = 2;

/// Returns the part of a row beside the indentation, which takes at most half of the row.
fn indent(line: Rect, depth: usize) -> Rect {
    let by = u16::try_from(depth * INDENT).unwrap_or(u16::MAX).min(line.width / 2);
    Rect { x: line.x + by, width: line.width - by, ..line }
}

/// Draws a folder: fold, name, viewed files, findings by priority.
fn draw_folder(painter: &mut Painter<'_>, folder: &FileFolder, line: Rect) {
    let right = line.right();
    let Rect { x, y, .. } = indent(line, folder.depth);
    painter.draw_text(x, y, 1, fold_sign(painter, folder.is_folded), Role::Faint);
    let mut end = right;
    if folder.counts != [0; 4] {
        end -= COUNTS_COLUMNS;
        runs::draw_counts(painter, end, y, folder.counts);
    }
    if folder.viewed > 0 && end > x + 24 {
        let text = format!("{} {}/{}", painter.app.display.glyphs.done, folder.viewed, folder.files);
        end -= painter.draw_text_right(x, y, end - x, &text, Role::Good) + 1;
    }
    let name = &folder.path[folder.parent_bytes..];
    painter.draw_text_end(x + 2, y, end.saturating_sub(x + 3), name, Role::Strong);
}

/// Draws a file in `line`, which is one row high, with its name and the number of folder rows above it.
fn draw_file(painter: &mut Painter<'_>, file: &FileListRow, (name, depth): (&str, usize), line: Rect) {
    let glyphs = painter.app.display.glyphs;
    let Rect { x, y, width, .. } = indent(line, depth);
    let none = file.counts == [0; 4];
    let (sign, role, word, path_role) = match &file.state {
        FileListState::Covered if none => (glyphs.run_status(RunStatus::Completed), Role::Good, "", Role::Normal),
        FileListState::Partial if none => (glyphs.dash, Role::Warn, "partly reviewed", Role::Normal),
        FileListState::Covered | FileListState::Partial | FileListState::Unknown => {
            (glyphs.finding_status(FindingStatus::Open), Role::Normal, "", Role::Normal)
        }
        FileListState::Waiting => (glyphs.run_status(RunStatus::Pending), Role::Faint, "", Role::Muted),
        FileListState::LeftOut(word) => (glyphs.dash, Role::Faint, *word, Role::Faint),
    };
    painter.draw_text(x, y, 1, sign, role);
    let mut right = x + width;
    if !none {
        right -= COUNTS_COLUMNS;
        runs::draw_counts(painter, right, y, file.counts);
    } else if !word.is_empty() {
        let used = painter.draw_text_right(x, y, width, word, Role::Faint);
        right -= used + 1;
    }
    let viewed = match file.viewed_changes {
        _ if file.is_viewed => Some(format!("{} viewed", glyphs.done)),
        Some((viewed, all)) => Some(format!("{} {viewed}/{all}", glyphs.done)),
        None => None,
    };
    if let Some(text) = viewed.filter(|_| right > x + 24) {
        right -= painter.draw_text_right(x, y, right - x, &text, Role::Good) + 1;
    }
    let path_role = if file.is_viewed { Role::Muted } else { path_role };
    painter.draw_text_end(x + 2, y, right.saturating_sub(x + 3), name, path_role);
}
