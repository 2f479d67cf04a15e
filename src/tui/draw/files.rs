//! Draws the files of a run: findings by priority and coverage; the files that were left out are one row.

use ratatui::layout::Rect;

use super::super::app::{App, FileListEntry, Pane};
use super::super::layout::PaneArea;
use super::super::message::{FileListRow, FileListState};
use super::super::run_label::format_run_label;
use super::super::theme::Role;
use super::painter::Painter;
use super::{frame, runs};
use crate::domain::{FindingStatus, RunStatus, text};

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    let list = &app.file_list;
    if list.row_count() == 0 {
        painter.draw_text(body.x, body.y, body.width, "no file", Role::Faint);
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
            FileListEntry::File(file) => draw_file(painter, file, line),
            FileListEntry::LeftOut(count) => {
                let glyphs = app.display.glyphs;
                let sign = if list.unfolded { glyphs.unfolded } else { glyphs.folded };
                painter.draw_text(line.x, y, 1, sign, Role::Faint);
                let text = format!("{} left out", text::format_thousands(count as u64));
                painter.draw_text(line.x + 2, y, line.width.saturating_sub(2), &text, Role::Faint);
            }
        }
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, list.cursor.offset, list.row_count());
}

/// Draws the title: `3 Files  of a0c3bec  12 with findings, 141 clean, 9 left out`.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let list = &app.file_list;
    let mut facts = Vec::new();
    let run = app.store.view.run_index(&list.run).map(|index| app.store.view.run(index));
    if let Some(run) = run {
        let role = if app.chosen_run() == Some(run.id) { Role::Accent } else { Role::Faint };
        facts.push((format!("of {}", format_run_label(&run)), role));
    }
    facts.push((describe_counts(app), Role::Muted));
    let header = if list.with_findings > 0 { runs::COUNTS_HEADER } else { "" };
    frame::draw_title(painter, area, Pane::Files, "Files", &facts, header);
}

/// Describes the numbers of files by group; a group without files is not named.
fn describe_counts(app: &App) -> String {
    let list = &app.file_list;
    let clean = list.files().len() - list.with_findings - list.left_out;
    let parts = [(list.with_findings, "with findings"), (clean, "clean"), (list.left_out, "left out")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, word)| format!("{} {word}", text::format_thousands(count as u64))).collect::<Vec<_>>().join(", ")
}

/// Draws a file in `line`, which is one row high.
fn draw_file(painter: &mut Painter<'_>, file: &FileListRow, line: Rect) {
    let glyphs = painter.app.display.glyphs;
    let Rect { x, y, width, .. } = line;
    let none = file.counts == [0; 4];
    let (sign, role, word, path_role) = match &file.state {
        FileListState::Covered if none => (glyphs.run_status(RunStatus::Completed), Role::Good, "", Role::Normal),
        FileListState::Covered | FileListState::Unknown => {
            (glyphs.finding_status(FindingStatus::Open), Role::Normal, "", Role::Normal)
        }
        FileListState::Waiting => (glyphs.run_status(RunStatus::Pending), Role::Faint, "", Role::Muted),
        FileListState::LeftOut(word) => (glyphs.dash, Role::Faint, *word, Role::Faint),
    };
    painter.draw_text(x, y, 1, sign, role);
    let mut right = x + width;
    if !none {
        right -= 16;
        runs::draw_counts(painter, right, y, file.counts, RunStatus::Completed);
    } else if !word.is_empty() {
        let used = painter.draw_text_right(x, y, width, word, Role::Faint);
        right -= used + 1;
    }
    painter.draw_text_end(x + 2, y, right.saturating_sub(x + 3), &file.path, path_role);
}
