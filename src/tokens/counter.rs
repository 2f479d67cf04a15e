//! Counts the tokens of a text exactly, in time linear in its length.
//!
//! As in every BPE tokenizer, the text is split into pieces and the bytes of each piece are merged by rank. Two
//! techniques make this fast:
//!
//! - A piece is also cut between two bytes that are adjacent in no word, because no token spans them.
//! - A long part without such a border is merged in overlapping windows.
//!
//! Windows are exact for this reason: a sequence of tokens is the encoding of a piece if and only if each pair of
//! neighbours is the encoding of their joint bytes. (Consider the first merge across a border between two tokens. Up to
//! this merge, all merges inside the two tokens were those that the pair alone would see, and so is this merge: the
//! pair alone would have merged as well.) Inside a window the neighbours fulfil this condition. At the border of two
//! windows it is checked; if it fails, the border is moved, then the windows are enlarged, and finally the whole part
//! is merged at once.

use super::bpe_merge::{HeapMerger, MAX_SHORT_PIECE_BYTES, ShortMerger};
use super::pretokenizer::{Pretokenizer, SplitRules};
use super::vocabulary::BpeVocabulary;
use super::vocabulary_format::{NO_RANK, utf8_length};

/// Longest piece in bytes that is looked up as a whole word. Longer words are rare; merging turns them into one token
/// as well.
const MAX_LIKELY_WORD_BYTES: usize = 128;
/// Size of a large window in bytes.
const LARGE_WINDOW_BYTES: usize = 2 << 10;
/// The last tokens of a window may depend on its end, so the last fifth of a window is left to the next window.
const OVERLAP_DIVISOR: usize = 5;
/// Most borders that are tried between two windows.
const MAX_BORDER_TRIES: usize = 16;

/// Number of cached windows.
const MAX_CACHED_WINDOWS: usize = 8;

/// Token counter of one encoding: its vocabulary and its rules for splitting text.
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
    pub fn new(words: BpeVocabulary, rules: SplitRules) -> Self {
        Self { cutter: Pretokenizer::new(rules), words }
    }

    /// Returns the exact number of tokens.
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

    /// Counts a long piece, which is first cut where no token can span.
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

    /// Returns true if no token can span the position `at`.
    fn is_border(&self, piece: &[u8], at: usize) -> bool {
        at == piece.len()
            || self.words.is_border(piece[at - 1], piece[at])
            || self.words.is_apart(piece, at, at + utf8_length(piece[at]))
    }

    /// Counts a part without such borders.
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

    /// Counts a part in windows of `size` bytes; `None` if two windows cannot be joined.
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
    /// Returns the end offsets of the tokens of a piece. The last few windows are cached, because repetitive text has
    /// equal windows.
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
