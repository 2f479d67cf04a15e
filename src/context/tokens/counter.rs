//! Counts the tokens of any text, exactly and in a time by its length.
//!
//! A text is cut into pieces as everywhere, and the bytes of each piece are joined by rank as everywhere. Two things make
//! that fast. A piece is cut again between two bytes that no word has next to each other, as no token goes across. And a
//! long rest is joined in windows. Why that is exact: a row of tokens is what the encoding makes of a piece if, and only if,
//! each two neighbours are what it makes of both together. (Take the first join across a border between two tokens. Up to it
//! all joins between these two were those that they alone would have seen, and so is this one: alone they would have been
//! joined as well.) Inside a window neighbours are, and where two windows meet it is checked; where it is not so, the border
//! is moved, then the windows are made larger, and at last the piece is joined in one go.

use super::join::{Heap, ROW, Row};
use super::pieces::{Cutter, Rules};
use super::words::{NONE, Words, length};

/// Longer pieces are seldom words; those that are become one token by joining as well.
const LIKELY: usize = 128;
/// A large window, in bytes.
const LARGE: usize = 2 << 10;
/// Where a window ends says something about its last tokens; its last fifth is left to the next one.
const LEFT: usize = 5;
/// Borders that are tried where two windows meet.
const TRIES: usize = 16;

/// So many windows are kept.
const KNOWN: usize = 8;

/// An encoding's words, and how it cuts texts into pieces.
pub struct Counter {
    cutter: Cutter,
    words: Words,
}

#[derive(Default)]
struct Joining {
    row: Row,
    heap: Heap,
    known: [(Vec<u8>, Vec<usize>); KNOWN],
    oldest: usize,
}

impl Counter {
    pub fn new(words: &[u8], rules: Rules) -> Self {
        Self { cutter: Cutter::new(rules), words: Words::new(words) }
    }

    pub fn count(&self, text: &str) -> usize {
        let (mut start, mut count) = (0, 0);
        let mut joining = Joining::default();
        while start < text.len() {
            let end = self.cutter.end(text, start);
            count += self.of_piece(text.as_bytes(), start, end, &mut joining);
            start = end;
        }
        count
    }

    fn of_piece(&self, text: &[u8], start: usize, end: usize, joining: &mut Joining) -> usize {
        match end - start {
            1 => 1,
            2 => 1 + usize::from(self.words.pair(text[start], text[start + 1]) == NONE),
            length if length <= LIKELY && self.words.whole(text, start, end) != NONE => 1,
            length if length <= ROW => joining.row.join(&self.words, &text[start..end]),
            _ => self.of_parts(&text[start..end], joining),
        }
    }

    /// A long piece, cut where no token goes across.
    fn of_parts(&self, piece: &[u8], joining: &mut Joining) -> usize {
        let (mut start, mut count) = (0, 0);
        while start < piece.len() {
            let most = piece.len().min(start + ROW);
            let is_border = |at: &usize| self.is_border(piece, *at);
            let end = (start + 1..=most).rev().find(is_border);
            let end = end.or_else(|| (most + 1..piece.len()).find(is_border)).unwrap_or(piece.len());
            count += self.of_part(&piece[start..end], joining);
            start = end;
        }
        count
    }

    /// Whether no token goes across a place.
    fn is_border(&self, piece: &[u8], at: usize) -> bool {
        at == piece.len()
            || self.words.is_border(piece[at - 1], piece[at])
            || self.words.is_apart(piece, at, at + length(piece[at]))
    }

    /// What has no such borders.
    fn of_part(&self, part: &[u8], joining: &mut Joining) -> usize {
        if part.len() <= ROW {
            return joining.row.join(&self.words, part);
        }
        let in_windows = |size| self.in_windows(part, size, joining);
        [ROW, LARGE].into_iter().find_map(in_windows).unwrap_or_else(|| joining.heap.join(&self.words, part))
    }

    /// `None` where windows of this size do not meet.
    fn in_windows(&self, part: &[u8], size: usize, joining: &mut Joining) -> Option<usize> {
        let (mut start, mut count) = (0, 0);
        let window = |start: usize| &part[start..part.len().min(start + size)];
        let mut ends = joining.ends(&self.words, window(0)).to_vec();
        loop {
            if start + ends.last()? == part.len() {
                return Some(count + ends.len());
            }
            let most = ends.partition_point(|end| *end <= size - size / LEFT).max(1);
            let kept = (1..=most).rev().take(TRIES).find(|kept| {
                let last = kept.checked_sub(2).map_or(0, |before| ends[before]);
                let (from, border) = (start + last, start + ends[kept - 1]);
                let first = joining.ends(&self.words, window(border)).first().map_or(border, |first| border + first);
                joining.ends(&self.words, &part[from..first]) == [border - from, first - from]
            })?;
            count += kept;
            start += ends[kept - 1];
            ends.clear();
            ends.extend_from_slice(joining.ends(&self.words, window(start)));
        }
    }
}

impl Joining {
    /// Where the tokens of a piece end. Windows of a text that repeats itself are alike: the last few are kept.
    fn ends(&mut self, words: &Words, piece: &[u8]) -> &[usize] {
        let found = self.known.iter().position(|(known, _)| known == piece);
        let index = found.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % KNOWN;
            let (known, ends) = &mut self.known[self.oldest];
            known.clear();
            known.extend_from_slice(piece);
            ends.clear();
            if piece.len() <= ROW {
                self.row.join(words, piece);
                ends.extend(self.row.ends());
            } else {
                self.heap.join(words, piece);
                ends.extend(self.heap.ends());
            }
            self.oldest
        });
        &self.known[index].1
    }
}
