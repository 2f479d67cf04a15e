//! The words of an encoding: which one two others are together, what two bytes next to each other may become, and which of
//! them some bytes are.
//!
//! Each word is made of two others, always the same ones: words are made in the order of their ranks, and all that joins the
//! bytes of one before it is made lies inside it. So tokens are told by rank alone, and no byte is looked at to join them.

use std::ops::RangeInclusive;

use super::word_starts::WordStarts;

/// No word. All ranks are less, and a byte is left for whoever sorts by ranks and places.
pub const NO_RANK: i32 = i32::MAX >> 8;

/// Words up to this length, in bytes, are their own tag.
const MAX_SHORT_WORD_BYTES: usize = 5;
/// The bits of a rank.
const RANK_BITS: u32 = 18;
/// How many bits of a hash say whether anything may have it: as many as fit into the second cache of a core.
const FILTER_BITS: u32 = 22;

pub struct BpeVocabulary {
    /// By byte: its rank.
    bytes: [i32; 256],
    /// By two bytes.
    pairs: Box<[BytePair]>,
    starts: WordStarts,
    /// By the bytes of words of four to [`SHORT`].
    short: RankTable,
    /// By the ranks of two words that have more bytes together, and by these bytes.
    joined: RankTable,
    whole: RankTable,
    /// A bit for each hash in the tables, as far as it goes: most of what is looked for is not there.
    filter: Box<[u64]>,
    /// All words, and by rank where each begins; and the end.
    text: Vec<u8>,
    begins: Vec<u32>,
    longest: usize,
}

/// What words have two bytes next to each other.
#[derive(Clone, Copy)]
struct BytePair {
    /// The one that they are, or [`NONE`].
    rank: i32,
    /// Of the last byte of a character and the first one of another character: the least rank of a word that has both, and
    /// starts inside the first character; or ends inside the second one.
    starts_inside: i32,
    ends_inside: i32,
    /// Those that start with both and go on, in [`Starts`]; 0 if there are none.
    row: u16,
    is_inside: bool,
}

impl BpeVocabulary {
    /// From the table of the build script.
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

    /// The rank of a byte.
    pub fn byte_rank(&self, byte: u8) -> i32 {
        self.bytes[usize::from(byte)]
    }

    /// The rank of the word that two bytes are, or [`NONE`].
    pub fn pair_rank(&self, first: u8, second: u8) -> i32 {
        self.pairs[pair_index(first, second)].rank
    }

    /// The rank of the word that two words are together, or [`NONE`]: by their bytes in a piece, and by their ranks.
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

    /// The rank of the word that a text's bytes from a place to another one are, or [`NONE`].
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

    /// Whether no word has two bytes next to each other, so that no token goes from one to the other.
    pub fn is_border(&self, first: u8, second: u8) -> bool {
        !self.pairs[pair_index(first, second)].is_inside
    }

    /// The least rank of a word that has a part of a character and something beside it: up to that rank, all that joins its
    /// parts is inside it.
    pub fn min_crossing_rank(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let before = if start > 0 { self.pairs[pair_index(text[start - 1], text[start])].ends_inside } else { NO_RANK };
        let behind =
            if end < text.len() { self.pairs[pair_index(text[end - 1], text[end])].starts_inside } else { NO_RANK };
        before.min(behind)
    }

    /// Whether a character of many bytes, if one begins here, is not joined with what is around it: it is no word, and no word
    /// has a part of it and something beside it.
    pub fn is_apart(&self, text: &[u8], start: usize, end: usize) -> bool {
        start + 1 < end
            && end <= text.len()
            && self.min_crossing_rank(text, start, end) == NO_RANK
            && self.word_rank(text, start, end) == NO_RANK
    }
}

/// The length of the character that begins with a byte; 1 for one that begins none.
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

/// All words, one behind the other, and where each begins; and the end.
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

/// What is looked for in a [`Table`].
#[derive(Clone, Copy)]
struct WordKey {
    /// As many bits as there are above a rank.
    tag: u64,
    hash: u64,
}

impl WordKey {
    /// No others have this tag.
    fn from_ranks(left: i32, right: i32) -> Self {
        Self::from_tag((left as u64) << RANK_BITS | right as u64)
    }

    /// The bytes of a short word with a 1 behind them, which no other short one has; or a part of the hash.
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

    /// The bit of its hash, and among which 64 it is.
    fn filter_bit(self) -> (usize, u64) {
        let bit = self.hash >> (u64::BITS - FILTER_BITS);
        (bit as usize / 64, 1 << (bit % 64))
    }

    fn from_tag(tag: u64) -> Self {
        Self { tag, hash: tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

/// A hash of five bytes or more, whose first bits are the best.
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

/// Ranks by key.
struct RankTable {
    /// A tag, and behind it the rank: at the place of the hash, or the next free one. 0 is free.
    slots: Box<[u64]>,
    /// How many bits of a hash are not of its place.
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

    /// The rank of the first word that has a key's tag and is the right one, or [`NONE`].
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
