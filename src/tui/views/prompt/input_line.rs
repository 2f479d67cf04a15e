//! Line in which text is typed: its name, the text with its cursor, and what may be typed.

use ratatui::layout::Rect;

use super::PromptView;
use crate::tui::doc;
use crate::tui::draw::painter::Painter;
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::theme::Role;

/// Draws `filter  status:open p:0▏   undecided open …` in place of the message line, and above it [`PromptView::lines_above`].
pub fn draw_input_line(
    painter: &mut Painter<'_>,
    layout: &ScreenLayout,
    name: &str,
    prompt: &PromptView,
    help: &[&str],
) {
    painter.fill(layout.notice, painter.style(Role::Normal));
    let (text_x, role) = if prompt.error.is_empty() { (1, Role::Title) } else { (3, Role::Normal) };
    let above = prompt.lines_above(layout.notice_width());
    for (line, y) in above.iter().zip(layout.notice.y..layout.notice.bottom().saturating_sub(1)) {
        if y == layout.notice.y && !prompt.error.is_empty() {
            painter.draw_text(1, y, 1, painter.app.display.glyphs.trouble, Role::Bad);
        }
        painter.draw_text(text_x, y, layout.notice.width.saturating_sub(4), line, role);
    }
    let area = Rect { y: layout.notice.bottom().saturating_sub(1), height: 1, ..layout.notice };
    let x = 1 + painter.draw_text(1, area.y, area.width / 2, name, Role::Title) + 2;
    let width = area.width.saturating_sub(x + 1);
    // The typed text needs the room of a narrow screen.
    let help_width: u16 = match prompt.shown_help_key() {
        _ if help.is_empty() || width < 40 => 0,
        // Nothing is typed.
        Some(_) => width * 3 / 4,
        None => (width * 2 / 5).max(16),
    };
    let field = Rect::new(x, area.y, width.saturating_sub(help_width), 1);
    draw_line_edit(painter, field, &prompt.line);
    let mut at = field.right() + 2;
    for (index, word) in help.iter().enumerate() {
        let room = area.right().saturating_sub(at + 1);
        if room < 4 {
            break;
        }
        let role = if index == 0 { Role::Accent } else { Role::Muted };
        at += painter.draw_text(at, area.y, room, word, role) + 2;
    }
}

/// Draws the typed text, scrolled so that the cursor is visible.
pub fn draw_line_edit(painter: &mut Painter<'_>, field: Rect, line: &LineEdit) {
    painter.fill(field, painter.style(Role::Prompt));
    let text = line.text();
    let before = text.get(..line.cursor()).unwrap_or(text);
    let room = usize::from(field.width.saturating_sub(1));
    let shown_before = doc::fit_end(before, room);
    let used = painter.draw_text(field.x, field.y, field.width, shown_before, Role::Prompt);
    if line.is_suggestion() {
        // Styled as a selection, because the next character replaces it.
        painter.restyle(Rect::new(field.x, field.y, used, 1), painter.style(Role::Selected));
    }
    let after = &text[before.len()..];
    let cursor = field.x + used;
    painter.draw_text(cursor, field.y, field.right().saturating_sub(cursor), after, Role::Prompt);
    let style = painter.style(Role::Prompt).add_modifier(ratatui::style::Modifier::REVERSED);
    painter.restyle(Rect::new(cursor.min(field.right().saturating_sub(1)), field.y, 1, 1), style);
}
