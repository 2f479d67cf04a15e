//! Draws the frame of a window.

use ratatui::layout::Rect;

use crate::tui::draw::painter::Painter;
use crate::tui::theme::Role;

/// Draws an empty box with a title in the middle of the screen (or above the footer) and returns its inside.
pub fn draw_window(painter: &mut Painter<'_>, width: u16, height: u16, low: bool, title: &str) -> Rect {
    let screen = painter.buffer.area;
    let (width, height) = (width.min(screen.width.saturating_sub(2)), height.min(screen.height.saturating_sub(2)));
    let x = (screen.width - width) / 2;
    let y = if low { screen.height.saturating_sub(height + 2) } else { (screen.height - height) / 2 };
    let area = Rect::new(x, y, width, height);
    painter.fill(area, painter.style(Role::Normal));
    let glyphs = painter.app.display.glyphs;
    let [top_left, top_right, bottom_left, bottom_right] = glyphs.corners;
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    painter.draw_rule(x + 1, y, width - 2, Role::Focus);
    painter.draw_rule(x + 1, bottom, width - 2, Role::Focus);
    for (x, y, glyph) in
        [(x, y, top_left), (right, y, top_right), (x, bottom, bottom_left), (right, bottom, bottom_right)]
    {
        painter.draw_text(x, y, 1, glyph, Role::Focus);
    }
    for row in y + 1..bottom {
        painter.draw_text(x, row, 1, glyphs.vertical, Role::Focus);
        painter.draw_text(right, row, 1, glyphs.vertical, Role::Focus);
    }
    painter.draw_text(x + 2, y, width.saturating_sub(4), &format!(" {title} "), Role::Title);
    Rect::new(x + 2, y + 1, width.saturating_sub(4), height.saturating_sub(2))
}
