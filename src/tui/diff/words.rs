//! Finds the words that differ between an old and a new line.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::model::{ChangeBlock, LineTable};
use super::space::strip_space;

/// Longest line, in bytes, whose words are compared.
const MAX_LINE_BYTES: usize = 600;
/// Part of two lines, in percent, that must be equal; otherwise the lines have nothing to do with each other, and marks on
/// single words would only confuse.
const MIN_EQUAL_PERCENT: usize = 45;
/// Most pairs of lines of a block that are compared to find the lines that belong together; a larger block is compared
/// line by line.
const MAX_ALIGNED_PAIRS: usize = 400;
/// Most pairs of lines of a block of which all are compared, so that each line finds the most similar one; in a larger block
/// it is the first one that is similar enough.
const MAX_BEST_PAIRS: usize = 64;
/// Most lines of a block, of both sides, among which lines that only moved to the side are looked for; the time grows with
/// their square.
const MAX_REINDENTED_LINES: usize = 600;
/// Shortest line, in bytes without white space, that is told from others like it: not a bracket, `else` or `return`.
const MIN_REINDENTED_BYTES: usize = 8;
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

/// Finds the lines of a block that belong together: indices of the old and the new line, both in ascending order, with
/// their changed parts. Compares at most `budget` pairs of lines, and takes them off.
pub fn compare_block(old: &[&str], new: &[&str], budget: &mut usize) -> Vec<(usize, usize, WordChanges)> {
    let mut found = Vec::new();
    let mut start = (0, 0);
    for (at, partner) in find_reindented(old, new) {
        compare_part((old, start.0..at), (new, start.1..partner), budget, &mut found);
        push_pair((old, at), (new, partner), budget, &mut found);
        start = (at + 1, partner + 1);
    }
    compare_part((old, start.0..old.len()), (new, start.1..new.len()), budget, &mut found);
    found
}

/// Compares a part of the old lines of a block with a part of the new ones.
fn compare_part(
    (old, before): (&[&str], Range<usize>),
    (new, after): (&[&str], Range<usize>),
    budget: &mut usize,
    found: &mut Vec<(usize, usize, WordChanges)>,
) {
    let pairs = before.len().saturating_mul(after.len());
    // Half of the budget is for blocks below, which then have fewer comparisons each.
    if (2..=MAX_BEST_PAIRS).contains(&pairs) && *budget >= pairs + MAX_PAIRS / 2 {
        *budget -= pairs;
        return push_most_similar((old, before), (new, after), found);
    }
    let is_aligned = pairs <= MAX_ALIGNED_PAIRS;
    let mut next = after.start;
    for at in before.clone() {
        let partners = match is_aligned {
            true => next..after.end,
            false => {
                let partner = after.start + (at - before.start);
                partner..(partner + 1).min(after.end)
            }
        };
        for partner in partners {
            if *budget == 0 {
                return;
            }
            if push_pair((old, at), (new, partner), budget, found) {
                next = partner + 1;
                break;
            }
        }
    }
}

/// Adds the pairs of lines that are the most similar together, without any two that cross. The square of the likeness counts,
/// so that one good pair is worth more than two poor ones.
fn push_most_similar(
    (old, before): (&[&str], Range<usize>),
    (new, after): (&[&str], Range<usize>),
    found: &mut Vec<(usize, usize, WordChanges)>,
) {
    let (rows, columns) = (before.len(), after.len());
    let mut compared: Vec<Option<(usize, WordChanges)>> = Vec::with_capacity(rows * columns);
    for at in before.clone() {
        compared.extend(after.clone().map(|partner| compare_lines(old[at], new[partner])));
    }
    let squares: Vec<Option<usize>> =
        compared.iter().map(|pair| pair.as_ref().map(|(percent, _)| percent * percent)).collect();
    // The greatest sum of the lines from a row and a column on.
    let mut best = vec![vec![0; columns + 1]; rows + 1];
    for at in (0..rows).rev() {
        for partner in (0..columns).rev() {
            let together = squares[at * columns + partner].map_or(0, |square| square + best[at + 1][partner + 1]);
            best[at][partner] = together.max(best[at + 1][partner]).max(best[at][partner + 1]);
        }
    }
    let (mut at, mut partner) = (0, 0);
    while at < rows && partner < columns {
        let pair = at * columns + partner;
        if squares[pair].map(|square| square + best[at + 1][partner + 1]) == Some(best[at][partner]) {
            found.extend(compared[pair].take().map(|(_, changes)| (before.start + at, after.start + partner, changes)));
            (at, partner) = (at + 1, partner + 1);
        } else if best[at][partner + 1] == best[at][partner] {
            partner += 1;
        } else {
            at += 1;
        }
    }
}

/// Compares two lines, and adds them if they belong together. Returns false if they do not, or nothing is left of the
/// budget.
fn push_pair(
    (old, at): (&[&str], usize),
    (new, partner): (&[&str], usize),
    budget: &mut usize,
    found: &mut Vec<(usize, usize, WordChanges)>,
) -> bool {
    let Some(left) = budget.checked_sub(1) else { return false };
    *budget = left;
    let changes = compare_words(old[at], new[partner]);
    let belongs = changes.is_some();
    found.extend(changes.map(|changes| (at, partner, changes)));
    belongs
}

/// Finds the lines that differ only in white space, as code that moved into a block does: indices of both sides in ascending
/// order. They belong together, whatever other line looks similar.
fn find_reindented(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len() + new.len() > MAX_REINDENTED_LINES || (old.len(), new.len()) == (1, 1) {
        return Vec::new();
    }
    let strip = |lines: &[&str]| -> (Vec<usize>, Vec<String>) {
        let short = lines.iter().enumerate().filter(|(_, line)| line.len() <= MAX_LINE_BYTES);
        let stripped = short.map(|(at, line)| (at, strip_space(line).into_owned()));
        stripped.filter(|(_, line)| line.len() >= MIN_REINDENTED_BYTES).unzip()
    };
    let ((before, old), (after, new)) = (strip(old), strip(new));
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            pairs.extend((0..len).map(|n| (before[old_index + n], after[new_index + n])));
        }
    }
    pairs
}

/// Returns the changed parts of two lines; `None` if they have too little in common.
pub fn compare_words(old: &str, new: &str) -> Option<WordChanges> {
    compare_lines(old, new).map(|(_, changes)| changes)
}

/// Returns the part of two lines that is equal, in percent, and their changed parts; `None` if they have too little in common.
fn compare_lines(old: &str, new: &str) -> Option<(usize, WordChanges)> {
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
    Some((equal * 100 / larger, changes))
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

    #[test]
    fn each_line_finds_the_most_similar_one() {
        for (old, new, expected) in [
            (&["return load(path)"][..], &["text = load(path)", "return load(path).strip()"][..], &[(0, 1)][..]),
            (&["let a = load(path);", "let b = save(path);"], &["let b = save(path)?;"], &[(1, 0)]),
            // The first one of two that are equally similar.
            (&["f(a, b, c)"], &["f(a, b, d)", "f(a, b, e)"], &[(0, 0)]),
            (&["f(a, b, c)", "g(x)[1]"], &["g(x)[2]", "f(a, b, d)"], &[(0, 1)]),
            (&["alpha"], &["beta", "gamma"], &[]),
        ] {
            for (mut budget, is_exact) in [(MAX_PAIRS, true), (4, false)] {
                let found = compare_block(old, new, &mut budget);
                let pairs: Vec<(usize, usize)> = found.iter().map(|(old, new, _)| (*old, *new)).collect();
                assert!(pairs.iter().zip(pairs.iter().skip(1)).all(|(a, b)| a.0 < b.0 && a.1 < b.1), "{pairs:?}");
                assert!(!is_exact || pairs == expected, "{old:?} and {new:?}: {pairs:?}");
            }
        }
    }

    #[test]
    fn a_line_that_only_moved_to_the_side_belongs_to_itself() {
        let append = "rows.append(load(path))";
        let moved = format!("    {append}");
        let minified = "x".repeat(MAX_LINE_BYTES + 1);
        let body: Vec<String> = (0..60).map(|n| format!("step_{n} = run({n})")).collect();
        let indented: Vec<String> =
            std::iter::once("if ready:".to_owned()).chain(body.iter().map(|line| format!("    {line}"))).collect();
        let long: Vec<(usize, usize)> = (0..60).map(|n| (n, n + 1)).collect();
        for (old, new, expected) in [
            (
                vec![append.to_owned()],
                vec!["try:".to_owned(), moved.clone(), "except OSError:".to_owned()],
                vec![(0, 1)],
            ),
            // Another line looks similar.
            (vec![append.to_owned()], vec!["names.append(load(name))".to_owned(), moved], vec![(0, 1)]),
            // Too many pairs to compare each with each.
            (body.clone(), indented.clone(), long),
            // A line that is too long to be compared says nothing about the others.
            (
                vec!["f(a, b)".to_owned(), minified.clone()],
                vec![format!("    {minified}"), "f(a, b, c)".to_owned()],
                vec![(0, 1)],
            ),
            // Brackets belong to whatever stands around them.
            (vec!["}".to_owned()], vec!["  }".to_owned(), "}".to_owned()], vec![(0, 0)]),
        ] {
            let (before, after): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let mut budget = MAX_PAIRS;
            let found = compare_block(&before, &after, &mut budget);
            let pairs: Vec<(usize, usize)> = found.iter().map(|(old, new, _)| (*old, *new)).collect();
            assert_eq!(pairs, expected, "{old:?} and {new:?}");
            assert!(found.iter().all(|(.., (before, _))| before.is_empty()), "{found:?}");
        }
        let mut budget = 3;
        let (before, after): (Vec<&str>, Vec<&str>) =
            (body.iter().map(String::as_str).collect(), indented.iter().map(String::as_str).collect());
        assert_eq!((compare_block(&before, &after, &mut budget).len(), budget), (3, 0));
    }
}
