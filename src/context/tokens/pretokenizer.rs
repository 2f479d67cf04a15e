//! How the encodings cut texts into the pieces that tokens are joined in: their regular expressions by hand.
//!
//! An automaton of their classes builds a state for nearly every character of a text of many scripts, and throws them away
//! again; here a table says of what sort a character is. Invariant: the pieces of the expressions, whatever the text,
//! in a time by its length.

use super::sorts::{BLANK, BLOCK, BLOCKS, LEAD, LETTER, LINE_END, LOWER, NUMBER, SIGN, UPPER};

/// The digits of a piece.
const MAX_DIGITS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRules {
    O200k,
    Cl100k,
}

pub struct Pretokenizer {
    rules: SplitRules,
    classes: CharClasses,
}

/// The letters of a word, if it has some: where they end, and whether the last of them may end a word by case.
enum LetterRun {
    None,
    Upper(usize),
    Lower(usize),
}

impl Pretokenizer {
    pub fn new(rules: SplitRules) -> Self {
        Self { rules, classes: CharClasses::new() }
    }

    /// Where the piece ends that starts in a text at a place before its end.
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

    /// Where characters of a sort end.
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

    /// A contraction; or letters, and what leads them.
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

    /// Letters by case, what leads them, and a contraction.
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
                // A mark leads letters as well as it is one, and ends a word.
                _ if is_letter => behind,
                LetterRun::Upper(end) => end,
                LetterRun::None => return None,
            },
        };
        Some(end + contraction_length(text, end))
    }

    /// Upper letters and then lower ones, of which there is one at least; or else upper ones.
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

    /// White space up to its last line end; without one all of it, but its last character if something comes behind it.
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

/// The sorts of all characters, from the table of the build script.
struct CharClasses {
    ascii: [u8; 128],
    /// By the characters' first bits: their block.
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

    /// The sort of the character at a place, and its length; no sort behind the end of the text.
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

/// The length of `'s` and the like at a place of a text, in any case; 0 without one.
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

    /// The expressions, but for what looks ahead at the end of white space.
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
            // White space before other text, unless a line end is its last character, lets its last character go.
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
        // Behind the second plane there are but signs, Chinese and what selects variants.
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
