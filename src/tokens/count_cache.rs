//! Caches token counts of paragraphs, for texts that have many paragraphs in common.
//!
//! - A count always equals that of [`super::count_tokens`].

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Encoding, counter, scale_count};

/// Token counts of paragraphs by hash.
pub struct TokenCountCache {
    encoding: Encoding,
    counts: RefCell<HashMap<[u8; 16], u32>>,
}

impl TokenCountCache {
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, counts: RefCell::default() }
    }

    /// Returns the same count as [`super::count_tokens`].
    pub fn count_tokens(&self, text: &str) -> usize {
        let mut known = self.counts.borrow_mut();
        let counter = counter(self.encoding);
        let tokens = split_paragraphs(text).map(|paragraph| {
            let hash = blake3::hash(paragraph.as_bytes());
            let (key, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 16], &[]));
            *known.entry(*key).or_insert_with(|| counter.count_tokens(paragraph) as u32) as usize
        });
        scale_count(self.encoding, tokens.sum())
    }
}

/// Splits a text into parts whose token counts add up to the count of the text.
///
/// After a line end, a token continues only with more line ends, with blanks, or, after punctuation, with slashes. So a
/// line that begins with another ASCII character begins a part. A non-ASCII character may be a blank and begins none.
fn split_paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let begins = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    let starts = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
    let starts = starts.filter(move |start| text.as_bytes().get(*start).copied().is_some_and(begins));
    let mut start = 0;
    starts.chain([text.len()]).map(move |next| {
        let paragraph = text.get(start..next).unwrap_or_default();
        start = next;
        paragraph
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokens::count_tokens;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn paragraphs_count_for_the_same_together_as_apart(
            lines in proptest::collection::vec(
                (
                    prop_oneof![
                        any::<String>(),
                        "[ -~]{0,20}",
                        "[a-zA-Z' ]{0,12}",
                        "['/!-.:-@{-~]{0,4}[a-z0-9]{0,2}",
                        "[\\s/\u{a0}\u{2028}\u{3000}]{0,4}[0-9é日'/]{0,2}",
                    ],
                    prop_oneof![
                        Just("\n"), Just("\n\n"), Just("\r\n"), Just(" \n"), Just("\t\n \n"), Just("/\n"), Just(""),
                    ],
                ),
                0..12,
            )
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
                prop_assert_eq!(TokenCountCache::new(encoding).count_tokens(&text), count_tokens(encoding, &text), "{:?}", encoding);
            }
        }
    }

    #[test]
    fn lines_that_begin_with_no_blank_begin_a_part() {
        let parts: Vec<&str> = split_paragraphs("a\nb {\n    c\n}\n\n// d\n\te\n日\nf").collect();
        assert_eq!(parts, ["a\n", "b {\n    c\n", "}\n\n// d\n\te\n日\n", "f"]);
        assert_eq!(split_paragraphs("").collect::<String>(), "");
    }

    #[test]
    fn what_is_counted_again_counts_for_the_same() {
        let all = [Encoding::O200kBase, Encoding::Cl100kBase, Encoding::Approximate { percent: 115 }];
        for encoding in all {
            let memo = TokenCountCache::new(encoding);
            for text in
                ["fn a() {\n    b\n}\n", "fn a() {\n    b\n}\nfn a() {\n    c\n}\n", "", "}\n", "fn a() {\n    b\n}\n"]
            {
                assert_eq!(memo.count_tokens(text), count_tokens(encoding, text), "{encoding:?}: {text:?}");
            }
            assert!(memo.counts.borrow().len() < 8);
        }
    }
}
