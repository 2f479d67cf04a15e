//! Joins the bytes of a piece to tokens: of all neighbours that are a word together, those of the lowest rank first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::words::{NONE, Words, length};

/// The longest piece that fits into a [`Row`], in bytes.
pub const ROW: usize = 255;
const PLACES: usize = ROW + 1;
const BLOCK: usize = 16;

/// In place of a rank and a place, where nothing can be joined.
const FREE: i32 = NONE << 8;
/// The places behind all places, and before them.
const NEXT: [u8; PLACES] = all_by(1);
const BEFORE: [u8; PLACES] = all_by(u8::MAX);

const fn all_by(step: u8) -> [u8; PLACES] {
    let mut places = [step; PLACES];
    let mut at = 1;
    while at < PLACES {
        places[at] = (at as u8).wrapping_add(step);
        at += 1;
    }
    places
}

/// Joins short pieces, without a heap: the least of each block is kept, and the least of these looked for each time.
pub struct Row {
    /// Of the token that begins here.
    ranks: [i32; PLACES],
    /// Of the token that begins here and the next one together: the rank, and this place in the last byte.
    both: [i32; PLACES],
    least: [i32; PLACES / BLOCK],
    next: [u8; PLACES],
    before: [u8; PLACES],
    length: usize,
    count: usize,
    /// While the row is filled: the last token, if it may be joined with what follows.
    open: Option<usize>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            ranks: [0; PLACES],
            both: [0; PLACES],
            least: [0; PLACES / BLOCK],
            next: [0; PLACES],
            before: [0; PLACES],
            length: 0,
            count: 0,
            open: None,
        }
    }
}

impl Row {
    /// How many tokens a piece of 1 to [`ROW`] bytes becomes.
    pub fn join(&mut self, words: &Words, piece: &[u8]) -> usize {
        self.clear(piece.len());
        self.fill(words, piece);
        let mut least = self.look_at_all();
        while least < FREE {
            least = match self.length <= BLOCK {
                true => self.merge::<false>(words, piece, least),
                false => self.merge::<true>(words, piece, least),
            };
        }
        self.count
    }

    /// Where the tokens of the piece that was joined last end.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
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
            self.both[at..at + BLOCK].fill(FREE);
        }
    }

    fn fill(&mut self, words: &Words, piece: &[u8]) {
        let mut at = 0;
        while at < piece.len() {
            let end = at + length(piece[at]);
            at = match end - at {
                1 => self.put_byte(words, piece, at),
                _ if end > piece.len() => self.put_byte(words, piece, at),
                _ => self.put_character(words, piece, at, end),
            };
        }
    }

    /// A token from a place to another one, by its rank.
    fn put(&mut self, words: &Words, piece: &[u8], at: usize, end: usize, rank: i32) {
        self.ranks[at] = rank;
        if end - at > 1 {
            self.next[at] = end as u8;
            self.before[end] = at as u8;
        }
        if let Some(last) = self.open {
            self.both[last] = self.together(words, piece, [last, at, end]);
        }
        self.open = Some(at);
        self.count += 1;
    }

    /// A byte, or two of them that are sure to become one: all words that have one of them at an end, and what is beside it,
    /// come later.
    fn put_byte(&mut self, words: &Words, piece: &[u8], at: usize) -> usize {
        if let Some([first, second]) = piece[at..].first_chunk()
            && first.is_ascii()
            && second.is_ascii()
        {
            let rank = words.pair(*first, *second);
            if rank < words.across(piece, at, at + 2) {
                self.put(words, piece, at, at + 2, rank);
                return at + 2;
            }
        }
        self.put(words, piece, at, at + 1, words.byte(piece[at]));
        at + 1
    }

    /// A character of more bytes. It becomes a token if it is a word, and all words that have a part of it and something
    /// beside it come later: until then, all that joins its parts is inside it. If there are no such words and it is none,
    /// its bytes are joined with each other and nothing else.
    fn put_character(&mut self, words: &Words, piece: &[u8], start: usize, end: usize) -> usize {
        let across = words.across(piece, start, end);
        let rank = words.whole(piece, start, end);
        if rank < across {
            self.put(words, piece, start, end, rank);
            return end;
        }
        let is_apart = rank.min(across) == NONE;
        if is_apart {
            self.open = None;
        }
        for at in start..end {
            self.put(words, piece, at, at + 1, words.byte(piece[at]));
        }
        if is_apart {
            self.join_inside(words, piece, start, end);
            self.open = None;
        }
        end
    }

    /// Joins the bytes of a character that is no word.
    fn join_inside(&mut self, words: &Words, piece: &[u8], start: usize, end: usize) {
        for left in (2..end - start).rev() {
            let least = least_of(&self.both[start..end - 1]);
            if least >= FREE {
                return;
            }
            let [before, at, gone, after] = self.link(least);
            self.both[gone] = FREE;
            self.both[at] = FREE;
            if left == 2 {
                // Both are the character together.
                self.both[start] = FREE;
                return;
            }
            if after < end {
                self.both[at] = self.together(words, piece, [at, after, usize::from(self.next[after])]);
            }
            if at > start {
                self.both[before] = self.together(words, piece, [before, at, after]);
            }
        }
    }

    fn look_at_all(&mut self) -> i32 {
        self.least = [FREE; PLACES / BLOCK];
        for block in 0..self.length.div_ceil(BLOCK) {
            self.least[block] = self.look(block);
        }
        least_of(&self.least)
    }

    fn look(&self, block: usize) -> i32 {
        let (blocks, _) = self.both.as_chunks::<BLOCK>();
        least_of(&blocks[block])
    }

    /// What two tokens are together: by the places of both, and the end.
    #[inline]
    fn together(&self, words: &Words, piece: &[u8], [at, next, end]: [usize; 3]) -> i32 {
        words.joined(piece, [at, end], [self.ranks[at], self.ranks[next]]) << 8 | at as i32
    }

    /// Joins the tokens that are the least together. Gives the places of the token before, of the new one, of the one that is
    /// none any more, and of the next one.
    fn link(&mut self, least: i32) -> [usize; 4] {
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
    fn merge<const MANY: bool>(&mut self, words: &Words, piece: &[u8], least: i32) -> i32 {
        let [before, at, gone, after] = self.link(least);
        // What changes is written first and looked up then: to read many places at once just after one of them was
        // written takes a core longer than both.
        let changed = [if at > 0 { before } else { at }, at, gone];
        for place in changed {
            self.both[place] = FREE;
            if MANY {
                self.least[place / BLOCK] = FREE;
            }
        }
        let (mut with_next, mut with_before) = (FREE, FREE);
        if after < self.length {
            with_next = self.together(words, piece, [at, after, usize::from(self.next[after])]);
        }
        if at > 0 {
            with_before = self.together(words, piece, [before, at, after]);
        }
        let mut least = with_next.min(with_before);
        if MANY {
            least = least.min(self.look_at(changed));
        } else {
            least = least.min(self.look(0));
        }
        self.set::<MANY>(at, with_next);
        if at > 0 {
            self.set::<MANY>(before, with_before);
        }
        least
    }

    /// The least of all, after some places changed.
    fn look_at(&mut self, changed: [usize; 3]) -> i32 {
        let mut all = least_of(&self.least);
        for (index, place) in changed.into_iter().enumerate() {
            let block = place / BLOCK;
            if index == 0 || block != changed[index - 1] / BLOCK {
                self.least[block] = self.look(block);
                all = all.min(self.least[block]);
            }
        }
        all
    }

    fn set<const MANY: bool>(&mut self, place: usize, both: i32) {
        self.both[place] = both;
        if MANY {
            let least = &mut self.least[place / BLOCK];
            *least = both.min(*least);
        }
    }
}

fn least_of(of: &[i32]) -> i32 {
    of.iter().fold(FREE, |least, next| least.min(*next))
}

/// Joins pieces of any length: a heap of what can be joined, by rank and place, over a list of what there is.
#[derive(Default)]
pub struct Heap {
    /// Of the token that begins here.
    ranks: Vec<i32>,
    /// Of the token that begins here and the next one together.
    both: Vec<i32>,
    next: Vec<u32>,
    before: Vec<u32>,
    heap: BinaryHeap<Reverse<u64>>,
}

impl Heap {
    /// How many tokens a piece becomes.
    pub fn join(&mut self, words: &Words, piece: &[u8]) -> usize {
        self.fill(words, piece);
        let mut count = piece.len();
        while let Some(Reverse(least)) = self.heap.pop() {
            let (rank, at) = ((least >> 32) as i32, least as u32 as usize);
            if self.both[at] == rank {
                self.merge(words, piece, at);
                count -= 1;
            }
        }
        count
    }

    /// Where the tokens of the piece that was joined last end.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at = *self.next.get(at)? as usize;
            Some(at)
        })
    }

    fn fill(&mut self, words: &Words, piece: &[u8]) {
        let length = piece.len() as u32;
        self.ranks.clear();
        self.ranks.extend(piece.iter().map(|byte| words.byte(*byte)));
        self.next.clear();
        self.next.extend(1..=length);
        self.before.clear();
        self.before.extend((0..=length).map(|at| at.wrapping_sub(1)));
        self.both.clear();
        self.both.extend(piece.array_windows().map(|[first, second]| words.pair(*first, *second)));
        self.both.push(NONE);
        let mut heap = std::mem::take(&mut self.heap).into_vec();
        heap.clear();
        let ranks = self.both.iter().zip(0..).filter(|(rank, _)| **rank != NONE);
        heap.extend(ranks.map(|(rank, at)| Reverse((*rank as u64) << 32 | at)));
        self.heap = heap.into();
    }

    /// Joins the token at a place and the next one.
    fn merge(&mut self, words: &Words, piece: &[u8], at: usize) {
        let gone = self.next[at] as usize;
        let after = self.next[gone];
        self.ranks[at] = self.both[at];
        self.next[at] = after;
        self.before[after as usize] = at as u32;
        self.both[gone] = NONE;
        self.weigh(words, piece, at);
        if at > 0 {
            self.weigh(words, piece, self.before[at] as usize);
        }
    }

    /// What the token at a place and the next one are together.
    fn weigh(&mut self, words: &Words, piece: &[u8], at: usize) {
        let next = self.next[at] as usize;
        self.both[at] = match self.next.get(next) {
            Some(end) => words.joined(piece, [at, *end as usize], [self.ranks[at], self.ranks[next]]),
            None => NONE,
        };
        if self.both[at] != NONE {
            self.heap.push(Reverse((self.both[at] as u64) << 32 | at as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static O200K: LazyLock<Words> =
        LazyLock::new(|| Words::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.words"))));
    static CL100K: LazyLock<Words> =
        LazyLock::new(|| Words::new(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.words"))));

    #[test]
    fn all_words_of_the_references_are_found_and_joined() {
        let references = [tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton()];
        for (words, reference, count) in [(&*O200K, references[0], 199_998), (&*CL100K, references[1], 100_256)] {
            let (mut row, mut heap) = (Row::default(), Heap::default());
            for rank in 0..count {
                let word = reference.decode_bytes(&[rank]).expect("a word");
                assert_eq!(words.whole(&word, 0, word.len()), rank as i32, "{word:?}");
                assert_eq!((row.join(words, &word), heap.join(words, &word)), (1, 1), "{word:?}");
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
            let piece = text.as_bytes().get(cut.0..text.len().saturating_sub(cut.1).min(cut.0 + ROW)).unwrap_or_default();
            prop_assume!(!piece.is_empty());
            for words in [&*O200K, &*CL100K] {
                let (mut row, mut heap) = (Row::default(), Heap::default());
                prop_assert_eq!(row.join(words, piece), heap.join(words, piece));
                prop_assert_eq!(row.ends().collect::<Vec<_>>(), heap.ends().collect::<Vec<_>>());
            }
        }
    }
}
