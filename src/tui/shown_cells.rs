//! Packs what the terminal shows into 16 bytes a cell. Every frame compares every cell: as [`Cell`]s of 40 bytes, two frames
//! of 200x60 take half of a core's cache, and to compare them took an eighth of the time of a key.

use std::collections::HashMap;

use ratatui::buffer::Cell;
use ratatui::style::Color;

use super::screen::{SHOWN_ON_BLANKS, measure_symbol, number_named_color};

/// Length that stands for a text in [`LongTexts`].
const LONG: u8 = 5;
/// Number of texts from which on [`LongTexts`] is emptied. A screen has few of them: flags and letters with several marks.
const MAX_LONG_TEXTS: usize = 4096;

/// Look of a cell: two are equal if the terminal shows the same. A blank has no colour but its background, and no
/// attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownCell(u128);

impl ShownCell {
    /// A blank in the colour of the terminal.
    pub const BLANK: Self = Self::new(b' ' as u32, 1, 0, 0, 0);

    /// Packs a cell.
    #[inline(always)]
    pub fn pack(cell: &Cell, long_texts: &mut LongTexts) -> Self {
        let symbol = cell.symbol();
        let (text, length) = match *symbol.as_bytes() {
            [one] => (u32::from(one), 1),
            [one, two] => (u32::from_le_bytes([one, two, 0, 0]), 2),
            [one, two, three] => (u32::from_le_bytes([one, two, three, 0]), 3),
            [one, two, three, four] => (u32::from_le_bytes([one, two, three, four]), 4),
            _ => (long_texts.number(symbol), LONG),
        };
        let is_space = text == u32::from(b' ') && length == 1 && !cell.modifier.intersects(SHOWN_ON_BLANKS);
        let (fg, modifier) = if is_space { (0, 0) } else { (pack_color(cell.fg), cell.modifier.bits()) };
        Self::new(text, length, fg, pack_color(cell.bg), modifier)
    }

    #[inline(always)]
    const fn new(text: u32, length: u8, fg: u32, bg: u32, modifier: u16) -> Self {
        Self(
            text as u128 | (fg as u128) << 32 | (bg as u128) << 64 | (modifier as u128) << 96 | (length as u128) << 112,
        )
    }

    /// Returns the columns of the cell, 1 or 2.
    pub fn width(self, long_texts: &LongTexts) -> u16 {
        let (text, length) = (self.0 as u32, (self.0 >> 112) as u8);
        let inline = text.to_le_bytes();
        measure_symbol(match length {
            LONG => long_texts.text(text),
            _ => inline.get(..usize::from(length)).and_then(|text| str::from_utf8(text).ok()).unwrap_or(" "),
        })
    }
}

/// Returns a number that no other colour has; 0 for [`Color::Reset`].
#[inline(always)]
fn pack_color(color: Color) -> u32 {
    const NAMED: u32 = 1 << 24;
    const INDEXED: u32 = 2 << 24;
    const RGB: u32 = 3 << 24;
    // What the themes use, before the rest.
    match color {
        Color::Reset => 0,
        Color::Rgb(red, green, blue) => RGB | u32::from_le_bytes([red, green, blue, 0]),
        Color::Indexed(number) => INDEXED | u32::from(number),
        named => NAMED | u32::from(number_named_color(named)),
    }
}

/// Texts of cells that take more than four bytes, by number.
#[derive(Debug, Default)]
pub struct LongTexts {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl LongTexts {
    /// Returns the number of a text; the same one until the texts are cleared.
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or(" ", String::as_str)
    }

    /// Returns true if the texts should be cleared, together with the cells that use them.
    pub fn are_many(&self) -> bool {
        self.texts.len() > MAX_LONG_TEXTS
    }

    /// Forgets all texts. Cells that were packed before mean nothing any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Modifier;

    use super::*;

    fn cell(symbol: &str, fg: Color, bg: Color, modifier: Modifier) -> Cell {
        let mut cell = Cell::EMPTY;
        cell.set_symbol(symbol).set_fg(fg).set_bg(bg);
        cell.modifier = modifier;
        cell
    }

    #[test]
    fn cells_are_equal_that_look_the_same() {
        let (none, bold, reversed) = (Modifier::empty(), Modifier::BOLD, Modifier::REVERSED);
        let (own, red) = (Color::Reset, Color::Red);
        for (one, other, expected) in [
            (cell("a", red, own, bold), cell("a", red, own, bold), true),
            (cell("a", red, own, bold), cell("b", red, own, bold), false),
            (cell("a", red, own, bold), cell("a", own, own, bold), false),
            (cell("a", red, own, bold), cell("a", red, red, bold), false),
            (cell("a", red, own, bold), cell("a", red, own, none), false),
            (cell("a", Color::Red, own, none), cell("a", Color::Indexed(1), own, none), false),
            (cell("a", Color::Rgb(1, 0, 0), own, none), cell("a", Color::Indexed(1), own, none), false),
            (cell("a", Color::Black, own, none), cell("a", own, own, none), false),
            // A blank shows only its background.
            (cell(" ", red, own, bold), cell(" ", own, own, none), true),
            (cell(" ", red, own, none), Cell::EMPTY, true),
            (cell(" ", own, red, none), cell(" ", own, own, none), false),
            (cell(" ", red, own, reversed), cell(" ", own, own, reversed), false),
            (cell(" ", own, own, reversed), cell(" ", own, own, none), false),
            (cell(" ", own, own, Modifier::CROSSED_OUT), cell(" ", own, own, none), false),
            // Texts of one to four bytes, and longer ones.
            (cell("é", own, own, none), cell("è", own, own, none), false),
            (cell("漢", own, own, none), cell("漢", own, own, none), true),
            (cell("👍", own, own, none), cell("👎", own, own, none), false),
            (cell("e\u{301}", own, own, none), cell("e", own, own, none), false),
            (cell("👍🏽", own, own, none), cell("👍🏽", own, own, none), true),
            (cell("👍🏽", own, own, none), cell("👍🏿", own, own, none), false),
            (cell("👍🏽", own, own, none), cell("👍🏽", red, own, none), false),
        ] {
            let mut texts = LongTexts::default();
            let same = ShownCell::pack(&one, &mut texts) == ShownCell::pack(&other, &mut texts);
            assert_eq!(same, expected, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn no_two_colours_have_one_number() {
        let named = [
            Color::Reset,
            Color::Black,
            Color::Red,
            Color::Green,
            Color::Yellow,
            Color::Blue,
            Color::Magenta,
            Color::Cyan,
            Color::Gray,
            Color::DarkGray,
            Color::LightRed,
            Color::LightGreen,
            Color::LightYellow,
            Color::LightBlue,
            Color::LightMagenta,
            Color::LightCyan,
            Color::White,
        ];
        let indexed = (0..=255).map(Color::Indexed);
        let mixed = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (255, 255, 255)].map(|(r, g, b)| Color::Rgb(r, g, b));
        let colors: Vec<Color> = named.into_iter().chain(indexed).chain(mixed).collect();
        let numbers: std::collections::HashSet<u32> = colors.iter().map(|color| pack_color(*color)).collect();
        assert_eq!(numbers.len(), colors.len());
    }

    #[test]
    fn a_packed_cell_knows_its_width_and_a_blank_is_known() {
        let mut texts = LongTexts::default();
        for (symbol, width) in [("a", 1), ("é", 1), ("─", 1), ("漢", 2), ("👍", 2), ("e\u{301}", 1), ("👍🏽", 2)]
        {
            let packed = ShownCell::pack(&cell(symbol, Color::Red, Color::Reset, Modifier::BOLD), &mut texts);
            assert_eq!(packed.width(&texts), width, "{symbol}");
        }
        assert_eq!(ShownCell::pack(&Cell::EMPTY, &mut texts), ShownCell::BLANK);
        assert_eq!(texts.texts, ["👍🏽"], "only long texts are kept");
    }
}
