//! Of the declarations that a change stands in, what its diff does not show: their heads, and the lines nearest to it.
//!
//! Invariants: no line that the diff of a review has is told again; the lines together are never more than they may be;
//! the same change gives the same lines.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::{ChunkKind, Declaration};
use super::mask::Mask;
use super::pack::{Count, Need, Piece, SectionKind};
use super::remarks::{cut, in_title};
use super::retrieve::SourceFile;
use super::retrieve::task::{Given, GivenHunk, old_lines};
use super::retrieve::told::Texts;
use super::retrieve::unified;
use super::surroundings::piece;
use super::telling::Telling;
use super::text::{most_that_fits, shown_path};
use crate::domain::LineRange;
use crate::git::Hunk;

/// So many hunks are looked at, the largest first; of so many declarations the rest is told.
const MOST_HUNKS: usize = 32;
const MOST_DECLARATIONS: usize = 4;

/// Lines that follow each other, and their text.
type Run = (LineRange, String);

/// The lines of the searched tree that the diff of a change has.
pub enum Shown {
    /// Those of its hunks, and so many around each.
    Around(u32),
    /// These, by path; from 0, the end not included.
    Lines(Vec<(String, (u32, u32))>),
}

impl Shown {
    /// Those of a text with a diff in it, as far as it goes.
    pub fn of_text(text: &str) -> Self {
        Self::Lines(unified::shown(text))
    }

    fn of(&self, given: &Given) -> Vec<(u32, u32)> {
        let around = |lines: u32| {
            let hunks = given.hunks.iter().map(|hunk| old_lines(&hunk.place));
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

/// What the diff of a change leaves out of the declarations that it changes most, in at most `most` tokens.
pub fn rests<'a>(
    given: impl Iterator<Item = &'a Given>,
    shown: &Shown,
    (files, telling): (&[SourceFile], &Telling<'_>),
    most: u32,
    count: Count<'_>,
) -> Vec<Piece> {
    let mut read: HashMap<&str, Option<Changed>> = HashMap::new();
    let mut found: Vec<(&str, Place)> = Vec::new();
    for (given, hunk) in largest(given) {
        if found.len() >= MOST_DECLARATIONS {
            break;
        }
        let path = given.path.as_str();
        let file = read.entry(path).or_insert_with(|| Changed::read(given, shown, files, telling));
        for declaration in file.iter().flat_map(|file| file.around(&hunk.place)) {
            let is_known = found.contains(&(path, declaration));
            if !is_known && file.as_ref().is_some_and(|file| !file.missing(declaration).is_empty()) {
                found.push((path, declaration));
            }
        }
    }
    found.truncate(MOST_DECLARATIONS);
    let (mut left, mut pieces) = (most, Vec::new());
    for (number, (path, declaration)) in found.iter().enumerate() {
        let Some(Some(file)) = read.get(path) else { continue };
        let shown = shown_path(path, Mask::On);
        let price = |rest: &[Run]| {
            let framed = |(lines, text): &Run| {
                let part = in_title(&cut(&file.declared, *lines));
                format!("{shown}:{}-{}{part}\n```\n{text}```\n", lines.start, lines.end)
            };
            count(&rest.iter().map(framed).collect::<String>()) as u32
        };
        let rest = file.rest(*declaration, left / (found.len() - number) as u32, &price);
        left = left.saturating_sub(price(&rest));
        pieces.extend(rest.into_iter().map(|(lines, text)| Piece {
            path: (*path).to_owned(),
            lines: Some(lines),
            ..piece(SectionKind::Focus, Need::Must, text, "the rest of what the change stands in")
        }));
    }
    pieces
}

/// The largest hunks of a change.
fn largest<'a>(given: impl Iterator<Item = &'a Given>) -> impl Iterator<Item = (&'a Given, &'a GivenHunk)> {
    let mut hunks: Vec<(&Given, &GivenHunk)> =
        given.flat_map(|given| given.hunks.iter().map(move |hunk| (given, hunk))).collect();
    hunks.sort_by_key(|(given, hunk)| {
        (Reverse(hunk.removed.len() + hunk.added.len()), &given.path, hunk.place.old_start)
    });
    hunks.into_iter().take(MOST_HUNKS)
}

/// The files whose declarations [`rests`] most likely looks at.
pub fn looked_at<'a>(given: impl Iterator<Item = &'a Given>) -> Vec<&'a str> {
    let mut paths: Vec<&str> = Vec::new();
    for (given, _) in largest(given).take(MOST_DECLARATIONS) {
        if !paths.contains(&given.path.as_str()) {
            paths.push(&given.path);
        }
    }
    paths
}

/// A file that changes, as it may be told.
struct Changed {
    texts: Arc<Texts>,
    lines: Vec<Line>,
    declared: Arc<[Declaration]>,
}

struct Line {
    /// Where its text is.
    place: Range<usize>,
    /// Whether the diff has it.
    is_told: bool,
    /// Whether it is in a hunk, or beside one that only puts something in.
    is_changed: bool,
}

/// Where a declaration is, as [`super::chunk::Declaration`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    lines: LineRange,
    head: LineRange,
}

impl Changed {
    fn read(given: &Given, shown: &Shown, files: &[SourceFile], telling: &Telling<'_>) -> Option<Self> {
        let file = files.iter().find(|file| file.path == given.path)?;
        let texts = telling.told(file).texts;
        let mut lines: Vec<Line> = Vec::new();
        for line in texts.all.split_inclusive('\n') {
            let start = lines.last().map_or(0, |line| line.place.end);
            lines.push(Line { place: start..start + line.len(), is_told: false, is_changed: false });
        }
        let mut mark = |(start, end): (u32, u32), mark: &dyn Fn(&mut Line)| {
            let end = (end as usize).min(lines.len());
            lines.get_mut(start as usize..end).into_iter().flatten().for_each(mark);
        };
        shown.of(given).into_iter().for_each(|told| mark(told, &|line| line.is_told = true));
        for hunk in &given.hunks {
            let (start, end) = old_lines(&hunk.place);
            let beside = u32::from(start == end);
            mark((start.saturating_sub(beside), end.saturating_add(beside)), &|line| line.is_changed = true);
        }
        let declared = telling.declarations(&file.path, &file.blob);
        Some(Self { texts, lines, declared })
    }

    /// The innermost declarations at both ends of a hunk; of a pure deletion the one that it was in.
    fn around(&self, hunk: &Hunk) -> Vec<Place> {
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
            Some(Place { lines: innermost.lines, head: innermost.head })
        };
        ends.into_iter().filter_map(innermost).collect()
    }

    /// The lines of a declaration that the diff does not have.
    fn missing(&self, declaration: Place) -> Vec<u32> {
        let is_told = |line: u32| self.lines.get(line as usize - 1).is_none_or(|line| line.is_told);
        (declaration.lines.start.max(1)..=declaration.lines.end).filter(|line| !is_told(*line)).collect()
    }

    /// As much of them as `most` tokens hold, by runs: the head first, then what is nearest to changed lines.
    fn rest(&self, declaration: Place, most: u32, price: &dyn Fn(&[Run]) -> u32) -> Vec<Run> {
        let mut order = self.missing(declaration);
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
            self.runs(&lines)
        };
        first(most_that_fits(0, order.len() + 1, |number| price(&first(number)) <= most))
    }

    fn runs(&self, lines: &[u32]) -> Vec<Run> {
        let runs = lines.chunk_by(|one, next| one + 1 == *next).filter_map(|run| {
            let text: String = run.iter().map(|line| self.line(*line)).collect();
            // A brace alone tells nothing.
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
