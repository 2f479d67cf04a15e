//! Stores tables of 100,000 rows that are cheap to clone, to extend and to read from a file.
//!
//! Invariants:
//! - All data is in chunks behind `Arc`: a clone shares the chunks, and a change copies a single chunk.
//! - Rows are plain bytes without pointers, so a chunk is read from a file without conversion.
//! - No value that a damaged file may contain causes a panic: a missing row is all zeros, and a missing text is empty.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

/// Computes a seeded hash for tables and checksums: two lanes of folded multiplication, as fast as memory. Not
/// cryptographic.
pub(super) fn fold_hash(seed: u64, bytes: &[u8]) -> u64 {
    const K: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    fn fold(a: u64, b: u64) -> u64 {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64) ^ ((wide >> 64) as u64)
    }
    /// Pads the last bytes, fewer than a block, with zeros.
    fn pad_block(bytes: &[u8]) -> [u64; 2] {
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        bytemuck::cast(padded)
    }
    let mut lanes = [seed ^ K[0], seed ^ K[1]];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        let words: [u64; 4] = bytemuck::pod_read_unaligned(block);
        lanes[0] = fold(words[0] ^ K[2], words[1] ^ lanes[0]) ^ lanes[0].rotate_left(29);
        lanes[1] = fold(words[2] ^ K[2], words[3] ^ lanes[1]) ^ lanes[1].rotate_left(29);
    }
    for half in blocks.remainder().chunks(16) {
        let words = pad_block(half);
        lanes[0] = fold(words[0] ^ K[2], words[1] ^ lanes[0]) ^ lanes[0].rotate_left(29);
    }
    fold(lanes[0] ^ (bytes.len() as u64), K[3] ^ lanes[1].rotate_left(17)) ^ lanes[1]
}

/// A column of fixed-size rows in chunks.
#[derive(Debug)]
pub(super) struct ChunkedColumn<T> {
    chunks: Vec<Arc<Vec<u8>>>,
    len: usize,
    row: PhantomData<T>,
}

impl<T> Clone for ChunkedColumn<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len, row: PhantomData }
    }
}

impl<T> Default for ChunkedColumn<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0, row: PhantomData }
    }
}

impl<T: Pod> ChunkedColumn<T> {
    pub(super) const ROWS_PER_CHUNK: usize = 2048;
    const ROW_BYTES: usize = size_of::<T>();

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of a row; empty when there is no such row.
    pub(super) fn row_bytes(&self, row: usize) -> &[u8] {
        let begin = row % Self::ROWS_PER_CHUNK * Self::ROW_BYTES;
        self.chunks
            .get(row / Self::ROWS_PER_CHUNK)
            .and_then(|chunk| chunk.get(begin..begin + Self::ROW_BYTES))
            .unwrap_or_default()
    }

    /// Returns a row; all zeros when there is no such row.
    pub(super) fn get(&self, row: usize) -> T {
        bytemuck::try_pod_read_unaligned(self.row_bytes(row)).unwrap_or(T::zeroed())
    }

    pub(super) fn set(&mut self, row: usize, value: T) {
        let begin = row % Self::ROWS_PER_CHUNK * Self::ROW_BYTES;
        if let Some(chunk) = self.chunks.get_mut(row / Self::ROWS_PER_CHUNK)
            && begin + Self::ROW_BYTES <= chunk.len()
        {
            Arc::make_mut(chunk)[begin..begin + Self::ROW_BYTES].copy_from_slice(bytemuck::bytes_of(&value));
        }
    }

    pub(super) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(Self::ROWS_PER_CHUNK) {
            self.chunks.push(Arc::new(Vec::new()));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            Arc::make_mut(chunk).extend_from_slice(bytemuck::bytes_of(&value));
            self.len += 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.chunks_exact(Self::ROW_BYTES.max(1)))
            .map(|bytes| bytemuck::try_pod_read_unaligned(bytes).unwrap_or(T::zeroed()))
    }

    pub(super) fn write_to(&self, to: &mut TableWriter<'_>) -> io::Result<()> {
        to.write_number(self.len)?;
        self.chunks.iter().try_for_each(|chunk| to.write_bytes(chunk))
    }

    pub(super) fn read_from(from: &mut TableReader<'_>) -> io::Result<Self> {
        let len = from.read_number()?;
        let mut chunks = Vec::with_capacity(len.div_ceil(Self::ROWS_PER_CHUNK).min(1 << 16));
        let mut left = len;
        while left > 0 {
            let take = left.min(Self::ROWS_PER_CHUNK);
            chunks.push(Arc::new(from.read_bytes(take * Self::ROW_BYTES)?));
            left -= take;
        }
        Ok(Self { chunks, len, row: PhantomData })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity()).sum()
    }
}

impl<T: Pod> FromIterator<T> for ChunkedColumn<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut chunks = Vec::new();
        let mut chunk: Vec<u8> = Vec::new();
        let mut len = 0;
        for row in rows {
            if chunk.is_empty() {
                chunk.reserve_exact(Self::ROWS_PER_CHUNK * Self::ROW_BYTES);
            }
            chunk.extend_from_slice(bytemuck::bytes_of(&row));
            len += 1;
            if chunk.len() == Self::ROWS_PER_CHUNK * Self::ROW_BYTES {
                chunks.push(Arc::new(std::mem::take(&mut chunk)));
            }
        }
        if !chunk.is_empty() {
            chunks.push(Arc::new(chunk));
        }
        Self { chunks, len, row: PhantomData }
    }
}

/// Hash table from hashes to row numbers, with linear probing.
#[derive(Debug, Clone, Default)]
pub(super) struct HashIndex {
    /// Row numbers plus 1; 0 marks a free slot. The length is 0 or a power of two.
    slots: ChunkedColumn<u32>,
    used: usize,
}

impl HashIndex {
    /// Returns the row with this hash for which `is` returns true.
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        for _ in 0..=mask {
            let row = (self.slots.get(slot) as usize).checked_sub(1)?;
            if is(row) {
                return Some(row);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// Adds a row that is not in the table; `hash_of` returns the hash of any row in the table.
    pub(super) fn insert(&mut self, hash: u64, row: usize, hash_of: impl Fn(usize) -> u64) {
        if (self.used + 1) * 8 > self.slots.len() * 5 {
            let mut larger = vec![0_u32; (self.slots.len() * 2).max(16)];
            let mask = larger.len() - 1;
            for held in self.slots.iter().filter(|held| *held > 0) {
                let mut slot = hash_of(held as usize - 1) as usize & mask;
                while larger[slot] != 0 {
                    slot = (slot + 1) & mask;
                }
                larger[slot] = held;
            }
            self.slots = larger.into_iter().collect();
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots.get(slot) != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots.set(slot, row as u32 + 1);
        self.used += 1;
    }

    pub(super) fn write_to(&self, to: &mut TableWriter<'_>) -> io::Result<()> {
        to.write_number(self.used)?;
        self.slots.write_to(to)
    }

    pub(super) fn read_from(from: &mut TableReader<'_>) -> io::Result<Self> {
        let used = from.read_number()?;
        let slots: ChunkedColumn<u32> = ChunkedColumn::read_from(from)?;
        if slots.len() != 0 && (!slots.len().is_power_of_two() || used >= slots.len()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { slots, used })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
    }
}

/// Location of a text in a [`TextPool`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TextSpan {
    /// Chunk number times [`TextPool::CHUNK_BYTES`], plus the offset in the chunk.
    address: u32,
    len: u32,
}

impl TextSpan {
    /// Returns the number of the chunk, and the offset and length in it.
    pub(super) fn position(self) -> (usize, usize, usize) {
        let address = self.address as usize;
        (address / TextPool::CHUNK_BYTES, address % TextPool::CHUNK_BYTES, self.len as usize)
    }
}

/// Pool of texts; repeated texts can be interned and are then stored once.
#[derive(Debug, Clone, Default)]
pub(super) struct TextPool {
    chunks: Vec<Arc<String>>,
    /// The interned texts by number; number 0 is the empty text.
    words: ChunkedColumn<TextSpan>,
    numbers: HashIndex,
    seed: u64,
}

impl TextPool {
    const CHUNK_BYTES: usize = 1 << 18;
    /// Length limit of a text in bytes; longer texts are truncated, because no list shows more and no path is longer.
    const MAX_TEXT_BYTES: usize = 8192;

    pub(super) fn new(seed: u64) -> Self {
        let mut text = Self { seed, ..Self::default() };
        text.words.push(TextSpan::default());
        text
    }

    pub(super) fn get(&self, span: TextSpan) -> &str {
        let (chunk, begin) = (span.address as usize / Self::CHUNK_BYTES, span.address as usize % Self::CHUNK_BYTES);
        self.chunks.get(chunk).and_then(|chunk| chunk.get(begin..begin + span.len as usize)).unwrap_or("")
    }

    pub(super) fn push(&mut self, text: &str) -> TextSpan {
        let text = &text[..text.floor_char_boundary(Self::MAX_TEXT_BYTES)];
        if text.is_empty() {
            return TextSpan::default();
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() + text.len() > Self::CHUNK_BYTES) {
            if self.chunks.len() >= (1 << 32) / Self::CHUNK_BYTES {
                return TextSpan::default();
            }
            self.chunks.push(Arc::new(String::new()));
        }
        let number = self.chunks.len() - 1;
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let span = TextSpan { address: (number * Self::CHUNK_BYTES + chunk.len()) as u32, len: text.len() as u32 };
        chunk.push_str(text);
        span
    }

    /// Stores a text in place of another text; returns the old location when the texts are equal.
    pub(super) fn replace(&mut self, old: TextSpan, text: &str) -> TextSpan {
        if self.get(old) == text { old } else { self.push(text) }
    }

    pub(super) fn get_interned(&self, number: u32) -> &str {
        self.get(self.words.get(number as usize))
    }

    /// Returns the number of a text; `None` if the text is not stored.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        let text = &text[..text.floor_char_boundary(Self::MAX_TEXT_BYTES)];
        if text.is_empty() {
            return Some(0);
        }
        let code = fold_hash(self.seed, text.as_bytes());
        self.numbers.find(code, |number| self.get_interned(number as u32) == text).map(|number| number as u32)
    }

    /// Returns the number after that of the last text.
    pub(super) fn number_end(&self) -> usize {
        self.words.len()
    }

    /// Returns the number of a text; equal texts have the same number.
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        let text = &text[..text.floor_char_boundary(Self::MAX_TEXT_BYTES)];
        if let Some(number) = self.number(text) {
            return number;
        }
        let code = fold_hash(self.seed, text.as_bytes());
        let span = self.push(text);
        let number = self.words.len();
        self.words.push(span);
        let (words, chunks, seed) = (&self.words, &self.chunks, self.seed);
        self.numbers.insert(code, number, |number| {
            let span = words.get(number);
            let (chunk, begin) = (span.address as usize / Self::CHUNK_BYTES, span.address as usize % Self::CHUNK_BYTES);
            let text = chunks.get(chunk).and_then(|chunk| chunk.get(begin..begin + span.len as usize));
            fold_hash(seed, text.unwrap_or("").as_bytes())
        });
        number as u32
    }

    pub(super) fn write_to(&self, to: &mut TableWriter<'_>) -> io::Result<()> {
        to.write_number(self.chunks.len())?;
        for chunk in &self.chunks {
            to.write_number(chunk.len())?;
            to.write_bytes(chunk.as_bytes())?;
        }
        self.words.write_to(to)?;
        self.numbers.write_to(to)
    }

    pub(super) fn read_from(from: &mut TableReader<'_>, seed: u64) -> io::Result<Self> {
        let mut chunks = Vec::new();
        for _ in 0..from.read_number()? {
            let len = from.read_number()?;
            let chunk =
                String::from_utf8(from.read_bytes(len)?).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            chunks.push(Arc::new(chunk));
        }
        Ok(Self { chunks, words: ChunkedColumn::read_from(from)?, numbers: HashIndex::read_from(from)?, seed })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity()).sum::<usize>()
            + self.words.memory_bytes()
            + self.numbers.memory_bytes()
    }
}

/// Writes a table to a file and computes a checksum.
pub(super) struct TableWriter<'a> {
    to: &'a mut dyn Write,
    pub(super) checksum: u64,
    pub(super) written: u64,
}

impl<'a> TableWriter<'a> {
    pub(super) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, checksum: 0, written: 0 }
    }

    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = fold_hash(self.checksum, bytes);
        self.written += bytes.len() as u64;
        self.to.write_all(bytes)
    }

    pub(super) fn write_number(&mut self, number: usize) -> io::Result<()> {
        self.write_bytes(&(number as u64).to_ne_bytes())
    }
}

/// Reads a table from a file and computes the same checksum.
pub(super) struct TableReader<'a> {
    from: &'a mut dyn Read,
    pub(super) checksum: u64,
    /// Number of bytes that may still be read; it prevents a damaged file from requesting more memory than its size.
    left: u64,
}

impl<'a> TableReader<'a> {
    pub(super) fn new(from: &'a mut dyn Read, left: u64) -> Self {
        Self { from, checksum: 0, left }
    }

    pub(super) fn read_bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        self.left = self.left.checked_sub(len as u64).ok_or(io::ErrorKind::InvalidData)?;
        let mut bytes = vec![0; len];
        self.from.read_exact(&mut bytes)?;
        self.checksum = fold_hash(self.checksum, &bytes);
        Ok(bytes)
    }

    pub(super) fn read_number(&mut self) -> io::Result<usize> {
        let bytes = self.read_bytes(8)?;
        let number = bytemuck::try_pod_read_unaligned::<u64>(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        usize::try_from(number).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0
    }
}
