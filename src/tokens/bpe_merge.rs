//! Merges the bytes of a piece into tokens (BPE): of all adjacent pairs that form a word, the pair with the lowest rank
//! is merged first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::BpeVocabulary;
use super::vocabulary_format::{NO_RANK, utf8_length};

/// Longest piece in bytes that [`ShortMerger`] can merge.
pub const MAX_SHORT_PIECE_BYTES: usize = 255;
const POSITIONS: usize = MAX_SHORT_PIECE_BYTES + 1;
const BLOCK: usize = 16;

/// Value of a position without a mergeable pair; larger than every packed rank and position.
const NO_PAIR: i32 = NO_RANK << 8;
/// Next and previous position of each position.
const NEXT: [u8; POSITIONS] = offsets_by(1);
const BEFORE: [u8; POSITIONS] = offsets_by(u8::MAX);

const fn offsets_by(step: u8) -> [u8; POSITIONS] {
    let mut places = [step; POSITIONS];
    let mut at = 1;
    while at < POSITIONS {
        places[at] = (at as u8).wrapping_add(step);
        at += 1;
    }
    places
}

/// Merges short pieces without a heap: keeps the minimum of each block of pairs and searches the minimum of all blocks
/// for each merge.
pub struct ShortMerger {
    /// Rank of the token that starts at this position.
    ranks: [i32; POSITIONS],
    /// Rank of the pair of the token at this position and the next token, shifted left by 8 bits, with the position in
    /// the low byte; [`NO_PAIR`] if the pair is not a word.
    pair_ranks: [i32; POSITIONS],
    least: [i32; POSITIONS / BLOCK],
    next: [u8; POSITIONS],
    before: [u8; POSITIONS],
    length: usize,
    count: usize,
    /// Last token while the piece is filled in, if it may be merged with the following token.
    open: Option<usize>,
}

impl Default for ShortMerger {
    fn default() -> Self {
        Self {
            ranks: [0; POSITIONS],
            pair_ranks: [0; POSITIONS],
            least: [0; POSITIONS / BLOCK],
            next: [0; POSITIONS],
            before: [0; POSITIONS],
            length: 0,
            count: 0,
            open: None,
        }
    }
}

impl ShortMerger {
    /// Merges a piece of 1 to [`MAX_SHORT_PIECE_BYTES`] bytes and returns its number of tokens.
    pub fn merge_piece(&mut self, words: &BpeVocabulary, piece: &[u8]) -> usize {
        self.clear(piece.len());
        self.fill(words, piece);
        let mut least = self.update_all_blocks();
        while least < NO_PAIR {
            least = match self.length <= BLOCK {
                true => self.merge_pair::<false>(words, piece, least),
                false => self.merge_pair::<true>(words, piece, least),
            };
        }
        self.count
    }

    /// Returns the end offsets of the tokens of the last piece.
    pub fn token_ends(&self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let is_token = at < self.length;
            at = usize::from(self.next[at]);
            is_token.then_some(at)
        })
    }

    fn clear(&mut self, length: usize) {
        (self.length, self.count, self.open) = (length, 0, None);
        for block in 0..length.div_ceil(BLOCK) {
            let at = block * BLOCK;
            self.next[at..at + BLOCK].copy_from_slice(&NEXT[at..at + BLOCK]);
            self.before[at..at + BLOCK].copy_from_slice(&BEFORE[at..at + BLOCK]);
            self.pair_ranks[at..at + BLOCK].fill(NO_PAIR);
        }
    }

    fn fill(&mut self, words: &BpeVocabulary, piece: &[u8]) {
        let mut at = 0;
        while at < piece.len() {
            let end = at + utf8_length(piece[at]);
            at = match end - at {
                1 => self.push_byte(words, piece, at),
                _ if end > piece.len() => self.push_byte(words, piece, at),
                _ => self.push_character(words, piece, at, end),
            };
        }
    }

    /// Adds a token with the bytes `at..end` and a rank.
    fn push_token(&mut self, words: &BpeVocabulary, piece: &[u8], at: usize, end: usize, rank: i32) {
        self.ranks[at] = rank;
        if end - at > 1 {
            self.next[at] = end as u8;
            self.before[end] = at as u8;
        }
        if let Some(last) = self.open {
            self.pair_ranks[last] = self.pair_rank(words, piece, [last, at, end]);
        }
        self.open = Some(at);
        self.count += 1;
    }

    /// Adds one byte, or two bytes that are certain to be merged: every word that spans the border between one of them
    /// and its other neighbour has a higher rank. Returns the end position.
    fn push_byte(&mut self, words: &BpeVocabulary, piece: &[u8], at: usize) -> usize {
        if let Some([first, second]) = piece[at..].first_chunk()
            && first.is_ascii()
            && second.is_ascii()
        {
            let rank = words.pair_rank(*first, *second);
            if rank < words.min_crossing_rank(piece, at, at + 2) {
                self.push_token(words, piece, at, at + 2, rank);
                return at + 2;
            }
        }
        self.push_token(words, piece, at, at + 1, words.byte_rank(piece[at]));
        at + 1
    }

    /// Adds a multi-byte character and returns its end position.
    ///
    /// If the character is a word and all words that span one of its borders have a higher rank, it becomes one token:
    /// until then, all merges of its bytes stay inside it. If it is no word and no word spans its borders, its bytes
    /// are merged only with each other.
    fn push_character(&mut self, words: &BpeVocabulary, piece: &[u8], start: usize, end: usize) -> usize {
        let across = words.min_crossing_rank(piece, start, end);
        let rank = words.word_rank(piece, start, end);
        if rank < across {
            self.push_token(words, piece, start, end, rank);
            return end;
        }
        let is_apart = rank.min(across) == NO_RANK;
        if is_apart {
            self.open = None;
        }
        for at in start..end {
            self.push_token(words, piece, at, at + 1, words.byte_rank(piece[at]));
        }
        if is_apart {
            self.merge_inside(words, piece, start, end);
            self.open = None;
        }
        end
    }

    /// Merges the bytes of a character that is not a word.
    fn merge_inside(&mut self, words: &BpeVocabulary, piece: &[u8], start: usize, end: usize) {
        for left in (2..end - start).rev() {
            let least = min_rank(&self.pair_ranks[start..end - 1]);
            if least >= NO_PAIR {
                return;
            }
            let [before, at, gone, after] = self.link_pair(least);
            self.pair_ranks[gone] = NO_PAIR;
            self.pair_ranks[at] = NO_PAIR;
            if left == 2 {
                // The two remaining tokens form the whole character, which is not a word.
                self.pair_ranks[start] = NO_PAIR;
                return;
            }
            if after < end {
                self.pair_ranks[at] = self.pair_rank(words, piece, [at, after, usize::from(self.next[after])]);
            }
            if at > start {
                self.pair_ranks[before] = self.pair_rank(words, piece, [before, at, after]);
            }
        }
    }

    fn update_all_blocks(&mut self) -> i32 {
        self.least = [NO_PAIR; POSITIONS / BLOCK];
        for block in 0..self.length.div_ceil(BLOCK) {
            self.least[block] = self.least_in_block(block);
        }
        min_rank(&self.least)
    }

    fn least_in_block(&self, block: usize) -> i32 {
        let (blocks, _) = self.pair_ranks.as_chunks::<BLOCK>();
        min_rank(&blocks[block])
    }

    /// Returns the packed pair value of the token at `at` and the token at `next`, which ends at `end`.
    #[inline]
    fn pair_rank(&self, words: &BpeVocabulary, piece: &[u8], [at, next, end]: [usize; 3]) -> i32 {
        words.merged_rank(piece, [at, end], [self.ranks[at], self.ranks[next]]) << 8 | at as i32
    }

    /// Merges the pair with the minimal value. Returns the positions of the previous token, the merged token, the
    /// removed token and the following token.
    fn link_pair(&mut self, least: i32) -> [usize; 4] {
        let at = usize::from(least as u8);
        let gone = usize::from(self.next[at]);
        let after = usize::from(self.next[gone]);
        self.ranks[at] = least >> 8;
        self.next[at] = after as u8;
        self.before[after] = at as u8;
        self.count -= 1;
        [usize::from(self.before[at]), at, gone, after]
    }

    /// Merges the pair with the minimal value and returns the new minimum.
    fn merge_pair<const MANY: bool>(&mut self, words: &BpeVocabulary, piece: &[u8], least: i32) -> i32 {
        let [before, at, gone, after] = self.link_pair(least);
        // Write the changed entries first and do the lookups afterwards: reading many entries right after writing one
        // of them takes a core longer than both steps.
        let changed = [if at > 0 { before } else { at }, at, gone];
        for place in changed {
            self.pair_ranks[place] = NO_PAIR;
            if MANY {
                self.least[place / BLOCK] = NO_PAIR;
            }
        }
        let (mut with_next, mut with_before) = (NO_PAIR, NO_PAIR);
        if after < self.length {
            with_next = self.pair_rank(words, piece, [at, after, usize::from(self.next[after])]);
        }
        if at > 0 {
            with_before = self.pair_rank(words, piece, [before, at, after]);
        }
        let mut least = with_next.min(with_before);
        if MANY {
            least = least.min(self.update_blocks(changed));
        } else {
            least = least.min(self.least_in_block(0));
        }
        self.set_pair_rank::<MANY>(at, with_next);
        if at > 0 {
            self.set_pair_rank::<MANY>(before, with_before);
        }
        least
    }

    /// Updates the minima of the blocks with changed positions and returns the overall minimum.
    fn update_blocks(&mut self, changed: [usize; 3]) -> i32 {
        let mut all = min_rank(&self.least);
        for (index, place) in changed.into_iter().enumerate() {
            let block = place / BLOCK;
            if index == 0 || block != changed[index - 1] / BLOCK {
                self.least[block] = self.least_in_block(block);
                all = all.min(self.least[block]);
            }
        }
        all
    }

    fn set_pair_rank<const MANY: bool>(&mut self, place: usize, both: i32) {
        self.pair_ranks[place] = both;
        if MANY {
            let least = &mut self.least[place / BLOCK];
            *least = both.min(*least);
        }
    }
}

fn min_rank(of: &[i32]) -> i32 {
    of.iter().fold(NO_PAIR, |least, next| least.min(*next))
}

/// Merges pieces of any length with a heap of mergeable pairs (rank and position) over a linked list of tokens.
#[derive(Default)]
pub struct HeapMerger {
    /// Rank of the token that starts at this position.
    ranks: Vec<i32>,
    /// Rank of the pair of the token at this position and the next token.
    pair_ranks: Vec<i32>,
    next: Vec<u32>,
    before: Vec<u32>,
    heap: BinaryHeap<Reverse<u64>>,
}

impl HeapMerger {
    /// Merges a piece and returns its number of tokens.
    pub fn merge_piece(&mut self, words: &BpeVocabulary, piece: &[u8]) -> usize {
        self.fill(words, piece);
        let mut count = piece.len();
        while let Some(Reverse(least)) = self.heap.pop() {
            let (rank, at) = ((least >> 32) as i32, least as u32 as usize);
            if self.pair_ranks[at] == rank {
                self.merge_pair(words, piece, at);
                count -= 1;
            }
        }
        count
    }

    /// Returns the end offsets of the tokens of the last piece.
    pub fn token_ends(&self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at = *self.next.get(at)? as usize;
            Some(at)
        })
    }

    fn fill(&mut self, words: &BpeVocabulary, piece: &[u8]) {
        let length = piece.len() as u32;
        self.ranks.clear();
        self.ranks.extend(piece.iter().map(|byte| words.byte_rank(*byte)));
        self.next.clear();
        self.next.extend(1..=length);
        self.before.clear();
        self.before.extend((0..=length).map(|at| at.wrapping_sub(1)));
        self.pair_ranks.clear();
        self.pair_ranks.extend(piece.array_windows().map(|[first, second]| words.pair_rank(*first, *second)));
        self.pair_ranks.push(NO_RANK);
        let mut heap = std::mem::take(&mut self.heap).into_vec();
        heap.clear();
        let ranks = self.pair_ranks.iter().zip(0..).filter(|(rank, _)| **rank != NO_RANK);
        heap.extend(ranks.map(|(rank, at)| Reverse((*rank as u64) << 32 | at)));
        self.heap = heap.into();
    }

    /// Merges the token at a position with the next token.
    fn merge_pair(&mut self, words: &BpeVocabulary, piece: &[u8], at: usize) {
        let gone = self.next[at] as usize;
        let after = self.next[gone];
        self.ranks[at] = self.pair_ranks[at];
        self.next[at] = after;
        self.before[after as usize] = at as u32;
        self.pair_ranks[gone] = NO_RANK;
        self.update_pair_rank(words, piece, at);
        if at > 0 {
            self.update_pair_rank(words, piece, self.before[at] as usize);
        }
    }

    /// Computes the pair rank of the token at a position and the next token, and adds the pair to the heap.
    fn update_pair_rank(&mut self, words: &BpeVocabulary, piece: &[u8], at: usize) {
        let next = self.next[at] as usize;
        self.pair_ranks[at] = match self.next.get(next) {
            Some(end) => words.merged_rank(piece, [at, *end as usize], [self.ranks[at], self.ranks[next]]),
            None => NO_RANK,
        };
        if self.pair_ranks[at] != NO_RANK {
            self.heap.push(Reverse((self.pair_ranks[at] as u64) << 32 | at as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static O200K: LazyLock<BpeVocabulary> = LazyLock::new(BpeVocabulary::o200k);
    static CL100K: LazyLock<BpeVocabulary> = LazyLock::new(BpeVocabulary::cl100k);

    #[test]
    fn all_words_of_the_references_are_found_and_joined() {
        let references = [tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton()];
        for (words, reference, count) in [(&*O200K, references[0], 199_998), (&*CL100K, references[1], 100_256)] {
            let (mut row, mut heap) = (ShortMerger::default(), HeapMerger::default());
            for rank in 0..count {
                let word = reference.decode_bytes(&[rank]).expect("a word");
                assert_eq!(words.word_rank(&word, 0, word.len()), rank as i32, "{word:?}");
                assert_eq!((row.merge_piece(words, &word), heap.merge_piece(words, &word)), (1, 1), "{word:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The short merger starts with characters, the heap merger with bytes. Windows may begin and end inside a
        /// character.
        #[test]
        fn a_row_joins_what_a_heap_joins(
            text in prop_oneof![any::<String>(), "[а-яо ]{1,90}", "[अ-हा-्]{1,60}", "[一-龥]{1,60}", "[a-zA-Zé]{1,200}", "[!-/ ]{1,200}"],
            cut in (0usize..4, 0usize..4),
        ) {
            let piece = text.as_bytes().get(cut.0..text.len().saturating_sub(cut.1).min(cut.0 + MAX_SHORT_PIECE_BYTES)).unwrap_or_default();
            prop_assume!(!piece.is_empty());
            for words in [&*O200K, &*CL100K] {
                let (mut row, mut heap) = (ShortMerger::default(), HeapMerger::default());
                prop_assert_eq!(row.merge_piece(words, piece), heap.merge_piece(words, piece));
                prop_assert_eq!(row.token_ends().collect::<Vec<_>>(), heap.token_ends().collect::<Vec<_>>());
            }
        }
    }
}
