//! Provides the baseline: a trigram model over tokens with interpolated Witten-Bell smoothing. Lines are ranked by
//! the mean surprise of their tokens.
//!
//! - The model sees only the files of the learning part. A token that is not in these files is the unknown token.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Maximum size of the vocabulary, so that three tokens fit into 63 bits; further tokens are unknown.
const MAX_VOCABULARY: usize = (1 << 21) - 1;
/// Token that no file of the learning part has.
const UNKNOWN: u32 = 0;
/// Token before the start of a file, used twice. It is never predicted.
const BEGIN: u32 = 1;

/// Hasher for keys that are numbers. Nobody gains from collisions here, so a fast hash is enough.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }
}

/// Map with numbers as keys.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Counts of a context: how often any token followed, and how many distinct tokens.
#[derive(Debug, Clone, Copy, Default)]
struct ContextCounts {
    times: u32,
    kinds: u32,
}

/// Trigram model.
#[derive(Debug, Default)]
pub struct Trigrams {
    words: HashMap<Box<[u8]>, u32>,
    one: NumberMap<u32, u32>,
    all: ContextCounts,
    two: NumberMap<u64, u32>,
    after_one: NumberMap<u32, ContextCounts>,
    three: NumberMap<u64, u32>,
    after_two: NumberMap<u64, ContextCounts>,
}

fn pack_pair(first: u32, second: u32) -> u64 {
    u64::from(first) << 21 | u64::from(second)
}

fn pack_triple(first: u32, second: u32, third: u32) -> u64 {
    pack_pair(first, second) << 21 | u64::from(third)
}

impl Trigrams {
    /// Learns the tokens of one file.
    pub fn learn<'a>(&mut self, tokens: impl Iterator<Item = &'a [u8]>) {
        let (mut first, mut second) = (BEGIN, BEGIN);
        for token in tokens {
            let word = self.learn_word(token);
            self.all.times += 1;
            self.all.kinds += u32::from(increment(self.one.entry(word).or_default()));
            let followed = self.after_one.entry(second).or_default();
            followed.times += 1;
            followed.kinds += u32::from(increment(self.two.entry(pack_pair(second, word)).or_default()));
            let followed = self.after_two.entry(pack_pair(first, second)).or_default();
            followed.times += 1;
            followed.kinds += u32::from(increment(self.three.entry(pack_triple(first, second, word)).or_default()));
            (first, second) = (second, word);
        }
    }

    fn learn_word(&mut self, token: &[u8]) -> u32 {
        if let Some(word) = self.words.get(token) {
            return *word;
        }
        if self.words.len() + 2 >= MAX_VOCABULARY {
            return UNKNOWN;
        }
        let word = self.words.len() as u32 + 2;
        self.words.insert(token.into(), word);
        word
    }

    /// Calls `each` with the index and the surprise of each token, in nats.
    pub fn visit_surprise<'a>(&self, tokens: impl Iterator<Item = &'a [u8]>, each: &mut dyn FnMut(usize, f64)) {
        let (mut first, mut second) = (BEGIN, BEGIN);
        for (at, token) in tokens.enumerate() {
            let word = self.words.get(token).copied().unwrap_or(UNKNOWN);
            each(at, -self.likelihood(first, second, word).ln());
            (first, second) = (second, word);
        }
    }

    /// Returns the probability of a token. It is never 0: every known token and the unknown one have a share.
    fn likelihood(&self, first: u32, second: u32, word: u32) -> f64 {
        let flat = 1.0 / (self.words.len() + 2) as f64;
        let one = interpolate(get_count(&self.one, &word), self.all, flat);
        let two =
            interpolate(get_count(&self.two, &pack_pair(second, word)), get_context(&self.after_one, &second), one);
        interpolate(
            get_count(&self.three, &pack_triple(first, second, word)),
            get_context(&self.after_two, &pack_pair(first, second)),
            two,
        )
    }
}

/// Increments a count and returns true if it was 0.
fn increment(count: &mut u32) -> bool {
    *count += 1;
    *count == 1
}

fn get_count<K: std::hash::Hash + Eq>(counts: &NumberMap<K, u32>, key: &K) -> f64 {
    f64::from(counts.get(key).copied().unwrap_or(0))
}

fn get_context<K: std::hash::Hash + Eq>(contexts: &NumberMap<K, ContextCounts>, key: &K) -> ContextCounts {
    contexts.get(key).copied().unwrap_or_default()
}

/// Interpolates by Witten and Bell: a context with many distinct followers gives more weight to the shorter context.
fn interpolate(times: f64, context: ContextCounts, shorter: f64) -> f64 {
    let kinds = f64::from(context.kinds);
    match context.times {
        0 => shorter,
        all => (times + kinds * shorter) / (f64::from(all) + kinds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = &[u8]> {
        text.split(' ').map(str::as_bytes)
    }

    fn surprise(model: &Trigrams, text: &str) -> Vec<f64> {
        let mut all = Vec::new();
        model.visit_surprise(words(text), &mut |_, nats| all.push(nats));
        all
    }

    #[test]
    fn what_was_seen_often_surprises_less_and_nothing_surprises_without_bound() {
        let mut model = Trigrams::default();
        for _ in 0..20 {
            model.learn(words("if ( a == b ) return a ;"));
        }
        let usual = surprise(&model, "if ( a == b ) return a ;");
        let odd = surprise(&model, "if ( a = never ) return b ;");
        assert!(usual.iter().sum::<f64>() < odd.iter().sum::<f64>());
        assert!(odd.iter().all(|nats| nats.is_finite() && *nats >= 0.0), "{odd:?}");
        assert!(odd[4] > usual[4] + 1.0, "{odd:?} {usual:?}");
    }

    #[test]
    fn the_likelihoods_behind_a_context_add_up_to_one() {
        let mut model = Trigrams::default();
        model.learn(words("a b a c a b b"));
        let (a, b) = (model.words[b"a".as_slice()], model.words[b"b".as_slice()]);
        let every = [UNKNOWN, BEGIN].into_iter().chain(model.words.values().copied());
        let sum: f64 = every.map(|word| model.likelihood(a, b, word)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
