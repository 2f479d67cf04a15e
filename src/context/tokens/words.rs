//! The words of an encoding: which one two others are together, what two bytes next to each other may become, and which of
//! them some bytes are.
//!
//! Each word is made of two others, always the same ones: words are made in the order of their ranks, and all that joins the
//! bytes of one before it is made lies inside it. So tokens are told by rank alone, and no byte is looked at to join them.

use std::ops::RangeInclusive;

use super::starts::Starts;

/// No word. All ranks are less, and a byte is left for whoever sorts by ranks and places.
pub const NONE: i32 = i32::MAX >> 8;

/// Words up to this length, in bytes, are their own tag.
const SHORT: usize = 5;
/// The bits of a rank.
const RANK: u32 = 18;
/// How many bits of a hash say whether anything may have it: as many as fit into the second cache of a core.
const MAYBE: u32 = 22;

pub struct Words {
    /// By byte: its rank.
    bytes: [i32; 256],
    /// By two bytes.
    pairs: Box<[Pair]>,
    starts: Starts,
    /// By the bytes of words of four to [`SHORT`].
    short: Table,
    /// By the ranks of two words that have more bytes together, and by these bytes.
    joined: Table,
    whole: Table,
    /// A bit for each hash in the tables, as far as it goes: most of what is looked for is not there.
    maybe: Box<[u64]>,
    /// All words, and by rank where each begins; and the end.
    text: Vec<u8>,
    begins: Vec<u32>,
    longest: usize,
}

/// What words have two bytes next to each other.
#[derive(Clone, Copy)]
struct Pair {
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

impl Words {
    /// From the table of the build script.
    pub fn new(table: &[u8]) -> Self {
        let (halves, _) = table.as_chunks::<6>();
        let halves = halves
            .iter()
            .map(|[a, b, c, d, e, f]| [[*a, *b, *c, 0], [*d, *e, *f, 0]].map(|half| u32::from_le_bytes(half) as usize));
        let none = Pair { rank: NONE, starts_inside: NONE, ends_inside: NONE, row: 0, is_inside: false };
        let (text, begins) = unpack(halves.clone());
        let of_length = |lengths: RangeInclusive<u32>| {
            begins.array_windows().filter(|[begin, end]| lengths.contains(&(end - begin))).count()
        };
        let long = of_length(SHORT as u32 + 1..=u32::MAX);
        let mut words = Self {
            bytes: [NONE; 256],
            pairs: vec![none; 1 << 16].into(),
            starts: Starts::default(),
            maybe: vec![0; 1 << (MAYBE - 6)].into(),
            short: Table::new(of_length(4..=SHORT as u32)),
            joined: Table::new(long),
            whole: Table::new(long),
            text,
            begins,
            longest: 0,
        };
        words.set_starts();
        for (rank, halves) in (0..).zip(halves) {
            words.add(rank, halves);
        }
        words
    }

    fn set_starts(&mut self) {
        let starts = self.begins.array_windows().filter(|[begin, end]| end - begin >= 3);
        let starts = starts.filter_map(|[begin, _]| self.text[*begin as usize..].first_chunk());
        for [first, second, _] in starts.clone() {
            self.pairs[place(*first, *second)].row = 1;
        }
        let mut rows = 0;
        for pair in self.pairs.iter_mut().filter(|pair| pair.row > 0) {
            rows += 1;
            pair.row = rows;
        }
        self.starts =
            Starts::new(starts.map(|[first, second, third]| (self.pairs[place(*first, *second)].row, *third)));
    }

    fn add(&mut self, rank: i32, [left, right]: [usize; 2]) {
        let (start, end) = (self.begins[rank as usize] as usize, self.begins[rank as usize + 1] as usize);
        let word = &self.text[start..end];
        self.longest = self.longest.max(word.len());
        if word.len() > 1 {
            let border = start + (self.begins[left + 1] - self.begins[left]) as usize;
            self.pairs[place(self.text[border - 1], self.text[border])].is_inside = true;
        }
        match *word {
            [byte] => self.bytes[usize::from(byte)] = rank,
            [first, second] => self.pairs[place(first, second)].rank = rank,
            [first, second, third] => self.starts.set(self.pairs[place(first, second)].row, third, rank),
            _ => {
                let bytes = Key::of_bytes(&self.text, start, end);
                let key = if word.len() > SHORT { Key::of_two(left as i32, right as i32) } else { bytes };
                for (index, bit) in [key.bit(), bytes.bit()] {
                    self.maybe[index] |= bit;
                }
                if word.len() > SHORT {
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
            let least = &mut self.pairs[place(word[inner - 1], word[inner])].starts_inside;
            *least = (*least).min(rank);
        }
        let last = word.len() - word.iter().rev().take_while(is_inner).count();
        if last > 1 && (word[last - 1].is_ascii() || last - 1 + length(word[last - 1]) > word.len()) {
            let least = &mut self.pairs[place(word[last - 2], word[last - 1])].ends_inside;
            *least = (*least).min(rank);
        }
    }

    /// The rank of a byte.
    pub fn byte(&self, byte: u8) -> i32 {
        self.bytes[usize::from(byte)]
    }

    /// The rank of the word that two bytes are, or [`NONE`].
    pub fn pair(&self, first: u8, second: u8) -> i32 {
        self.pairs[place(first, second)].rank
    }

    /// The rank of the word that two words are together, or [`NONE`]: by their bytes in a piece, and by their ranks.
    #[inline]
    pub fn joined(&self, piece: &[u8], [start, end]: [usize; 2], [left, right]: [i32; 2]) -> i32 {
        match end - start {
            2 => self.pair(piece[start], piece[start + 1]),
            length if length <= SHORT => self.short(piece, start, end),
            _ if self.begins_no_word(piece, start) => NONE,
            _ => {
                let key = Key::of_two(left, right);
                if self.may_be(key) { self.joined.find(key, |_| true) } else { NONE }
            }
        }
    }

    /// The rank of the word that a text's bytes from a place to another one are, or [`NONE`].
    pub fn whole(&self, text: &[u8], start: usize, end: usize) -> i32 {
        match end - start {
            1 => self.byte(text[start]),
            2 => self.pair(text[start], text[start + 1]),
            length if length <= SHORT => self.short(text, start, end),
            length if length > self.longest || self.begins_no_word(text, start) => NONE,
            _ => {
                let key = Key::of_bytes(text, start, end);
                let is_right =
                    |rank| self.text[self.begins[rank] as usize..self.begins[rank + 1] as usize] == text[start..end];
                if self.may_be(key) { self.whole.find(key, is_right) } else { NONE }
            }
        }
    }

    #[inline]
    fn short(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let row = self.pairs[place(text[start], text[start + 1])].row;
        match self.starts.find(row, text[start + 2]) {
            None => NONE,
            Some(rank) if end - start == 3 => rank,
            Some(_) => {
                let key = Key::of_bytes(text, start, end);
                if self.may_be(key) { self.short.find(key, |_| true) } else { NONE }
            }
        }
    }

    fn begins_no_word(&self, text: &[u8], start: usize) -> bool {
        self.starts.find(self.pairs[place(text[start], text[start + 1])].row, text[start + 2]).is_none()
    }

    fn may_be(&self, key: Key) -> bool {
        let (index, bit) = key.bit();
        self.maybe[index] & bit != 0
    }

    /// Whether no word has two bytes next to each other, so that no token goes from one to the other.
    pub fn is_border(&self, first: u8, second: u8) -> bool {
        !self.pairs[place(first, second)].is_inside
    }

    /// The least rank of a word that has a part of a character and something beside it: up to that rank, all that joins its
    /// parts is inside it.
    pub fn across(&self, text: &[u8], start: usize, end: usize) -> i32 {
        let before = if start > 0 { self.pairs[place(text[start - 1], text[start])].ends_inside } else { NONE };
        let behind = if end < text.len() { self.pairs[place(text[end - 1], text[end])].starts_inside } else { NONE };
        before.min(behind)
    }

    /// Whether a character of many bytes, if one begins here, is not joined with what is around it: it is no word, and no word
    /// has a part of it and something beside it.
    pub fn is_apart(&self, text: &[u8], start: usize, end: usize) -> bool {
        start + 1 < end
            && end <= text.len()
            && self.across(text, start, end) == NONE
            && self.whole(text, start, end) == NONE
    }
}

/// The length of the character that begins with a byte; 1 for one that begins none.
pub fn length(byte: u8) -> usize {
    match byte {
        ..=0xbf => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}

fn place(first: u8, second: u8) -> usize {
    usize::from(u16::from_be_bytes([first, second]))
}

/// All words, one behind the other, and where each begins; and the end.
fn unpack(halves: impl Iterator<Item = [usize; 2]>) -> (Vec<u8>, Vec<u32>) {
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
struct Key {
    /// As many bits as there are above a rank.
    tag: u64,
    hash: u64,
}

impl Key {
    /// No others have this tag.
    fn of_two(left: i32, right: i32) -> Self {
        Self::of_tag((left as u64) << RANK | right as u64)
    }

    /// The bytes of a short word with a 1 behind them, which no other short one has; or a part of the hash.
    fn of_bytes(text: &[u8], start: usize, end: usize) -> Self {
        let length = end - start;
        if length > SHORT {
            let hash = hash(&text[start..end]);
            return Self { tag: hash >> RANK | 1 << (8 * SHORT + 5), hash };
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
        Self::of_tag(u64::from_le_bytes(eight) & (end - 1) | end)
    }

    /// The bit of its hash, and among which 64 it is.
    fn bit(self) -> (usize, u64) {
        let bit = self.hash >> (u64::BITS - MAYBE);
        (bit as usize / 64, 1 << (bit % 64))
    }

    fn of_tag(tag: u64) -> Self {
        Self { tag, hash: tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

/// A hash of five bytes or more, whose first bits are the best.
fn hash(word: &[u8]) -> u64 {
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
struct Table {
    /// A tag, and behind it the rank: at the place of the hash, or the next free one. 0 is free.
    slots: Box<[u64]>,
    /// How many bits of a hash are not of its place.
    shift: u32,
}

impl Table {
    fn new(words: usize) -> Self {
        let places = (words + words / 4).next_power_of_two();
        Self { slots: vec![0; places].into(), shift: u64::BITS - places.trailing_zeros() }
    }

    fn insert(&mut self, key: Key, rank: i32) {
        let mut place = (key.hash >> self.shift) as usize;
        while self.slots[place] != 0 {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = key.tag << RANK | rank as u64;
    }

    /// The rank of the first word that has a key's tag and is the right one, or [`NONE`].
    fn find(&self, key: Key, is_right: impl Fn(usize) -> bool) -> i32 {
        let mut place = (key.hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            let rank = slot as usize & ((1 << RANK) - 1);
            match () {
                () if slot == 0 => return NONE,
                () if slot >> RANK == key.tag && is_right(rank) => return rank as i32,
                () => place = (place + 1) & (self.slots.len() - 1),
            }
        }
    }
}
