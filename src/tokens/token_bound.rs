//! Computes an upper bound of the `o200k_base` tokens of a text with only 90 KB of the vocabulary.
//!
//! The bound is correct for this reason. The encoding first splits the text with a regular expression, which is
//! reproduced here for ASCII; near a non-ASCII character, all bytes up to the next line count as tokens. A piece that
//! is a word of the encoding is one token. In every other piece the encoding merges neighbours until no adjacent pair
//! forms a word, so two single bytes that form a word never stay side by side. This module counts the most tokens
//! possible under that single rule. Property tests compare the bound with the exact count.

use std::cmp::Ordering;

/// Words of `o200k_base`, one per line, sorted by bytes: ASCII without line ends and digits; words of rank below
/// 20,000, words of two bytes, and words that a ledger uses. A test checks each with the encoding.
const WORDS: &str = include_str!("../../assets/o200k-words.txt");

/// Words with line ends that end the lines of a ledger.
const WORDS_WITH_LINE_ENDS: [&[u8]; 3] = [b"\">\n", b"\"/>\n", b">\n"];

/// Returns an upper bound of the exact token count.
pub fn tokens_at_most(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (0, 0);
    while at < bytes.len() {
        let end = piece_end(bytes, at);
        // The longest text that can extend a piece is an apostrophe with two letters.
        if bytes[at..bytes.len().min(end + 3)].is_ascii() {
            tokens += bound_piece_tokens(&bytes[at..end]);
            at = end;
        } else {
            let end = next_line_start(bytes, at);
            tokens += end - at;
            at = end;
        }
    }
    tokens
}

fn is_symbol(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !is_space(byte)
}

/// Returns true for white space as in the expression, which includes vertical tab and form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the end of the piece that begins at `at`, if the text around it is ASCII.
fn piece_end(bytes: &[u8], at: usize) -> usize {
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let run = |from: usize, is: fn(u8) -> bool| {
        from + bytes.get(from..).unwrap_or_default().iter().take_while(|&&byte| is(byte)).count()
    };
    let first = byte(at);
    // A word with an optional leading character that is neither letter, digit nor line end.
    let lead = usize::from(!first.is_ascii_alphanumeric() && !matches!(first, b'\r' | b'\n'));
    if byte(at + lead).is_ascii_alphabetic() {
        let upper = run(at + lead, |byte| byte.is_ascii_uppercase());
        let end = run(upper, |byte| byte.is_ascii_lowercase());
        return end + contraction_len(bytes.get(end..).unwrap_or_default());
    }
    if first.is_ascii_digit() {
        return run(at, |byte| byte.is_ascii_digit()).min(at + 3);
    }
    let blank = usize::from(first == b' ');
    if is_symbol(byte(at + blank)) && at + blank < bytes.len() {
        return run(run(at + blank, is_symbol), |byte| matches!(byte, b'\r' | b'\n' | b'/'));
    }
    // White space: up to its last line end; otherwise all of it at the end of the text, or all except the last
    // character.
    let end = run(at, is_space);
    match bytes[at..end].iter().rposition(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(last) => at + last + 1,
        None if end == bytes.len() || end == at + 1 => end.max(at + 1),
        None => end - 1,
    }
}

fn contraction_len(rest: &[u8]) -> usize {
    let follows = |word: &[u8]| rest.len() >= word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    for word in [&b"'s"[..], b"'t", b"'re", b"'ve", b"'m", b"'ll", b"'d"] {
        if follows(word) {
            return word.len();
        }
    }
    0
}

/// Returns the position after the next line end at which a piece certainly begins, or the end of the text.
fn next_line_start(bytes: &[u8], at: usize) -> usize {
    for index in at..bytes.len().saturating_sub(1) {
        let next = bytes[index + 1];
        let ends = bytes[index] == b'\n' && next.is_ascii() && next != b'/' && !is_space(next);
        // Blanks after the line end belong to the next piece unless another line end follows them.
        let blanks = bytes[index] == b'\n' && next == b' ' && {
            let word = bytes[index + 1..].iter().position(|byte| *byte != b' ').map(|offset| index + 1 + offset);
            word.is_some_and(|word| bytes[word].is_ascii_graphic())
        };
        if ends || blanks {
            return index + 1;
        }
    }
    bytes.len()
}

fn bound_piece_tokens(piece: &[u8]) -> usize {
    if piece.len() <= 1
        || piece.iter().all(u8::is_ascii_digit)
        || WORDS_WITH_LINE_ENDS.contains(&piece)
        || is_word(piece)
    {
        return 1;
    }
    // Most tokens for a prefix of the piece: without its last byte, with the last byte as its own token, and with a
    // longer token at the end (two bytes, or the previous longer token extended).
    let (mut before, mut single, mut longer) = (0, 1, 0);
    for pair in piece.windows(2) {
        let beside_single = if is_word(pair) { 0 } else { single + 1 };
        let beside_longer = if longer > 0 { longer + 1 } else { 0 };
        (before, single, longer) = (single.max(longer), beside_single.max(beside_longer), longer.max(before + 1));
    }
    single.max(longer)
}

fn is_word(piece: &[u8]) -> bool {
    let words = WORDS.as_bytes();
    let (mut low, mut high) = (0, words.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = memchr::memrchr(b'\n', &words[..middle]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &words[middle..]).map_or(words.len(), |offset| middle + offset);
        match words[start..end].cmp(piece) {
            Ordering::Equal => return true,
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = start,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokens::{Encoding, count_tokens};

    #[test]
    fn the_words_are_sorted_and_words_of_the_encoding() {
        let words: Vec<&str> = WORDS.lines().collect();
        assert!(words.is_sorted());
        for word in &words {
            assert!(is_word(word.as_bytes()), "{word:?} is not found");
            assert_eq!(count_tokens(Encoding::O200kBase, word), 1, "{word:?}");
        }
        for word in WORDS_WITH_LINE_ENDS {
            assert_eq!(count_tokens(Encoding::O200kBase, std::str::from_utf8(word).expect("ASCII")), 1, "{word:?}");
        }
        assert!(!is_word(b"qqqq") && !is_word(b"") && !is_word(b"\n"));
        for number in 0..1000 {
            for digits in [format!("{number}"), format!("{number:02}"), format!("{number:03}")] {
                assert_eq!(count_tokens(Encoding::O200kBase, &digits), 1, "{digits}");
            }
        }
    }

    #[test]
    fn the_bound_is_tight_enough_for_ordinary_text() {
        let ledger = include_str!("../ledger/testdata/example.xml");
        let exact = count_tokens(Encoding::O200kBase, ledger);
        let bound = tokens_at_most(ledger);
        assert!(bound >= exact && bound * 100 <= exact * 120, "{bound} for {exact}");
    }

    /// Generates difficult texts for a tokenizer: code, contractions, white space, numbers, other scripts.
    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            3 => "[a-z]{1,9}",
            2 => "[A-Za-z]{1,6}",
            2 => "[0-9]{1,7}",
            2 => "[ -/:-@\\[-`{-~]{1,4}",
            2 => "[ \t\r\n/]{1,5}",
            1 => "('s|'T|'re|'LL|'ve|'m|'\u{17f})",
            1 => "[à-ÿА-я一-龥ぁ-ん²٣]{1,3}",
            1 => any::<char>().prop_map(String::from),
            1 => "(\"/>\n  <|=\"|</|://| \n\n )",
        ];
        proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_bound_is_never_too_low(text in text()) {
            let (bound, exact) = (tokens_at_most(&text), count_tokens(Encoding::O200kBase, &text));
            prop_assert!(bound >= exact, "{bound} < {exact} for {text:?}");
        }
    }
}
