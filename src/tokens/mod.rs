//! Counts tokens: exactly with the public encodings of models, approximately for models without a public encoding, and
//! as a cheap upper bound.
//!
//! The exact counter takes no time to build: the tables of its words (7.5 MB for `o200k_base`) are made by the build and
//! are part of the program. The system reads the parts of them that a text needs. Code that needs only an upper bound
//! ([`upper_bound`]) reads none of them.
//!
//! The counter is our own because users feel the difference. With the crate `tiktoken` 3.8 in its place, and the same
//! counts, a warm context of redis takes 1.37 times the processor time (415 instead of 305 ms), a cold index of it 1.08
//! times. A ledger takes the same time: it needs only the bound. The crate provides the words at build time, and
//! `tiktoken-rs` is the reference of the tests.

mod bpe_merge;
mod count_cache;
mod counter;
mod pretokenizer;
mod sorts;
pub(crate) mod token_bound;
mod vocabulary;
mod vocabulary_format;
mod word_starts;

use std::sync::LazyLock;

use counter::Counter;
use pretokenizer::SplitRules;
use vocabulary::BpeVocabulary;

pub(crate) use self::count_cache::TokenCountCache;
pub use crate::domain::Encoding;

/// Returns the counter of an encoding; an approximate encoding uses `o200k_base`.
fn counter(encoding: Encoding) -> &'static Counter {
    static O200K: LazyLock<Counter> = LazyLock::new(|| Counter::new(BpeVocabulary::o200k(), SplitRules::O200k));
    static CL100K: LazyLock<Counter> = LazyLock::new(|| Counter::new(BpeVocabulary::cl100k(), SplitRules::Cl100k));
    match encoding {
        Encoding::O200kBase | Encoding::Approximate { .. } => &O200K,
        Encoding::Cl100kBase => &CL100K,
    }
}

/// Returns the number of tokens: exact, or rounded up for an approximate encoding. Text that looks like a special token
/// is counted as plain text.
pub fn count_tokens(encoding: Encoding, text: &str) -> usize {
    scale_count(encoding, counter(encoding).count_tokens(text))
}

/// Scales an exact `o200k_base` count to the encoding.
fn scale_count(encoding: Encoding, counted: usize) -> usize {
    match encoding {
        Encoding::O200kBase | Encoding::Cl100kBase => counted,
        Encoding::Approximate { percent } => (counted * percent as usize).div_ceil(100),
    }
}

/// Returns an upper bound of [`count_tokens`] for [`Encoding::O200kBase`] without the tables of its words. The bound is
/// about a tenth too high for the text of a ledger.
pub fn upper_bound(text: &str) -> usize {
    token_bound::tokens_at_most(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts with the reference implementation.
    fn reference(encoding: Encoding, text: &str) -> usize {
        let reference = match encoding {
            Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            _ => tiktoken_rs::o200k_base_singleton(),
        };
        reference.encode_ordinary(text).len()
    }

    #[test]
    fn code_prose_and_odd_texts_are_counted_as_the_reference_counts_them() {
        let mut texts: Vec<String> = Vec::new();
        for folder in ["src/context", "src/domain", "assets", "docs", "."] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                texts.extend(std::fs::read_to_string(entry.path()).ok());
            }
        }
        assert!(texts.len() > 30, "{}", texts.len());
        for unit in
            ["a", " ", "\n", "\t\n ", "👩‍👩‍👧‍👦", "é", "日本", "\u{301}", "1", "'s", "<|endoftext|>", "\r\n", "\u{2028}"]
        {
            texts.extend([1, 2, 3, 7, 100, 1_001].map(|count| unit.repeat(count)));
        }
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
            for text in &texts {
                let start: String = text.chars().take(40).collect();
                assert_eq!(count_tokens(encoding, text), reference(encoding, text), "{encoding:?}: {start:?}");
            }
        }
    }

    /// Generates texts of one or two character classes.
    fn of_some_sort() -> impl Strategy<Value = String> {
        let sort = prop_oneof![
            any::<String>(),
            proptest::collection::vec(any::<char>(), 0..100).prop_map(String::from_iter),
            "[\\x00-\\x{ffff}]{0,100}",
            "\\PC{0,60}",
            "[a-zA-Z' \\n\\r\\t0-9_.,(){}é日ǅ\u{301}👍]{0,120}",
            "[À-ɏ]{0,200}",
            "[a-zà-öø-ÿ' ]{0,200}",
            "[Ѐ-џ ]{0,150}",
            "[\u{620}-\u{64a} ]{0,150}",
            "[\u{900}-\u{97f} ]{0,100}",
            "[一-龥，。]{0,100}",
            "[ぁ-ヿ]{0,100}",
            "[가-힣 ]{0,100}",
            "[\u{1f300}-\u{1f6ff}\u{200d}\u{fe0f}]{0,80}",
            "[a-z]{0,400}",
            "[a-zA-Z]{0,400}",
            "[0-9a-f]{0,200}",
            "[!-/]{0,400}",
            "[ -~]{0,200}",
            "[ \\t\\n\u{a0}\u{3000}]{0,200}",
        ];
        proptest::collection::vec(sort, 1..3).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn texts_of_all_sorts_are_counted_as_the_reference_counts_them(text in of_some_sort()) {
            for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
                prop_assert_eq!(count_tokens(encoding, &text), reference(encoding, &text), "{:?}", encoding);
            }
        }
    }

    #[test]
    fn hostile_texts_are_counted_as_the_reference_counts_them() {
        let random = |from: u32, of: u32| -> String {
            let mut state = 0x2545_f491_4f6c_dd1d_u64;
            let next = |_| {
                state = (state ^ state << 13).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ state >> 7;
                char::from_u32(from + (state >> 33) as u32 % of).unwrap_or(' ')
            };
            (0..8_000).map(next).collect()
        };
        let units = [
            "a",
            " ",
            "\n",
            "=",
            "=-",
            "ab",
            "/",
            "\n/",
            "👩‍👩‍👧‍👦",
            "\u{301}",
            "中",
            "\u{3000}\u{3000}a",
            "\u{3000}",
            "中国\u{301} ",
            "о",
            "अ",
            "7",
            "don't",
        ];
        let mut texts: Vec<String> = units.map(|unit| unit.repeat(24_000 / unit.len())).into();
        texts.extend(
            [
                (0x61, 26),
                (0x21, 15),
                (0x4e00, 0x5000),
                (0xac00, 0x2ba4),
                (0x400, 0x60),
                (0x900, 0x80),
                (0x61, 2),
                (0x20, 3),
                (0x1f600, 80),
                (0, 0x1_0000),
                (0xc0, 0x1c0),
            ]
            .map(|(from, of)| random(from, of)),
        );
        for text in texts {
            let start: String = text.chars().take(10).collect();
            for text in [text.clone(), format!("x{text}\n y  z")] {
                for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
                    assert_eq!(
                        counter(encoding).count_tokens(&text),
                        reference(encoding, &text),
                        "{encoding:?}: {start:?}"
                    );
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn texts_in_windows_are_counted_as_the_reference_counts_them(
            parts in proptest::collection::vec(
                (prop_oneof!["[a-z]{1,12}", "[ \t]{1,4}", "[-=#*/]{1,3}", "\\PC{1,6}", any::<String>(), "[一-龥]{1,5}"], 1usize..900),
                1..6,
            )
        ) {
            let text: String = parts.iter().map(|(unit, times)| unit.repeat(*times)).collect();
            let text = &text[..text.floor_char_boundary(12_000)];
            for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
                prop_assert_eq!(counter(encoding).count_tokens(text), reference(encoding, text), "{:?}", encoding);
            }
        }
    }

    #[test]
    fn an_approximate_count_is_the_exact_one_scaled_and_rounded_up() {
        for text in ["", "a", "fn main() { println!(\"hello\"); }\n", "größer als 日本語"] {
            let exact = count_tokens(Encoding::O200kBase, text);
            for (percent, expected) in [(100, exact), (200, exact * 2), (175, (exact * 7).div_ceil(4))] {
                assert_eq!(count_tokens(Encoding::Approximate { percent }, text), expected, "{percent} % of {text:?}");
            }
        }
        assert_eq!(count_tokens(Encoding::Approximate { percent: 101 }, "a"), 2);
    }
}
