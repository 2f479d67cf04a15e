//! Of what sort a character is, as far as it matters to how texts are cut. The build script makes a table of it.

/// What begins a word of `o200k_base`, and what ends one; characters without a case are both.
pub const UPPER: u8 = 1;
pub const LOWER: u8 = 1 << 1;
pub const LETTER: u8 = 1 << 2;
pub const NUMBER: u8 = 1 << 3;
pub const BLANK: u8 = 1 << 4;
pub const LINE_END: u8 = 1 << 5;
pub const SIGN: u8 = 1 << 6;
/// One of them may stand before the letters of a word.
pub const LEAD: u8 = 1 << 7;

/// The table has a byte for each block of so many characters, which says what block of sorts they have. These follow.
pub const BLOCK: usize = 256;
pub const BLOCKS: usize = (char::MAX as usize + 1) / BLOCK;
