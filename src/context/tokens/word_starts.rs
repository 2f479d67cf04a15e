//! How words start: by their first two bytes and the third one, which of them there are, and the ranks of those that end there.
//!
//! What is next to each other in a text is next to each other here as well; a hash would scatter it over a megabyte.

use super::vocabulary::NO_RANK;

#[derive(Default)]
pub struct WordStarts {
    rows: Vec<StartRow>,
    /// Of the words of three bytes, by row and third byte; [`NONE`] for what is but the start of words.
    ranks: Vec<i32>,
}

/// By third byte: whether words go on with it, and how many such starts there are before each 64 of them.
#[derive(Clone, Copy, Default)]
struct StartRow {
    bits: [u64; 4],
    before: [u32; 4],
}

impl WordStarts {
    /// Of words by their row, which has their first two bytes, and their third byte.
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

    /// The rank of a word of three bytes, [`NONE`] if it is but the start of others, and nothing if no word starts so.
    pub fn find(&self, row: u16, third: u8) -> Option<i32> {
        self.position(row, third).map(|place| self.ranks[place])
    }

    fn position(&self, row: u16, third: u8) -> Option<usize> {
        let row = &self.rows[usize::from(row)];
        let (bits, bit) = (row.bits[usize::from(third / 64)], 1 << (third % 64));
        (bits & bit != 0).then(|| (row.before[usize::from(third / 64)] + (bits & (bit - 1)).count_ones()) as usize)
    }
}
