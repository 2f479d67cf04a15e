//! Finds the equal parts of two token streams, apart from names and literals.
//!
//! Fingerprints are winnowed hashes of [`GRAM_TOKENS`] token shapes (Schleimer, Wilkerson and Aiken: "Winnowing",
//! 2003): every common run of `GRAM_TOKENS + WINDOW_GRAMS - 1` = 50 shapes shares a fingerprint. A fingerprint in both
//! streams is a seed. Seeds grow to maximal runs, and runs with a small gap between them are one copy. [`CloneRules`]
//! are the further conditions for a copy.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::lexer::{self, CloneToken, NAME_SHAPE, NUMBER_SHAPE, STRING_SHAPE};

/// Number of tokens in a fingerprint.
pub const GRAM_TOKENS: usize = 24;
/// Number of consecutive fingerprints of which winnowing keeps one.
pub const WINDOW_GRAMS: usize = 27;
/// Maximum number of tokens that differ between two runs of a copy.
const MAX_GAP_TOKENS: u32 = 12;
/// Minimum number of tokens in a run between gaps. Shorter runs are chance.
const MIN_RUN_TOKENS: u32 = 12;
/// Maximum number of repeats of a fingerprint in one file. A more frequent fingerprint belongs to a table or an idiom.
const MAX_REPEATS_PER_FILE: usize = 12;

/// Hasher for keys that are hashes already.
#[derive(Default)]
pub struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) ^ u64::from(byte);
        }
    }
    fn write_u32(&mut self, value: u32) {
        // A hash table uses the upper bits and the lower bits, so the value is spread over all 64 bits.
        self.0 = u64::from(value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FingerprintHasher>>;

/// A fingerprint and the index of its first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenFingerprint {
    pub hash: u32,
    pub at: u32,
}

/// Returns the winnowed fingerprints in order.
pub fn winnow_fingerprints(tokens: &[CloneToken]) -> Vec<TokenFingerprint> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    const TOP: u64 = {
        let mut power = 1u64;
        let mut n = 1;
        while n < GRAM_TOKENS {
            power = power.wrapping_mul(BASE);
            n += 1;
        }
        power
    };
    let mut prints: Vec<TokenFingerprint> = Vec::with_capacity(tokens.len() / 10);
    let mut window = [u32::MAX; WINDOW_GRAMS];
    let mut rolling = 0u64;
    // Gram number of the smallest hash in the window.
    let mut least = usize::MAX;
    for (index, token) in tokens.iter().enumerate() {
        if index >= GRAM_TOKENS {
            let gone = mix_shape(tokens[index - GRAM_TOKENS].shape);
            rolling = rolling.wrapping_sub(gone.wrapping_mul(TOP));
        }
        rolling = rolling.wrapping_mul(BASE).wrapping_add(mix_shape(token.shape));
        let Some(gram) = (index + 1).checked_sub(GRAM_TOKENS) else { continue };
        let hash = ((rolling ^ (rolling >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32;
        window[gram % WINDOW_GRAMS] = hash;
        let before = least;
        if least != usize::MAX && gram >= least + WINDOW_GRAMS {
            // The smallest hash has left the window.
            let first = gram + 1 - WINDOW_GRAMS;
            least = (first..=gram).min_by_key(|&g| (window[g % WINDOW_GRAMS], std::cmp::Reverse(g))).unwrap_or(gram);
        } else if least == usize::MAX || hash <= window[least % WINDOW_GRAMS] {
            least = gram;
        }
        // Until the first window is full, its smallest hash may still change.
        if gram + 1 == WINDOW_GRAMS || (gram >= WINDOW_GRAMS && least != before) {
            prints.push(TokenFingerprint { hash: window[least % WINDOW_GRAMS], at: least as u32 });
        }
    }
    if prints.is_empty() && least != usize::MAX {
        prints.push(TokenFingerprint { hash: window[least % WINDOW_GRAMS], at: least as u32 });
    }
    prints
}

fn mix_shape(shape: u32) -> u64 {
    u64::from(shape).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1
}

/// A run: tokens `a..a + length` of one stream have the shapes of tokens `b..b + length` of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRun {
    pub a: u32,
    pub b: u32,
    pub length: u32,
}

/// A copy: runs with small gaps between them, in order on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneMatch {
    pub runs: Vec<TokenRun>,
}

impl CloneMatch {
    /// Returns the range of tokens on side `a`, end exclusive.
    pub fn range_a(&self) -> (u32, u32) {
        self.runs.first().zip(self.runs.last()).map_or((0, 0), |(first, last)| (first.a, last.a + last.length))
    }

    /// Returns the range of tokens on side `b`, end exclusive.
    pub fn range_b(&self) -> (u32, u32) {
        self.runs.first().zip(self.runs.last()).map_or((0, 0), |(first, last)| (first.b, last.b + last.length))
    }

    /// Returns the number of tokens with equal shape.
    pub fn token_count(&self) -> u32 {
        self.runs.iter().map(|run| run.length).sum()
    }

    /// Returns the copy with its sides exchanged.
    pub fn swapped(&self) -> Self {
        Self { runs: self.runs.iter().map(|run| TokenRun { a: run.b, b: run.a, length: run.length }).collect() }
    }

    /// Returns the part of the copy between two tokens of side `a`, end exclusive.
    pub fn clip(&self, from: u32, to: u32) -> Self {
        let runs = self.runs.iter().filter_map(|run| {
            let (start, end) = (run.a.max(from), (run.a + run.length).min(to));
            (start < end).then(|| TokenRun { a: start, b: run.b + (start - run.a), length: end - start })
        });
        Self { runs: runs.collect() }
    }

    /// Returns the pairs of tokens that correspond to each other.
    pub fn token_pairs<'a>(
        &'a self,
        a: &'a [CloneToken],
        b: &'a [CloneToken],
    ) -> impl Iterator<Item = (&'a CloneToken, &'a CloneToken)> {
        self.runs.iter().flat_map(move |run| {
            let length = run.length as usize;
            a[run.a as usize..][..length].iter().zip(&b[run.b as usize..][..length])
        })
    }
}

/// Groups fingerprints by hash, without those that repeat too often.
pub fn group_by_hash(prints: &[TokenFingerprint]) -> FastMap<u32, Vec<u32>> {
    let mut map: FastMap<u32, Vec<u32>> = FastMap::default();
    for print in prints {
        map.entry(print.hash).or_default().push(print.at);
    }
    map.retain(|_, places| places.len() <= MAX_REPEATS_PER_FILE);
    map
}

/// Finds the copies between two streams. With `None` for `b`, compares `a` with itself, later places with earlier ones.
pub fn find_matches(
    a: &[CloneToken],
    a_prints: &FastMap<u32, Vec<u32>>,
    b: Option<(&[CloneToken], &[TokenFingerprint])>,
) -> Vec<CloneMatch> {
    let mut runs: Vec<TokenRun> = Vec::new();
    match b {
        Some((b, prints)) => {
            // The end of the last run on each diagonal: seeds inside that run are known.
            let mut reached: FastMap<u64, u32> = FastMap::default();
            for print in prints {
                for &place in a_prints.get(&print.hash).into_iter().flatten() {
                    extend_seed(a, b, place, print.at, u32::MAX, &mut reached, &mut runs);
                }
            }
        }
        None => {
            let mut reached: FastMap<u64, u32> = FastMap::default();
            for places in a_prints.values().filter(|places| places.len() > 1) {
                for (index, &late) in places.iter().enumerate() {
                    for &early in &places[..index] {
                        extend_seed(a, a, late, early, late - early, &mut reached, &mut runs);
                    }
                }
            }
        }
    }
    chain_runs(runs, b.is_none())
}

/// Grows a seed in both directions as far as the shapes agree, to at most `limit` tokens.
fn extend_seed(
    a: &[CloneToken],
    b: &[CloneToken],
    at_a: u32,
    at_b: u32,
    limit: u32,
    reached: &mut FastMap<u64, u32>,
    runs: &mut Vec<TokenRun>,
) {
    let diagonal = (u64::from(at_a) + (1 << 32)).wrapping_sub(u64::from(at_b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if reached.get(&diagonal).is_some_and(|&end| at_a < end) {
        return;
    }
    let (mut start_a, mut start_b) = (at_a as usize, at_b as usize);
    let (mut end_a, mut end_b) = (start_a, start_b);
    while end_a < a.len() && end_b < b.len() && a[end_a].shape == b[end_b].shape {
        end_a += 1;
        end_b += 1;
    }
    if end_a - start_a < GRAM_TOKENS {
        // Different shapes with equal hashes.
        return;
    }
    while start_a > 0 && start_b > 0 && a[start_a - 1].shape == b[start_b - 1].shape {
        start_a -= 1;
        start_b -= 1;
    }
    reached.insert(diagonal, end_a as u32);
    // A text that overlaps its own copy is periodic: keep only the first period.
    let length = ((end_a - start_a) as u32).min(limit);
    runs.push(TokenRun { a: start_a as u32, b: start_b as u32, length });
}

fn chain_runs(mut runs: Vec<TokenRun>, same_file: bool) -> Vec<CloneMatch> {
    runs.sort_unstable();
    runs.dedup();
    let mut copies: Vec<CloneMatch> = Vec::new();
    // Copies that may continue, by their end on either side: a block that occurs often has many.
    let mut by_a: BTreeSet<(u32, usize)> = BTreeSet::new();
    let mut by_b: BTreeSet<(u32, usize)> = BTreeSet::new();
    for run in runs.into_iter().filter(|run| run.length >= MIN_RUN_TOKENS) {
        while let Some(&(a_end, index)) = by_a.first()
            && a_end + MAX_GAP_TOKENS < run.a
        {
            by_a.pop_first();
            by_b.remove(&(copies[index].range_b().1, index));
        }
        let near = by_b.range((run.b.saturating_sub(MAX_GAP_TOKENS), 0)..=(run.b, usize::MAX)).map(|&(_, index)| index);
        let fits = near.filter(|&index| {
            let (a_start, a_end) = copies[index].range_a();
            (!same_file || run.b + run.length <= a_start) && run.a >= a_end
        });
        let index = match fits.min() {
            Some(index) => {
                by_a.remove(&(copies[index].range_a().1, index));
                by_b.remove(&(copies[index].range_b().1, index));
                copies[index].runs.push(run);
                index
            }
            None => {
                copies.push(CloneMatch { runs: vec![run] });
                copies.len() - 1
            }
        };
        by_a.insert((copies[index].range_a().1, index));
        by_b.insert((copies[index].range_b().1, index));
    }
    copies
}

/// Conditions for a copy that is worth a report.
#[derive(Debug, Clone, Copy)]
pub struct CloneRules {
    pub min_tokens: u32,
    pub min_lines: u32,
    /// In percent.
    pub min_similarity: u32,
    /// Factor for `min_tokens` in test code.
    pub test_factor: f64,
}

/// Similarity of the two sides of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneSimilarity {
    /// Share of identical tokens among all tokens of the longer side, gaps included, in percent.
    pub percent: u32,
    /// True if all tokens are identical.
    pub verbatim: bool,
}

/// Measures the similarity of the two sides. `None` if names are not changed consistently (in fewer than 80 % of the
/// cases): then only the shape is the same.
pub fn measure_similarity(copy: &CloneMatch, a: &[CloneToken], b: &[CloneToken]) -> Option<CloneSimilarity> {
    let (a_range, b_range) = (copy.range_a(), copy.range_b());
    let total = (a_range.1 - a_range.0).max(b_range.1 - b_range.0).max(1);
    let (mut equal, mut names, mut consistent) = (0u32, 0u32, 0u32);
    let mut there: FastMap<u32, u32> = FastMap::default();
    let mut back: FastMap<u32, u32> = FastMap::default();
    for (one, other) in copy.token_pairs(a, b) {
        equal += u32::from(one.exact == other.exact);
        if one.shape == NAME_SHAPE {
            let known = there.contains_key(&one.exact) || back.contains_key(&other.exact);
            let agrees = *there.entry(one.exact).or_insert(other.exact) == other.exact
                && *back.entry(other.exact).or_insert(one.exact) == one.exact;
            // The first occurrence of a name proves nothing, unless both sides have the same name.
            if known || one.exact == other.exact {
                names += 1;
                consistent += u32::from(agrees);
            }
        }
    }
    let verbatim = equal == total;
    if !verbatim && consistent * 100 < names * 80 {
        return None;
    }
    Some(CloneSimilarity { percent: equal * 100 / total, verbatim })
}

/// Returns whether tokens are a table, a signature, a list of accessors or other repetitive code.
pub fn is_boilerplate(tokens: &[CloneToken]) -> bool {
    let length = tokens.len();
    if length < GRAM_TOKENS {
        return true;
    }
    let (mut literals, mut separators, mut assignments, mut steps) = (0, 0, 0, 0);
    let mut last = 0;
    for token in tokens {
        match token.shape {
            NUMBER_SHAPE | STRING_SHAPE => literals += 1,
            NAME_SHAPE => {}
            _ if lexer::is_fixed_token(token, ",") || lexer::is_fixed_token(token, ":") => separators += 1,
            _ if lexer::is_fixed_token(token, "=") => assignments += 1,
            // A call; the next arm counts branches and exits.
            _ if lexer::is_fixed_token(token, "(") => steps += usize::from(last == NAME_SHAPE),
            _ if CONTROL_TOKENS.iter().any(|word| lexer::is_fixed_token(token, word)) => steps += 1,
            _ => {}
        }
        last = token.shape;
    }
    // Tables of literals (arrays, maps, cases of a test), signatures and lists of fields.
    if (literals + separators) * 100 >= length * 45 || (steps + assignments) * 14 < length || steps < 3 {
        return true;
    }
    (2..=(length * 3 / 5).min(40)).any(|period| {
        let equal = tokens.iter().zip(&tokens[period..]).filter(|(one, next)| one.shape == next.shape).count();
        equal * 100 >= (length - period) * 82
    })
}

/// Keywords of all languages that cause an action, and operators that call or assign in some languages.
const CONTROL_TOKENS: &[&str] = &[
    "if", "for", "foreach", "while", "return", "unless", "then", "do", "yield", "await", "throw", "raise", "match",
    "switch", ":=", "+=", "-=", "<<", "?.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::language::Language;

    fn lex(text: &str) -> Vec<CloneToken> {
        lexer::tokenize(Language::Go, text.as_bytes())
    }

    #[test]
    fn every_run_of_fifty_shapes_shares_a_fingerprint() {
        // A pseudo-random stream, and 50 of its tokens inside another stream at every offset.
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        let mut stream = |n: usize| -> Vec<CloneToken> {
            (0..n).map(|_| CloneToken { shape: random() + 10, exact: 0, line: 1 }).collect()
        };
        let (one, frame) = (stream(400), stream(400));
        for offset in 0..300 {
            let mut other = frame.clone();
            other.splice(offset..offset, one[offset..offset + GRAM_TOKENS + WINDOW_GRAMS - 1].to_vec());
            let map = group_by_hash(&winnow_fingerprints(&one));
            let found = find_matches(&one, &map, Some((&other, &winnow_fingerprints(&other))));
            let longest = found.iter().map(CloneMatch::token_count).max();
            assert!(longest >= Some(50), "offset {offset}: {longest:?}");
        }
        let density = winnow_fingerprints(&stream(100_000)).len();
        assert!((5_000..9_500).contains(&density), "{density}");
    }

    /// Reference implementation of [`chain_runs`], which compares every run with every open copy.
    fn chained_by_hand(mut runs: Vec<TokenRun>, same_file: bool) -> Vec<CloneMatch> {
        runs.sort_unstable();
        runs.dedup();
        let mut copies: Vec<CloneMatch> = Vec::new();
        for run in runs.into_iter().filter(|run| run.length >= MIN_RUN_TOKENS) {
            let fits = copies.iter_mut().find(|copy| {
                let ((a_start, a_end), (_, b_end)) = (copy.range_a(), copy.range_b());
                let apart = !same_file || run.b + run.length <= a_start;
                apart
                    && (a_end..=a_end + MAX_GAP_TOKENS).contains(&run.a)
                    && (b_end..=b_end + MAX_GAP_TOKENS).contains(&run.b)
            });
            match fits {
                Some(copy) => copy.runs.push(run),
                None => copies.push(CloneMatch { runs: vec![run] }),
            }
        }
        copies
    }

    proptest::proptest! {
        #[test]
        fn chains_are_those_of_a_look_at_every_copy(
            runs in proptest::collection::vec((0u32..120, 0u32..120, 5u32..30), 0..80), same_file: bool,
        ) {
            let runs: Vec<TokenRun> = runs.into_iter().map(|(a, b, length)| TokenRun { a, b, length }).collect();
            proptest::prop_assert_eq!(chain_runs(runs.clone(), same_file), chained_by_hand(runs, same_file));
        }
    }

    #[test]
    fn a_block_that_stands_ten_thousand_times_is_chained_at_once() {
        // Three runs per copy, all of the same place: comparing every run with every open copy would take a billion
        // steps.
        let runs = (0..10_000).flat_map(|n| [0, 20, 40].map(|at| TokenRun { a: at, b: n * 100 + at, length: 15 }));
        let copies = chain_runs(runs.collect(), false);
        assert!(copies.len() == 10_000 && copies.iter().all(|copy| copy.runs.len() == 3));
    }

    #[test]
    fn names_must_stand_for_each_other() {
        let one = lex(
            "func a(x, y) { if x > y { return x - y }; z := f(x, y); for z > x { z = z - x; y = y + z }; return z }",
        );
        let renamed = lex(
            "func b(p, q) { if p > q { return p - q }; r := g(p, q); for r > p { r = r - p; q = q + r }; return r }",
        );
        let shuffled = lex(
            "func b(p, q) { if q > p { return r - s }; t := g(v, q); for w > p { q = m - w; p = q + r }; return p }",
        );
        let like = |other: &[CloneToken]| {
            let copy = CloneMatch { runs: vec![TokenRun { a: 0, b: 0, length: one.len() as u32 }] };
            measure_similarity(&copy, &one, other)
        };
        assert_eq!(like(&one), Some(CloneSimilarity { percent: 100, verbatim: true }));
        assert!(like(&renamed).is_some_and(|like| (45..75).contains(&like.percent) && !like.verbatim));
        assert_eq!(like(&shuffled), None);
    }

    #[test]
    fn tables_and_accessors_are_boilerplate() {
        let accessors: String = (0..9).map(|n| format!("func (s S) Get{n}() int {{ return s.f{n} }}\n")).collect();
        let table: String = (0..30).map(|n| format!("{{ \"a{n}\", {n}, f{n} }},\n")).collect();
        assert!(is_boilerplate(&lex(&accessors)));
        assert!(is_boilerplate(&lex(&table)));
        let code = "total := 0\nfor _, item := range items {\nif item.Price <= 0 || item.Count == 0 {\ncontinue\n}\nprice := item.Price * \
                    item.Count\nif item.Discount > limit {\nprice = price - item.Discount\n}\ntotal += price\n}\nreturn total, nil\n";
        assert!(!is_boilerplate(&lex(code)));
    }
}
