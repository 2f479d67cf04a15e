//! Draws the files of the selected run: findings by priority and coverage.

use ratatui::layout::Rect;

use super::super::app::Pane;
use super::super::layout::PaneArea;
use super::super::message::FileListState;
use super::super::theme::Role;
use super::painter::Painter;
use super::{frame, runs};
use crate::domain::RunStatus;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let mut facts = Vec::new();
    if !app.file_list.rows.is_empty() {
        facts.push((app.file_list.rows.len().to_string(), Role::Muted));
    }
    if let Some(run) = app.store.view.run_index(&app.file_list.run).map(|index| app.store.view.run(index)) {
        facts.push((format!("of {}", run.scope), Role::Faint));
    }
    frame::draw_title(
        painter,
        area,
        Pane::Files,
        "Files",
        &facts,
        if app.file_list.rows.is_empty() { "" } else { runs::COUNTS_HEADER },
    );
    let body = area.body;
    if app.file_list.rows.is_empty() {
        painter.draw_text(body.x, body.y, body.width, "no file", Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Files);
    for row in 0..body.height {
        let at = app.file_list.cursor.offset + usize::from(row);
        let Some(file) = app.file_list.rows.get(at) else { break };
        let (x, y, width) = (body.x, body.y + row, body.width);
        if at == app.file_list.cursor.selected {
            painter.fill(Rect::new(x, y, width, 1), bar);
            painter.set_overlay_style(Some(bar));
        }
        let none = file.counts == [0; 4];
        let (sign, role, word, path_role) = match &file.state {
            FileListState::Covered if none => {
                (app.display.glyphs.run_status(RunStatus::Completed), Role::Good, "", Role::Normal)
            }
            FileListState::Covered | FileListState::Unknown => {
                (app.display.glyphs.finding_status(crate::domain::FindingStatus::Open), Role::Normal, "", Role::Normal)
            }
            FileListState::Waiting => (app.display.glyphs.run_status(RunStatus::Pending), Role::Faint, "", Role::Muted),
            FileListState::LeftOut(word) => (app.display.glyphs.dash, Role::Faint, *word, Role::Faint),
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
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, app.file_list.cursor.offset, app.file_list.rows.len());
}
