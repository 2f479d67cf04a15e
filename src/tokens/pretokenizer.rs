//! Splits text into pieces before the BPE merges: a hand-written version of the encodings' regular expressions.
//!
//! - Gives the same pieces as the expressions for every text, in linear time.
//! - Reason for the hand-written code: an automaton of these character classes builds a state for nearly every
//!   character of a text in many scripts and discards it again. Here a table gives the class of a character.

use super::sorts::{BLANK, BLOCK, BLOCKS, LEAD, LETTER, LINE_END, LOWER, NUMBER, SIGN, UPPER};

/// Most digits of a piece.
const MAX_DIGITS: usize = 3;

/// Splitting rules of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRules {
    O200k,
    Cl100k,
}

/// Splitter of text into the pieces of an encoding.
pub struct Pretokenizer {
    rules: SplitRules,
    classes: CharClasses,
}

/// Letters of a word: their end, and whether the last letter may end a word by its case.
enum LetterRun {
    None,
    Upper(usize),
    Lower(usize),
}

impl Pretokenizer {
    pub fn new(rules: SplitRules) -> Self {
        Self { rules, classes: CharClasses::new() }
    }

    /// Returns the end of the piece that starts at `start`, which must be before the end of the text.
    pub fn find_piece_end(&self, text: &str, start: usize) -> usize {
        let (sort, length) = self.classes.class_at(text, start);
        let behind = start + length;
        let word = match self.rules {
            SplitRules::O200k => self.match_word_by_case(text, start, behind, sort),
            SplitRules::Cl100k => self.match_word(text, start, behind, sort),
        };
        word.unwrap_or_else(|| match () {
            () if sort & NUMBER != 0 => self.match_digits(text, behind),
            () if sort & SIGN != 0 => self.match_signs(text, behind),
            () if self.is_blank_before_sign(text, start) => self.match_signs(text, behind),
            () => self.match_blanks(text, start),
        })
    }

    /// Returns the end of the run of characters in any of the classes `sort`.
    fn find_class_end(&self, sort: u8, text: &str, start: usize) -> usize {
        let mut at = start;
        loop {
            let (found, length) = self.classes.class_at(text, at);
            if found & sort == 0 {
                return at;
            }
            at += length;
        }
    }

    /// Matches a contraction, or letters with an optional leading character.
    fn match_word(&self, text: &str, start: usize, behind: usize, sort: u8) -> Option<usize> {
        let contraction = contraction_length(text, start);
        if contraction > 0 {
            return Some(start + contraction);
        }
        let is_led = sort & LEAD != 0;
        (is_led || sort & LETTER != 0)
            .then(|| self.find_class_end(LETTER, text, behind))
            .filter(|end| !is_led || *end > behind)
    }

    /// Matches letters by case with an optional leading character and an optional contraction.
    fn match_word_by_case(&self, text: &str, start: usize, behind: usize, sort: u8) -> Option<usize> {
        let is_letter = sort & (UPPER | LOWER) != 0;
        let end = match sort & LEAD {
            0 if is_letter => match self.match_letters(text, start) {
                LetterRun::None => return None,
                LetterRun::Upper(end) | LetterRun::Lower(end) => end,
            },
            0 => return None,
            _ => match self.match_letters(text, behind) {
                LetterRun::Lower(end) => end,
                // A combining mark can lead letters and can also end a word.
                _ if is_letter => behind,
                LetterRun::Upper(end) => end,
                LetterRun::None => return None,
            },
        };
        Some(end + contraction_length(text, end))
    }

    /// Matches upper-case letters followed by at least one lower-case letter, or else only upper-case letters.
    fn match_letters(&self, text: &str, start: usize) -> LetterRun {
        let (mut at, mut end) = (start, start);
        loop {
            let (sort, length) = self.classes.class_at(text, at);
            match sort & (UPPER | LOWER) {
                UPPER => at += length,
                LOWER => return LetterRun::Lower(self.find_class_end(LOWER, text, at + length)),
                0 if end > start => return LetterRun::Lower(end),
                0 if at > start => return LetterRun::Upper(at),
                0 => return LetterRun::None,
                _ => {
                    at += length;
                    end = at;
                }
            }
        }
    }

    fn match_digits(&self, text: &str, behind: usize) -> usize {
        let mut at = behind;
        for _ in 1..MAX_DIGITS {
            let (sort, length) = self.classes.class_at(text, at);
            if sort & NUMBER == 0 {
                break;
            }
            at += length;
        }
        at
    }

    fn is_blank_before_sign(&self, text: &str, start: usize) -> bool {
        text.as_bytes()[start] == b' ' && self.classes.class_at(text, start + 1).0 & SIGN != 0
    }

    fn match_signs(&self, text: &str, start: usize) -> usize {
        let end = self.find_class_end(SIGN, text, start);
        let is_tail = |byte: &u8| matches!(byte, b'\r' | b'\n') || self.rules == SplitRules::O200k && *byte == b'/';
        end + text.as_bytes()[end..].iter().take_while(|byte| is_tail(byte)).count()
    }

    /// Matches white space up to its last line end. Without a line end: all of it, except its last character if other
    /// text follows.
    fn match_blanks(&self, text: &str, start: usize) -> usize {
        let (mut at, mut last, mut line_end) = (start, start, None);
        loop {
            let (sort, length) = self.classes.class_at(text, at);
            if sort & BLANK == 0 {
                break;
            }
            last = at;
            at += length;
            if sort & LINE_END != 0 {
                line_end = Some(at);
            }
        }
        line_end.unwrap_or(if at < text.len() && last > start { last } else { at })
    }
}

/// Classes of all characters, from the build script's table.
struct CharClasses {
    ascii: [u8; 128],
    /// Block number by the high bits of the character.
    places: &'static [u8],
    blocks: &'static [u8],
}

impl CharClasses {
    fn new() -> Self {
        static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sorts"));
        let (places, blocks) = TABLE.split_at(BLOCKS);
        let mut sorts = Self { ascii: [0; 128], places, blocks };
        sorts.ascii = std::array::from_fn(|byte| sorts.class_of(char::from(byte as u8)));
        sorts
    }

    /// Returns the classes of the character at an offset and its length in bytes; (0, 0) at the end of the text.
    fn class_at(&self, text: &str, at: usize) -> (u8, usize) {
        match text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => (self.ascii[usize::from(*byte)], 1),
            Some(_) => text[at..].chars().next().map_or((0, 0), |c| (self.class_of(c), c.len_utf8())),
            None => (0, 0),
        }
    }

    fn class_of(&self, c: char) -> u8 {
        let c = c as usize;
        self.blocks[usize::from(self.places[c / BLOCK]) * BLOCK + c % BLOCK]
    }
}

/// Returns the length in bytes of a contraction such as `'s` at an offset, in any case; 0 if there is none.
fn contraction_length(text: &str, at: usize) -> usize {
    let Some([b'\'', rest @ ..]) = text.as_bytes().get(at..) else { return 0 };
    match rest {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => 2,
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] => 3,
        _ if rest.starts_with("ſ".as_bytes()) => 1 + 'ſ'.len_utf8(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    /// The expressions without the lookahead at the end of white space.
    const O200K: &str = concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
    );
    const CL100K: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    );

    fn split_by_regex<'a>(expression: &Regex, text: &'a str) -> Vec<&'a str> {
        let (mut at, mut pieces) = (0, Vec::new());
        while let Some(found) = expression.find_at(text, at) {
            at = found.end();
            let last = found.as_str().chars().next_back().filter(|last| last.is_whitespace());
            // White space before other text gives up its last character, unless this is a line end.
            let last = last.filter(|last| !matches!(last, '\r' | '\n') && last.len_utf8() < found.len());
            at -= last.filter(|_| at < text.len()).map_or(0, char::len_utf8);
            pieces.push(&text[found.start()..at]);
        }
        pieces
    }

    fn assert_cut_alike(text: &str) {
        static BOTH: LazyLock<[(Pretokenizer, Regex); 2]> = LazyLock::new(|| {
            [(SplitRules::O200k, O200K), (SplitRules::Cl100k, CL100K)]
                .map(|(rules, expression)| (Pretokenizer::new(rules), Regex::new(expression).expect("an expression")))
        });
        for (cutter, expression) in BOTH.iter() {
            let (mut start, mut pieces) = (0, Vec::new());
            while start < text.len() {
                let end = cutter.find_piece_end(text, start);
                pieces.push(&text[start..end]);
                start = end;
            }
            assert_eq!(pieces, split_by_regex(expression, text), "{:?}", cutter.rules);
        }
    }

    #[test]
    fn every_character_is_cut_as_the_expressions_cut_it() {
        // After the second plane there are only symbols, Chinese characters and variation selectors.
        for some in ('\0'..'\u{20100}').chain('\u{e0000}'..'\u{e0200}').collect::<Vec<char>>().chunks(4096) {
            assert_cut_alike(&some.iter().flat_map(|c| [*c, 'a', ' ']).collect::<String>());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_cut_as_the_expressions_cut_it(
            text in prop_oneof![
                any::<String>(),
                "[aAzZéÉǅʰ日\u{301}\u{20dd}1²Ⅷ_./!'’sſSTtRrEeVvLlMmDd \t\r\n\u{a0}\u{3000}\u{85}\u{2028}👍\u{200d}]{0,40}",
                "[aAǅʰ日\u{301} ']{0,12}",
                "(\\p{L}|\\p{M}|\\p{N}|\\p{Z}|\\p{C}|\\p{S}|\\p{P}|[\r\n/']){0,30}",
            ]
        ) {
            assert_cut_alike(&text);
        }
    }
}
