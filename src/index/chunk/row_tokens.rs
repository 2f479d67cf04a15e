//! Counts the tokens of row ranges and counts each row only once, although many overlapping ranges are tried.
//!
//! The sums are exact. A tokenizer splits text into pieces before it merges bytes into tokens. A line end belongs to
//! the same piece as the text before it, the blank lines after it and the slashes that follow immediately. So a piece
//! always ends before a line that begins with another character, whatever stands above or below.

use std::sync::LazyLock;

use super::lines::{RowRange, RowTable};
use crate::tokens::{Encoding, count_tokens};

/// The rows of a text with their `o200k_base` token counts.
pub struct RowTokens<'s, 'a> {
    lines: &'s RowTable<'a>,
    /// For each row and for the end: the tokens of all rows above, or [`INSIDE_PIECE`] if a piece may span the boundary
    /// to the row above.
    tokens_above: Vec<u32>,
}

const INSIDE_PIECE: u32 = u32::MAX;

impl<'s, 'a> RowTokens<'s, 'a> {
    /// Counts the tokens of all rows once.
    pub fn new(lines: &'s RowTable<'a>) -> Self {
        let count = lines.count();
        let mut tokens_above = Vec::with_capacity(count as usize + 1);
        tokens_above.push(0);
        let (mut start, mut sum) = (0, 0u32);
        for row in 1..=count {
            if row < count && !starts_new_piece(lines.line(row)) {
                tokens_above.push(INSIDE_PIECE);
                continue;
            }
            sum = sum.saturating_add(count_text(lines.text((start, row - 1))));
            tokens_above.push(sum);
            start = row;
        }
        Self { lines, tokens_above }
    }

    /// Returns the token count of the rows `first..=last` (0-based).
    pub fn tokens(&self, (first, last): RowRange) -> u32 {
        let is_cut = |row: &u32| self.tokens_above.get(*row as usize).is_some_and(|before| *before != INSIDE_PIECE);
        let mut cuts = (first..=last + 1).filter(is_cut);
        let Some(from) = cuts.next() else { return count_text(self.lines.text((first, last))) };
        let to = cuts.next_back().unwrap_or(from);
        let above = if first < from { count_text(self.lines.text((first, from - 1))) } else { 0 };
        let below = if to <= last { count_text(self.lines.text((to, last))) } else { 0 };
        self.tokens_above[to as usize] - self.tokens_above[from as usize] + above + below
    }
}

/// Returns true if a tokenizer piece certainly begins at this line. May return false for some lines where one begins.
fn starts_new_piece(line: &str) -> bool {
    let bytes = line.as_bytes();
    let first = bytes.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    first.is_some_and(u8::is_ascii_graphic) && bytes.first() != Some(&b'/')
}

/// Counts the tokens of a text. Handles leading blanks and trailing line ends with a table: they form few distinct
/// pieces, and they are the only pieces for which the tokenizer needs its regular expression.
pub fn count_text(text: &str) -> u32 {
    let (mut text, mut sum) = (text, 0);
    let code = text.trim_end_matches('\n');
    if code.ends_with(|c: char| c.is_ascii_alphanumeric())
        && let Some(tokens) = count_run(b'\n', text.len() - code.len())
    {
        (text, sum) = (code, tokens);
    }
    let bytes = text.as_bytes();
    if let Some(&blank) = bytes.first().filter(|byte| matches!(byte, b' ' | b'\t')) {
        let length = bytes.iter().take_while(|byte| **byte == blank).count();
        let next = bytes.get(length).copied().unwrap_or(blank);
        // The last blank joins the following piece if possible.
        let joins = next.is_ascii_alphabetic() || (blank == b' ' && next.is_ascii_punctuation());
        let own = length - usize::from(joins);
        let parts = if joins { count_run(blank, own) } else { count_run(blank, own - 1).map(|tokens| tokens + 1) };
        if next.is_ascii_graphic()
            && let Some(tokens) = parts
        {
            (text, sum) = (&text[own..], sum + tokens);
        }
    }
    sum.saturating_add(u32::try_from(count_tokens(Encoding::O200kBase, text)).unwrap_or(u32::MAX))
}

/// Returns the token count of `length` repetitions of a blank or line end; `None` if the table has no entry.
fn count_run(byte: u8, length: usize) -> Option<u32> {
    /// Longest run in the table. Few lines have a deeper indentation.
    const MAX_RUN: usize = 64;
    static RUNS: LazyLock<[[u32; MAX_RUN]; 3]> = LazyLock::new(|| {
        [" ", "\t", "\n"]
            .map(|blank| std::array::from_fn(|length| count_tokens(Encoding::O200kBase, &blank.repeat(length)) as u32))
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
        count_tokens(Encoding::O200kBase, text) as u32
    }

    fn check(text: &str) {
        assert_eq!(count_text(text), exact(text), "{text:?}");
        let lines = RowTable::new(text);
        let counted = RowTokens::new(&lines);
        for first in 0..lines.count() {
            for last in first..lines.count() {
                let rows = (first, last);
                assert_eq!(counted.tokens(rows), exact(lines.text(rows)), "{rows:?} of {text:?}");
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
