//! Draws the keys that may follow the pressed keys of a sequence, in place of the footer and the message line.

use ratatui::layout::Rect;

use super::super::app::SequenceHint;
use super::super::layout::ScreenLayout;
use super::super::theme::Role;
use super::painter::Painter;

/// Draws the pressed keys, then a line of hints per row; the last line stands in the footer.
pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, lines: &[Vec<SequenceHint>]) {
    let Some(pending) = &painter.app.pending_keys else { return };
    let area = Rect { height: layout.footer.bottom().saturating_sub(layout.notice.y), ..layout.notice };
    let shown = lines.len().min(usize::from(area.height)) as u16;
    let top = area.bottom() - shown;
    let start = 1 + painter.draw_text(1, top, area.width.saturating_sub(2), &pending.text(), Role::Accent);
    for (line, y) in lines.iter().zip(top..area.bottom()) {
        let mut x = start + SequenceHint::GAP as u16;
        for hint in line {
            x += painter.draw_text(x, y, area.width.saturating_sub(x), &hint.key, Role::Key) + 1;
            x += painter.draw_text(x, y, area.width.saturating_sub(x), &hint.label, Role::Muted);
            x += SequenceHint::GAP as u16;
        }
    }
}
