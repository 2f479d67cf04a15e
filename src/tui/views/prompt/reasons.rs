//! Window of the prompt for the reason of a dismissal: the typed text, and below it the reasons to choose from.

use ratatui::layout::{Position, Rect};

use super::{DIGIT_REASONS, PromptView, ReasonEntry, dismissal_reasons, draw_line_edit};
use crate::domain::{Disposition, text};
use crate::tui::app::App;
use crate::tui::draw::painter::Painter;
use crate::tui::theme::Role;
use crate::tui::views::window::{draw_window, place_window};

/// Columns of the window.
const WIDTH: u16 = 66;
/// Rows above the first reason: a blank, the typed text, and why it was not accepted.
const ROWS_ABOVE: u16 = 3;

/// Row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonRow {
    /// Reason by its index in [`dismissal_reasons`].
    Offered(usize),
    /// Any other reason, which the user types.
    Other,
}

/// Lists the rows for this number of offered reasons. The common ones come last, those with a digit first among them.
fn list_rows(count: usize) -> Vec<ReasonRow> {
    let mut rows: Vec<ReasonRow> = (0..count).map(ReasonRow::Offered).collect();
    let other = count - Disposition::REASONS.len() + DIGIT_REASONS;
    if other < count {
        rows.insert(other, ReasonRow::Other);
    }
    rows
}

fn window_height(reasons: usize) -> u16 {
    reasons as u16 + 6
}

/// Returns the row under the pointer.
pub fn row_at(app: &App, cell: Position) -> Option<ReasonRow> {
    let count = dismissal_reasons(app).len();
    let (_, inside) = place_window(app, WIDTH, window_height(count), false);
    let row = cell.y.checked_sub(inside.y + ROWS_ABOVE).filter(|_| inside.contains(cell))?;
    list_rows(count).get(usize::from(row)).copied()
}

/// Draws the window; `count` findings are to be dismissed.
pub fn draw(painter: &mut Painter<'_>, prompt: &PromptView, count: usize, entry: ReasonEntry) {
    let reasons = dismissal_reasons(painter.app);
    let first_digit = reasons.len() - Disposition::REASONS.len();
    let title = format!("Why dismiss {}?", text::format_count(count, "finding"));
    let inside = draw_window(painter, WIDTH, window_height(reasons.len()), false, &title);
    draw_line_edit(painter, Rect::new(inside.x, inside.y + 1, inside.width, 1), &prompt.line);
    painter.draw_text(inside.x, inside.y + 2, inside.width, &prompt.error, Role::Bad);
    let digit_role = if entry == ReasonEntry::ByDigit { Role::Key } else { Role::Faint };
    let other = format!("other{}", painter.app.display.glyphs.ellipsis);
    let mut digit = 0;
    for (y, row) in (inside.y + ROWS_ABOVE..inside.bottom()).zip(list_rows(reasons.len())) {
        let (text, is_chosen, has_digit) = match row {
            ReasonRow::Other => (other.as_str(), false, true),
            ReasonRow::Offered(index) => {
                let has_digit = (first_digit..first_digit + DIGIT_REASONS).contains(&index);
                (reasons[index].as_str(), index + 1 == prompt.choice, has_digit)
            }
        };
        let sign = if is_chosen { painter.app.display.glyphs.bar } else { " " };
        painter.draw_text(inside.x, y, 1, sign, Role::Accent);
        if has_digit {
            digit += 1;
            painter.draw_text(inside.x + 2, y, 1, &digit.to_string(), digit_role);
        }
        painter.draw_text(inside.x + 4, y, inside.width - 4, text, if is_chosen { Role::Normal } else { Role::Muted });
    }
}
