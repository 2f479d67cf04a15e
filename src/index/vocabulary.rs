//! Maps identifiers and their parts to small numbers while one query is answered.
//!
//! - A number is valid only for the [`Vocabulary`] that returned it.
//! - The same texts in the same order get the same numbers.

use std::ops::Range;

use super::interner::Interner;
use super::words::{for_each_part, identifiers};

/// Number of an identifier or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(pub u32);

/// Interned identifiers with their parts.
#[derive(Debug, Default)]
pub struct Vocabulary {
    names: Interner,
    parts: Vec<Word>,
    /// For each word: the range of its parts in `parts`.
    places: Vec<Range<u32>>,
}

/// Values by word in a vector; avoids hashing, because the ranking reads them for each word of each file.
#[derive(Debug, Clone, Default)]
pub struct WordMap<T>(Vec<T>);

impl<T: Copy + Default> WordMap<T> {
    pub fn get(&self, word: Word) -> T {
        self.0.get(word.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the mutable value of a word and grows the vector if necessary.
    pub fn get_mut(&mut self, word: Word) -> &mut T {
        let at = word.0 as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, T::default());
        }
        &mut self.0[at]
    }
}

impl<T> IntoIterator for WordMap<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Vocabulary {
    /// Returns the number of an identifier; a new identifier gets the next number.
    pub fn intern(&mut self, text: &str) -> Word {
        let word = Word(self.names.intern(text));
        if word.0 as usize == self.places.len() {
            self.places.push(0..0);
            let mut parts: Vec<Word> = Vec::new();
            match is_single_part(text) {
                true => parts.push(word),
                false => for_each_part(text, |part| parts.push(self.intern(part))),
            }
            let start = self.parts.len() as u32;
            self.parts.extend(parts);
            self.places[word.0 as usize] = start..self.parts.len() as u32;
        }
        word
    }

    /// Iterates over all interned words.
    pub fn words(&self) -> impl Iterator<Item = Word> + use<> {
        (0..self.places.len() as u32).map(Word)
    }

    /// Returns the number of an identifier that is already interned.
    pub fn find(&self, text: &str) -> Option<Word> {
        self.names.find(text).map(Word)
    }

    pub fn name(&self, word: Word) -> &str {
        self.names.resolve(word.0)
    }

    /// Returns the parts of a word: `max_line` and `MaxLine` have the parts `max` and `line`. A word of one part is its
    /// own part.
    pub fn parts(&self, word: Word) -> &[Word] {
        let place = self.places.get(word.0 as usize).cloned().unwrap_or_default();
        self.parts.get(place.start as usize..place.end as usize).unwrap_or_default()
    }

    /// Interns the identifiers of a line.
    pub fn intern_line(&mut self, line: &str) -> Vec<Word> {
        identifiers(line).map(|name| self.intern(name)).collect()
    }

    /// Interns the identifiers of a path and returns their parts, without duplicates.
    pub fn intern_path(&mut self, path: &str) -> Vec<Word> {
        let words = self.intern_line(path);
        let mut parts: Vec<Word> = words.iter().flat_map(|word| self.parts(*word).to_vec()).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

/// Returns true if an identifier is its only part.
fn is_single_part(identifier: &str) -> bool {
    identifier.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}
