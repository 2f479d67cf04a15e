//! Inverted index of a segment: its sorted words and, for each word, the files that contain, declare and use it.
//!
//! Each section is encoded and decoded by the same type: [`WordTable`] and [`Postings`].

use std::ops::Range;

use super::codec::{PackedReader, PackedWriter};
use super::segment::NO_NUMBER;
use crate::index::interner::Interner;

/// How a file has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostingRole {
    /// The text contains the word, in the form of [`split_words`](super::split_words).
    Text,
    /// The file declares the name, and other code can use it.
    Declaration,
    /// The file uses the name.
    Use,
}

impl PostingRole {
    pub const ALL: [Self; 3] = [Self::Text, Self::Declaration, Self::Use];
}

/// Words sorted by their bytes. The number of a word is its position.
#[derive(Debug)]
pub struct WordTable {
    /// End of each word in `bytes`.
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

impl WordTable {
    /// Builds the table of the interned strings for which `is_used` is true. Also returns the word number of each
    /// interned string, [`NO_NUMBER`] for the others.
    pub fn from_interned(interner: &Interner, is_used: &[bool]) -> (Self, Vec<u32>) {
        let used = (0..interner.len() as u32).filter(|number| is_used[*number as usize]);
        let mut sorted: Vec<(u64, u32)> = used.map(|number| (sort_prefix(interner.bytes(number)), number)).collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| interner.bytes(a.1).cmp(interner.bytes(b.1))));
        let mut numbers = vec![NO_NUMBER; interner.len()];
        let mut table = Self { ends: Vec::with_capacity(sorted.len()), bytes: Vec::new() };
        for (at, (_, number)) in sorted.iter().enumerate() {
            numbers[*number as usize] = at as u32;
            table.bytes.extend_from_slice(interner.bytes(*number));
            table.ends.push(table.bytes.len() as u32);
        }
        (table, numbers)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes_of(&self, number: usize) -> &[u8] {
        self.bytes.get(range_at(&self.ends, number)).unwrap_or_default()
    }

    /// Returns a word; empty for an unknown number.
    pub fn get(&self, number: u32) -> &str {
        std::str::from_utf8(self.bytes_of(number as usize)).unwrap_or_default()
    }

    /// Returns the number of a word.
    pub fn find(&self, word: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.bytes_of(middle).cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle as u32),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Lists of files by word: for each word, one ascending list per [`PostingRole`].
#[derive(Debug)]
pub struct Postings {
    /// End of the lists of each word in `bytes`.
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

impl Postings {
    /// Encodes (word, file) pairs, one vector per role; the files of a word are ascending. `words` is the number of words.
    pub fn encode(pairs: [Vec<(u32, u32)>; 3], words: usize) -> Self {
        let groups = pairs.map(|pairs| FilesByWord::new(pairs, words));
        let mut ends = Vec::with_capacity(words);
        let mut writer = PackedWriter::default();
        for word in 0..words {
            for group in &groups {
                writer.write_ascending(group.files(word).iter().copied());
            }
            ends.push(writer.len() as u32);
        }
        Self { ends, bytes: writer.finish() }
    }

    /// Calls `found` for each file that has `word` in `role`, in ascending order.
    pub fn for_each_file(&self, word: u32, role: PostingRole, found: &mut dyn FnMut(u32)) {
        let mut lists = PackedReader(self.bytes.get(range_at(&self.ends, word as usize)).unwrap_or_default());
        for known in PostingRole::ALL {
            let is_read = match known == role {
                true => lists.read_ascending(found).is_some(),
                false => lists.read_ascending(&mut |_| {}).is_some(),
            };
            if known == role || !is_read {
                return;
            }
        }
    }
}

/// Returns the range that ends at `ends[at]` and starts at the end before it.
fn range_at(ends: &[u32], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    start as usize..ends.get(at).copied().unwrap_or(start) as usize
}

/// Returns the first eight bytes as a big-endian number, padded with zeros. The numbers sort like the bytes.
fn sort_prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// Files grouped by word; the original order is kept within a word.
struct FilesByWord {
    files: Vec<u32>,
    ends: Vec<u32>,
}

impl FilesByWord {
    /// Groups (word, file) pairs with a counting sort, in linear time.
    fn new(pairs: Vec<(u32, u32)>, words: usize) -> Self {
        let mut ends = vec![0u32; words];
        for (word, _) in &pairs {
            ends[*word as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            // Holds the start of the word's group until all values are placed.
            sum += std::mem::replace(end, sum);
        }
        let mut files = vec![0; pairs.len()];
        for (word, file) in pairs {
            let end = &mut ends[word as usize];
            files[*end as usize] = file;
            *end += 1;
        }
        Self { files, ends }
    }

    fn files(&self, word: usize) -> &[u32] {
        &self.files[range_at(&self.ends, word)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_files_are_found_again() {
        let mut interner = Interner::default();
        let numbers =
            ["parse", "a_very_long_name", "unused", "a_very_long_word", "é"].map(|word| interner.intern(word));
        let (words, ranks) = WordTable::from_interned(&interner, &[true, true, false, true, true]);
        let sorted: Vec<&str> = (0..words.len() as u32).map(|number| words.get(number)).collect();
        assert_eq!(sorted, ["a_very_long_name", "a_very_long_word", "parse", "é"]);
        let rank = |at: usize| ranks[numbers[at] as usize];
        assert_eq!((words.find("parse"), words.find("é"), words.find("unused")), (Some(rank(0)), Some(rank(4)), None));
        assert_eq!((rank(2), words.get(NO_NUMBER)), (NO_NUMBER, ""));

        let pairs = [vec![(2, 0), (3, 0), (2, 700)], vec![(0, 5)], vec![(2, 1), (2, 2), (2, u32::MAX)]];
        let postings = Postings::encode(pairs, words.len());
        let files = |word, role| {
            let mut files = Vec::new();
            postings.for_each_file(word, role, &mut |file| files.push(file));
            files
        };
        assert_eq!(PostingRole::ALL.map(|role| files(2, role)), [vec![0, 700], vec![], vec![1, 2, u32::MAX]]);
        assert_eq!(PostingRole::ALL.map(|role| files(0, role)), [vec![], vec![5], vec![]]);
        assert_eq!(files(1, PostingRole::Use), [0; 0]);
        assert_eq!(files(99, PostingRole::Text), [0; 0]);
    }
}
