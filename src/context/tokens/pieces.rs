//! How the encodings cut texts into the pieces that tokens are joined in: their regular expressions by hand.
//!
//! An automaton of their classes builds a state for nearly every character of a text of many scripts, and throws them away
//! again; here a table says of what sort a character is. Invariant: the pieces of the expressions, whatever the text,
//! in a time by its length.

use regex_syntax::hir::{Class, HirKind};

/// What begins a word of `o200k_base`, and what ends one; characters without a case are both.
const UPPER: u8 = 1;
const LOWER: u8 = 1 << 1;
const LETTER: u8 = 1 << 2;
const NUMBER: u8 = 1 << 3;
const BLANK: u8 = 1 << 4;
const LINE_END: u8 = 1 << 5;
const SIGN: u8 = 1 << 6;
/// One of them may stand before the letters of a word.
const LEAD: u8 = 1 << 7;

const CLASSES: [(u8, &str); 8] = [
    (UPPER, r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
    (LOWER, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
    (LETTER, r"\p{L}"),
    (NUMBER, r"\p{N}"),
    (BLANK, r"\s"),
    (LINE_END, r"[\r\n]"),
    (SIGN, r"[^\s\p{L}\p{N}]"),
    (LEAD, r"[^\r\n\p{L}\p{N}]"),
];

/// The digits of a piece.
const MOST_DIGITS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    O200k,
    Cl100k,
}

pub struct Cutter {
    rules: Rules,
    /// By character.
    sorts: Vec<u8>,
}

impl Cutter {
    pub fn new(rules: Rules) -> Self {
        let mut sorts = vec![0; char::MAX as usize + 1];
        for (sort, class) in CLASSES {
            let class = regex_syntax::parse(class).unwrap_or_else(|_| unreachable!("a constant"));
            let HirKind::Class(Class::Unicode(class)) = class.kind() else { unreachable!("a constant") };
            for range in class.ranges() {
                sorts[range.start() as usize..=range.end() as usize].iter_mut().for_each(|sorts| *sorts |= sort);
            }
        }
        Self { rules, sorts }
    }

    /// The length of a text's first piece; 0 without text.
    pub fn first(&self, text: &str) -> usize {
        let Some(first) = text.chars().next() else { return 0 };
        let word = match self.rules {
            Rules::O200k => self.word_by_case(text, first),
            Rules::Cl100k => self.word(text, first),
        };
        let sort = self.sort(first);
        word.unwrap_or_else(|| match () {
            () if sort & NUMBER != 0 => {
                let digits = text.chars().take(MOST_DIGITS).take_while(|c| self.sort(*c) & NUMBER != 0);
                digits.map(char::len_utf8).sum()
            }
            () if sort & SIGN != 0 => self.signs(text, 0),
            () if first == ' ' && text[1..].starts_with(|next| self.sort(next) & SIGN != 0) => self.signs(text, 1),
            () => self.blanks(text),
        })
    }

    fn sort(&self, c: char) -> u8 {
        self.sorts[c as usize]
    }

    /// Where characters of a sort end.
    fn end_of(&self, sort: u8, text: &str, start: usize) -> usize {
        let rest = text[start..].char_indices();
        rest.into_iter().find(|(_, c)| self.sort(*c) & sort == 0).map_or(text.len(), |(at, _)| start + at)
    }

    /// Where the letters of a word may start: behind what leads them, or with the first character.
    fn starts(&self, first: char) -> impl Iterator<Item = usize> + Clone + use<> {
        let lead = (self.sort(first) & LEAD != 0).then(|| first.len_utf8());
        lead.into_iter().chain([0])
    }

    fn word(&self, text: &str, first: char) -> Option<usize> {
        let contraction = contraction(text);
        if contraction > 0 {
            return Some(contraction);
        }
        self.starts(first).find_map(|start| Some(self.end_of(LETTER, text, start)).filter(|end| *end > start))
    }

    fn word_by_case(&self, text: &str, first: char) -> Option<usize> {
        let lower = |start| {
            let upper = self.end_of(UPPER, text, start);
            let end = self.end_of(LOWER, text, upper);
            let last = || text[start..upper].char_indices().rfind(|(_, c)| self.sort(*c) & LOWER != 0);
            match end > upper {
                true => Some(end),
                false => last().map(|(at, c)| start + at + c.len_utf8()),
            }
        };
        let upper = |start| Some(self.end_of(UPPER, text, start)).filter(|end| *end > start);
        let starts = self.starts(first);
        let end = starts.clone().find_map(lower).or_else(|| starts.clone().find_map(upper))?;
        Some(end + contraction(&text[end..]))
    }

    fn signs(&self, text: &str, start: usize) -> usize {
        let end = self.end_of(SIGN, text, start);
        let is_tail = |byte: &u8| matches!(byte, b'\r' | b'\n') || self.rules == Rules::O200k && *byte == b'/';
        end + text.as_bytes()[end..].iter().take_while(|byte| is_tail(byte)).count()
    }

    /// White space up to its last line end; without one all of it, but its last character if something comes behind it.
    fn blanks(&self, text: &str) -> usize {
        let end = self.end_of(BLANK, text, 0);
        let blanks = &text[..end];
        let last = blanks.chars().next_back().map_or(0, char::len_utf8);
        match blanks.rfind(['\r', '\n']) {
            Some(at) => at + 1,
            None if end < text.len() && end > last => end - last,
            None => end,
        }
    }
}

/// The length of `'s` and the like at the start of a text, in any case; 0 without one.
fn contraction(text: &str) -> usize {
    let Some(rest) = text.strip_prefix('\'') else { return 0 };
    match rest.as_bytes() {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => 2,
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] => 3,
        _ if rest.starts_with('ſ') => 1 + 'ſ'.len_utf8(),
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

    fn by_expression<'a>(expression: &Regex, text: &'a str) -> Vec<&'a str> {
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
        static BOTH: LazyLock<[(Cutter, Regex); 2]> = LazyLock::new(|| {
            [(Rules::O200k, O200K), (Rules::Cl100k, CL100K)]
                .map(|(rules, expression)| (Cutter::new(rules), Regex::new(expression).expect("an expression")))
        });
        for (cutter, expression) in BOTH.iter() {
            let mut rest = text;
            let mut pieces = Vec::new();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(cutter.first(rest));
                pieces.push(piece);
                rest = behind;
            }
            assert_eq!(pieces, by_expression(expression, text), "{:?}", cutter.rules);
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
