//! Draws the keys that may follow the pressed keys of a sequence, in place of the footer and the message line.

use ratatui::layout::{Position, Rect};

use super::super::app::{App, SequenceHint};
use super::super::input::KeyEvent;
use super::super::layout::ScreenLayout;
use super::super::theme::Role;
use super::painter::Painter;
use crate::tui::doc::TextColumns;

/// Draws the pressed keys, then a line of hints per row; the last line stands in the footer.
pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, lines: &[Vec<SequenceHint>]) {
    let Some(pending) = &painter.app.pending_keys else { return };
    let (keys, hints) = place(&pending.text(), layout, lines);
    painter.draw_text(keys.x, keys.y, keys.width, &pending.text(), Role::Accent);
    for (Rect { x, y, width, .. }, hint) in hints {
        let used = painter.draw_text(x, y, width, &hint.key, Role::Key) + 1;
        painter.draw_text(x + used, y, width.saturating_sub(used), &hint.label, Role::Muted);
    }
}

/// Returns the key whose hint stands at a cell of the screen.
pub fn key_at(app: &App, layout: &ScreenLayout, cell: Position) -> Option<KeyEvent> {
    let lines = app.sequence_hints();
    let (_, hints) = place(&app.pending_keys.as_ref()?.text(), layout, &lines);
    hints.into_iter().find(|(area, _)| area.contains(cell)).map(|(_, hint)| hint.event)
}

/// Places the pressed keys and the hints behind them; lines for which the screen has no room are left out.
fn place<'a>(
    pressed: &str,
    layout: &ScreenLayout,
    lines: &'a [Vec<SequenceHint>],
) -> (Rect, Vec<(Rect, &'a SequenceHint)>) {
    let area = Rect { height: layout.footer.bottom().saturating_sub(layout.notice.y), ..layout.notice };
    let shown = lines.len().min(usize::from(area.height)) as u16;
    let top = area.bottom() - shown;
    let keys = Rect::new(1, top, (pressed.width() as u16).min(area.width.saturating_sub(2)), 1);
    let mut hints = Vec::new();
    for (line, y) in lines.iter().zip(top..area.bottom()) {
        let mut x = keys.right() + SequenceHint::GAP as u16;
        for hint in line {
            let width = (hint.width() as u16).min(area.width.saturating_sub(x));
            hints.push((Rect::new(x, y, width, 1), hint));
            x += width + SequenceHint::GAP as u16;
        }
    }
    (keys, hints)
}
