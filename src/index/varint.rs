//! Variable-length encoding of numbers (varint): seven bits per byte, low bits first.

/// Appends a number in one to five bytes.
pub fn push(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reader of numbers that [`push`] wrote. Returns zeros after the end.
#[derive(Clone, Copy)]
pub struct VarintReader<'a>(pub &'a [u8]);

impl VarintReader<'_> {
    /// Reads the next number; 0 after the end.
    pub fn read(&mut self) -> u32 {
        let (mut number, mut shift) = (0u32, 0);
        while let Some((&byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        number
    }

    /// Skips a number of bytes.
    pub fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    /// Limits an announced `count` to the number of values that the remaining bytes can hold, so that damaged data
    /// cannot cause a huge loop.
    pub fn bound_count(&self, count: u32) -> usize {
        (count as usize).min(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, 1 << 14, 1 << 21, (1 << 28) + 5, u32::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            push(&mut bytes, number);
        }
        let mut read = VarintReader(&bytes);
        assert_eq!(numbers.map(|_| read.read()), numbers);
        assert_eq!(read.read(), 0);
        assert_eq!(VarintReader(&[0xff; 20]).read() & 0x7f, 0x7f);
    }
}
