//! Draws the statistics page between header and message line.

use ratatui::layout::Rect;

use super::super::layout::ScreenLayout;
use super::super::stats::StatsPage;
use super::super::theme::Role;
use super::detail::draw_line;
use super::painter::Painter;

pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, stats: &StatsPage) {
    let top = layout.header.y + 1;
    let area = Rect::new(0, top, layout.header.width, layout.notice.y.saturating_sub(top));
    painter.fill(area, painter.style(Role::Normal));
    let used = painter.draw_text(1, top, area.width.saturating_sub(2), "Stats", Role::Title);
    painter.draw_rule(used + 2, top, area.width.saturating_sub(used + 3), Role::Focus);
    let body = Rect::new(1, top + 1, area.width.saturating_sub(2), area.height.saturating_sub(1));
    for row in 0..body.height {
        let Some(line) = stats.doc.lines.get(stats.offset + usize::from(row)) else { break };
        draw_line(painter, body.x, body.y + row, body.width, line, "");
    }
    painter.draw_scroll_thumb(body, stats.offset, stats.doc.lines.len());
}
