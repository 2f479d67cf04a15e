//! Finds the words that differ between an old and a new line.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::model::{ChangeBlock, LineTable};

/// Longest line, in bytes, whose words are compared.
const MAX_LINE_BYTES: usize = 600;
/// Part of two lines, in percent, that must be equal; otherwise the lines have nothing to do with each other, and marks on
/// single words would only confuse.
const MIN_EQUAL_PERCENT: usize = 45;
/// Most pairs of lines of a block that are compared to find the lines that belong together; a larger block is compared
/// line by line.
const MAX_ALIGNED_PAIRS: usize = 400;
/// Most pairs of lines of a file whose words are compared.
pub const MAX_PAIRS: usize = 4_000;

/// Changed parts of an old and of a new line, as byte ranges.
pub type WordChanges = (Vec<Range<usize>>, Vec<Range<usize>>);

/// Finds the changed parts of the lines of all blocks: line numbers of the old and the new side with the changes.
pub fn find_changed_words(blocks: &[ChangeBlock], old: &LineTable, new: &LineTable) -> Vec<(u32, u32, WordChanges)> {
    let mut found = Vec::new();
    let mut budget = MAX_PAIRS;
    for block in blocks.iter().filter(|block| block.old_lines > 0 && block.new_lines > 0) {
        if budget == 0 {
            break;
        }
        let before: Vec<&str> = old.lines(block.old, block.old + block.old_lines).collect();
        let after: Vec<&str> = new.lines(block.new, block.new + block.new_lines).collect();
        let pairs = compare_block(&before, &after, &mut budget).into_iter();
        found.extend(pairs.map(|(at, partner, changes)| (block.old + at as u32, block.new + partner as u32, changes)));
    }
    found
}

/// Finds the changed parts of the old and the new lines of a block: indices of both with the changes. Compares at most
/// `budget` pairs of lines, and takes them off.
pub fn compare_block(old: &[&str], new: &[&str], budget: &mut usize) -> Vec<(usize, usize, WordChanges)> {
    let is_aligned = old.len().saturating_mul(new.len()) <= MAX_ALIGNED_PAIRS;
    let mut found = Vec::new();
    let mut next = 0;
    for (at, before) in old.iter().enumerate() {
        let partners = match is_aligned {
            true => next..new.len(),
            false => at..(at + 1).min(new.len()),
        };
        for partner in partners {
            if *budget == 0 {
                return found;
            }
            *budget -= 1;
            if let Some(changes) = compare_words(before, new[partner]) {
                found.push((at, partner, changes));
                next = partner + 1;
                break;
            }
        }
    }
    found
}

/// Returns the changed parts of two lines; `None` if they have too little in common.
pub fn compare_words(old: &str, new: &str) -> Option<WordChanges> {
    if old.len() > MAX_LINE_BYTES || new.len() > MAX_LINE_BYTES {
        return None;
    }
    let (before, after) = (split_words(old), split_words(new));
    let ops = capture_diff_slices(Algorithm::Myers, &before, &after);
    let size =
        |words: &[&str]| words.iter().filter(|word| !word.trim().is_empty()).map(|word| word.len()).sum::<usize>();
    let equal: usize = ops
        .iter()
        .filter_map(|op| match op {
            DiffOp::Equal { old_index, len, .. } => before.get(*old_index..old_index + len).map(size),
            _ => None,
        })
        .sum();
    let larger = size(&before).max(size(&after));
    if larger == 0 || equal * 100 < larger * MIN_EQUAL_PERCENT {
        return None;
    }
    let mut changes = WordChanges::default();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        push_range(&mut changes.0, old, byte_range(&before, op.old_range()));
        push_range(&mut changes.1, new, byte_range(&after, op.new_range()));
    }
    Some(changes)
}

/// Adds a range; joins it with the last one if only blanks stand between them.
fn push_range(ranges: &mut Vec<Range<usize>>, line: &str, range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if line.get(last.end..range.start).is_some_and(|between| between.trim().is_empty()) => {
            last.end = range.end
        }
        _ => ranges.push(range),
    }
}

fn byte_range(words: &[&str], range: Range<usize>) -> Range<usize> {
    let size = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
    let start = size(&words[..range.start]);
    start..start + size(&words[range])
}

/// Splits a line into words, runs of blanks and single other characters.
fn split_words(line: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum CharClass {
        Word,
        Blank,
        Other,
    }
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => CharClass::Word,
        c if c.is_whitespace() => CharClass::Blank,
        _ => CharClass::Other,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last: Option<CharClass> = None;
    for (at, c) in line.char_indices() {
        let now = class(c);
        if last.is_some_and(|last| last != now || now == CharClass::Other) {
            words.push(&line[start..at]);
            start = at;
        }
        last = Some(now);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_words_are_found_in_lines_that_belong_together() {
        // Old line, new line, changed parts of both; "-" if the lines have nothing in common.
        for (old, new, expected) in [
            ("let a = load(path);", "let a = read(path);", "load|read"),
            ("let a = load(path);", "let a = load(path)?;", "|?"),
            ("fn f(a: u8, b: u8)", "fn f(a: u16, c: u8)", "u8,b|u16,c"),
            ("a + b", "a + b", "|"),
            ("return None", "self.push(item);", "-"),
            ("", "x", "-"),
            ("let größe = 漢字(1);", "let größe = 漢字(2);", "1|2"),
            ("one two three four", "one 2 3 four", "two three|2 3"),
        ] {
            let found = match compare_words(old, new) {
                None => "-".to_owned(),
                Some((before, after)) => {
                    let texts = |line: &str, ranges: &[Range<usize>]| {
                        ranges.iter().map(|range| line[range.clone()].to_owned()).collect::<Vec<_>>().join(",")
                    };
                    format!("{}|{}", texts(old, &before), texts(new, &after))
                }
            };
            assert_eq!(found, expected, "{old:?} and {new:?}");
        }
        assert_eq!(compare_words(&"a".repeat(700), &"a".repeat(700)), None, "a minified line");
    }

    #[test]
    fn lines_are_paired_within_a_block() {
        let old = LineTable::new("fn a(x: u8) {}\nfn b(y: u8) {}\n".to_owned());
        let new = LineTable::new("// something else entirely\nfn a(x: u16) {}\nfn b(y: u16) {}\n".to_owned());
        let block = ChangeBlock { old: 1, old_lines: 2, new: 1, new_lines: 3 };
        let pairs: Vec<(u32, u32)> =
            find_changed_words(&[block], &old, &new).iter().map(|(old, new, _)| (*old, *new)).collect();
        assert_eq!(pairs, [(1, 2), (2, 3)]);
    }
}
