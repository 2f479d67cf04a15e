//! Character classes for splitting texts. The build script generates a table of them.

/// Characters that begin a word of `o200k_base`, and characters that end one. A character without case is in both
/// classes.
pub const UPPER: u8 = 1;
pub const LOWER: u8 = 1 << 1;
pub const LETTER: u8 = 1 << 2;
pub const NUMBER: u8 = 1 << 3;
pub const BLANK: u8 = 1 << 4;
pub const LINE_END: u8 = 1 << 5;
pub const SIGN: u8 = 1 << 6;
/// One character of this class may stand before the letters of a word.
pub const LEAD: u8 = 1 << 7;

/// Number of characters per block. The table starts with one byte per block, the number of its class block; the class
/// blocks follow.
pub const BLOCK: usize = 256;
pub const BLOCKS: usize = (char::MAX as usize + 1) / BLOCK;
