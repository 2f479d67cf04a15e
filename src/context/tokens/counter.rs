//! Counts the tokens of any text, exactly and in a time by its length.
//!
//! A text is cut into pieces as everywhere, and the bytes of each piece are joined by rank as everywhere. Two things make
//! that fast. A piece is cut again between two bytes that no word has next to each other, as no token goes across. And a
//! long rest is joined in windows. Why that is exact: a row of tokens is what the encoding makes of a piece if, and only if,
//! each two neighbours are what it makes of both together. (Take the first join across a border between two tokens. Up to it
//! all joins between these two were those that they alone would have seen, and so is this one: alone they would have been
//! joined as well.) Inside a window neighbours are, and where two windows meet it is checked; where it is not so, the border
//! is moved, then the windows are made larger, and at last the piece is joined in one go.

use super::bpe_merge::{HeapMerger, MAX_SHORT_PIECE_BYTES, ShortMerger};
use super::pretokenizer::{Pretokenizer, SplitRules};
use super::vocabulary::{BpeVocabulary, NO_RANK, utf8_length};

/// Longer pieces are seldom words; those that are become one token by joining as well.
const MAX_LIKELY_WORD_BYTES: usize = 128;
/// A large window, in bytes.
const LARGE_WINDOW_BYTES: usize = 2 << 10;
/// Where a window ends says something about its last tokens; its last fifth is left to the next one.
const OVERLAP_DIVISOR: usize = 5;
/// Borders that are tried where two windows meet.
const MAX_BORDER_TRIES: usize = 16;

/// So many windows are kept.
const MAX_CACHED_WINDOWS: usize = 8;

/// An encoding's words, and how it cuts texts into pieces.
pub struct Counter {
    cutter: Pretokenizer,
    words: BpeVocabulary,
}

#[derive(Default)]
struct MergeScratch {
    row: ShortMerger,
    heap: HeapMerger,
    windows: [(Vec<u8>, Vec<usize>); MAX_CACHED_WINDOWS],
    oldest: usize,
}

impl Counter {
    pub fn new(words: &[u8], rules: SplitRules) -> Self {
        Self { cutter: Pretokenizer::new(rules), words: BpeVocabulary::new(words) }
    }

    pub fn count_tokens(&self, text: &str) -> usize {
        let (mut start, mut count) = (0, 0);
        let mut joining = MergeScratch::default();
        while start < text.len() {
            let end = self.cutter.find_piece_end(text, start);
            count += self.count_piece(text.as_bytes(), start, end, &mut joining);
            start = end;
        }
        count
    }

    fn count_piece(&self, text: &[u8], start: usize, end: usize, joining: &mut MergeScratch) -> usize {
        match end - start {
            1 => 1,
            2 => 1 + usize::from(self.words.pair_rank(text[start], text[start + 1]) == NO_RANK),
            length if length <= MAX_LIKELY_WORD_BYTES && self.words.word_rank(text, start, end) != NO_RANK => 1,
            length if length <= MAX_SHORT_PIECE_BYTES => joining.row.merge_piece(&self.words, &text[start..end]),
            _ => self.count_long_piece(&text[start..end], joining),
        }
    }

    /// A long piece, cut where no token goes across.
    fn count_long_piece(&self, piece: &[u8], joining: &mut MergeScratch) -> usize {
        let (mut start, mut count) = (0, 0);
        while start < piece.len() {
            let most = piece.len().min(start + MAX_SHORT_PIECE_BYTES);
            let is_border = |at: &usize| self.is_border(piece, *at);
            let end = (start + 1..=most).rev().find(is_border);
            let end = end.or_else(|| (most + 1..piece.len()).find(is_border)).unwrap_or(piece.len());
            count += self.count_unbroken(&piece[start..end], joining);
            start = end;
        }
        count
    }

    /// Whether no token goes across a place.
    fn is_border(&self, piece: &[u8], at: usize) -> bool {
        at == piece.len()
            || self.words.is_border(piece[at - 1], piece[at])
            || self.words.is_apart(piece, at, at + utf8_length(piece[at]))
    }

    /// What has no such borders.
    fn count_unbroken(&self, part: &[u8], joining: &mut MergeScratch) -> usize {
        if part.len() <= MAX_SHORT_PIECE_BYTES {
            return joining.row.merge_piece(&self.words, part);
        }
        let in_windows = |size| self.count_in_windows(part, size, joining);
        [MAX_SHORT_PIECE_BYTES, LARGE_WINDOW_BYTES]
            .into_iter()
            .find_map(in_windows)
            .unwrap_or_else(|| joining.heap.merge_piece(&self.words, part))
    }

    /// `None` where windows of this size do not meet.
    fn count_in_windows(&self, part: &[u8], size: usize, joining: &mut MergeScratch) -> Option<usize> {
        let (mut start, mut count) = (0, 0);
        let window = |start: usize| &part[start..part.len().min(start + size)];
        let mut ends = joining.token_ends(&self.words, window(0)).to_vec();
        loop {
            if start + ends.last()? == part.len() {
                return Some(count + ends.len());
            }
            let most = ends.partition_point(|end| *end <= size - size / OVERLAP_DIVISOR).max(1);
            let kept = (1..=most).rev().take(MAX_BORDER_TRIES).find(|kept| {
                let last = kept.checked_sub(2).map_or(0, |before| ends[before]);
                let (from, border) = (start + last, start + ends[kept - 1]);
                let first =
                    joining.token_ends(&self.words, window(border)).first().map_or(border, |first| border + first);
                joining.token_ends(&self.words, &part[from..first]) == [border - from, first - from]
            })?;
            count += kept;
            start += ends[kept - 1];
            ends.clear();
            ends.extend_from_slice(joining.token_ends(&self.words, window(start)));
        }
    }
}

impl MergeScratch {
    /// Where the tokens of a piece end. Windows of a text that repeats itself are alike: the last few are kept.
    fn token_ends(&mut self, words: &BpeVocabulary, piece: &[u8]) -> &[usize] {
        let found = self.windows.iter().position(|(known, _)| known == piece);
        let index = found.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % MAX_CACHED_WINDOWS;
            let (known, ends) = &mut self.windows[self.oldest];
            known.clear();
            known.extend_from_slice(piece);
            ends.clear();
            if piece.len() <= MAX_SHORT_PIECE_BYTES {
                self.row.merge_piece(words, piece);
                ends.extend(self.row.token_ends());
            } else {
                self.heap.merge_piece(words, piece);
                ends.extend(self.heap.token_ends());
            }
            self.oldest
        });
        &self.windows[index].1
    }
}
