//! Finds moved code among the lines that a change added.

use std::collections::HashMap;
use std::sync::Arc;

use super::line_hashes::HashedLines;
use crate::domain::LineRange;

/// Maximum number of occurrences of a line among the added lines. A more frequent line does not identify a place.
const MAX_OCCURRENCES: usize = 64;
/// Minimum share of unchanged letters and digits, in percent, of code that was moved and edited: a block of five lines
/// of which one was edited has this share.
const MIN_SIMILARITY_PERCENT: u64 = 80;
/// Minimum weight (letters and digits) and number of lines of code that can be found again after an edit.
const MIN_SIMILAR_WEIGHT: u64 = 40;
const MIN_SIMILAR_LINES: usize = 3;

/// Lines that a change added, in all files.
#[derive(Debug, Clone, Default)]
pub struct AddedLines {
    files: Vec<AddedFile>,
    /// File index and line number of each occurrence, by the hash of the line, in the order of addition.
    places: HashMap<u64, Vec<(usize, u32)>>,
}

#[derive(Debug, Clone)]
struct AddedFile {
    path: String,
    code: Arc<HashedLines>,
    /// Added ranges, sorted.
    added: Vec<LineRange>,
}

/// Location of moved code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MovedCode {
    /// The code is the same.
    Exact { path: String, lines: LineRange },
    /// The code is nearly the same.
    Similar { path: String, lines: LineRange },
}

impl AddedLines {
    /// Adds the lines of a file that the change added, in order. Call it once for each path.
    pub fn add(&mut self, path: &str, code: Arc<HashedLines>, added: impl IntoIterator<Item = LineRange>) {
        let added: Vec<LineRange> = added.into_iter().collect();
        let file = self.files.len();
        for line in added.iter().flat_map(|range| code.nonblank_lines(*range)) {
            self.places.entry(code.hash(line)).or_default().push((file, line));
        }
        self.files.push(AddedFile { path: path.to_owned(), code, added });
    }

    /// Finds where `lines` of `old` moved. The same code is preferred; among several places, the one nearest to `line`
    /// of `path` is returned. Otherwise, code that is mostly the same is returned.
    pub fn find(&self, old: &HashedLines, lines: LineRange, (path, line): (&str, u32)) -> Option<MovedCode> {
        let wanted: Vec<u32> = old.nonblank_lines(lines).collect();
        self.find_exact(old, &wanted, (path, line)).or_else(|| self.find_similar(old, &wanted))
    }

    /// Returns the numbers of the lines in a range of a file that are not blank.
    pub(super) fn nonblank_lines_in(&self, path: &str, lines: LineRange) -> impl Iterator<Item = u32> + '_ {
        let file = self.files.iter().find(|file| file.path == path);
        file.into_iter().flat_map(move |file| file.code.nonblank_lines(lines))
    }

    /// Returns the occurrences of a line's hash among the added lines.
    fn occurrences(&self, hash: u64) -> &[(usize, u32)] {
        self.places.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Finds the same code, starting from its rarest line.
    fn find_exact(&self, old: &HashedLines, wanted: &[u32], (path, line): (&str, u32)) -> Option<MovedCode> {
        let (index, hits) = wanted
            .iter()
            .enumerate()
            .map(|(index, &line)| (index, self.occurrences(old.hash(line))))
            .filter(|(_, hits)| !hits.is_empty())
            .min_by_key(|(_, hits)| hits.len())?;
        let hits = hits.iter().take(MAX_OCCURRENCES);
        let found = hits.filter_map(|&(file, at)| {
            let lines = self.match_block(file, at, old, wanted, index)?;
            let file = self.files.get(file)?;
            // Most of the code must be added. Code that was there before has not moved there.
            (self.added_weight(file, lines) * 2 > file.code.range_weight(lines)).then_some((file, lines))
        });
        let (file, lines) = found.min_by_key(|(file, lines)| (file.path != path, lines.start.abs_diff(line)))?;
        Some(MovedCode::Exact { path: file.path.clone(), lines })
    }

    /// Matches `wanted` around line `at` of a file, where its element `index` is. Returns the matched range.
    fn match_block(&self, file: usize, at: u32, old: &HashedLines, wanted: &[u32], index: usize) -> Option<LineRange> {
        let code = &self.files.get(file)?.code;
        let (before, after) = wanted.split_at_checked(index)?;
        let up = code.nonblank_lines(LineRange::new(1, at.saturating_sub(1).max(1))).rev().filter(|&line| line < at);
        let down = code.nonblank_lines(LineRange::new(at, code.len().max(at)));
        let ends = |lines: &mut dyn Iterator<Item = u32>, wanted: &mut dyn Iterator<Item = &u32>| -> Option<u32> {
            let mut end = at;
            for &line in wanted {
                let there = lines.next()?;
                if code.hash(there) != old.hash(line) {
                    return None;
                }
                end = there;
            }
            Some(end)
        };
        let (mut up, mut down) = (up, down);
        let last = ends(&mut down, &mut after.iter())?;
        Some(LineRange::new(ends(&mut up, &mut before.iter().rev())?, last))
    }

    /// Returns the number of letters and digits of the added lines in a range.
    fn added_weight(&self, file: &AddedFile, lines: LineRange) -> u64 {
        let shared = file.added.iter().filter(|range| range.overlaps(lines));
        shared
            .map(|range| file.code.range_weight(LineRange::new(range.start.max(lines.start), range.end.min(lines.end))))
            .sum()
    }

    /// Finds the range of added lines that contains most of the code.
    fn find_similar(&self, old: &HashedLines, wanted: &[u32]) -> Option<MovedCode> {
        let (&first, &last) = (wanted.first()?, wanted.last()?);
        let weight = wanted.iter().map(|&line| u64::from(old.weight(line))).sum::<u64>();
        if weight < MIN_SIMILAR_WEIGHT || wanted.len() < MIN_SIMILAR_LINES {
            return None;
        }
        // Each line votes for a place of the first line.
        let mut votes: HashMap<(usize, i64), u64> = HashMap::new();
        for &line in wanted {
            let hits = self.occurrences(old.hash(line));
            if hits.len() <= MAX_OCCURRENCES {
                for &(file, at) in hits {
                    *votes.entry((file, i64::from(at) - i64::from(line - first))).or_default() +=
                        u64::from(old.weight(line));
                }
            }
        }
        let (&(file, start), _) =
            votes.iter().max_by_key(|((file, start), weight)| (**weight, std::cmp::Reverse((*file, *start))))?;
        let file = self.files.get(file)?;
        // Lines may have been inserted or removed in between.
        let slack = i64::from(last - first) / 4 + 1;
        let from = u32::try_from(start - slack).unwrap_or(1).max(1);
        let to = u32::try_from(start + i64::from(last - first) + slack).ok()?;
        let mut left: HashMap<u64, u32> = HashMap::new();
        for &line in wanted {
            *left.entry(old.hash(line)).or_default() += 1;
        }
        let mut same: Vec<u32> = Vec::new();
        let within = file.added.iter().filter(|range| range.overlaps(LineRange::new(from, to)));
        for line in
            within.flat_map(|range| file.code.nonblank_lines(LineRange::new(range.start.max(from), range.end.min(to))))
        {
            if let Some(count) = left.get_mut(&file.code.hash(line)).filter(|count| **count > 0) {
                *count -= 1;
                same.push(line);
            }
        }
        let found: u64 = same.iter().map(|&line| u64::from(file.code.weight(line))).sum();
        let lines = LineRange::new(*same.first()?, *same.last()?);
        (found * 100 >= weight * MIN_SIMILARITY_PERCENT).then(|| MovedCode::Similar { path: file.path.clone(), lines })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const BLOCK: &str =
        "fn total(items) {\n  sum = 0\n  for item in items {\n    sum += item.price\n  }\n\n  return sum\n}\n";

    /// Path, text, added lines.
    type AddedFileSample<'a> = (&'a str, &'a str, &'a [(u32, u32)]);

    fn added(files: &[AddedFileSample<'_>]) -> AddedLines {
        let mut added = AddedLines::default();
        for (path, text, ranges) in files {
            let ranges = ranges.iter().map(|&(start, end)| LineRange::new(start, end));
            added.add(path, Arc::new(HashedLines::from_text(text.as_bytes())), ranges);
        }
        added
    }

    fn exact(path: &str, start: u32, end: u32) -> Option<MovedCode> {
        Some(MovedCode::Exact { path: path.to_owned(), lines: LineRange::new(start, end) })
    }

    #[rstest]
    #[case::to_another_file(format!("// new\n{BLOCK}"), &[(1, 9)], exact("b", 2, 9))]
    #[case::indented_and_without_its_blank_line(
        format!("class C {{\n{}}}\n", BLOCK.replace("\n\n", "\n").replace("  ", "\t\t")), &[(1, 9)], exact("b", 2, 8)
    )]
    #[case::what_stood_there_before(format!("{BLOCK}x\n"), &[(9, 9)], None)]
    #[case::of_which_only_a_line_is_new(BLOCK.to_owned(), &[(2, 2)], None)]
    #[case::with_a_line_that_stayed(BLOCK.to_owned(), &[(1, 1), (3, 8)], exact("b", 1, 8))]
    #[case::edited_on_the_way(
        BLOCK.replace("sum = 0", "sum = 1"), &[(1, 8)],
        Some(MovedCode::Similar { path: "b".to_owned(), lines: LineRange::new(1, 8) })
    )]
    #[case::a_line_came_in_between(
        BLOCK.replace("  return", "  log()\n  return").replace("sum = 0", "sum = 9"), &[(1, 9)],
        Some(MovedCode::Similar { path: "b".to_owned(), lines: LineRange::new(1, 9) })
    )]
    #[case::something_else("fn other(x) {\n  y = x\n  return y * 2\n}\n".to_owned(), &[(1, 4)], None)]
    fn code_that_went_elsewhere(
        #[case] text: String,
        #[case] ranges: &[(u32, u32)],
        #[case] expected: Option<MovedCode>,
    ) {
        let old = HashedLines::from_text(BLOCK.as_bytes());
        assert_eq!(added(&[("b", &text, ranges)]).find(&old, LineRange::new(1, 8), ("a", 1)), expected);
    }

    #[test]
    fn of_several_the_nearest_in_its_own_file_is_taken() {
        let old = HashedLines::from_text(BLOCK.as_bytes());
        let twice = format!("{BLOCK}{}{BLOCK}", "x\n".repeat(20));
        let all: &[(u32, u32)] = &[(1, 36)];
        let added = added(&[("a", BLOCK, &[(1, 8)]), ("b", &twice, all)]);
        for (near, expected) in
            [(("b", 1), ("b", 1)), (("b", 30), ("b", 29)), (("a", 30), ("a", 1)), (("c", 30), ("b", 29))]
        {
            let found = added.find(&old, LineRange::new(1, 8), near);
            assert_eq!(found, exact(expected.0, expected.1, expected.1 + 7), "{near:?}");
        }
    }
}
