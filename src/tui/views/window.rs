//! Draws the frame of a window.

use ratatui::layout::Rect;

use crate::tui::app::App;
use crate::tui::draw::painter::Painter;
use crate::tui::theme::Role;

/// Fewest columns and rows of a screen on which a window has a frame. On a smaller one, and for a screen reader, it fills
/// the screen above the footer.
const MIN_FRAMED_SCREEN: (u16, u16) = (40, 10);

/// Returns the rectangle of a window in the middle of the screen (or above the footer), and its inside.
pub fn place_window(app: &App, width: u16, height: u16, low: bool) -> (Rect, Rect) {
    let screen = Rect::new(0, 0, app.display.columns, app.display.rows);
    if app.display.plain || screen.width < MIN_FRAMED_SCREEN.0 || screen.height < MIN_FRAMED_SCREEN.1 {
        // A low window leaves the line of its prompt free.
        let height = screen.height.saturating_sub(if low { 2 } else { 1 });
        let area = Rect { height, ..screen };
        let inside = Rect::new(1, 1, screen.width.saturating_sub(2), height.saturating_sub(1));
        return (area, inside.intersection(area));
    }
    let (width, height) = (width.min(screen.width.saturating_sub(2)), height.min(screen.height.saturating_sub(2)));
    let x = (screen.width - width) / 2;
    let y = if low { screen.height.saturating_sub(height + 2) } else { (screen.height - height) / 2 };
    let inside = Rect::new(x + 2, y + 1, width.saturating_sub(4), height.saturating_sub(2));
    (Rect::new(x, y, width, height), inside)
}

/// Draws an empty box with a title in the middle of the screen (or above the footer) and returns its inside.
pub fn draw_window(painter: &mut Painter<'_>, width: u16, height: u16, low: bool, title: &str) -> Rect {
    let (area, inside) = place_window(painter.app, width, height, low);
    let Rect { x, y, width, .. } = area;
    painter.fill(area, painter.style(Role::Normal));
    if inside.y == y + 1 && inside.x == x + 1 {
        painter.draw_text(x + 1, y, width.saturating_sub(2), title, Role::Title);
        return inside;
    }
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
    inside
}
