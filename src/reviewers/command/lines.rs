//! Splits a stream of bytes into lines of bounded length.

/// Maximum number of bytes of a line that are kept. The rest of the line is skipped.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// A line splitter with the incomplete last line.
#[derive(Debug, Default)]
pub struct BoundedLines {
    line: Vec<u8>,
    /// The line is longer than the limit.
    skipping: bool,
}

impl BoundedLines {
    /// Takes more bytes and passes each complete line to `line`, without its `\n`.
    pub fn feed(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(at);
            if self.line.is_empty() && !self.skipping && head.len() <= MAX_LINE_BYTES {
                line(head);
            } else {
                self.append(head);
                line(&self.line);
                self.line.clear();
                self.skipping = false;
            }
            bytes = tail.get(1..).unwrap_or_default();
        }
        self.append(bytes);
    }

    /// Returns the last line if it has no line end.
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.line.is_empty()).then_some(self.line)
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
        match bytes.get(..room).filter(|_| bytes.len() > room) {
            Some(head) => {
                self.line.extend_from_slice(head);
                self.skipping = true;
            }
            None => self.line.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (BoundedLines::default(), Vec::new());
        for chunk in chunks {
            lines.feed(chunk, |line| found.push(line.to_vec()));
        }
        found.extend(lines.finish());
        found
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        let text: &[u8] = b"one\n\ntwo three\r\n\xff\nlast";
        let expected: Vec<&[u8]> = vec![b"one", b"", b"two three\r", b"\xff", b"last"];
        for size in 1..text.len() {
            assert_eq!(lines(&text.chunks(size).collect::<Vec<_>>()), expected, "{size} bytes at once");
        }
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let long = vec![b'x'; MAX_LINE_BYTES + 3];
        for size in [1 << 16, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, long.len() + 5] {
            let text = [&long[..], b"\nnext\n"].concat();
            let found = lines(&text.chunks(size).collect::<Vec<_>>());
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_LINE_BYTES, 4], "{size} bytes at once");
        }
    }
}
