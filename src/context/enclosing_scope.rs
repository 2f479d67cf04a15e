//! Builds pieces from the declarations that enclose a change: the lines that its diff does not show.
//!
//! Invariants:
//! - No line that the review's diff shows is repeated.
//! - All pieces together stay within their tokens.
//! - The same change gives the same lines.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::annotations::{find_cut_declarations, format_title_note};
use super::builder::standalone_piece;
use super::file_analysis::FileAnalyzer;
use super::pack::{ContextPiece, Need, SectionKind, TokenCounter};
use super::retrieve::masked_text::PassageTexts;
use super::retrieve::task::{GivenFile, GivenFileHunk, old_line_range};
use super::retrieve::unified_diff;
use super::text::{find_max_fitting, format_path};
use crate::domain::LineRange;
use crate::git::Hunk;
use crate::index::chunk::{ChunkKind, Declaration};
use crate::index::document_store::SourceFile;
use crate::masking::Mask;

/// Maximum number of hunks to look at, the largest first, and of declarations whose hidden lines are shown.
const MAX_HUNKS: usize = 32;
const MAX_DECLARATIONS: usize = 4;

/// Consecutive lines (1-based, inclusive) and their text.
type LineRun = (LineRange, String);

/// Lines of the searched tree that the diff of a change shows.
pub enum LinesInDiff {
    /// Lines of the hunks, and this many lines around each hunk.
    Around(u32),
    /// Line ranges by path: 0-based, end exclusive.
    Lines(Vec<(String, (u32, u32))>),
}

impl LinesInDiff {
    /// Reads the lines from a text that contains a diff.
    pub fn from_diff_text(text: &str) -> Self {
        Self::Lines(unified_diff::list_shown_lines(text))
    }

    fn ranges_in(&self, given: &GivenFile) -> Vec<(u32, u32)> {
        let around = |lines: u32| {
            let hunks = given.hunks.iter().map(|hunk| old_line_range(&hunk.range));
            hunks.map(|(start, end)| (start.saturating_sub(lines), end.saturating_add(lines))).collect()
        };
        match self {
            Self::Around(lines) => around(*lines),
            Self::Lines(shown) => {
                shown.iter().filter(|(path, _)| *path == given.path).map(|(_, lines)| *lines).collect()
            }
        }
    }
}

/// Builds pieces with the lines that the diff hides of the declarations with the largest changes, within `most` tokens.
pub fn build_enclosing_pieces<'a>(
    given: impl Iterator<Item = &'a GivenFile>,
    shown: &LinesInDiff,
    (files, telling): (&[SourceFile], &FileAnalyzer<'_>),
    most: u32,
    count: TokenCounter<'_>,
) -> Vec<ContextPiece> {
    let mut read: HashMap<&str, Option<ChangedFileText>> = HashMap::new();
    let mut found: Vec<(&str, DeclarationLines)> = Vec::new();
    for (given, hunk) in largest_hunks(given) {
        if found.len() >= MAX_DECLARATIONS {
            break;
        }
        let path = given.path.as_str();
        let file = read.entry(path).or_insert_with(|| ChangedFileText::read(given, shown, files, telling));
        for declaration in file.iter().flat_map(|file| file.enclosing_declarations(&hunk.range)) {
            let is_known = found.contains(&(path, declaration));
            if !is_known && file.as_ref().is_some_and(|file| !file.hidden_lines(declaration).is_empty()) {
                found.push((path, declaration));
            }
        }
    }
    found.truncate(MAX_DECLARATIONS);
    let (mut left, mut pieces) = (most, Vec::new());
    for (number, (path, declaration)) in found.iter().enumerate() {
        let Some(Some(file)) = read.get(path) else { continue };
        let shown = format_path(path, Mask::On);
        let price = |rest: &[LineRun]| {
            let framed = |(lines, text): &LineRun| {
                let part = format_title_note(&find_cut_declarations(&file.declared, *lines));
                format!("{shown}:{}-{}{part}\n```\n{text}```\n", lines.start, lines.end)
            };
            count(&rest.iter().map(framed).collect::<String>()) as u32
        };
        let rest = file.select_hidden_runs(*declaration, left / (found.len() - number) as u32, &price);
        left = left.saturating_sub(price(&rest));
        pieces.extend(rest.into_iter().map(|(lines, text)| ContextPiece {
            path: (*path).to_owned(),
            lines: Some(lines),
            ..standalone_piece(SectionKind::Focus, Need::Must, text, "the rest of what the change stands in")
        }));
    }
    pieces
}

/// Returns the [`MAX_HUNKS`] largest hunks of a change, the largest first.
fn largest_hunks<'a>(
    given: impl Iterator<Item = &'a GivenFile>,
) -> impl Iterator<Item = (&'a GivenFile, &'a GivenFileHunk)> {
    let mut hunks: Vec<(&GivenFile, &GivenFileHunk)> =
        given.flat_map(|given| given.hunks.iter().map(move |hunk| (given, hunk))).collect();
    hunks.sort_by_key(|(given, hunk)| {
        (Reverse(hunk.removed.len() + hunk.added.len()), &given.path, hunk.range.old_start)
    });
    hunks.into_iter().take(MAX_HUNKS)
}

/// Returns the paths of the files whose declarations [`build_enclosing_pieces`] will most likely read.
pub fn likely_paths<'a>(given: impl Iterator<Item = &'a GivenFile>) -> Vec<&'a str> {
    let mut paths: Vec<&str> = Vec::new();
    for (given, _) in largest_hunks(given).take(MAX_DECLARATIONS) {
        if !paths.contains(&given.path.as_str()) {
            paths.push(&given.path);
        }
    }
    paths
}

/// A changed file as it may be shown: masked.
struct ChangedFileText {
    texts: Arc<PassageTexts>,
    lines: Vec<DiffedLine>,
    declared: Arc<[Declaration]>,
}

struct DiffedLine {
    /// Byte range of the line's text.
    place: Range<usize>,
    /// True if the diff shows the line.
    is_shown: bool,
    /// True if the line is in a hunk, or next to a hunk without lines in the searched tree.
    is_changed: bool,
}

/// Lines of a declaration and of its head, as in [`crate::index::chunk::Declaration`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct DeclarationLines {
    lines: LineRange,
    head: LineRange,
}

impl ChangedFileText {
    fn read(given: &GivenFile, shown: &LinesInDiff, files: &[SourceFile], telling: &FileAnalyzer<'_>) -> Option<Self> {
        let file = files.iter().find(|file| file.path == given.path)?;
        let texts = telling.mask_file(file).texts;
        let mut lines: Vec<DiffedLine> = Vec::new();
        for line in texts.all.split_inclusive('\n') {
            let start = lines.last().map_or(0, |line| line.place.end);
            lines.push(DiffedLine { place: start..start + line.len(), is_shown: false, is_changed: false });
        }
        let mut mark = |(start, end): (u32, u32), mark: &dyn Fn(&mut DiffedLine)| {
            let end = (end as usize).min(lines.len());
            lines.get_mut(start as usize..end).into_iter().flatten().for_each(mark);
        };
        shown.ranges_in(given).into_iter().for_each(|told| mark(told, &|line| line.is_shown = true));
        for hunk in &given.hunks {
            let (start, end) = old_line_range(&hunk.range);
            let beside = u32::from(start == end);
            mark((start.saturating_sub(beside), end.saturating_add(beside)), &|line| line.is_changed = true);
        }
        let declared = telling.declarations(&file.path, &file.blob);
        Some(Self { texts, lines, declared })
    }

    /// Returns the innermost declarations at both ends of a hunk. For a hunk without lines in the searched tree, the
    /// declaration around its place.
    fn enclosing_declarations(&self, hunk: &Hunk) -> Vec<DeclarationLines> {
        let first = hunk.old_start.max(1);
        let last = first.saturating_add(hunk.old_lines.saturating_sub(1));
        let ends = match hunk.old_lines {
            0 => vec![(first, first.saturating_add(1))],
            _ => vec![(first, first), (last, last)],
        };
        let innermost = |(start, end): (u32, u32)| {
            let around = self.declared.iter().filter(|found| {
                found.kind != ChunkKind::Module && found.lines.start <= start && end <= found.lines.end
            });
            let innermost = around.min_by_key(|found| found.lines.end - found.lines.start)?;
            Some(DeclarationLines { lines: innermost.lines, head: innermost.head })
        };
        ends.into_iter().filter_map(innermost).collect()
    }

    /// Returns the lines of a declaration that the diff does not show.
    fn hidden_lines(&self, declaration: DeclarationLines) -> Vec<u32> {
        let is_told = |line: u32| self.lines.get(line as usize - 1).is_none_or(|line| line.is_shown);
        (declaration.lines.start.max(1)..=declaration.lines.end).filter(|line| !is_told(*line)).collect()
    }

    /// Selects as many hidden lines as fit in `most` tokens, grouped into runs: the head first, then lines nearest to
    /// changed lines.
    fn select_hidden_runs(
        &self,
        declaration: DeclarationLines,
        most: u32,
        price: &dyn Fn(&[LineRun]) -> u32,
    ) -> Vec<LineRun> {
        let mut order = self.hidden_lines(declaration);
        let numbers = (1u32..).zip(&self.lines);
        let changed: Vec<u32> = numbers.filter(|(_, line)| line.is_changed).map(|(number, _)| number).collect();
        let distance = |line: u32| {
            let behind = changed.partition_point(|changed| *changed < line);
            let before = behind.checked_sub(1).and_then(|at| changed.get(at));
            changed.get(behind).into_iter().chain(before).map(|changed| changed.abs_diff(line)).min()
        };
        let head = declaration.head.start..=declaration.head.end;
        order.sort_by_cached_key(|line| (!head.contains(line), distance(*line), *line));
        let first = |number: usize| {
            let mut lines = order.get(..number).unwrap_or_default().to_vec();
            lines.sort_unstable();
            self.group_into_runs(&lines)
        };
        first(find_max_fitting(0, order.len() + 1, |number| price(&first(number)) <= most))
    }

    fn group_into_runs(&self, lines: &[u32]) -> Vec<LineRun> {
        let runs = lines.chunk_by(|one, next| one + 1 == *next).filter_map(|run| {
            let text: String = run.iter().map(|line| self.line(*line)).collect();
            // A brace alone says nothing.
            let says = text.contains(char::is_alphanumeric);
            Some((LineRange::new(*run.first()?, *run.last()?), text)).filter(|_| says)
        });
        runs.collect()
    }

    fn line(&self, number: u32) -> &str {
        let place = self.lines.get(number as usize - 1).map_or(0..0, |line| line.place.clone());
        self.texts.all.get(place).unwrap_or_default()
    }
}
