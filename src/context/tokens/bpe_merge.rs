//! Joins the bytes of a piece to tokens: of all neighbours that are a word together, those of the lowest rank first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::{BpeVocabulary, NO_RANK, utf8_length};

/// The longest piece that fits into a [`Row`], in bytes.
pub const MAX_SHORT_PIECE_BYTES: usize = 255;
const POSITIONS: usize = MAX_SHORT_PIECE_BYTES + 1;
const BLOCK: usize = 16;

/// In place of a rank and a place, where nothing can be joined.
const NO_PAIR: i32 = NO_RANK << 8;
/// The places behind all places, and before them.
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

/// Joins short pieces, without a heap: the least of each block is kept, and the least of these looked for each time.
pub struct ShortMerger {
    /// Of the token that begins here.
    ranks: [i32; POSITIONS],
    /// Of the token that begins here and the next one together: the rank, and this place in the last byte.
    pair_ranks: [i32; POSITIONS],
    least: [i32; POSITIONS / BLOCK],
    next: [u8; POSITIONS],
    before: [u8; POSITIONS],
    length: usize,
    count: usize,
    /// While the row is filled: the last token, if it may be joined with what follows.
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
    /// How many tokens a piece of 1 to [`ROW`] bytes becomes.
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

    /// Where the tokens of the piece that was joined last end.
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

    /// A token from a place to another one, by its rank.
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

    /// A byte, or two of them that are sure to become one: all words that have one of them at an end, and what is beside it,
    /// come later.
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

    /// A character of more bytes. It becomes a token if it is a word, and all words that have a part of it and something
    /// beside it come later: until then, all that joins its parts is inside it. If there are no such words and it is none,
    /// its bytes are joined with each other and nothing else.
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

    /// Joins the bytes of a character that is no word.
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
                // Both are the character together.
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

    /// What two tokens are together: by the places of both, and the end.
    #[inline]
    fn pair_rank(&self, words: &BpeVocabulary, piece: &[u8], [at, next, end]: [usize; 3]) -> i32 {
        words.merged_rank(piece, [at, end], [self.ranks[at], self.ranks[next]]) << 8 | at as i32
    }

    /// Joins the tokens that are the least together. Gives the places of the token before, of the new one, of the one that is
    /// none any more, and of the next one.
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

    /// Joins the tokens that are the least together; what is the least then.
    fn merge_pair<const MANY: bool>(&mut self, words: &BpeVocabulary, piece: &[u8], least: i32) -> i32 {
        let [before, at, gone, after] = self.link_pair(least);
        // What changes is written first and looked up then: to read many places at once just after one of them was
        // written takes a core longer than both.
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

    /// The least of all, after some places changed.
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

/// Joins pieces of any length: a heap of what can be joined, by rank and place, over a list of what there is.
#[derive(Default)]
pub struct HeapMerger {
    /// Of the token that begins here.
    ranks: Vec<i32>,
    /// Of the token that begins here and the next one together.
    pair_ranks: Vec<i32>,
    next: Vec<u32>,
    before: Vec<u32>,
    heap: BinaryHeap<Reverse<u64>>,
}

impl HeapMerger {
    /// How many tokens a piece becomes.
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

    /// Where the tokens of the piece that was joined last end.
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

    /// Joins the token at a place and the next one.
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

    /// What the token at a place and the next one are together.
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

    static O200K: LazyLock<BpeVocabulary> =
        LazyLock::new(|| BpeVocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.words"))));
    static CL100K: LazyLock<BpeVocabulary> =
        LazyLock::new(|| BpeVocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.words"))));

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

        /// The row begins with characters, the heap with bytes. Windows may begin and end inside of characters.
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
