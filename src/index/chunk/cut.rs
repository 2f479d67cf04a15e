//! Cuts the rows of a file along its declarations.
//!
//! - The pieces, without summaries, cover all rows in order, each row once.

use super::ChunkKind;
use super::lines::{RowRange, RowTable};
use super::outline::{Outline, OutlineItem, OutlineName};
use super::windows;
use crate::tokens::{Encoding, count_tokens};

/// Chunk that borrows from the text of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutPiece<'a> {
    pub rows: RowRange,
    pub kind: ChunkKind,
    pub name: &'a str,
    pub parent: &'a str,
    pub exports: Vec<&'a str>,
    pub outline: Vec<RowRange>,
}

/// Largest chunk in `o200k_base` tokens; a longer declaration is split.
pub const MAX_TOKENS_PER_CHUNK: u32 = 2_000;
/// Largest chunk in bytes. No programming language has 12 bytes per token, so a longer text surely exceeds the token
/// limit.
const MAX_CHUNK_BYTES: usize = 12 * MAX_TOKENS_PER_CHUNK as usize;
/// Adjacent constants and types of at most `MAX_SMALL_ITEM_ROWS` rows form one chunk of at most `MAX_GROUP_ROWS` rows.
const MAX_SMALL_ITEM_ROWS: u32 = 3;
const MAX_GROUP_ROWS: u32 = 40;
/// Deepest nesting of declarations that is cut by syntax; deeper code is cut at blank lines.
const MAX_DEPTH: usize = 8;

/// Cuts a file along its outline.
pub fn cut_by_outline<'a>(lines: &RowTable<'a>, outline: &Outline<'a>) -> Vec<CutPiece<'a>> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); outline.items.len()];
    let mut top = Vec::new();
    for (index, item) in outline.items.iter().enumerate() {
        match item.parent {
            Some(parent) => children[parent].push(index),
            None => top.push(index),
        }
    }
    let is_split = vec![false; outline.items.len()];
    let mut cutter = OutlineCutter { lines, outline, children, pieces: Vec::new(), is_split };
    if lines.count() > 0 {
        let around = EnclosingItem { kind: ChunkKind::Module, name: "", parent: "", depth: 0 };
        cutter.cut_region(&top, (0, lines.count() - 1), around);
    }
    let OutlineCutter { mut pieces, is_split, .. } = cutter;
    assign_exports(&mut pieces, outline, &is_split);
    pieces
}

/// Cuts a file at blank lines. A configuration file that fits into one chunk becomes one chunk.
pub fn cut_by_blank_lines<'a>(lines: &RowTable<'a>, kind: ChunkKind) -> Vec<CutPiece<'a>> {
    let Some(last) = lines.count().checked_sub(1) else { return Vec::new() };
    if kind == ChunkKind::Config && fits_into_chunk(lines, (0, last)) {
        return vec![new_piece((0, last), kind, "", "")];
    }
    windows::cut_windows(lines, (0, last)).into_iter().map(|rows| new_piece(rows, kind, "", "")).collect()
}

fn new_piece<'a>(rows: RowRange, kind: ChunkKind, name: &'a str, parent: &'a str) -> CutPiece<'a> {
    CutPiece { rows, kind, name, parent, exports: Vec::new(), outline: Vec::new() }
}

/// Returns true if `rows` fit into one chunk. A single row always fits.
///
/// Counts tokens only if the length does not decide: a token has at least one byte, and at most 12 on average.
fn fits_into_chunk(lines: &RowTable<'_>, rows: RowRange) -> bool {
    let text = lines.text(rows);
    match text.len() {
        _ if rows.0 == rows.1 => true,
        length if length <= MAX_TOKENS_PER_CHUNK as usize => true,
        length if length > MAX_CHUNK_BYTES => false,
        _ => count_tokens(Encoding::O200kBase, text) <= MAX_TOKENS_PER_CHUNK as usize,
    }
}

/// Item or file that encloses the declarations being cut.
#[derive(Clone, Copy)]
struct EnclosingItem<'a> {
    /// Kind of the code between the declarations.
    kind: ChunkKind,
    name: &'a str,
    parent: &'a str,
    depth: usize,
}

struct OutlineCutter<'s, 'a> {
    lines: &'s RowTable<'a>,
    outline: &'s Outline<'a>,
    children: Vec<Vec<usize>>,
    pieces: Vec<CutPiece<'a>>,
    /// For each outline item: true if it was split into parts.
    is_split: Vec<bool>,
}

impl<'a> OutlineCutter<'_, 'a> {
    fn cut_region(&mut self, items: &[usize], (from, to): RowRange, around: EnclosingItem<'a>) {
        let outline = self.outline;
        let mut row = from;
        for (number, &index) in items.iter().enumerate() {
            let item = &outline.items[index];
            let (first, last) = (item.rows.0.max(row), item.rows.1.min(to));
            // The item ends on the lines of the previous item.
            if last < first {
                continue;
            }
            if first > row {
                row = self.cut_gap((row, first - 1), around);
            }
            let next =
                items.get(number + 1).map_or(to + 1, |&next| outline.items[next].rows.0.max(last + 1).min(to + 1));
            let mut ends = last;
            while ends + 1 < next && self.lines.is_trivial((ends + 1, ends + 1)) {
                ends += 1;
            }
            self.cut_item(index, (row, ends), around.depth);
            row = ends + 1;
        }
        if row <= to {
            let rest = self.cut_gap((row, to), around);
            // No later declaration can take the remaining rows.
            if rest <= to {
                self.pieces.push(new_piece((rest, to), around.kind, "", around.name));
            }
        }
    }

    /// Adds the rows between declarations and returns the next row to process.
    ///
    /// Blank lines and closing brackets are added to the previous piece. Without a previous piece they go to the next
    /// one, and the function returns their first row.
    fn cut_gap(&mut self, rows: RowRange, around: EnclosingItem<'a>) -> u32 {
        if self.lines.is_trivial(rows) {
            let Some(last) = self.pieces.last_mut().filter(|last| last.kind != ChunkKind::Summary) else {
                return rows.0;
            };
            last.rows.1 = rows.1;
            return rows.1 + 1;
        }
        if fits_into_chunk(self.lines, rows) {
            let parent = if around.kind == ChunkKind::Module { "" } else { around.name };
            self.pieces.push(new_piece(rows, around.kind, "", parent));
        } else {
            let parent = if around.name.is_empty() { around.parent } else { around.name };
            let windows = windows::cut_windows(self.lines, rows).into_iter();
            self.pieces.extend(windows.map(|rows| new_piece(rows, ChunkKind::Window, "", parent)));
        }
        rows.1 + 1
    }

    fn cut_item(&mut self, index: usize, rows: RowRange, depth: usize) {
        let item = &self.outline.items[index];
        if self.join_group(item, rows) {
            return;
        }
        let mut whole = new_piece(rows, item.kind, item.name, item.scope);
        whole.outline = self.outline_rows(index, rows);
        if fits_into_chunk(self.lines, rows) {
            return self.pieces.push(whole);
        }
        self.is_split[index] = true;
        whole.kind = ChunkKind::Summary;
        self.pieces.push(whole);
        let items = match depth < MAX_DEPTH {
            true => std::mem::take(&mut self.children[index]),
            false => Vec::new(),
        };
        let around = EnclosingItem { kind: item.kind, name: item.name, parent: item.scope, depth: depth + 1 };
        self.cut_region(&items, rows, around);
    }

    /// Merges a small constant or type into the previous piece if that is a group of the same kind. Returns true if it
    /// was merged.
    fn join_group(&mut self, item: &OutlineItem<'a>, (first, last): RowRange) -> bool {
        let is_small = |rows: RowRange| rows.1 - rows.0 < MAX_SMALL_ITEM_ROWS;
        if !matches!(item.kind, ChunkKind::Constant | ChunkKind::Type) || !is_small(item.rows) {
            return false;
        }
        let lines = self.lines;
        let is_group = |last: &&mut CutPiece<'a>| {
            last.kind == item.kind
                && last.rows.1 + 1 == first
                && (last.outline.len() > 1 || is_small(last.rows))
                && first - last.rows.0 < MAX_GROUP_ROWS
                && last.parent == item.scope
                && !lines.is_blank(first - 1)
        };
        let Some(group) = self.pieces.last_mut().filter(is_group) else { return false };
        group.rows.1 = last;
        group.outline.push(item.head);
        true
    }

    /// Returns the row ranges of an item's head, its fields and the heads of its children, clipped to `from..=to`. A
    /// row that the previous item also covers belongs to the previous item.
    fn outline_rows(&self, index: usize, (from, to): RowRange) -> Vec<RowRange> {
        let (items, names) = (&self.outline.items, &self.outline.names);
        let mut rows = vec![items[index].head];
        rows.extend(self.children[index].iter().map(|&child| items[child].head));
        let start = names.partition_point(|name| name.row < items[index].head.0);
        let inside = names[start..].iter().take_while(|name| name.row <= items[index].rows.1);
        rows.extend(inside.filter(|name| name.item == Some(index)).filter_map(|name| name.rows));
        let clipped = rows.into_iter().map(|(first, last)| (first.max(from), last.min(to)));
        let mut rows: Vec<RowRange> = clipped.filter(|(first, last)| first <= last).collect();
        rows.sort_unstable();
        let mut merged: Vec<RowRange> = Vec::with_capacity(rows.len());
        for (first, last) in rows {
            match merged.last_mut().filter(|before| first <= before.1 + 1) {
                Some(before) => before.1 = before.1.max(last),
                None => merged.push((first, last)),
            }
        }
        merged
    }
}

/// Assigns each exported name to the piece that contains its row. The name of a split item goes to its summary.
fn assign_exports<'a>(pieces: &mut [CutPiece<'a>], outline: &Outline<'a>, split: &[bool]) {
    let is_summarised =
        |name: &OutlineName<'a>| name.rows.is_none() && name.item.is_some_and(|item| split.get(item) == Some(&true));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_fit_are_known_without_counting_all_of_them() {
        let fits = |text: &str| {
            let lines = RowTable::new(text);
            fits_into_chunk(&lines, (0, lines.count() - 1))
        };
        for line in ["value\n", "a;b;\n", "12345 67890 12345 67890\n"] {
            for count in [1, 100, 390, 410, 990, 1_010, 5_000] {
                let text = line.repeat(count);
                let counted = count_tokens(Encoding::O200kBase, &text);
                assert_eq!(fits(&text), counted <= MAX_TOKENS_PER_CHUNK as usize, "{count} times {line:?}");
            }
        }
        assert!(fits(&"word ".repeat(20_000)), "a single row always fits");
        assert!(!fits(&format!("a\n{}", " ".repeat(MAX_CHUNK_BYTES))), "longer than any code of so many tokens");
    }
}
