//! Builds the tables by which the program finds the words of an encoding, and writes each to a file, so that no process
//! builds them at run time. `src/tokens/vocabulary_format.rs` describes them.
//!
//! Each word is always merged from the same two words, which are found here once.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::{fs, io};

use tiktoken::CoreBpe;

use crate::vocabulary_format::{
    ENDS_INSIDE_SHIFT, IS_INSIDE, MAX_SHORT_WORD_BYTES, NO_RANK, RANK_BITS, STARTS_INSIDE_SHIFT, WordKey, index_shift,
    pair_index, start_position, utf8_length,
};

/// Least number of bits of the filter per key. At most a tenth of them is set, so nine of ten lookups that find nothing
/// end at the filter.
const FILTER_BITS_PER_KEY: usize = 10;

/// Order in which the target stores the bytes of a number.
#[derive(Clone, Copy)]
pub enum ByteOrder {
    Little,
    Big,
}

/// Tables of an encoding.
pub struct VocabularyTables {
    bytes: [i32; 256],
    pairs: Vec<BytePair>,
    rows: Vec<u16>,
    starts: Vec<StartRow>,
    start_ranks: Vec<i32>,
    short: RankSlots,
    joined: RankSlots,
    whole: RankSlots,
    filter: Vec<u64>,
    begins: Vec<u32>,
    text: Vec<u8>,
}

/// Facts about the words that contain two adjacent bytes.
#[derive(Clone, Copy)]
struct BytePair {
    rank: i32,
    starts_inside: i32,
    ends_inside: i32,
    is_inside: bool,
}

/// For the words that start with the same two bytes: a bit per third byte, and the number of starts before each group of
/// 64 bits.
#[derive(Clone, Copy, Default)]
struct StartRow {
    bits: [u64; 4],
    before: [u32; 4],
}

/// Slots of a hash table from keys to ranks, at most four fifths of them occupied.
struct RankSlots(Vec<u64>);

impl VocabularyTables {
    /// Builds the tables of an encoding.
    pub fn new(core: &CoreBpe) -> Self {
        let words: Vec<Vec<u8>> = (0..core.vocab_size() as u32).map(|rank| core.decode(&[rank])).collect();
        assert!(words.len() <= NO_RANK as usize, "a rank of {RANK_BITS} bits is too small for {} words", words.len());
        let ranks: HashMap<&[u8], i32> = words.iter().map(Vec::as_slice).zip(0..).collect();
        let mut tables = Self::with_starts(&words);
        for (rank, word) in (0..).zip(&words) {
            tables.add_word(word, rank, &ranks);
        }
        tables
    }

    /// Returns tables with all word starts and without words.
    fn with_starts(words: &[Vec<u8>]) -> Self {
        let of_length =
            |lengths: RangeInclusive<usize>| words.iter().filter(|word| lengths.contains(&word.len())).count();
        let (short, long) = (of_length(4..=MAX_SHORT_WORD_BYTES), of_length(MAX_SHORT_WORD_BYTES + 1..=usize::MAX));
        let filter_bits = ((short + 2 * long) * FILTER_BITS_PER_KEY).next_power_of_two();
        let none = BytePair { rank: NO_RANK, starts_inside: NO_RANK, ends_inside: NO_RANK, is_inside: false };
        let mut tables = Self {
            bytes: [NO_RANK; 256],
            pairs: vec![none; 1 << 16],
            rows: vec![0; 1 << 16],
            starts: Vec::new(),
            start_ranks: Vec::new(),
            short: RankSlots::new(short),
            joined: RankSlots::new(long),
            whole: RankSlots::new(long),
            filter: vec![0; filter_bits / 64],
            begins: vec![0],
            text: Vec::new(),
        };
        tables.set_starts(words);
        tables
    }

    fn set_starts(&mut self, words: &[Vec<u8>]) {
        let starts = words.iter().filter_map(|word| word.first_chunk::<3>());
        for &[first, second, _] in starts.clone() {
            self.rows[pair_index(first, second)] = 1;
        }
        let mut last = 0;
        for row in self.rows.iter_mut().filter(|row| **row > 0) {
            last += 1;
            *row = last;
        }
        self.starts = vec![StartRow::default(); usize::from(last) + 1];
        for &[first, second, third] in starts {
            let row = usize::from(self.rows[pair_index(first, second)]);
            self.starts[row].bits[usize::from(third / 64)] |= 1 << (third % 64);
        }
        let mut count = 0;
        for row in &mut self.starts {
            for (bits, before) in row.bits.iter().zip(&mut row.before) {
                *before = count;
                count += bits.count_ones();
            }
        }
        self.start_ranks = vec![NO_RANK; count as usize];
    }

    fn add_word(&mut self, word: &[u8], rank: i32, ranks: &HashMap<&[u8], i32>) {
        if word.len() > MAX_SHORT_WORD_BYTES {
            self.text.extend_from_slice(word);
        }
        self.begins.push(self.text.len() as u32);
        if let [byte] = *word {
            self.bytes[usize::from(byte)] = rank;
            return;
        }
        let border = find_last_merge(word, ranks);
        self.pairs[pair_index(word[border - 1], word[border])].is_inside = true;
        match *word {
            [first, second] => self.pairs[pair_index(first, second)].rank = rank,
            [first, second, third] => {
                let row = &self.starts[usize::from(self.rows[pair_index(first, second)])];
                let position = start_position(&row.bits, &row.before, third).expect("a start");
                self.start_ranks[position] = rank;
            }
            _ => {
                let bytes = WordKey::from_bytes(word, 0, word.len());
                self.add_to_filter(bytes);
                if word.len() > MAX_SHORT_WORD_BYTES {
                    let (left, right) = word.split_at(border);
                    let halves = WordKey::from_ranks(ranks[left], ranks[right]);
                    self.add_to_filter(halves);
                    self.joined.insert(halves, rank);
                    self.whole.insert(bytes, rank);
                } else {
                    self.short.insert(bytes, rank);
                }
            }
        }
        self.add_crossings(word, rank);
    }

    fn add_to_filter(&mut self, key: WordKey) {
        let (index, bit) = key.filter_bit(index_shift(self.filter.len() * 64));
        self.filter[index] |= bit;
    }

    /// Records the rank of a word that starts or ends inside a character.
    fn add_crossings(&mut self, word: &[u8], rank: i32) {
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

    /// Writes each table to a file of its own, `ENCODING.TABLE`.
    pub fn write(&self, folder: &Path, encoding: &str, order: ByteOrder) -> io::Result<()> {
        let write = |table: &str, bytes: &[u8]| fs::write(folder.join(format!("{encoding}.{table}")), bytes);
        let ranks = |ranks: &[i32]| order.to_bytes(ranks.iter().map(|rank| *rank as u64), 4);
        write("bytes", &ranks(&self.bytes))?;
        write("pairs", &order.to_bytes(self.pairs.iter().map(|pair| pair.to_number()), 8))?;
        write("rows", &order.to_bytes(self.rows.iter().map(|row| u64::from(*row)), 2))?;
        let to_row = |row: &StartRow| [order.to_bytes(row.bits, 8), order.to_bytes(row.before.map(u64::from), 4)];
        write("starts", &self.starts.iter().flat_map(to_row).flatten().collect::<Vec<u8>>())?;
        write("start_ranks", &ranks(&self.start_ranks))?;
        for (table, slots, size) in [("short", &self.short, 8), ("joined", &self.joined, 8), ("whole", &self.whole, 4)]
        {
            write(table, &order.to_bytes(slots.0.iter().copied(), size))?;
        }
        write("filter", &order.to_bytes(self.filter.iter().copied(), 8))?;
        write("begins", &order.to_bytes(self.begins.iter().map(|begin| u64::from(*begin)), 4))?;
        write("text", &self.text)
    }
}

impl BytePair {
    fn to_number(self) -> u64 {
        let is_inside = if self.is_inside { IS_INSIDE } else { 0 };
        self.rank as u64
            | (self.starts_inside as u64) << STARTS_INSIDE_SHIFT
            | (self.ends_inside as u64) << ENDS_INSIDE_SHIFT
            | is_inside
    }
}

impl RankSlots {
    fn new(words: usize) -> Self {
        Self(vec![0; (words + words / 4).next_power_of_two()])
    }

    fn insert(&mut self, key: WordKey, rank: i32) {
        let places = self.0.len();
        let mut place = (key.hash >> index_shift(places)) as usize;
        while self.0[place] != 0 {
            place = (place + 1) & (places - 1);
        }
        self.0[place] = key.tag << RANK_BITS | rank as u64;
    }
}

impl ByteOrder {
    /// Returns numbers in `size` bytes each.
    fn to_bytes(self, numbers: impl IntoIterator<Item = u64>, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            assert!(size == 8 || number < 1 << (8 * size), "{number} takes more than {size} bytes");
            match self {
                Self::Little => bytes.extend_from_slice(&number.to_le_bytes()[..size]),
                Self::Big => bytes.extend_from_slice(&number.to_be_bytes()[8 - size..]),
            }
        }
        bytes
    }
}

/// Returns the position of the last merge in a word of at least two bytes.
fn find_last_merge(word: &[u8], ranks: &HashMap<&[u8], i32>) -> usize {
    let mut ends: Vec<usize> = (0..=word.len()).collect();
    while ends.len() > 3 {
        let pairs = ends.windows(3).enumerate();
        let ranked = pairs.filter_map(|(at, ends)| Some((ranks.get(&word[ends[0]..ends[2]])?, at)));
        let Some((_, at)) = ranked.min() else { panic!("{word:?} is not made of two words") };
        ends.remove(at + 1);
    }
    ends[1]
}
