//! Keeps the screen contents and computes the fewest bytes that update the terminal: what it shows, packed, and the next
//! frame, whose difference becomes one write.
//!
//! This differ stands in for `ratatui::Terminal` with its crossterm backend, which writes 1.4 times as many bytes for
//! a key (469 against 327 at 200x60, from row to row of 3,000 findings), 2.1 times for opening the statistics, and 25
//! bytes for a frame without changes; `tests/screens.rs` holds this comparison.
//!
//! - A frame without changes writes nothing.
//! - The cursor stays hidden, unless a screen reader has to follow it. For one, rows are written as wholes.
//! - Only VT220 sequences are used, plus synchronized output, which terminals without support ignore.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::shown_cells::{LongTexts, ShownCell};

/// Fewest blanks in a row for which an erase sequence is shorter than writing them.
const MIN_ERASE_BLANKS: u16 = 6;
/// Most unchanged cells between two changes that are shorter to rewrite than to skip.
const MAX_REWRITE_CELLS: u16 = 3;
/// Attributes that show on a blank.
pub(super) const SHOWN_ON_BLANKS: Modifier =
    Modifier::REVERSED.union(Modifier::UNDERLINED).union(Modifier::CROSSED_OUT);

/// Contents of the terminal, and the next frame.
#[derive(Debug)]
pub struct Screen {
    /// Attributes that the terminal shows as what they are.
    attributes: Modifier,
    /// Cells of the last frame; empty if the terminal's contents are not known, or if they are still in `next`.
    shown: Vec<ShownCell>,
    /// Texts of cells that are too long for [`ShownCell`].
    long_texts: LongTexts,
    /// Frame that is drawn next; the last one while `is_drawn`.
    next: Buffer,
    is_drawn: bool,
    /// A row of the next frame, packed; kept for its memory.
    row: Vec<ShownCell>,
    /// The terminal's contents are unknown, so every cell is written.
    stale: bool,
    bytes: Vec<u8>,
    /// Cell at which the cursor is shown; `None` while it is hidden.
    cursor: Option<Position>,
    /// A row that differs is written as a whole.
    writes_whole_rows: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct SgrState {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

const SGR_DEFAULT: SgrState = SgrState { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };
const ATTRIBUTES: [(Modifier, u8, u8); 6] = [
    (Modifier::BOLD, 1, 22),
    (Modifier::DIM, 2, 22),
    (Modifier::ITALIC, 3, 23),
    (Modifier::UNDERLINED, 4, 24),
    (Modifier::REVERSED, 7, 27),
    (Modifier::CROSSED_OUT, 9, 29),
];

impl Screen {
    /// Creates a screen of this size in cells. The first frame writes every cell.
    pub fn new(columns: u16, rows: u16) -> Self {
        let area = Rect::new(0, 0, columns, rows);
        Self {
            attributes: Modifier::all(),
            shown: Vec::new(),
            long_texts: LongTexts::default(),
            next: Buffer::empty(area),
            is_drawn: false,
            row: Vec::new(),
            stale: true,
            bytes: Vec::new(),
            cursor: None,
            writes_whole_rows: false,
        }
    }

    /// Adapts to a new terminal size; the contents become unknown.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let (attributes, writes_whole_rows) = (self.attributes, self.writes_whole_rows);
        *self = Self { attributes, writes_whole_rows, ..Self::new(columns, rows) };
    }

    /// Writes none of these attributes from now on.
    pub fn avoid_attributes(&mut self, avoided: Modifier) {
        self.attributes.remove(avoided);
    }

    /// Writes a row that differs as a whole from now on, from its first to its last cell that is not blank: a screen
    /// reader speaks what is written, and parts of a line make no sentence.
    pub fn write_whole_rows(&mut self) {
        self.writes_whole_rows = true;
    }

    /// Marks the terminal's contents as unknown, for example after an editor used the terminal.
    pub fn invalidate(&mut self) {
        self.stale = true;
    }

    /// Draws a frame with `draw` into an empty buffer and returns the bytes that update the terminal; empty if
    /// nothing changed. `draw` returns the cell at which the cursor is shown.
    pub fn draw_frame(&mut self, draw: impl FnOnce(&mut Buffer) -> Option<Position>) -> &[u8] {
        self.prepare_next_frame();
        if self.stale {
            self.shown.clear();
        }
        let cursor = draw(&mut self.next);
        self.is_drawn = true;
        self.bytes.clear();
        self.write_difference(self.next.area);
        self.write_cursor(cursor);
        self.stale = false;
        &self.bytes
    }

    /// Draws only a part of a frame with `draw` into an empty buffer, and returns the bytes that update that part of the terminal.
    /// The whole frame has to follow: it corrects what stands beside the part. Empty if the terminal's contents are unknown, or if
    /// rows are written as wholes.
    pub fn draw_part(&mut self, part: Rect, draw: impl FnOnce(&mut Buffer)) -> &[u8] {
        self.prepare_next_frame();
        self.bytes.clear();
        if !self.stale && !self.writes_whole_rows && self.cursor.is_none() {
            draw(&mut self.next);
            self.is_drawn = true;
            self.write_difference(part.intersection(self.next.area));
        }
        &self.bytes
    }

    /// Empties the buffer of the next frame, unless that has been done. Called while nobody waits for a frame: it takes a
    /// fifteenth of the time of a key.
    pub fn prepare_next_frame(&mut self) {
        if !std::mem::take(&mut self.is_drawn) {
            return;
        }
        let Self { shown, long_texts, next, .. } = self;
        if long_texts.are_many() {
            long_texts.clear();
            shown.clear();
        }
        if shown.is_empty() {
            shown.extend(next.content.iter().map(|cell| ShownCell::pack(cell, long_texts)));
        }
        next.reset();
    }

    /// Moves the cursor to its cell and shows it, or hides it.
    fn write_cursor(&mut self, cursor: Option<Position>) {
        let before = std::mem::replace(&mut self.cursor, cursor);
        match cursor {
            Some(at) if before != cursor || !self.bytes.is_empty() => {
                push_fmt(&mut self.bytes, format_args!("\x1b[{};{}H", at.y + 1, at.x + 1));
                if before.is_none() || self.stale {
                    self.bytes.extend_from_slice(b"\x1b[?25h");
                }
            }
            None if before.is_some() => self.bytes.extend_from_slice(b"\x1b[?25l"),
            _ => {}
        }
    }

    fn write_difference(&mut self, part: Rect) {
        let Self { shown, long_texts, next, row, stale, bytes, attributes, writes_whole_rows, .. } = self;
        let width = next.area.width;
        let (left, right) = (part.left(), part.right());
        let columns = usize::from(left)..usize::from(right);
        let mut pen = SGR_DEFAULT;
        // Position of the cursor; unknown at first.
        let mut at: Option<(u16, u16)> = None;
        for y in part.top()..part.bottom() {
            let line = usize::from(y) * usize::from(width)..usize::from(y + 1) * usize::from(width);
            let (old, new) = (shown.get_mut(line.clone()).unwrap_or_default(), &next.content[line]);
            row.clear();
            if !*stale {
                // What stands before the part is not looked at.
                row.resize(columns.start, ShownCell::BLANK);
                row.extend(new[columns.clone()].iter().map(|cell| ShownCell::pack(cell, long_texts)));
                if old[columns.clone()] == row[columns.clone()] {
                    continue;
                }
            }
            let is_whole = *writes_whole_rows;
            let mut x = if is_whole { first_written_column(old, new) } else { left };
            // Cells before this column are written although they look the same: writing what is left of them may have
            // changed them.
            let mut disturbed = 0;
            while x < right {
                if !*stale && !is_whole && x >= disturbed {
                    x = skip_same_cells(old, row, new, x);
                    if x == right {
                        break;
                    }
                }
                let column = usize::from(x);
                let wide = cell_width(&new[column]);
                if bytes.is_empty() {
                    bytes.extend_from_slice(b"\x1b[?2026h\x1b[0m");
                    if *stale {
                        bytes.extend_from_slice(b"\x1b[2J");
                    }
                }
                move_to(bytes, new, pen, at, x, y);
                let blanks = if is_blank(&new[column]) && (!is_whole || new[column..].iter().all(is_blank)) {
                    let run = new[column..columns.end].iter().take_while(|cell| is_blank(cell)).count();
                    u16::try_from(run).unwrap_or(0)
                } else {
                    0
                };
                if blanks >= MIN_ERASE_BLANKS || (is_whole && blanks > 0) {
                    write_sgr(bytes, &mut pen, SGR_DEFAULT);
                    if x + blanks == width {
                        bytes.extend_from_slice(b"\x1b[K");
                    } else {
                        push_fmt(bytes, format_args!("\x1b[{blanks}X"));
                    }
                    at = Some((x, y));
                    x += blanks;
                    disturbed = disturbed.max(end_of_last_cell(old, long_texts, x));
                    continue;
                }
                let cell = &new[column];
                // A blank can use any style with its background and without lines.
                let fits = is_space(cell) && pen.bg == cell.bg && !pen.modifier.intersects(SHOWN_ON_BLANKS);
                if !fits {
                    let modifier = cell.modifier & *attributes;
                    write_sgr(bytes, &mut pen, SgrState { fg: cell.fg, bg: cell.bg, modifier });
                }
                let spill = measure_spill(cell);
                if spill > 0 {
                    // A terminal that draws fewer columns leaves what stood there.
                    bytes.extend(std::iter::repeat_n(b' ', usize::from(wide)));
                    move_to(bytes, new, pen, None, x, y);
                }
                bytes.extend_from_slice(cell.symbol().as_bytes());
                disturbed = disturbed.max(x + spill);
                x += wide;
                disturbed = disturbed.max(end_of_last_cell(old, long_texts, x));
                // The cursor position is uncertain after the last column, and after characters whose width differs
                // between terminals.
                let certain =
                    x < width && (cell.symbol().len() == 1 || (wide == 1 && cell.symbol().chars().count() == 1));
                at = certain.then_some((x, y));
            }
            if !*stale {
                old[columns.clone()].copy_from_slice(&row[columns.clone()]);
            }
        }
        if !bytes.is_empty() {
            write_sgr(bytes, &mut pen, SGR_DEFAULT);
            bytes.extend_from_slice(b"\x1b[?2026l");
        }
    }
}

/// Returns the attributes that the terminal lacks: GNU screen, and tmux with the terminal type of screen, show italics
/// reversed, and GNU screen cannot cross out.
pub fn find_missing_attributes(variable: impl Fn(&str) -> Option<String>) -> Modifier {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let has_type_of_screen = variable("TERM").is_some_and(|term| term.starts_with("screen"));
    let is_gnu_screen = !is_set("TMUX") && (has_type_of_screen || is_set("STY"));
    let mut missing = Modifier::empty();
    missing.set(Modifier::ITALIC, has_type_of_screen);
    missing.set(Modifier::CROSSED_OUT, is_gnu_screen);
    missing
}

/// Returns the first column from `from` on whose cell differs; the length of `row` if none does. A wide cell whose second
/// column differs counts from its first one. `row` is `new`, packed, up to the last column that counts.
fn skip_same_cells(old: &[ShownCell], row: &[ShownCell], new: &[Cell], from: u16) -> u16 {
    let start = usize::from(from);
    let same = old[start..].iter().zip(&row[start..]).take_while(|(old, new)| old == new).count();
    let end = start + same;
    let is_in_wide_cell = same > 0 && end < row.len() && cell_width(&new[end - 1]) > 1;
    from + u16::try_from(same - usize::from(is_in_wide_cell)).unwrap_or(0)
}

/// Returns the first column of a row that is not blank before and after.
fn first_written_column(old: &[ShownCell], new: &[Cell]) -> u16 {
    let is_blank_before = |column: usize| old.get(column).is_none_or(|cell| *cell == ShownCell::BLANK);
    let blank = new.iter().enumerate().take_while(|(column, cell)| is_blank(cell) && is_blank_before(*column)).count();
    u16::try_from(blank).unwrap_or(u16::MAX)
}

/// Returns the first column behind the cell of the last frame that begins before column `end`. A wide cell ends behind
/// `end` if only its first column was written, which has erased its second one.
fn end_of_last_cell(old: &[ShownCell], long_texts: &LongTexts, end: u16) -> u16 {
    let last = usize::from(end).checked_sub(1).and_then(|last| old.get(last));
    end + last.map_or(0, |cell| cell.width(long_texts) - 1)
}

/// Returns the most columns that a terminal may draw for a symbol of several characters, such as an emoji with a skin tone:
/// terminals do not agree whether its characters are one. Returns 0 for a symbol of one character.
fn measure_spill(cell: &Cell) -> u16 {
    let symbol = cell.symbol();
    if symbol.len() == 1 || symbol.chars().nth(1).is_none() {
        return 0;
    }
    let widths = symbol.chars().map(|c| UnicodeWidthChar::width(c).unwrap_or(0));
    u16::try_from(widths.sum::<usize>()).unwrap_or(u16::MAX).max(cell_width(cell))
}

/// Returns true if a cell shows only its background colour.
fn is_space(cell: &Cell) -> bool {
    cell.symbol() == " " && !cell.modifier.intersects(SHOWN_ON_BLANKS)
}

fn cell_width(cell: &Cell) -> u16 {
    measure_symbol(cell.symbol())
}

/// Returns the columns of a cell's text, 1 or 2.
pub(super) fn measure_symbol(symbol: &str) -> u16 {
    if symbol.len() == 1 { 1 } else { u16::try_from(symbol.width()).unwrap_or(1).clamp(1, 2) }
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(SHOWN_ON_BLANKS)
}

fn push_fmt(bytes: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = bytes.write_fmt(arguments);
}

fn move_to(bytes: &mut Vec<u8>, line: &[Cell], pen: SgrState, at: Option<(u16, u16)>, x: u16, y: u16) {
    match at {
        Some(here) if here == (x, y) => {}
        Some((from, row)) if row == y && from < x => {
            // Rewriting unchanged cells of the current style is shorter than a cursor movement.
            let gap = &line[usize::from(from)..usize::from(x)];
            let like_pen = |cell: &Cell| {
                cell.symbol().len() == 1 && SgrState { fg: cell.fg, bg: cell.bg, modifier: cell.modifier } == pen
            };
            match x - from {
                n if n <= MAX_REWRITE_CELLS && gap.iter().all(like_pen) => {
                    bytes.extend(gap.iter().flat_map(|cell| cell.symbol().bytes()));
                }
                1 => bytes.extend_from_slice(b"\x1b[C"),
                n => push_fmt(bytes, format_args!("\x1b[{n}C")),
            }
        }
        Some((_, row)) if row + 1 == y && x == 0 => bytes.extend_from_slice(b"\r\n"),
        _ if x == 0 => push_fmt(bytes, format_args!("\x1b[{}H", y + 1)),
        _ => push_fmt(bytes, format_args!("\x1b[{};{}H", y + 1, x + 1)),
    }
}

fn write_sgr(bytes: &mut Vec<u8>, pen: &mut SgrState, wanted: SgrState) {
    if *pen == wanted {
        return;
    }
    if wanted == SGR_DEFAULT {
        bytes.extend_from_slice(b"\x1b[m");
        *pen = wanted;
        return;
    }
    let mut codes: Vec<u8> = Vec::with_capacity(24);
    let code = |codes: &mut Vec<u8>, text: std::fmt::Arguments<'_>| {
        if !codes.is_empty() {
            codes.push(b';');
        }
        push_fmt(codes, text);
    };
    let gone = pen.modifier - wanted.modifier;
    let mut come = wanted.modifier - pen.modifier;
    if gone.intersects(Modifier::BOLD | Modifier::DIM) {
        code(&mut codes, format_args!("22"));
        come |= wanted.modifier & (Modifier::BOLD | Modifier::DIM);
    }
    for (attribute, on, off) in ATTRIBUTES {
        if gone.contains(attribute) && off != 22 {
            code(&mut codes, format_args!("{off}"));
        }
        if come.contains(attribute) {
            code(&mut codes, format_args!("{on}"));
        }
    }
    for (had, wants, base) in [(pen.fg, wanted.fg, 30), (pen.bg, wanted.bg, 40)] {
        if had != wants {
            match to_sgr_color(wants) {
                SgrColor::Default => code(&mut codes, format_args!("{}", base + 9)),
                SgrColor::Named(n) if n < 8 => code(&mut codes, format_args!("{}", base + n)),
                SgrColor::Named(n) => code(&mut codes, format_args!("{}", base + 52 + n)),
                SgrColor::Indexed(n) => code(&mut codes, format_args!("{};5;{n}", base + 8)),
                SgrColor::Rgb(r, g, b) => code(&mut codes, format_args!("{};2;{r};{g};{b}", base + 8)),
            }
        }
    }
    bytes.extend_from_slice(b"\x1b[");
    bytes.extend_from_slice(&codes);
    bytes.push(b'm');
    *pen = wanted;
}

enum SgrColor {
    Default,
    Named(u8),
    Indexed(u8),
    Rgb(u8, u8, u8),
}

fn to_sgr_color(colour: Color) -> SgrColor {
    match colour {
        Color::Reset => SgrColor::Default,
        Color::Indexed(n) if n > 15 => SgrColor::Indexed(n),
        Color::Rgb(r, g, b) => SgrColor::Rgb(r, g, b),
        Color::Indexed(n) => SgrColor::Named(n),
        named => SgrColor::Named(number_named_color(named)),
    }
}

/// Returns the number of a colour that has a name, 0 to 15; 0 for another one.
pub(super) fn number_named_color(color: Color) -> u8 {
    match color {
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Black | Color::Reset | Color::Indexed(_) | Color::Rgb(..) => 0,
    }
}

#[cfg(test)]
mod tests;
