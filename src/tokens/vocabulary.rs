//! Vocabulary of an encoding: finds the rank of a byte sequence and of the merge of two words, and tells which bytes
//! can be adjacent in a word.
//!
//! Each word is always merged from the same two words, because merges happen in the order of ranks and all merges
//! before it lie inside the word. So two ranks identify a merge, and the bytes need not be compared.

use super::vocabulary_format::{
    ENDS_INSIDE_SHIFT, IS_INSIDE, MAX_SHORT_WORD_BYTES, NO_RANK, RANK_BITS, STARTS_INSIDE_SHIFT, WordKey, index_shift,
    pair_index,
};
use super::word_starts::WordStarts;

/// Words of an encoding with their ranks. Borrows the build script's tables, which are part of the program.
pub struct BpeVocabulary {
    /// Rank of each byte.
    bytes: [i32; 256],
    /// Facts about each pair of bytes; [`STARTS_INSIDE_SHIFT`] describes them.
    pairs: &'static [u64],
    /// Row in [`WordStarts`] of the longer words that start with a pair of bytes; 0 if there are none.
    rows: &'static [u16],
    starts: WordStarts,
    /// Words of 4 to [`MAX_SHORT_WORD_BYTES`] bytes, keyed by their bytes.
    short: RankTable<u64>,
    /// Longer words: the first table is keyed by the ranks of a word's two halves, the second by its bytes.
    joined: RankTable<u64>,
    whole: RankTable<u32>,
    filter: KeyFilter,
    /// The longer words concatenated, and the start of each word by rank, followed by the end.
    text: &'static [u8],
    begins: &'static [u32],
}

/// Bytes at an address from which numbers of 64 bits can be read.
#[repr(C, align(8))]
struct AlignedBytes<B: ?Sized>(B);

/// Borrows a table of an encoding as numbers from the file that the build script has written.
macro_rules! table {
    ($encoding:literal, $table:literal) => {{
        static TABLE: &AlignedBytes<[u8]> =
            &AlignedBytes(*include_bytes!(concat!(env!("OUT_DIR"), "/", $encoding, ".", $table)));
        bytemuck::cast_slice(&TABLE.0)
    }};
}

/// Returns the vocabulary of an encoding.
macro_rules! vocabulary {
    ($encoding:literal) => {
        BpeVocabulary {
            bytes: to_byte_ranks(table!($encoding, "bytes")),
            pairs: table!($encoding, "pairs"),
            rows: table!($encoding, "rows"),
            starts: WordStarts::new(table!($encoding, "starts"), table!($encoding, "start_ranks")),
            short: RankTable::new(table!($encoding, "short")),
            joined: RankTable::new(table!($encoding, "joined")),
            whole: RankTable::new(table!($encoding, "whole")),
            filter: KeyFilter::new(table!($encoding, "filter")),
            text: table!($encoding, "text"),
            begins: table!($encoding, "begins"),
        }
    };
}

impl BpeVocabulary {
    /// Returns the vocabulary of `o200k_base`.
    pub fn o200k() -> Self {
        vocabulary!("o200k")
    }

    /// Returns the vocabulary of `cl100k_base`.
    pub fn cl100k() -> Self {
        vocabulary!("cl100k")
    }

    /// Returns the rank of a byte.
    pub fn byte_rank(&self, byte: u8) -> i32 {
        self.bytes[usize::from(byte)]
    }

    /// Returns the rank of two bytes as a word, or [`NO_RANK`].
    pub fn pair_rank(&self, first: u8, second: u8) -> i32 {
        rank_at(self.pairs[pair_index(first, second)], 0)
    }

    /// Returns the rank of the merge of two words, or [`NO_RANK`]. The words are given by their bytes in `piece` and by
    /// their ranks.
    #[inline]
    pub fn merged_rank(&self, piece: &[u8], [start, end]: [usize; 2], [left, right]: [i32; 2]) -> i32 {
        match end - start {
            2 => self.pair_rank(piece[start], piece[start + 1]),
            length if length <= MAX_SHORT_WORD_BYTES => self.short_word_rank(piece, start, end),
            _ if self.is_no_word_start(piece, start) => NO_RANK,
            _ => {
                let key = WordKey::from_ranks(left, right);
                if self.filter.may_contain(key) { self.joined.find(key, |_| true) } else { NO_RANK }
            }
        }
    }

    /// Returns the rank of the bytes `start..end` as a word, or [`NO_RANK`].
    pub fn word_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        match end - start {
            1 => self.byte_rank(text[start]),
            2 => self.pair_rank(text[start], text[start + 1]),
            length if length <= MAX_SHORT_WORD_BYTES => self.short_word_rank(text, start, end),
            _ if self.is_no_word_start(text, start) => NO_RANK,
            _ => {
                let key = WordKey::from_bytes(text, start, end);
                let is_right =
                    |rank| self.text[self.begins[rank] as usize..self.begins[rank + 1] as usize] == text[start..end];
                if self.filter.may_contain(key) { self.whole.find(key, is_right) } else { NO_RANK }
            }
        }
    }

    #[inline]
    fn short_word_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let row = self.rows[pair_index(text[start], text[start + 1])];
        match self.starts.find(row, text[start + 2]) {
            None => NO_RANK,
            Some(rank) if end - start == 3 => rank,
            Some(_) => {
                let key = WordKey::from_bytes(text, start, end);
                if self.filter.may_contain(key) { self.short.find(key, |_| true) } else { NO_RANK }
            }
        }
    }

    fn is_no_word_start(&self, text: &[u8], start: usize) -> bool {
        self.starts.find(self.rows[pair_index(text[start], text[start + 1])], text[start + 2]).is_none()
    }

    /// Returns true if the two bytes are adjacent in no word, so that no token spans them.
    pub fn is_border(&self, first: u8, second: u8) -> bool {
        self.pairs[pair_index(first, second)] & IS_INSIDE == 0
    }

    /// Returns the lowest rank of a word that contains a part of the character `start..end` and an adjacent byte. Below
    /// this rank, all merges of the character's bytes stay inside it.
    pub fn min_crossing_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let before = match start {
            0 => NO_RANK,
            _ => rank_at(self.pairs[pair_index(text[start - 1], text[start])], ENDS_INSIDE_SHIFT),
        };
        let behind = match text.get(end) {
            None => NO_RANK,
            Some(next) => rank_at(self.pairs[pair_index(text[end - 1], *next)], STARTS_INSIDE_SHIFT),
        };
        before.min(behind)
    }

    /// Returns true if a multi-byte character stands at `start..end` that is never merged with its neighbours: it is no
    /// word, and no word contains a part of it and an adjacent byte.
    pub fn is_apart(&self, text: &[u8], start: usize, end: usize) -> bool {
        start + 1 < end
            && end <= text.len()
            && self.min_crossing_rank(text, start, end) == NO_RANK
            && self.word_rank(text, start, end) == NO_RANK
    }
}

/// Copies the ranks of all bytes, so that a look-up needs no check.
fn to_byte_ranks(table: &[i32]) -> [i32; 256] {
    std::array::from_fn(|byte| table[byte])
}

/// Returns one of the ranks in the facts about a pair of bytes.
fn rank_at(facts: u64, shift: u32) -> i32 {
    (facts >> shift) as i32 & NO_RANK
}

/// Filter with one bit per hash prefix in the tables; most lookups find nothing and end here.
struct KeyFilter {
    bits: &'static [u64],
    /// Number of hash bits that are not part of the index of a bit.
    shift: u32,
}

impl KeyFilter {
    fn new(bits: &'static [u64]) -> Self {
        Self { bits, shift: index_shift(bits.len() * 64) }
    }

    fn may_contain(&self, key: WordKey) -> bool {
        let (index, bit) = key.filter_bit(self.shift);
        self.bits[index] & bit != 0
    }
}

/// Hash table from keys to ranks. The slots are numbers of 64 bits, or of 32 bits if their tags are not unique.
struct RankTable<S: 'static> {
    /// Tag and rank in each slot, with linear probing; 0 marks a free slot.
    slots: &'static [S],
    /// Number of hash bits that are not part of the slot index.
    shift: u32,
}

impl<S: Copy + Into<u64> + 'static> RankTable<S> {
    fn new(slots: &'static [S]) -> Self {
        Self { slots, shift: index_shift(slots.len()) }
    }

    /// Returns the rank of the first entry with the key's tag for which `is_right` returns true, or [`NO_RANK`].
    fn find(&self, key: WordKey, is_right: impl Fn(usize) -> bool) -> i32 {
        let mut place = (key.hash >> self.shift) as usize;
        loop {
            let slot: u64 = self.slots[place].into();
            let rank = slot as usize & ((1 << RANK_BITS) - 1);
            match () {
                () if slot == 0 => return NO_RANK,
                () if slot >> RANK_BITS == key.tag && is_right(rank) => return rank as i32,
                () => place = (place + 1) & (self.slots.len() - 1),
            }
        }
    }
}
