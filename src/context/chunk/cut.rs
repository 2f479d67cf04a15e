//! Cutting the rows of a file along its declarations.
//!
//! Invariant: the pieces, summaries left away, are all rows in order, each once.

use super::ChunkKind;
use super::counted::{Counted, tokens};
use super::lines::{Lines, Rows};
use super::outline::{Item, Name, Outline};
use super::windows;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::source::Source;

/// A chunk, borrowed from the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    pub rows: Rows,
    pub kind: ChunkKind,
    pub name: &'a str,
    pub parent: &'a str,
    pub tokens: u32,
    pub complexity: u32,
    pub exports: Vec<&'a str>,
    pub outline: Vec<Rows>,
}

/// What has more tokens comes in parts.
pub const MOST_TOKENS: u32 = 2_000;
/// 12 bytes a token are more than code of any language has.
const SURELY_TOO_LONG: usize = 12 * MOST_TOKENS as usize;
/// Constants and types of a few lines that stand together are one chunk up to so many lines.
const SMALL_ROWS: u32 = 3;
const GROUP_ROWS: u32 = 40;
/// What is in more declarations than this is cut at blank lines.
const MAX_DEPTH: usize = 8;

/// Cuts by syntax.
pub fn by_outline<'a>(lines: &Lines<'a>, outline: &Outline<'a>, source: &Source<'a>, facts: &Facts) -> Vec<Piece<'a>> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); outline.items.len()];
    let mut top = Vec::new();
    for (index, item) in outline.items.iter().enumerate() {
        match item.parent {
            Some(parent) => children[parent].push(index),
            None => top.push(index),
        }
    }
    let mut cutter = Cutter {
        lines,
        counted: Counted::of(lines),
        outline,
        children,
        pieces: Vec::new(),
        split: vec![false; outline.items.len()],
        grown: false,
    };
    if lines.count() > 0 {
        let around = Around { kind: ChunkKind::Module, name: "", parent: "", depth: 0 };
        cutter.region(&top, (0, lines.count() - 1), around);
    }
    cutter.seal();
    let Cutter { mut pieces, split, .. } = cutter;
    export(&mut pieces, outline, &split);
    measure(&mut pieces, source, facts);
    pieces
}

/// Cuts at blank lines; settings that are few enough for a chunk are one.
pub fn by_blank_lines<'a>(lines: &Lines<'a>, kind: ChunkKind) -> Vec<Piece<'a>> {
    let Some(last) = lines.count().checked_sub(1) else { return Vec::new() };
    let counted = Counted::of(lines);
    if kind == ChunkKind::Config
        && let Some(tokens) = fitting(lines, &counted, (0, last))
    {
        return vec![Piece { tokens, ..piece((0, last), kind, "", "") }];
    }
    let windows = windows::cut(lines, (0, last)).into_iter();
    windows.map(|rows| Piece { tokens: counted.tokens(rows), ..piece(rows, kind, "", "") }).collect()
}

fn piece<'a>(rows: Rows, kind: ChunkKind, name: &'a str, parent: &'a str) -> Piece<'a> {
    Piece { rows, kind, name, parent, tokens: 0, complexity: 0, exports: Vec::new(), outline: Vec::new() }
}

/// The tokens of some rows if they are few enough for a chunk.
fn fitting(lines: &Lines<'_>, counted: &Counted<'_, '_>, rows: Rows) -> Option<u32> {
    let is_one = rows.0 == rows.1;
    if !is_one && lines.span(rows).len() > SURELY_TOO_LONG {
        return None;
    }
    Some(counted.tokens(rows)).filter(|tokens| is_one || *tokens <= MOST_TOKENS)
}

/// What declarations stand in.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// What stands between them is of this kind.
    kind: ChunkKind,
    name: &'a str,
    parent: &'a str,
    depth: usize,
}

struct Cutter<'s, 'a> {
    lines: &'s Lines<'a>,
    counted: Counted<'s, 'a>,
    outline: &'s Outline<'a>,
    children: Vec<Vec<usize>>,
    pieces: Vec<Piece<'a>>,
    /// Which items came in parts.
    split: Vec<bool>,
    /// Whether the last piece has rows that are not counted.
    grown: bool,
}

impl<'a> Cutter<'_, 'a> {
    fn region(&mut self, items: &[usize], (from, to): Rows, around: Around<'a>) {
        let outline = self.outline;
        let mut row = from;
        for (number, &index) in items.iter().enumerate() {
            let item = &outline.items[index];
            let (first, last) = (item.rows.0.max(row), item.rows.1.min(to));
            // On the lines of the one before.
            if last < first {
                continue;
            }
            if first > row {
                row = self.gap((row, first - 1), around);
            }
            let next =
                items.get(number + 1).map_or(to + 1, |&next| outline.items[next].rows.0.max(last + 1).min(to + 1));
            let mut ends = last;
            while ends + 1 < next && self.lines.is_trivial((ends + 1, ends + 1)) {
                ends += 1;
            }
            self.item(index, (row, ends), around.depth);
            row = ends + 1;
        }
        if row <= to {
            let rest = self.gap((row, to), around);
            // Nothing comes after it that it could belong to.
            if rest <= to {
                self.leaf(piece((rest, to), around.kind, "", around.name), None);
            }
        }
    }

    /// What stands between declarations. Blank lines and closing brackets belong to what is before them; without that to
    /// what comes next, and the row where that begins is returned.
    fn gap(&mut self, rows: Rows, around: Around<'a>) -> u32 {
        if self.lines.is_trivial(rows) {
            let Some(last) = self.pieces.last_mut().filter(|last| last.kind != ChunkKind::Summary) else {
                return rows.0;
            };
            last.rows.1 = rows.1;
            self.grown = true;
            return rows.1 + 1;
        }
        match fitting(self.lines, &self.counted, rows) {
            Some(tokens) => {
                let (name, parent) = match around.kind {
                    ChunkKind::Module => ("", ""),
                    _ => ("", around.name),
                };
                self.leaf(piece(rows, around.kind, name, parent), Some(tokens));
            }
            None => {
                let parent = if around.name.is_empty() { around.parent } else { around.name };
                for rows in windows::cut(self.lines, rows) {
                    self.leaf(piece(rows, ChunkKind::Window, "", parent), None);
                }
            }
        }
        rows.1 + 1
    }

    fn item(&mut self, index: usize, rows: Rows, depth: usize) {
        let item = &self.outline.items[index];
        if self.joins_group(item, rows) {
            return;
        }
        let mut whole = piece(rows, item.kind, item.name, item.scope);
        whole.outline = self.outline_of(index, rows);
        if let Some(tokens) = fitting(self.lines, &self.counted, rows) {
            return self.leaf(whole, Some(tokens));
        }
        self.seal();
        self.split[index] = true;
        whole.kind = ChunkKind::Summary;
        whole.tokens = tokens(&whole.outline.iter().map(|&rows| self.lines.span(rows)).collect::<String>());
        self.pieces.push(whole);
        let items = match depth < MAX_DEPTH {
            true => std::mem::take(&mut self.children[index]),
            false => Vec::new(),
        };
        let around = Around { kind: item.kind, name: item.name, parent: item.scope, depth: depth + 1 };
        self.region(&items, rows, around);
    }

    /// Whether a small constant or type went to the piece before, which has such ones too.
    fn joins_group(&mut self, item: &Item<'a>, (first, last): Rows) -> bool {
        let is_small = |rows: Rows| rows.1 - rows.0 < SMALL_ROWS;
        if !matches!(item.kind, ChunkKind::Constant | ChunkKind::Type) || !is_small(item.rows) {
            return false;
        }
        let lines = self.lines;
        let is_group = |last: &&mut Piece<'a>| {
            last.kind == item.kind
                && last.rows.1 + 1 == first
                && (last.outline.len() > 1 || is_small(last.rows))
                && first - last.rows.0 < GROUP_ROWS
                && last.parent == item.scope
                && !lines.is_blank(first - 1)
        };
        let Some(group) = self.pieces.last_mut().filter(is_group) else { return false };
        group.rows.1 = last;
        group.outline.push(item.head);
        self.grown = true;
        true
    }

    fn leaf(&mut self, mut leaf: Piece<'a>, counted: Option<u32>) {
        self.seal();
        match counted {
            Some(tokens) => leaf.tokens = tokens,
            None => self.grown = true,
        }
        self.pieces.push(leaf);
    }

    /// Counts what was added to the last piece.
    fn seal(&mut self) {
        if std::mem::take(&mut self.grown)
            && let Some(last) = self.pieces.last_mut()
        {
            last.tokens = self.counted.tokens(last.rows);
        }
    }

    /// The head of an item, its fields and the heads of what is in it, as far as they are in these rows: the row on which
    /// the item before ends is that one's.
    fn outline_of(&self, index: usize, (from, to): Rows) -> Vec<Rows> {
        let (items, names) = (&self.outline.items, &self.outline.names);
        let mut rows = vec![items[index].head];
        rows.extend(self.children[index].iter().map(|&child| items[child].head));
        let start = names.partition_point(|name| name.row < items[index].head.0);
        let inside = names[start..].iter().take_while(|name| name.row <= items[index].rows.1);
        rows.extend(inside.filter(|name| name.item == Some(index)).filter_map(|name| name.rows));
        let clipped = rows.into_iter().map(|(first, last)| (first.max(from), last.min(to)));
        let mut rows: Vec<Rows> = clipped.filter(|(first, last)| first <= last).collect();
        rows.sort_unstable();
        let mut merged: Vec<Rows> = Vec::with_capacity(rows.len());
        for (first, last) in rows {
            match merged.last_mut().filter(|before| first <= before.1 + 1) {
                Some(before) => before.1 = before.1.max(last),
                None => merged.push((first, last)),
            }
        }
        merged
    }
}

/// Gives every name to the piece on whose rows it stands; of what comes in parts, its own name to its summary.
fn export<'a>(pieces: &mut [Piece<'a>], outline: &Outline<'a>, split: &[bool]) {
    let is_summarised =
        |name: &Name<'a>| name.rows.is_none() && name.item.is_some_and(|item| split.get(item) == Some(&true));
    let mut names = outline.names.iter().filter(|name| !name.text.is_empty() && !is_summarised(name)).peekable();
    for piece in pieces {
        if piece.kind == ChunkKind::Summary {
            piece.exports.extend(Some(piece.name).filter(|name| !name.is_empty()));
            continue;
        }
        while let Some(name) = names.next_if(|name| name.row <= piece.rows.1) {
            piece.exports.push(name.text);
        }
        if piece.exports.len() > 1 {
            let mut seen = std::collections::HashSet::new();
            piece.exports.retain(|name| seen.insert(*name));
        }
    }
}

/// Gives every function's complexity to the piece in which it begins, and to the summaries around it.
fn measure(pieces: &mut [Piece<'_>], source: &Source<'_>, facts: &Facts) {
    // The sum of all before, so that a summary need not look at each.
    let mut sums: Vec<(u32, u32)> = Vec::with_capacity(facts.functions.len() + 1);
    let mut sum = 0;
    for function in &facts.functions {
        sums.push((source.nodes[function.node].row, sum));
        sum += function.cyclomatic;
    }
    let before = |row: u32| sums.get(sums.partition_point(|(at, _)| *at < row)).map_or(sum, |(_, before)| *before);
    for piece in pieces.iter_mut().filter(|piece| piece.kind != ChunkKind::Window) {
        piece.complexity = before(piece.rows.1 + 1).saturating_sub(before(piece.rows.0));
    }
}
