//! Table of word starts: which third bytes follow the first two bytes of a word, and the ranks of the words of three
//! bytes.
//!
//! Neighbouring starts are adjacent in memory; a hash table would scatter them over a megabyte.

use bytemuck::{Pod, Zeroable};

use super::vocabulary_format::start_position;

/// Table of word starts. A row number stands for the first two bytes of a word.
pub struct WordStarts {
    rows: &'static [StartRow],
    /// Ranks of the words of three bytes, by row and third byte; [`NO_RANK`](super::vocabulary_format::NO_RANK) for a
    /// start that is not a word itself.
    ranks: &'static [i32],
}

/// For one row: a bit per third byte that occurs, and the number of starts before each group of 64 bits.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct StartRow {
    bits: [u64; 4],
    before: [u32; 4],
}

impl WordStarts {
    pub fn new(rows: &'static [StartRow], ranks: &'static [i32]) -> Self {
        Self { rows, ranks }
    }

    /// Returns the rank of a word of three bytes, [`NO_RANK`](super::vocabulary_format::NO_RANK) for a start that is
    /// not a word, and `None` if no word starts with these bytes.
    pub fn find(&self, row: u16, third: u8) -> Option<i32> {
        let StartRow { bits, before } = &self.rows[usize::from(row)];
        start_position(bits, before, third).map(|place| self.ranks[place])
    }
}
