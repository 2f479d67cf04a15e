//! Finds code that moved: lines that are removed in one place and added in another.

use std::collections::{HashMap, HashSet};

use super::model::{ChangeBlock, DiffPageSide, LineTable};
use crate::domain::LineRange;

/// Fewest lines of a move; shorter ones are chance.
const MIN_MOVED_LINES: u32 = 3;
/// Fewest lines of a move that say something: a move of braces is chance, too.
const MIN_TELLING_LINES: u32 = 2;
/// Fewest letters and digits of a line that says something.
const MIN_TELLING_CHARS: usize = 4;
/// Most places of an equal removed line that are compared.
const MAX_CANDIDATES: usize = 64;

/// Texts and changed blocks of a file.
pub struct MoveSource<'a> {
    pub blocks: &'a [ChangeBlock],
    pub old: &'a LineTable,
    pub new: &'a LineTable,
}

/// Lines that moved, by the indices of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffMove {
    /// File from which they are gone.
    pub old_file: usize,
    /// Lines of its old side.
    pub old: LineRange,
    /// File to which they came.
    pub new_file: usize,
    /// Lines of its new side.
    pub new: LineRange,
}

impl DiffMove {
    /// Returns the lines on a side.
    pub fn lines(&self, side: DiffPageSide) -> LineRange {
        match side {
            DiffPageSide::Old => self.old,
            DiffPageSide::New => self.new,
        }
    }
}

/// Place of a removed line.
#[derive(Debug, Clone, Copy)]
struct RemovedLine {
    file: usize,
    block: usize,
    line: u32,
}

/// Finds the moves between and within files. Indentation is ignored, except in lines that replace each other.
pub fn find_moves(files: &[MoveSource<'_>]) -> Vec<DiffMove> {
    let mut removed: HashMap<&str, Vec<RemovedLine>> = HashMap::new();
    for (file, source) in files.iter().enumerate() {
        for (block, lines) in source.blocks.iter().enumerate() {
            for line in lines.old..lines.old + lines.old_lines {
                if let Some(text) = source.old.line(line).map(str::trim).filter(|text| is_telling(text)) {
                    removed.entry(text).or_default().push(RemovedLine { file, block, line });
                }
            }
        }
    }
    let mut used: HashSet<(usize, u32)> = HashSet::new();
    let mut moves = Vec::new();
    for (file, source) in files.iter().enumerate() {
        for (block, lines) in source.blocks.iter().enumerate() {
            let end = lines.new + lines.new_lines;
            let mut line = lines.new;
            while line < end {
                let text = source.new.line(line).map_or("", str::trim);
                let candidates = removed.get(text).map_or(&[][..], Vec::as_slice);
                let best = candidates
                    .iter()
                    .take(MAX_CANDIDATES)
                    .filter(|from| (from.file, from.block) != (file, block) && !used.contains(&(from.file, from.line)))
                    .map(|from| (count_equal(files, from, source, line..end), *from))
                    .max_by_key(|(count, _)| *count)
                    .filter(|(count, _)| *count >= MIN_MOVED_LINES);
                let Some((count, from)) = best else {
                    line += 1;
                    continue;
                };
                let telling = source.new.lines(line, line + count).filter(|text| is_telling(text.trim())).count();
                if telling >= MIN_TELLING_LINES as usize {
                    used.extend((from.line..from.line + count).map(|line| (from.file, line)));
                    moves.push(DiffMove {
                        old_file: from.file,
                        old: LineRange::new(from.line, from.line + count - 1),
                        new_file: file,
                        new: LineRange::new(line, line + count - 1),
                    });
                }
                line += count;
            }
        }
    }
    moves
}

/// Counts the lines that are equal from a removed and an added line on, within their blocks.
fn count_equal(
    files: &[MoveSource<'_>],
    from: &RemovedLine,
    source: &MoveSource<'_>,
    added: std::ops::Range<u32>,
) -> u32 {
    let Some(other) = files.get(from.file) else { return 0 };
    let Some(block) = other.blocks.get(from.block) else { return 0 };
    let removed = from.line..block.old + block.old_lines;
    let equal = removed.zip(added).take_while(|(old, new)| {
        let (old, new) = (other.old.line(*old), source.new.line(*new));
        old.is_some() && old.map(str::trim) == new.map(str::trim)
    });
    equal.count() as u32
}

fn is_telling(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphanumeric()).take(MIN_TELLING_CHARS).count() >= MIN_TELLING_CHARS
}

#[cfg(test)]
mod tests {
    use similar::{DiffOp, TextDiff};

    use super::*;

    /// Returns the moves of pairs of texts as `old_file:lines>new_file:lines`.
    fn moves(files: &[(&str, &str)]) -> Vec<String> {
        let tables: Vec<(LineTable, LineTable, Vec<ChangeBlock>)> = files
            .iter()
            .map(|(old, new)| {
                let compared = TextDiff::from_lines(*old, *new);
                let changed = compared.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
                let blocks = changed.map(|op| ChangeBlock {
                    old: op.old_range().start as u32 + 1,
                    old_lines: op.old_range().len() as u32,
                    new: op.new_range().start as u32 + 1,
                    new_lines: op.new_range().len() as u32,
                });
                (LineTable::new((*old).to_owned()), LineTable::new((*new).to_owned()), blocks.collect())
            })
            .collect();
        let sources: Vec<MoveSource<'_>> =
            tables.iter().map(|(old, new, blocks)| MoveSource { blocks, old, new }).collect();
        let range = |lines: LineRange| format!("{}-{}", lines.start, lines.end);
        find_moves(&sources)
            .iter()
            .map(|found| format!("{}:{}>{}:{}", found.old_file, range(found.old), found.new_file, range(found.new)))
            .collect()
    }

    #[test]
    fn equal_blocks_of_three_lines_have_moved() {
        let helper = "fn helper() {\n    work(1);\n    work(2);\n}\n";
        let rest = "fn one() { a(); }\n\nfn two() { b(); }\n\nfn three() { c(); }\n";
        let (before, after) = (format!("{helper}{rest}"), format!("{rest}{helper}"));
        assert_eq!(moves(&[(&before, &after)]), ["0:1-4>0:6-9"], "within a file");
        assert_eq!(moves(&[(&before, rest), ("", helper)]), ["0:1-4>1:1-4"], "between files");
        let indented = "mod inner {\n    fn helper() {\n        work(1);\n        work(2);\n    }\n}\n";
        assert_eq!(moves(&[(helper, ""), ("", indented)]), ["0:1-4>1:2-5"], "with another indentation");
        assert_eq!(
            moves(&[("a_long_line\nb_long_line\n", ""), ("", "a_long_line\nb_long_line\n")]),
            [""; 0],
            "two lines"
        );
        assert_eq!(moves(&[("}\n}\n}\n)\n", ""), ("", "}\n}\n}\n)\n")]), [""; 0], "braces");
        assert_eq!(
            moves(&[(
                "x {\n    alpha();\n    beta();\n    gamma();\n}\n",
                "x {\n        alpha();\n        beta();\n        gamma();\n}\n"
            )]),
            [""; 0],
            "indented in place"
        );
        // Of two copies, one has moved.
        assert_eq!(moves(&[(helper, ""), ("", helper), ("", helper)]), ["0:1-4>1:1-4"]);
    }
}
