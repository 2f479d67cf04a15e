//! The tokens of the rows of a file, every row counted once, however many pieces are tried that have it.
//!
//! Why sums are exact: an encoding cuts a text into pieces before it joins bytes to tokens, and line ends are in one piece
//! with what is before them, with blank lines behind them and with slashes that follow at once. So a piece ends before every
//! line that begins with something else, whatever stands above it and below.

use std::sync::LazyLock;

use super::lines::{Lines, Rows};
use crate::context::tokens::{Encoding, count};

/// The rows of a text with their tokens by `o200k_base`.
pub struct Counted<'s, 'a> {
    lines: &'s Lines<'a>,
    /// By row, and for the end: the tokens of all rows above; [`INSIDE`] where a piece may begin in the row above.
    before: Vec<u32>,
}

const INSIDE: u32 = u32::MAX;

impl<'s, 'a> Counted<'s, 'a> {
    pub fn of(lines: &'s Lines<'a>) -> Self {
        let count = lines.count();
        let mut before = Vec::with_capacity(count as usize + 1);
        before.push(0);
        let (mut start, mut sum) = (0, 0u32);
        for row in 1..=count {
            if row < count && !begins_anew(lines.line(row)) {
                before.push(INSIDE);
                continue;
            }
            sum = sum.saturating_add(tokens(lines.span((start, row - 1))));
            before.push(sum);
            start = row;
        }
        Self { lines, before }
    }

    /// The tokens of some rows of the text.
    pub fn tokens(&self, (first, last): Rows) -> u32 {
        let is_cut = |row: &u32| self.before.get(*row as usize).is_some_and(|before| *before != INSIDE);
        let mut cuts = (first..=last + 1).filter(is_cut);
        let Some(from) = cuts.next() else { return tokens(self.lines.span((first, last))) };
        let to = cuts.next_back().unwrap_or(from);
        let above = if first < from { tokens(self.lines.span((first, from - 1))) } else { 0 };
        let below = if to <= last { tokens(self.lines.span((to, last))) } else { 0 };
        self.before[to as usize] - self.before[from as usize] + above + below
    }
}

/// Whether a piece begins with a line, whatever is above it. Not said of all such lines.
fn begins_anew(line: &str) -> bool {
    let bytes = line.as_bytes();
    let first = bytes.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    first.is_some_and(u8::is_ascii_graphic) && bytes.first() != Some(&b'/')
}

/// The tokens of a text. Most lines begin with some blanks and end with a letter and a line end; these are pieces of which
/// there are few, and the only ones for which the tokenizer needs its regular expression.
pub fn tokens(text: &str) -> u32 {
    let (mut text, mut sum) = (text, 0);
    let code = text.trim_end_matches('\n');
    if code.ends_with(|c: char| c.is_ascii_alphanumeric())
        && let Some(tokens) = of_run(b'\n', text.len() - code.len())
    {
        (text, sum) = (code, tokens);
    }
    let bytes = text.as_bytes();
    if let Some(&blank) = bytes.first().filter(|byte| matches!(byte, b' ' | b'\t')) {
        let length = bytes.iter().take_while(|byte| **byte == blank).count();
        let next = bytes.get(length).copied().unwrap_or(blank);
        // The last blank goes with what follows if it can.
        let joins = next.is_ascii_alphabetic() || (blank == b' ' && next.is_ascii_punctuation());
        let own = length - usize::from(joins);
        let parts = if joins { of_run(blank, own) } else { of_run(blank, own - 1).map(|tokens| tokens + 1) };
        if next.is_ascii_graphic()
            && let Some(tokens) = parts
        {
            (text, sum) = (&text[own..], sum + tokens);
        }
    }
    sum.saturating_add(u32::try_from(count(Encoding::O200kBase, text)).unwrap_or(u32::MAX))
}

/// The tokens of a blank or a line end, so many times; `None` where that is not at hand.
fn of_run(byte: u8, length: usize) -> Option<u32> {
    /// Most lines are not farther to the right.
    const LONGEST: usize = 64;
    static RUNS: LazyLock<[[u32; LONGEST]; 3]> = LazyLock::new(|| {
        [" ", "\t", "\n"]
            .map(|blank| std::array::from_fn(|length| count(Encoding::O200kBase, &blank.repeat(length)) as u32))
    });
    let sort = match byte {
        b' ' => 0,
        b'\t' => 1,
        _ => 2,
    };
    RUNS[sort].get(length).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> u32 {
        count(Encoding::O200kBase, text) as u32
    }

    fn check(text: &str) {
        assert_eq!(tokens(text), exact(text), "{text:?}");
        let lines = Lines::of(text);
        let counted = Counted::of(&lines);
        for first in 0..lines.count() {
            for last in first..lines.count() {
                let rows = (first, last);
                assert_eq!(counted.tokens(rows), exact(lines.span(rows)), "{rows:?} of {text:?}");
            }
        }
    }

    #[test]
    fn sums_of_lines_are_exact() {
        for text in [
            "",
            "\n",
            "}\n\n// a\nb",
            "f();\n/\n/\n x\n",
            "a\n\n\n  b\n\t\tc\n\t  1\n",
            "  \n a \n\t\n\t}\n",
            "x\r\n\r\n  y\r\n",
            "don\n's\n'S\n 's\n\t's",
            "12\n345\n 6\n  7\n\t8\n",
            "a\n\u{3000}\nb\n é\n\u{a0}c\n\u{b}d",
            " \n  \n   \n",
        ] {
            check(text);
        }
        check(&format!("{}a\n{}\n{}b", " ".repeat(100), "\t".repeat(70), "\n".repeat(80)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sums_of_any_lines_are_exact(
            text in prop_oneof!["[ \\t\\n\\r/a1.')é\u{3000}]{0,40}", "(([ ]{0,6}|\\t{0,3})[a-zA-Z/.(){};_' 0-9]{0,12}\\n){0,8}"]
        ) {
            check(&text);
        }
    }
}
