//! Draws a diff with emphasis: lit lines, dim lines, and marks for some findings only.

use ratatui::layout::Rect;

use super::super::draw::painter::Painter;
use super::super::theme::Role;
use super::draw::{DiffLook, draw_header, draw_row};
use super::layout::{CodeRow, DiffPageRow};
use super::model::DiffFinding;
use super::pane::{DiffPane, PlacedRow};

/// Emphasis of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTone {
    /// Marked with a bar in the margin.
    Lit,
    Plain,
    /// Drawn without the colours of its code.
    Dim,
}

/// Emphasis of a diff.
pub struct DiffEmphasis<'a> {
    /// Returns the emphasis of a row.
    pub tone: &'a dyn Fn(PlacedRow) -> LineTone,
    /// Returns true for a finding that has a mark.
    pub is_marked: &'a dyn Fn(&DiffFinding) -> bool,
    /// Returns the sign in the margin of a file, by its index, and its style. A word moves the header to the right.
    pub file_sign: &'a dyn Fn(usize) -> (&'static str, Role),
}

impl DiffEmphasis<'_> {
    /// Columns of the margin at the left of the diff.
    pub const MARGIN: u16 = 2;
}

impl DiffPane {
    /// Returns the line of the new side that a row of code shows; for removed lines, the line of their change that the
    /// coverage of a review names.
    pub fn new_line_of(&self, file: usize, code: CodeRow) -> Option<u32> {
        if code.new.is_some() {
            return code.new;
        }
        let (known, pane) = self.file(file)?;
        let (old, blocks) = (code.old?, pane.blocks(known));
        let block = blocks.get(blocks.partition_point(|block| block.old <= old).checked_sub(1)?)?;
        Some(if block.new_lines == 0 { block.new.saturating_sub(1).max(1) } else { block.new })
    }
}

/// Draws the visible rows of a diff with emphasis. The header of the file at the top stays on the screen. The pane has the
/// size of the area without its margin.
pub fn draw_with_emphasis(painter: &mut Painter<'_>, area: Rect, diff: &DiffPane, emphasis: &DiffEmphasis<'_>) {
    for offset in 0..area.height {
        let Some(placed) = diff.row(diff.top() + usize::from(offset)) else { break };
        let Some((known, pane)) = diff.file(placed.file) else { break };
        let row = if offset == 0 { DiffPageRow::Header } else { placed.row };
        let y = area.y + offset;
        let here = Rect::new(area.x + DiffEmphasis::MARGIN, y, area.width.saturating_sub(DiffEmphasis::MARGIN), 1);
        let tone = (emphasis.tone)(PlacedRow { row, ..placed });
        let look = DiffLook::new(diff, placed.file).with_emphasis(tone == LineTone::Dim, emphasis.is_marked);
        if row == DiffPageRow::Header {
            let (sign, role) = (emphasis.file_sign)(placed.file);
            let margin = painter.draw_text(area.x, y, area.width, sign, role) + 1;
            let here = Rect { x: area.x + margin, width: area.width.saturating_sub(margin), ..here };
            draw_header(painter, here, &look);
            continue;
        }
        if tone == LineTone::Lit {
            painter.draw_text(area.x, y, 1, painter.app.display.glyphs.bar, Role::Accent);
        }
        draw_row(painter, here, (known, pane, &pane.layout), row, &look);
    }
    painter.draw_scroll_thumb(area, diff.top(), diff.row_count());
}
