//! Compact binary encoding of numbers and texts, used by all files of the index and its caches.
//!
//! Numbers are variable-length integers (varints): seven bits per byte, low bits first.

/// Writer of the encoding.
#[derive(Debug, Default)]
pub struct PackedWriter(Vec<u8>);

impl PackedWriter {
    /// Writes a number in one to five bytes; small numbers take less space.
    pub fn write_varint(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes a text with its length.
    pub fn write_str(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    /// Writes bytes with their length.
    pub fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_varint(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    /// Writes numbers with four bytes each; shorter than varints if all numbers are large.
    pub fn write_u32s(&mut self, words: &[u32]) {
        self.write_varint(words.len() as u32);
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Writes numbers as varints with their count.
    pub fn write_varints(&mut self, numbers: impl ExactSizeIterator<Item = u32>) {
        self.write_varint(numbers.len() as u32);
        numbers.for_each(|number| self.write_varint(number));
    }

    /// Writes ascending numbers as their count and the differences between neighbours.
    pub fn write_ascending(&mut self, numbers: impl ExactSizeIterator<Item = u32>) {
        let mut before = 0;
        self.write_varints(numbers.map(|number| number.wrapping_sub(std::mem::replace(&mut before, number))));
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reader of the [`PackedWriter`] encoding; methods return `None` for invalid data.
#[derive(Debug, Clone, Copy)]
pub struct PackedReader<'a>(pub &'a [u8]);

impl<'a> PackedReader<'a> {
    /// Reads a varint.
    pub fn read_varint(&mut self) -> Option<u32> {
        let (mut number, mut shift) = (0u32, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn read_slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn read_str(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.read_bytes()?).ok()
    }

    pub fn read_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.read_varint()? as usize;
        self.read_slice(length)
    }

    pub fn read_u32s(&mut self) -> Option<Vec<u32>> {
        let length = self.read_varint()? as usize;
        let (words, _) = self.read_slice(length.checked_mul(4)?)?.as_chunks::<4>();
        Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Reads a count of values that take at least one byte each; `None` if the count exceeds the remaining bytes, so
    /// that damaged data causes no huge loop.
    pub fn read_count(&mut self) -> Option<usize> {
        let count = self.read_varint()? as usize;
        (count <= self.0.len()).then_some(count)
    }

    pub fn read_varints(&mut self) -> Option<Vec<u32>> {
        let count = self.read_count()?;
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            numbers.push(self.read_varint()?);
        }
        Some(numbers)
    }

    /// Reads ascending numbers and calls `found` for each. Numbers before an invalid one are reported too.
    pub fn read_ascending(&mut self, found: &mut dyn FnMut(u32)) -> Option<()> {
        let mut number = 0u32;
        for _ in 0..self.read_count()? {
            number = number.wrapping_add(self.read_varint()?);
            found(number);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_read_as_they_are_written() {
        let mut writer = PackedWriter::default();
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 21, (1 << 28) + 5, u32::MAX];
        writer.write_varints(numbers.into_iter());
        writer.write_str("größer");
        writer.write_u32s(&numbers);
        writer.write_ascending(numbers.into_iter());
        assert_eq!(writer.len(), writer.0.len());
        let bytes = writer.finish();
        let mut reader = PackedReader(&bytes);
        assert_eq!(reader.read_varints().as_deref(), Some(&numbers[..]));
        assert_eq!(reader.read_str(), Some("größer"));
        assert_eq!(reader.read_u32s().as_deref(), Some(&numbers[..]));
        let mut ascending = Vec::new();
        assert_eq!(reader.read_ascending(&mut |number| ascending.push(number)), Some(()));
        assert_eq!(ascending, numbers);
        assert_eq!((reader.read_varint(), reader.0.len()), (None, 0));
        for length in 0..bytes.len() {
            let mut short = PackedReader(&bytes[..length]);
            let mut read_all = || {
                short.read_varints()?;
                short.read_str()?;
                short.read_u32s()?;
                short.read_ascending(&mut |_| {})
            };
            assert_eq!(read_all(), None, "{length} of {} bytes", bytes.len());
        }
        assert_eq!(PackedReader(&[0xff; 20]).read_varint(), None);
    }
}
