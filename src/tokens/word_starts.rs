//! Table of word starts: which third bytes follow the first two bytes of a word, and the ranks of the words of three
//! bytes.
//!
//! Neighbouring starts are adjacent in memory; a hash table would scatter them over a megabyte.

use super::vocabulary::NO_RANK;

/// Table of word starts.
#[derive(Default)]
pub struct WordStarts {
    rows: Vec<StartRow>,
    /// Ranks of the words of three bytes, by row and third byte; [`NO_RANK`] for a start that is not a word itself.
    ranks: Vec<i32>,
}

/// For one row: a bit per third byte that occurs, and the number of starts before each group of 64 bits.
#[derive(Clone, Copy, Default)]
struct StartRow {
    bits: [u64; 4],
    before: [u32; 4],
}

impl WordStarts {
    /// Builds the table from (row, third byte) pairs; a row number stands for the first two bytes of a word.
    pub fn new(starts: impl Iterator<Item = (u16, u8)>) -> Self {
        let mut rows = vec![StartRow::default()];
        for (row, third) in starts {
            let row = usize::from(row);
            rows.resize(rows.len().max(row + 1), StartRow::default());
            rows[row].bits[usize::from(third / 64)] |= 1 << (third % 64);
        }
        let mut count = 0;
        for row in &mut rows {
            for (bits, before) in row.bits.iter().zip(&mut row.before) {
                *before = count;
                count += bits.count_ones();
            }
        }
        Self { rows, ranks: vec![NO_RANK; count as usize + 1] }
    }

    pub fn set(&mut self, row: u16, third: u8, rank: i32) {
        if let Some(place) = self.position(row, third) {
            self.ranks[place] = rank;
        }
    }

    /// Returns the rank of a word of three bytes, [`NO_RANK`] for a start that is not a word, and `None` if no word
    /// starts with these bytes.
    pub fn find(&self, row: u16, third: u8) -> Option<i32> {
        self.position(row, third).map(|place| self.ranks[place])
    }

    fn position(&self, row: u16, third: u8) -> Option<usize> {
        let row = &self.rows[usize::from(row)];
        let (bits, bit) = (row.bits[usize::from(third / 64)], 1 << (third % 64));
        (bits & bit != 0).then(|| (row.before[usize::from(third / 64)] + (bits & (bit - 1)).count_ones()) as usize)
    }
}
