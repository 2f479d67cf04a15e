//! Maps strings to numbers without one allocation per string.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Interned strings, numbered from 0 in order of insertion.
#[derive(Debug)]
pub struct Interner {
    /// Random hash seed, so that nobody can prepare strings that collide.
    seed: u64,
    bytes: Vec<u8>,
    /// End offset of each string in `bytes`.
    ends: Vec<u32>,
    /// Hash table, see [`InternerSlot`]; its length is a power of two, and at most half of it is used.
    table: Vec<InternerSlot>,
}

/// Slot of the hash table. The tag rejects most other strings without comparing bytes.
#[derive(Debug, Clone, Copy, Default)]
struct InternerSlot {
    /// Upper half of the string's hash.
    tag: u32,
    /// Number of the string plus one; 0 for a free slot.
    taken: u32,
}

impl Default for Interner {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(0), bytes: Vec::new(), ends: Vec::new(), table: Vec::new() }
    }
}

impl Interner {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns an interned string.
    ///
    /// # Panics
    /// Panics if no string has this number.
    pub fn resolve(&self, number: u32) -> &str {
        std::str::from_utf8(self.bytes(number)).unwrap_or_default()
    }

    /// Returns the bytes of an interned string.
    ///
    /// # Panics
    /// Panics if no string has this number.
    pub fn bytes(&self, number: u32) -> &[u8] {
        self.bytes.get(self.byte_range(number)).unwrap_or_default()
    }

    fn byte_range(&self, number: u32) -> Range<usize> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[at] as usize
    }

    /// Returns the number of an interned string; `None` if the string is not interned.
    pub fn find(&self, text: &str) -> Option<u32> {
        (!self.table.is_empty()).then(|| self.find_slot(text, hash_bytes(self.seed, text.as_bytes())).1)?
    }

    /// Returns the slot of a string (or the free slot for it) and its number.
    fn find_slot(&self, text: &str, hash: u64) -> (usize, Option<u32>) {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let InternerSlot { tag, taken } = self.table[at];
            if taken == 0 {
                return (at, None);
            }
            if tag == upper_half(hash) && self.bytes[self.byte_range(taken - 1)] == *text.as_bytes() {
                return (at, Some(taken - 1));
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the number of a string and interns a new one.
    pub fn intern(&mut self, text: &str) -> u32 {
        if self.table.len() < (self.ends.len() + 1) * 2 {
            self.grow();
        }
        let hash = hash_bytes(self.seed, text.as_bytes());
        let (slot, known) = self.find_slot(text, hash);
        if let Some(known) = known {
            return known;
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len() as u32);
        self.table[slot] = InternerSlot { tag: upper_half(hash), taken: self.ends.len() as u32 };
        self.ends.len() as u32 - 1
    }

    fn grow(&mut self) {
        let mut table = vec![InternerSlot::default(); (self.table.len() * 2).max(1 << 12)];
        let mask = table.len() - 1;
        for number in 0..self.ends.len() as u32 {
            let hash = hash_bytes(self.seed, &self.bytes[self.byte_range(number)]);
            let mut slot = hash as usize & mask;
            while table[slot].taken != 0 {
                slot = (slot + 1) & mask;
            }
            table[slot] = InternerSlot { tag: upper_half(hash), taken: number + 1 };
        }
        self.table = table;
    }
}

fn upper_half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Hashes eight bytes at a time by multiplying and folding.
fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed ^ bytes.len() as u64;
    let mut mix = |word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        state = (product as u64) ^ ((product >> 64) as u64);
    };
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        mix(u64::from_le_bytes(eight.try_into().unwrap_or_default()));
    }
    let mut rest = [0u8; 8];
    rest[..eights.remainder().len()].copy_from_slice(eights.remainder());
    mix(u64::from_le_bytes(rest).wrapping_add(FACTOR));
    mix(FACTOR);
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_one_number() {
        let mut interner = Interner::default();
        let texts: Vec<String> = (0..20_000).map(|n| format!("name_{}", n % 7_000)).collect();
        let numbers: Vec<u32> = texts.iter().map(|text| interner.intern(text)).collect();
        assert_eq!(interner.len(), 7_000);
        for (text, number) in texts.iter().zip(numbers) {
            assert_eq!(interner.resolve(number), text);
        }
        assert_eq!((interner.find(&texts[5]), interner.find("name_")), (Some(5), None));
        assert_eq!(Interner::default().find("name_0"), None);
        let empty = interner.intern("");
        assert_eq!(interner.resolve(empty), "");
        assert_eq!(interner.intern(""), empty);
    }
}
