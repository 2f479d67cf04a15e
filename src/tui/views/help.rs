//! Help: every key of the keymap in groups.

use ratatui::layout::Rect;

use super::window::draw_window;
use super::{KeyPress, View, ViewFlow, with_labels};
use crate::tui::app::App;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::theme::Role;

/// Lines of one large step.
const PAGE_LINES: usize = 10;

/// State of the help.
#[derive(Debug, Clone, Default)]
pub struct HelpView {
    /// First visible line (0-based); drawing limits it to the last page.
    offset: usize,
}

impl View for HelpView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Help
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, _commands: &mut Vec<AppCommand>) -> ViewFlow {
        if press.action == Some(Action::Abort) {
            return ViewFlow::Close;
        }
        match app.keymap.action(KeyContext::Global, press.key) {
            Some(Action::Down) => self.offset += 1,
            Some(Action::Up) => self.offset = self.offset.saturating_sub(1),
            Some(Action::HalfPageDown | Action::PageDown) => self.offset += PAGE_LINES,
            Some(Action::HalfPageUp | Action::PageUp) => self.offset = self.offset.saturating_sub(PAGE_LINES),
            _ => {}
        }
        ViewFlow::Open
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        draw_help(painter, self.offset);
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        with_labels([Action::Abort])
    }
}

/// Draws every key of the keymap in groups.
fn draw_help(painter: &mut Painter<'_>, offset: usize) {
    let app = painter.app;
    let mut groups: Vec<(&str, Vec<(String, &str)>)> = Vec::new();
    for (action, group, _, _, long) in Action::TABLE {
        if *group == "Answer" {
            continue;
        }
        let keys: Vec<String> = app.keymap.all_keys_of(*action).iter().take(2).map(ToString::to_string).collect();
        let row = (if keys.is_empty() { app.display.glyphs.dash.to_owned() } else { keys.join(" ") }, *long);
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    let screen = painter.buffer.area;
    let columns = if screen.width >= 110 { 2 } else { 1 };
    // The groups keep their order; the columns get about the same height.
    let size = |rows: &Vec<(String, &str)>| rows.len() + 2;
    let total: usize = groups.iter().map(|(_, rows)| size(rows)).sum();
    let mut dealt: Vec<Vec<Option<(String, &str)>>> = vec![Vec::new(); columns];
    let mut titles: Vec<Vec<(usize, &str)>> = vec![Vec::new(); columns];
    let mut column = 0;
    for (name, rows) in &groups {
        let here = dealt[column].len();
        if column + 1 < columns && here > 0 && here + size(rows) / 2 > total / columns {
            column += 1;
        }
        let lines = &mut dealt[column];
        if !lines.is_empty() {
            lines.push(None);
        }
        titles[column].push((lines.len(), name));
        lines.push(None);
        lines.extend(rows.iter().cloned().map(Some));
    }
    let height = dealt.iter().map(Vec::len).max().unwrap_or(0);
    let inside = draw_window(painter, 56 * columns as u16 + 6, height as u16 + 2, false, "Help");
    let offset = offset.min(height.saturating_sub(usize::from(inside.height)));
    let each = inside.width / columns as u16;
    for (column, lines) in dealt.iter().enumerate() {
        let x = inside.x + each * column as u16;
        for row in 0..inside.height {
            let at = offset + usize::from(row);
            let y = inside.y + row;
            if let Some((_, name)) = titles[column].iter().find(|(line, _)| *line == at) {
                painter.draw_text(x, y, each - 2, name, Role::Title);
            } else if let Some(Some((keys, long))) = lines.get(at) {
                let used = painter.draw_text(x, y, 18, keys, Role::Key).max(16) + 1;
                painter.draw_text(x + used, y, each.saturating_sub(used + 2), long, Role::Normal);
            }
        }
    }
    painter.draw_scroll_thumb(Rect { width: inside.width + 1, ..inside }, offset, height);
}
