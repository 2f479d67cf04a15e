//! Window of the prompt for the reason of a dismissal: the typed text, and below it the reasons to choose from.

use ratatui::layout::{Position, Rect};

use super::{OTHER_DIGIT, PromptView, ReasonEntry, dismissal_reasons, draw_line_edit};
use crate::domain::{Disposition, text};
use crate::tui::app::App;
use crate::tui::draw::painter::Painter;
use crate::tui::theme::Role;
use crate::tui::views::window::{draw_window, place_window};

/// Columns of the window.
const WIDTH: u16 = 66;
/// Rows above the first reason: a blank, the typed text, and why it was not accepted.
const ROWS_ABOVE: u16 = 3;
/// Fewest rows of reasons for which the blank and the empty row of an error are kept.
const MIN_REASON_ROWS: u16 = 5;

/// Row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonRow {
    /// Reason by its index in [`dismissal_reasons`].
    Offered(usize),
    /// Any other reason, which the user types.
    Other,
}

/// Lists the rows for this number of offered reasons. The common ones, which have digits, come last, with the row for any
/// other reason at its digit among them.
fn list_rows(count: usize) -> Vec<ReasonRow> {
    let mut rows: Vec<ReasonRow> = (0..count).map(ReasonRow::Offered).collect();
    rows.insert(count - Disposition::REASONS.len() + OTHER_DIGIT - 1, ReasonRow::Other);
    rows
}

fn window_height(reasons: usize) -> u16 {
    reasons as u16 + 6
}

/// Rows of the window. A low one has the typed text right below the title, and scrolls to the chosen reason.
#[derive(Debug, Clone, Copy)]
struct ReasonLayout {
    /// Row of the typed text.
    input: u16,
    /// Row of the error.
    error: u16,
    /// Rows of the reasons.
    first: u16,
    end: u16,
    /// Number of reasons above the first one that is shown.
    offset: usize,
}

impl ReasonLayout {
    fn new(prompt: &PromptView, inside: Rect, rows: &[ReasonRow]) -> Self {
        let Rect { y, .. } = inside;
        let end = inside.bottom();
        let (input, error, first) = match inside.height >= ROWS_ABOVE + MIN_REASON_ROWS {
            true => (y + 1, y + 2, y + ROWS_ABOVE),
            false => (y, y + 1, y + if prompt.error.is_empty() { 1 } else { 2 }),
        };
        let is_chosen = |row: &ReasonRow| matches!(row, ReasonRow::Offered(index) if index + 1 == prompt.choice);
        let chosen = rows.iter().position(is_chosen).unwrap_or(0);
        let offset = (chosen + 1).saturating_sub(usize::from(end.saturating_sub(first)));
        Self { input, error, first, end, offset }
    }
}

/// Returns the row under the pointer.
pub fn row_at(app: &App, prompt: &PromptView, cell: Position) -> Option<ReasonRow> {
    let count = dismissal_reasons(app).len();
    let (_, inside) = place_window(app, WIDTH, window_height(count), false);
    let rows = list_rows(count);
    let layout = ReasonLayout::new(prompt, inside, &rows);
    let row = cell.y.checked_sub(layout.first).filter(|_| inside.contains(cell))?;
    rows.get(layout.offset + usize::from(row)).copied()
}

/// Draws the window; `count` findings are to be dismissed.
pub fn draw(painter: &mut Painter<'_>, prompt: &PromptView, count: usize, entry: ReasonEntry) {
    let reasons = dismissal_reasons(painter.app);
    let first_digit = reasons.len() - Disposition::REASONS.len();
    let title = format!("Why dismiss {}?", text::format_count(count, "finding"));
    let inside = draw_window(painter, WIDTH, window_height(reasons.len()), false, &title);
    let rows = list_rows(reasons.len());
    let layout = ReasonLayout::new(prompt, inside, &rows);
    draw_line_edit(painter, Rect::new(inside.x, layout.input, inside.width, 1), &prompt.line);
    if !prompt.error.is_empty() {
        painter.draw_text(inside.x, layout.error, inside.width, &prompt.error, Role::Bad);
    }
    let digit_role = if entry == ReasonEntry::ByDigit { Role::Key } else { Role::Faint };
    let other = format!("other{}", painter.app.display.glyphs.ellipsis);
    let has_digit = |row: &ReasonRow| match row {
        ReasonRow::Other => true,
        ReasonRow::Offered(index) => *index >= first_digit,
    };
    let mut digit = rows.iter().take(layout.offset).filter(|row| has_digit(row)).count();
    for (y, row) in (layout.first..layout.end).zip(&rows[layout.offset..]) {
        let (text, is_chosen) = match *row {
            ReasonRow::Other => (other.as_str(), false),
            ReasonRow::Offered(index) => (reasons[index].as_str(), index + 1 == prompt.choice),
        };
        let sign = if is_chosen { painter.app.display.glyphs.bar } else { " " };
        painter.draw_text(inside.x, y, 1, sign, Role::Accent);
        if has_digit(row) {
            digit += 1;
            painter.draw_text(inside.x + 2, y, 1, &digit.to_string(), digit_role);
        }
        painter.draw_text(inside.x + 4, y, inside.width - 4, text, if is_chosen { Role::Normal } else { Role::Muted });
    }
}
