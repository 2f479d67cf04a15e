//! Declarations of which a part is taken: what it is worth to have all of them.
//!
//! Invariants: one that is completed is there from its first line to its last; one of more tokens than a chunk has never
//! is, what is in it may be.

use std::collections::HashMap;

use super::merge::{Ranges, Taken};
use super::{Declared, Excluded, Piece, Price};
use crate::context::chunk::MOST_TOKENS;
use crate::domain::LineRange;

/// Declarations are completed under larger budgets only, in tokens: below, the weights are fitted to single passages, and
/// what is measured (docs/retrieval.md) stays as it is.
const SMALL: u32 = 32_000;

/// Whether declarations are completed under a budget, and [`Declared`] is asked for files that are not yet taken.
pub fn completes(budget: u32) -> bool {
    budget > SMALL
}

/// Declarations of the files of which something is taken.
pub(super) struct Wholes<'a> {
    pieces: &'a [Piece],
    prices: &'a [Price],
    declared: Declared<'a>,
    /// With the rest of a declaration, what is there of it is worth so much more, by its own worth: nothing under a small
    /// budget, and as much again under one without end.
    completing: f32,
    /// By path, the pieces of its code.
    code: HashMap<&'a str, Vec<usize>>,
    /// By path, its declarations.
    of_files: HashMap<&'a str, usize>,
    files: Vec<Vec<Whole>>,
}

/// A declaration.
struct Whole {
    lines: LineRange,
    /// Its lines in order, by piece; none where they are not all there, or are too many tokens.
    parts: Vec<Part>,
}

/// What a piece has of a declaration.
#[derive(Clone, Copy)]
struct Part {
    at: usize,
    lines: LineRange,
    tokens: u32,
    worth: f32,
}

/// What is not taken of a part: how much of it, from 0 to 1, and its tokens.
struct Rest {
    share: f32,
    tokens: u32,
}

/// Which declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WholeId {
    file: usize,
    number: usize,
}

impl<'a> Wholes<'a> {
    pub fn new(pieces: &'a [Piece], prices: &'a [Price], declared: Declared<'a>, room: u32) -> Self {
        let completing = 1.0 - SMALL as f32 / room.max(SMALL) as f32;
        let mut code: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.lines.is_some()) {
            code.entry(&piece.path).or_default().push(at);
        }
        Self { pieces, prices, declared, completing, code, of_files: HashMap::new(), files: Vec::new() }
    }

    /// The declarations that have lines in a range and lack some, and what the rest of each is worth for its tokens.
    pub fn around(&mut self, path: &str, lines: LineRange, taken: &Taken) -> Vec<(WholeId, f32)> {
        if self.completing == 0.0 {
            return Vec::new();
        }
        let Some(file) = self.file(path) else { return Vec::new() };
        let wholes = self.files.get(file).into_iter().flatten().enumerate();
        let around =
            wholes.filter(|(_, whole)| whole.lines.overlaps(lines)).map(|(number, _)| WholeId { file, number });
        around.filter_map(|id| Some((id, self.rate(id, taken)?))).collect()
    }

    /// What the rest of a declaration is worth by token; `None` where nothing is missing.
    pub fn rate(&self, id: WholeId, taken: &Taken) -> Option<f32> {
        let (mut here, mut missing, mut tokens) = (0.0, 0.0, 0);
        let whole = self.whole(id)?;
        let taken = taken.of_file(&self.pieces[whole.parts.first()?.at].path)?;
        for part in &whole.parts {
            let rest = self.rest(part, taken);
            missing += part.worth * rest.share;
            here += part.worth * (1.0 - rest.share);
            tokens += rest.tokens;
        }
        let rate = (self.completing * here + missing) / tokens as f32;
        (tokens > 0).then_some(if rate.is_finite() { rate } else { 0.0 })
    }

    /// What of a part is not taken.
    fn rest(&self, part: &Part, taken: &Ranges) -> Rest {
        match taken.missing(part.lines) {
            None => Rest { share: 0.0, tokens: 0 },
            Some(lines) if lines == part.lines => Rest { share: 1.0, tokens: part.tokens },
            Some(lines) => Rest {
                share: lines.count() as f32 / part.lines.count() as f32,
                tokens: self.prices[part.at].of_lines(&self.pieces[part.at], lines),
            },
        }
    }

    /// Takes the rest of a declaration when there is room for it; says where it is.
    pub fn complete(&self, id: WholeId, taken: &mut Taken, room: u32) -> Result<(&'a str, LineRange), Excluded> {
        let whole = self.whole(id).filter(|whole| !whole.parts.is_empty()).ok_or(Excluded::Contained)?;
        let first = whole.parts[0].at;
        let path = self.pieces[first].path.as_str();
        let known = taken.of_file(path).ok_or(Excluded::Budget)?;
        let tokens = whole.parts.iter().map(|part| self.rest(part, known).tokens).sum();
        let missing: Vec<Part> =
            whole.parts.iter().filter(|part| known.missing(part.lines).is_some()).copied().collect();
        taken.add(path, whole.lines, self.prices[first].head, &|_| tokens, room)?;
        for part in missing {
            match self.pieces[part.at].lines == Some(part.lines) {
                true => taken.put(part.at),
                false => taken.put_part(part.at, part.lines),
            }
        }
        Ok((path, whole.lines))
    }

    fn whole(&self, id: WholeId) -> Option<&Whole> {
        self.files.get(id.file)?.get(id.number)
    }

    /// The number of a file, its declarations read; `None` of one without code.
    fn file(&mut self, path: &str) -> Option<usize> {
        if let Some(known) = self.of_files.get(path) {
            return Some(*known);
        }
        let (path, numbers) = self.code.get_key_value(path)?;
        let cover = cover(self.pieces, numbers);
        let declared = (self.declared)(path);
        let whole = |lines: LineRange| Whole { lines, parts: self.parts(&cover, lines) };
        let wholes = declared.iter().map(|declaration| whole(declaration.lines)).collect();
        self.of_files.insert(path, self.files.len());
        self.files.push(wholes);
        Some(self.files.len() - 1)
    }

    fn parts(&self, cover: &[(usize, LineRange)], lines: LineRange) -> Vec<Part> {
        let from = cover.partition_point(|(_, own)| own.end < lines.start);
        let (mut parts, mut next, mut tokens) = (Vec::new(), lines.start, 0u32);
        for (at, own) in &cover[from..] {
            if own.start > next || next > lines.end || tokens > MOST_TOKENS {
                break;
            }
            let part = self.part(*at, LineRange::new(next, own.end.min(lines.end)));
            next = part.lines.end + 1;
            tokens = tokens.saturating_add(part.tokens);
            parts.push(part);
        }
        if next <= lines.end || tokens > MOST_TOKENS {
            parts.clear();
        }
        parts
    }

    /// Some lines of a piece, with what they are of it.
    fn part(&self, at: usize, lines: LineRange) -> Part {
        let piece = &self.pieces[at];
        let share = piece.lines.map_or(1.0, |own| lines.count() as f32 / own.count() as f32);
        Part { at, lines, tokens: self.prices[at].of_lines(piece, lines), worth: piece.worth * share }
    }
}

/// Pieces of a file by line, each with the lines that none before it has.
fn cover(pieces: &[Piece], numbers: &[usize]) -> Vec<(usize, LineRange)> {
    let mut own: Vec<(LineRange, usize)> = numbers.iter().filter_map(|at| Some((pieces[*at].lines?, *at))).collect();
    own.sort_by_key(|(lines, at)| (lines.start, lines.end, *at));
    let mut next = 0;
    let mut cover = Vec::with_capacity(own.len());
    for (lines, at) in own.into_iter().filter(|(lines, _)| lines.end > 0) {
        if lines.end >= next {
            cover.push((at, LineRange::new(lines.start.max(next), lines.end)));
            next = lines.end + 1;
        }
    }
    cover
}
