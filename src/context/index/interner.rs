//! Strings as numbers, without an allocation per string.

use std::ops::Range;

/// Strings by number, from 0 in the order in which they came.
#[derive(Default)]
pub struct Interner {
    bytes: Vec<u8>,
    /// Where each string ends.
    ends: Vec<u32>,
    /// Numbers plus one by hash, 0 for free; a power of two, at most half full.
    table: Vec<u32>,
}

impl Interner {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, number: u32) -> &str {
        std::str::from_utf8(self.bytes.get(self.range(number)).unwrap_or_default()).unwrap_or_default()
    }

    fn range(&self, number: u32) -> Range<usize> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[at] as usize
    }

    pub fn intern(&mut self, text: &str) -> u32 {
        if self.table.len() < (self.ends.len() + 1) * 2 {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = hash(text.as_bytes()) as usize & mask;
        loop {
            match self.table[slot] {
                0 => break,
                taken if self.bytes[self.range(taken - 1)] == *text.as_bytes() => return taken - 1,
                _ => slot = (slot + 1) & mask,
            }
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len() as u32);
        self.table[slot] = self.ends.len() as u32;
        self.ends.len() as u32 - 1
    }

    fn grow(&mut self) {
        let mut table = vec![0u32; (self.table.len() * 2).max(1 << 12)];
        let mask = table.len() - 1;
        for number in 0..self.ends.len() as u32 {
            let mut slot = hash(&self.bytes[self.range(number)]) as usize & mask;
            while table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            table[slot] = number + 1;
        }
        self.table = table;
    }
}

/// Eight bytes at a time, multiplied and folded. The strings of one repository are nobody's means to slow another's down:
/// a segment holds a bounded amount of them.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = bytes.len() as u64;
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
            assert_eq!(interner.get(number), text);
        }
        let empty = interner.intern("");
        assert_eq!(interner.get(empty), "");
        assert_eq!(interner.intern(""), empty);
    }
}
