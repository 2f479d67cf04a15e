//! Draws text into a buffer: measured in columns, cut with an ellipsis, without control characters.

use std::borrow::Cow;
use std::sync::LazyLock;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::super::app::App;
use super::super::doc::{first_grapheme, fit_end, fit_start};
use super::super::glyphs::ascii_stand_in;
use super::super::theme::Role;
use crate::domain::text;
use crate::masking::mask_shown_name;
use crate::tui::doc::TextColumns;

/// Cells with a character of ASCII each, by its code. To copy one takes a third of the instructions of making it from its
/// text, which was a tenth of a frame.
static ASCII_CELLS: LazyLock<[Cell; 128]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let mut cell = Cell::EMPTY;
        cell.set_char(u8::try_from(code).map_or(' ', char::from));
        cell
    })
});

/// Returns a text as [`Painter::draw_text`] draws it, to measure or cut it first: one safe line, whose keys are masked unless
/// the user wants to see the secrets of the page.
pub fn to_shown_text<'t>(app: &App, text: &'t str) -> Cow<'t, str> {
    let masked: Cow<'t, str> = if app.detail.revealed.is_some() { text.into() } else { mask_shown_name(text) };
    match masked {
        Cow::Borrowed(text) => text::sanitize_line(text),
        Cow::Owned(masked) => text::sanitize_line(&masked).into_owned().into(),
    }
}

/// Returns the width of a text as [`Painter::draw_text`] draws it, see [`count_columns`].
pub fn measure_shown(app: &App, text: &str) -> u16 {
    count_columns(&to_shown_text(app, text))
}

/// Returns the columns of a text that [`to_shown_text`] has returned; at most a quarter of [`u16::MAX`], so that widths can be
/// added.
pub fn count_columns(shown: &str) -> u16 {
    const MAX_COLUMNS: u16 = u16::MAX / 4;
    u16::try_from(shown.width()).unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS)
}

/// Buffer with the state that drawing needs.
pub struct Painter<'a> {
    pub app: &'a App,
    pub buffer: &'a mut Buffer,
    /// Style laid over every text, for a selected row.
    overlay_style: Style,
}

impl<'a> Painter<'a> {
    pub fn new(app: &'a App, buffer: &'a mut Buffer) -> Self {
        Self { app, buffer, overlay_style: Style::new() }
    }

    pub fn style(&self, role: Role) -> Style {
        self.app.display.theme.style(role)
    }

    /// Sets the style laid over the following texts; `None` removes it.
    pub fn set_overlay_style(&mut self, style: Option<Style>) {
        self.overlay_style = style.unwrap_or_default();
    }

    /// Fills a rectangle with blanks of a style. A wide letter that reaches into it from the left goes, too, because terminals
    /// draw it over the first column.
    pub fn fill(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.buffer.area);
        if area.is_empty() {
            return;
        }
        let mut blank = Cell::EMPTY;
        blank.set_style(style);
        for y in area.top()..area.bottom() {
            let start = self.buffer.index_of(area.left(), y);
            let cells = &mut self.buffer.content;
            if area.left() > self.buffer.area.left() {
                let before = &mut cells[start - 1];
                if before.symbol().len() > 1 && before.symbol().width() > 1 {
                    before.set_char(' ');
                }
            }
            cells[start..start + usize::from(area.width)].fill(blank.clone());
        }
    }

    /// Draws at most `width` columns of a text with masked keys; a cut end shows an ellipsis. Returns the number of columns
    /// used. Names reach the screen as the store and git have them, so this is the one place that no list can forget.
    pub fn draw_text(&mut self, x: u16, y: u16, width: u16, text: &str, role: Role) -> u16 {
        self.draw_shown(x, y, width, &to_shown_text(self.app, text), role)
    }

    /// Draws a text like [`Painter::draw_text`] that [`to_shown_text`] has returned.
    pub fn draw_shown(&mut self, x: u16, y: u16, width: u16, shown: &str, role: Role) -> u16 {
        self.draw_clean_text(x, y, width, shown, self.style(role))
    }

    /// Draws a text like [`Painter::draw_text`], without masking: for code, whose secrets are found in the whole file.
    pub fn draw_styled_text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        self.draw_clean_text(x, y, width, &text::sanitize_line(text), style)
    }

    /// Draws a text that is one safe line.
    fn draw_clean_text(&mut self, x: u16, y: u16, width: u16, clean: &str, style: Style) -> u16 {
        let room = usize::from(width);
        let (shown, used) = fit_start(clean, room);
        if shown.len() == clean.len() {
            self.write_cells(x, y, shown, style);
            return used as u16;
        }
        let (shown, used) = fit_start(clean, room.saturating_sub(1));
        self.write_cells(x, y, shown, style);
        if room > 0 {
            self.write_cells(x + used as u16, y, self.app.display.glyphs.ellipsis, style);
        }
        (used + 1).min(room) as u16
    }

    /// Draws a text like [`Painter::draw_text`], but cuts its beginning: for paths, whose end is more informative.
    pub fn draw_text_end(&mut self, x: u16, y: u16, width: u16, text: &str, role: Role) -> u16 {
        self.draw_shown_end(x, y, width, &to_shown_text(self.app, text), role)
    }

    /// Draws a text like [`Painter::draw_text_end`] that [`to_shown_text`] has returned.
    pub fn draw_shown_end(&mut self, x: u16, y: u16, width: u16, clean: &str, role: Role) -> u16 {
        let room = usize::from(width);
        if clean.width() <= room {
            return self.draw_shown(x, y, width, clean, role);
        }
        let end = fit_end(clean, room.saturating_sub(1));
        // Cut at a folder if that loses little.
        let end = match end.find('/') {
            Some(at) if at > 0 && at < end.len() / 2 && !clean[..clean.len() - end.len()].ends_with('/') => &end[at..],
            _ => end,
        };
        let cut = format!("{}{end}", self.app.display.glyphs.ellipsis);
        self.draw_shown(x, y, width, &cut, role)
    }

    /// Draws a text at the right edge of a field. Returns the number of columns used.
    pub fn draw_text_right(&mut self, x: u16, y: u16, width: u16, text: &str, role: Role) -> u16 {
        let clean = to_shown_text(self.app, text);
        let used = (clean.width() as u16).min(width);
        self.draw_clean_text(x + width - used, y, used, &clean, self.style(role));
        used
    }

    /// Returns a style under the present overlay. Text keeps its own colour, except on a reversed bar, where different
    /// colours would look patchy.
    fn lay_over(&self, style: Style) -> Style {
        let laid = style.patch(self.overlay_style);
        let laid = match style.fg.filter(|color| *color != Color::Reset) {
            Some(own) if !self.overlay_style.add_modifier.contains(Modifier::REVERSED) => laid.fg(own),
            _ => laid,
        };
        self.app.display.theme.make_legible(laid)
    }

    fn write_cells(&mut self, x: u16, y: u16, text: &str, style: Style) {
        let style = self.lay_over(style);
        let area = self.buffer.area;
        if x >= area.right() || y >= area.bottom() {
            return;
        }
        let ascii = self.app.display.glyphs.is_ascii_only();
        let start = self.buffer.index_of(x, y);
        let cells = &mut self.buffer.content[start..start + usize::from(area.right() - x)];
        if text.is_ascii() {
            for (cell, code) in cells.iter_mut().zip(text.bytes()) {
                put(cell, &ASCII_CELLS[usize::from(code)], style);
            }
            return;
        }
        let (mut column, mut rest) = (0, text);
        while let Some(grapheme) = first_grapheme(rest) {
            rest = &rest[grapheme.len()..];
            let width = if grapheme.len() == 1 { 1 } else { grapheme.width() };
            let Some(taken) = cells.get_mut(column..column + width) else { return };
            let [first, behind @ ..] = taken else { continue };
            column += width;
            if ascii && grapheme.len() > 1 {
                // The stand-in is as wide as the grapheme, so that columns stay where they are.
                let stand_in = ascii_stand_in(grapheme);
                for cell in taken {
                    cell.set_char(stand_in).set_style(style);
                }
                continue;
            }
            first.set_symbol(grapheme).set_style(style);
            for cell in behind {
                cell.reset();
                cell.set_style(style);
            }
        }
    }

    /// Changes the style of existing cells.
    pub fn restyle(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Draws a horizontal rule.
    pub fn draw_rule(&mut self, x: u16, y: u16, width: u16, role: Role) {
        self.repeat_glyph(self.app.display.glyphs.horizontal, Rect::new(x, y, width, 1), role);
    }

    /// Draws a vertical rule.
    pub fn draw_vertical_rule(&mut self, x: u16, y: u16, height: u16, role: Role) {
        self.repeat_glyph(self.app.display.glyphs.vertical, Rect::new(x, y, 1, height), role);
    }

    /// Draws a glyph of one column in each cell of an area.
    fn repeat_glyph(&mut self, glyph: &str, area: Rect, role: Role) {
        let style = self.lay_over(self.style(role));
        let area = area.intersection(self.buffer.area);
        if area.is_empty() {
            return;
        }
        let mut cell = Cell::EMPTY;
        cell.set_symbol(glyph);
        for y in area.top()..area.bottom() {
            let start = self.buffer.index_of(area.left(), y);
            for place in &mut self.buffer.content[start..start + usize::from(area.width)] {
                put(place, &cell, style);
            }
        }
    }

    /// Draws a scroll position beside a list that is longer than its area: on the rule between the columns, or on the
    /// frame of a window.
    pub fn draw_scroll_thumb(&mut self, area: Rect, offset: usize, rows: usize) {
        let height = usize::from(area.height);
        if rows <= height || height < 3 {
            return;
        }
        // Behind a blank after the text.
        let x = (area.right() + 1).min(self.buffer.area.right().saturating_sub(1));
        let size = (height * height / rows).max(1);
        let top = (height - size) * offset / (rows - height).max(1);
        let style = self.style(Role::Muted);
        for y in top..(top + size).min(height) {
            self.write_cells(x, area.y + y as u16, self.app.display.glyphs.thumb, style);
        }
    }
}

/// Gives a cell the text of another one, and a style over its own.
fn put(cell: &mut Cell, text: &Cell, style: Style) {
    let mut new = text.clone();
    (new.fg, new.bg, new.modifier) = (cell.fg, cell.bg, cell.modifier);
    new.set_style(style);
    *cell = new;
}
