//! Vocabulary of an encoding: finds the rank of a byte sequence and of the merge of two words, and tells which bytes
//! can be adjacent in a word.
//!
//! Each word is always merged from the same two words, because merges happen in the order of ranks and all merges
//! before it lie inside the word. So two ranks identify a merge, and the bytes need not be compared.

use std::ops::RangeInclusive;

use super::word_starts::WordStarts;

/// Stands for no word; larger than every rank. Leaves 8 bits free for a position beside the rank.
pub const NO_RANK: i32 = i32::MAX >> 8;

/// Longest word in bytes whose bytes fit into its own hash tag.
const MAX_SHORT_WORD_BYTES: usize = 5;
/// Number of bits of a rank.
const RANK_BITS: u32 = 18;
/// Number of hash bits of the filter; the filter fits into the L2 cache of a core.
const FILTER_BITS: u32 = 22;

/// Words of an encoding with their ranks.
pub struct BpeVocabulary {
    /// Rank of each byte.
    bytes: [i32; 256],
    /// Facts about each pair of bytes.
    pairs: Box<[BytePair]>,
    starts: WordStarts,
    /// Words of 4 to [`MAX_SHORT_WORD_BYTES`] bytes, keyed by their bytes.
    short: RankTable,
    /// Longer words: the first table is keyed by the ranks of a word's two halves, the second by its bytes.
    joined: RankTable,
    whole: RankTable,
    /// Filter with one bit per hash prefix in the tables; most lookups find nothing and end here.
    filter: Box<[u64]>,
    /// All words concatenated, and the start of each word by rank, followed by the end.
    text: Vec<u8>,
    begins: Vec<u32>,
    longest: usize,
}

/// Facts about the words that contain two adjacent bytes.
#[derive(Clone, Copy)]
struct BytePair {
    /// Rank of the two bytes as a word, or [`NO_RANK`].
    rank: i32,
    /// For the last byte of one character and the first byte of the next: the lowest rank of a word that contains both
    /// and starts inside the first character, or ends inside the second.
    starts_inside: i32,
    ends_inside: i32,
    /// Row in [`WordStarts`] of the longer words that start with the two bytes; 0 if there are none.
    row: u16,
    is_inside: bool,
}

impl BpeVocabulary {
    /// Builds the vocabulary from the build script's table.
    pub fn new(table: &[u8]) -> Self {
        let (halves, _) = table.as_chunks::<6>();
        let halves = halves
            .iter()
            .map(|[a, b, c, d, e, f]| [[*a, *b, *c, 0], [*d, *e, *f, 0]].map(|half| u32::from_le_bytes(half) as usize));
        let none = BytePair { rank: NO_RANK, starts_inside: NO_RANK, ends_inside: NO_RANK, row: 0, is_inside: false };
        let (text, begins) = unpack_words(halves.clone());
        let of_length = |lengths: RangeInclusive<u32>| {
            begins.array_windows().filter(|[begin, end]| lengths.contains(&(end - begin))).count()
        };
        let long = of_length(MAX_SHORT_WORD_BYTES as u32 + 1..=u32::MAX);
        let mut words = Self {
            bytes: [NO_RANK; 256],
            pairs: vec![none; 1 << 16].into(),
            starts: WordStarts::default(),
            filter: vec![0; 1 << (FILTER_BITS - 6)].into(),
            short: RankTable::new(of_length(4..=MAX_SHORT_WORD_BYTES as u32)),
            joined: RankTable::new(long),
            whole: RankTable::new(long),
            text,
            begins,
            longest: 0,
        };
        words.set_starts();
        for (rank, halves) in (0..).zip(halves) {
            words.add_word(rank, halves);
        }
        words
    }

    fn set_starts(&mut self) {
        let starts = self.begins.array_windows().filter(|[begin, end]| end - begin >= 3);
        let starts = starts.filter_map(|[begin, _]| self.text[*begin as usize..].first_chunk());
        for [first, second, _] in starts.clone() {
            self.pairs[pair_index(*first, *second)].row = 1;
        }
        let mut rows = 0;
        for pair in self.pairs.iter_mut().filter(|pair| pair.row > 0) {
            rows += 1;
            pair.row = rows;
        }
        self.starts =
            WordStarts::new(starts.map(|[first, second, third]| (self.pairs[pair_index(*first, *second)].row, *third)));
    }

    fn add_word(&mut self, rank: i32, [left, right]: [usize; 2]) {
        let (start, end) = (self.begins[rank as usize] as usize, self.begins[rank as usize + 1] as usize);
        let word = &self.text[start..end];
        self.longest = self.longest.max(word.len());
        if word.len() > 1 {
            let border = start + (self.begins[left + 1] - self.begins[left]) as usize;
            self.pairs[pair_index(self.text[border - 1], self.text[border])].is_inside = true;
        }
        match *word {
            [byte] => self.bytes[usize::from(byte)] = rank,
            [first, second] => self.pairs[pair_index(first, second)].rank = rank,
            [first, second, third] => self.starts.set(self.pairs[pair_index(first, second)].row, third, rank),
            _ => {
                let bytes = WordKey::from_bytes(&self.text, start, end);
                let key = if word.len() > MAX_SHORT_WORD_BYTES {
                    WordKey::from_ranks(left as i32, right as i32)
                } else {
                    bytes
                };
                for (index, bit) in [key.filter_bit(), bytes.filter_bit()] {
                    self.filter[index] |= bit;
                }
                if word.len() > MAX_SHORT_WORD_BYTES {
                    self.joined.insert(key, rank);
                    self.whole.insert(bytes, rank);
                } else {
                    self.short.insert(key, rank);
                }
            }
        }
        let is_inner = |byte: &&u8| (0x80..0xc0).contains(*byte);
        let inner = if word[0].is_ascii() { 1 } else { word.iter().take_while(is_inner).count() };
        if (1..word.len()).contains(&inner) {
            let least = &mut self.pairs[pair_index(word[inner - 1], word[inner])].starts_inside;
            *least = (*least).min(rank);
        }
        let last = word.len() - word.iter().rev().take_while(is_inner).count();
        if last > 1 && (word[last - 1].is_ascii() || last - 1 + utf8_length(word[last - 1]) > word.len()) {
            let least = &mut self.pairs[pair_index(word[last - 2], word[last - 1])].ends_inside;
            *least = (*least).min(rank);
        }
    }

    /// Returns the rank of a byte.
    pub fn byte_rank(&self, byte: u8) -> i32 {
        self.bytes[usize::from(byte)]
    }

    /// Returns the rank of two bytes as a word, or [`NO_RANK`].
    pub fn pair_rank(&self, first: u8, second: u8) -> i32 {
        self.pairs[pair_index(first, second)].rank
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
                if self.may_contain(key) { self.joined.find(key, |_| true) } else { NO_RANK }
            }
        }
    }

    /// Returns the rank of the bytes `start..end` as a word, or [`NO_RANK`].
    pub fn word_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        match end - start {
            1 => self.byte_rank(text[start]),
            2 => self.pair_rank(text[start], text[start + 1]),
            length if length <= MAX_SHORT_WORD_BYTES => self.short_word_rank(text, start, end),
            length if length > self.longest || self.is_no_word_start(text, start) => NO_RANK,
            _ => {
                let key = WordKey::from_bytes(text, start, end);
                let is_right =
                    |rank| self.text[self.begins[rank] as usize..self.begins[rank + 1] as usize] == text[start..end];
                if self.may_contain(key) { self.whole.find(key, is_right) } else { NO_RANK }
            }
        }
    }

    #[inline]
    fn short_word_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let row = self.pairs[pair_index(text[start], text[start + 1])].row;
        match self.starts.find(row, text[start + 2]) {
            None => NO_RANK,
            Some(rank) if end - start == 3 => rank,
            Some(_) => {
                let key = WordKey::from_bytes(text, start, end);
                if self.may_contain(key) { self.short.find(key, |_| true) } else { NO_RANK }
            }
        }
    }

    fn is_no_word_start(&self, text: &[u8], start: usize) -> bool {
        self.starts.find(self.pairs[pair_index(text[start], text[start + 1])].row, text[start + 2]).is_none()
    }

    fn may_contain(&self, key: WordKey) -> bool {
        let (index, bit) = key.filter_bit();
        self.filter[index] & bit != 0
    }

    /// Returns true if the two bytes are adjacent in no word, so that no token spans them.
    pub fn is_border(&self, first: u8, second: u8) -> bool {
        !self.pairs[pair_index(first, second)].is_inside
    }

    /// Returns the lowest rank of a word that contains a part of the character `start..end` and an adjacent byte. Below
    /// this rank, all merges of the character's bytes stay inside it.
    pub fn min_crossing_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let before = if start > 0 { self.pairs[pair_index(text[start - 1], text[start])].ends_inside } else { NO_RANK };
        let behind =
            if end < text.len() { self.pairs[pair_index(text[end - 1], text[end])].starts_inside } else { NO_RANK };
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

/// Returns the byte length of the UTF-8 character that begins with `byte`; 1 if no character begins with it.
pub fn utf8_length(byte: u8) -> usize {
    match byte {
        ..=0xbf => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}

fn pair_index(first: u8, second: u8) -> usize {
    usize::from(u16::from_be_bytes([first, second]))
}

/// Returns all words concatenated and the start of each word, followed by the end.
fn unpack_words(halves: impl Iterator<Item = [usize; 2]>) -> (Vec<u8>, Vec<u32>) {
    let (mut text, mut begins) = (Vec::new(), vec![0]);
    for [left, right] in halves {
        if right >= begins.len() {
            text.push(left as u8);
        } else {
            for half in [left, right] {
                text.extend_from_within(begins[half] as usize..begins[half + 1] as usize);
            }
        }
        begins.push(text.len() as u32);
    }
    (text, begins)
}

/// Search key of a [`RankTable`].
#[derive(Clone, Copy)]
struct WordKey {
    /// Tag with as many bits as remain beside a rank.
    tag: u64,
    hash: u64,
}

impl WordKey {
    /// Returns the key of a merge of two words; its tag is unique.
    fn from_ranks(left: i32, right: i32) -> Self {
        Self::from_tag((left as u64) << RANK_BITS | right as u64)
    }

    /// Returns the key of a word. For a short word the tag is unique: its bytes followed by a 1 bit. For a longer word
    /// the tag is a part of the hash.
    fn from_bytes(text: &[u8], start: usize, end: usize) -> Self {
        let length = end - start;
        if length > MAX_SHORT_WORD_BYTES {
            let hash = hash_word(&text[start..end]);
            return Self { tag: hash >> RANK_BITS | 1 << (8 * MAX_SHORT_WORD_BYTES + 5), hash };
        }
        let eight = match text[start..].first_chunk() {
            Some(eight) => *eight,
            None => {
                let mut eight = [0; 8];
                eight[..length].copy_from_slice(&text[start..end]);
                eight
            }
        };
        let end = 1 << (8 * length);
        Self::from_tag(u64::from_le_bytes(eight) & (end - 1) | end)
    }

    /// Returns the word index and the bit mask of this key in the filter.
    fn filter_bit(self) -> (usize, u64) {
        let bit = self.hash >> (u64::BITS - FILTER_BITS);
        (bit as usize / 64, 1 << (bit % 64))
    }

    fn from_tag(tag: u64) -> Self {
        Self { tag, hash: tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

/// Hashes at least five bytes; the high bits are the best distributed.
fn hash_word(word: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash.rotate_left(29) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    let length = word.len() as u64;
    let Some(last) = word.last_chunk() else {
        let four = |four: Option<&[u8; 4]>| four.map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
        return mix(length, four(word.first_chunk()) | four(word.last_chunk()) << 32);
    };
    let (mut hash, mut rest) = (length, word);
    while let Some((part, behind)) = rest.split_first_chunk() {
        hash = mix(hash, u64::from_le_bytes(*part));
        rest = behind;
    }
    if rest.is_empty() { hash } else { mix(hash, u64::from_le_bytes(*last)) }
}

/// Hash table from keys to ranks.
struct RankTable {
    /// Tag and rank in each slot, with linear probing; 0 marks a free slot.
    slots: Box<[u64]>,
    /// Number of hash bits that are not part of the slot index.
    shift: u32,
}

impl RankTable {
    fn new(words: usize) -> Self {
        let places = (words + words / 4).next_power_of_two();
        Self { slots: vec![0; places].into(), shift: u64::BITS - places.trailing_zeros() }
    }

    fn insert(&mut self, key: WordKey, rank: i32) {
        let mut place = (key.hash >> self.shift) as usize;
        while self.slots[place] != 0 {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = key.tag << RANK_BITS | rank as u64;
    }

    /// Returns the rank of the first entry with the key's tag for which `is_right` returns true, or [`NO_RANK`].
    fn find(&self, key: WordKey, is_right: impl Fn(usize) -> bool) -> i32 {
        let mut place = (key.hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            let rank = slot as usize & ((1 << RANK_BITS) - 1);
            match () {
                () if slot == 0 => return NO_RANK,
                () if slot >> RANK_BITS == key.tag && is_right(rank) => return rank as i32,
                () => place = (place + 1) & (self.slots.len() - 1),
            }
        }
    }
}
