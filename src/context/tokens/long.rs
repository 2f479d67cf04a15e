//! Counts texts that a tokenizer is slow on, exactly: those with pieces of many thousand bytes (a letter repeated, a drawing
//! of `=`, a line without an end), and those with many characters that are not ASCII.
//!
//! A text is cut into pieces as everywhere, and each piece joined by rank as everywhere. A long piece is
//! joined in windows. Why that is exact: a row of tokens is what the encoding makes of a piece if, and only if, each two
//! neighbours are what it makes of both together. (Take the first join across a border between two tokens. Up to it all
//! joins between these two were those that they alone would have seen, and so is this one: alone they would have been joined
//! as well.) Inside a window neighbours are, and where two windows meet it is checked; where it is not so, the border is
//! moved, and at last the piece joined in one go.
//!
//! Invariants: the same count as without windows; time by the length of the text, whatever it is.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use tiktoken::CoreBpe;

use super::pieces::{Cutter, Rules};

/// Below this length, in bytes, no text is slow.
const SHORT_TEXT: usize = 16 << 10;
/// How far apart a text is looked at, in bytes: a piece of twice this length is seen.
const STRIDE: usize = 4 << 10;
/// So many changes between letters, blanks and other characters within a stride say that the pieces are short.
const CHANGES: usize = 16;
/// More characters that are not ASCII are left to the table of [`Cutter`]: the tokenizer's automaton may build a state for
/// each of them.
const MANY: usize = 256;
/// A window, in bytes: what joining it takes fits into the first cache of a core.
const WINDOW: usize = 2 << 10;
/// Where a window ends says something about its last tokens; the last quarter is left to the next one.
const KEPT: usize = WINDOW / 4 * 3;
/// Borders that are tried where two windows meet.
const TRIES: usize = 16;

/// Whether a text is slow to count: it may have long pieces, by a look at a few places, or has many characters that are
/// not ASCII, or some rows of such blanks.
pub fn is_hard(text: &str) -> bool {
    let has_long = text.len() >= SHORT_TEXT && (0..text.len() / STRIDE).any(|at| is_uniform(text, at * STRIDE));
    has_long || !text.is_ascii() && (others(text).nth(MANY).is_some() || text.len() >= STRIDE && has_odd_blanks(text))
}

/// Where characters start that are not ASCII.
fn others(text: &str) -> impl Iterator<Item = usize> {
    text.bytes().enumerate().filter(|(_, byte)| *byte >= 0xc0).map(|(at, _)| at)
}

/// Whether characters are of one sort for a stride, as good as.
fn is_uniform(text: &str, start: usize) -> bool {
    let rest = text.get(text.floor_char_boundary(start)..).unwrap_or_default();
    let mut last = None;
    let (mut seen, mut changes) = (0, 0);
    for c in rest.chars() {
        // Of numbers a piece has three digits at most.
        let sort = match () {
            () if c.is_numeric() => 0,
            // A row of signs may go on over line ends.
            () if last == Some(3) && matches!(c, '\r' | '\n') => 3,
            () if c.is_whitespace() => 1,
            () if c.is_alphabetic() => 2,
            () => 3,
        };
        changes += usize::from(sort == 0 || last != Some(sort));
        last = Some(sort);
        seen += c.len_utf8();
        if changes > CHANGES || seen >= STRIDE {
            break;
        }
    }
    changes <= CHANGES && seen >= STRIDE
}

/// Whether there are rows of blanks that are not all ASCII: behind each of them the tokenizer looks through the rest of the
/// text, which takes seconds for 100 KB of them.
fn has_odd_blanks(text: &str) -> bool {
    let in_row = |at: &usize| {
        let (before, from) = text.split_at(*at);
        let mut from = from.chars().map(char::is_whitespace);
        from.next() == Some(true) && (from.next() == Some(true) || before.ends_with(char::is_whitespace))
    };
    others(text).filter(in_row).nth(CHANGES).is_some()
}

/// An encoding's words, and how it cuts texts into pieces.
pub struct Long {
    cutter: Cutter,
    /// By rank, where each word begins in `bytes`; and the end.
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// By hash, the ranks of the words that have it.
    ranks: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    /// Words that share their hash with another one.
    others: HashMap<Vec<u8>, u32>,
}

impl Long {
    pub fn new(words: &CoreBpe, rules: Rules) -> Self {
        let mut long = Self {
            cutter: Cutter::new(rules),
            starts: vec![0],
            bytes: Vec::new(),
            ranks: HashMap::default(),
            others: HashMap::new(),
        };
        for rank in 0..words.vocab_size() as u32 {
            let word = words.decode(&[rank]);
            long.bytes.extend_from_slice(&word);
            long.starts.push(long.bytes.len() as u32);
            match long.ranks.entry(hash(&word)) {
                Entry::Occupied(_) => drop(long.others.insert(word, rank)),
                Entry::Vacant(free) => {
                    free.insert(rank);
                }
            }
        }
        long
    }

    fn rank(&self, word: &[u8]) -> Option<u32> {
        let rank = *self.ranks.get(&hash(word))?;
        let (start, end) = (self.starts[rank as usize] as usize, self.starts[rank as usize + 1] as usize);
        match self.bytes[start..end] == *word {
            true => Some(rank),
            false => self.others.get(word).copied(),
        }
    }

    pub fn count(&self, text: &str) -> usize {
        let (mut rest, mut count) = (text, 0);
        let mut joining = Joining::default();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.cutter.first(rest));
            count += self.of_piece(piece.as_bytes(), &mut joining);
            rest = behind;
        }
        count
    }

    fn of_piece(&self, piece: &[u8], joining: &mut Joining) -> usize {
        match piece.len() {
            0 | 1 => piece.len(),
            length if length > 2 * WINDOW => {
                self.in_windows(piece, joining).unwrap_or_else(|| joining.join(self, piece).len())
            }
            _ if self.rank(piece).is_some() => 1,
            _ => joining.join(self, piece).len(),
        }
    }

    /// `None` where windows do not meet.
    fn in_windows(&self, piece: &[u8], joining: &mut Joining) -> Option<usize> {
        let mut count = 0;
        let (mut start, mut ends) = (0, self.window(piece, 0, joining));
        loop {
            if start + ends.last()? == piece.len() {
                return Some(count + ends.len());
            }
            let most = ends.partition_point(|end| *end <= KEPT).max(1);
            let borders = (1..=most).rev().take(TRIES);
            let next = borders.into_iter().find_map(|kept| {
                let last = kept.checked_sub(2).map_or(0, |before| ends[before]);
                let (from, border) = (start + last, start + ends[kept - 1]);
                let next = self.window(piece, border, joining);
                let pair = &piece[from..border + next.first()?];
                (joining.join(self, pair) == [border - from, pair.len()]).then_some((kept, border, next))
            });
            let (kept, border, next) = next?;
            count += kept;
            (start, ends) = (border, next);
        }
    }

    /// Where the tokens of the window at `start` end, from there.
    fn window(&self, piece: &[u8], start: usize, joining: &mut Joining) -> Vec<usize> {
        joining.join(self, &piece[start..piece.len().min(start + WINDOW)]).to_vec()
    }
}

/// Joins bytes to tokens: a heap of what can be joined, by rank and place, over a list of what there is.
#[derive(Default)]
struct Joining {
    next: Vec<u32>,
    before: Vec<u32>,
    /// Of the token that begins here and the next one together; [`NONE`] where that is no word.
    ranks: Vec<u32>,
    heap: BinaryHeap<Reverse<u64>>,
    ends: Vec<usize>,
}

const NONE: u32 = u32::MAX;

impl Joining {
    /// Where the tokens end.
    fn join(&mut self, words: &Long, piece: &[u8]) -> &[usize] {
        let length = piece.len();
        self.next.clear();
        self.next.extend(1..=length as u32);
        self.before.clear();
        self.before.extend((0..length as u32).map(|at| at.wrapping_sub(1)));
        self.ranks.clear();
        self.ranks.resize(length, NONE);
        self.heap.clear();
        for at in 0..length.saturating_sub(1) {
            self.weigh(words, piece, at);
        }
        while let Some(Reverse(best)) = self.heap.pop() {
            let (rank, at) = ((best >> 32) as u32, best as u32 as usize);
            if self.ranks[at] != rank {
                continue;
            }
            let joined = self.next[at] as usize;
            let after = self.next[joined];
            self.next[at] = after;
            self.ranks[joined] = NONE;
            if let Some(before) = self.before.get_mut(after as usize) {
                *before = at as u32;
            }
            self.weigh(words, piece, at);
            if at > 0 {
                self.weigh(words, piece, self.before[at] as usize);
            }
        }
        self.ends.clear();
        let mut at = 0;
        while at < length {
            at = self.next[at] as usize;
            self.ends.push(at);
        }
        &self.ends
    }

    /// What the token at `at` and the next one are together.
    fn weigh(&mut self, words: &Long, piece: &[u8], at: usize) {
        let next = self.next[at] as usize;
        let end = self.next.get(next).map(|end| *end as usize);
        let rank = end.and_then(|end| words.rank(&piece[at..end]));
        self.ranks[at] = rank.unwrap_or(NONE);
        if let Some(rank) = rank {
            self.heap.push(Reverse(u64::from(rank) << 32 | at as u64));
        }
    }
}

fn hash(word: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash.rotate_left(5) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut eights = word.chunks_exact(8);
    let hash = eights.by_ref().fold(word.len() as u64, |hash, eight| {
        mix(hash, eight.iter().fold(0, |part, byte| part << 8 | u64::from(*byte)))
    });
    let hash = mix(hash, eights.remainder().iter().fold(0, |part, byte| part << 8 | u64::from(*byte)));
    hash ^ hash >> 29
}

/// What is hashed already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
