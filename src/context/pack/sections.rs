//! Merges selected pieces into sections: lines that touch or overlap become one section.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{ContextPiece, ContextSection, ExclusionReason, Need, ScoreExplanation, SectionKind, TokenPrice};
use crate::context::text::{choose_fence, format_path, slice_lines};
use crate::domain::LineRange;
use crate::masking::Mask;

/// Pieces selected so far.
pub(super) struct SelectedPieces {
    numbers: Vec<usize>,
    is_in: HashSet<usize>,
    used: u32,
    room: u32,
    /// Selected lines by path.
    lines: HashMap<String, LineRanges>,
}

/// Set of lines as ranges that neither touch nor overlap: the last line by the first line, both inclusive.
#[derive(Default)]
struct LineRanges(BTreeMap<u32, u32>);

impl LineRanges {
    /// Returns the range that contains a line.
    fn containing_range(&self, line: u32) -> Option<(u32, u32)> {
        let (start, end) = self.0.range(..=line).next_back()?;
        (*end >= line).then_some((*start, *end))
    }

    /// Returns the range from the first line of `lines` outside of the set to the last one. `None` if the set contains
    /// all.
    fn uncovered_span(&self, lines: LineRange) -> Option<LineRange> {
        let start = self.containing_range(lines.start).map_or(lines.start, |(_, end)| end + 1);
        let end = self.containing_range(lines.end).map_or(lines.end, |(start, _)| start - 1);
        (start <= end).then(|| LineRange::new(start, end))
    }

    /// Returns the ranges that touch or overlap `lines`, in order.
    fn touching_ranges(&self, lines: LineRange) -> Vec<(u32, u32)> {
        // Ranges do not overlap, so they have the same order by end as by start.
        let from_the_last = self.0.range(..=lines.end.saturating_add(1)).rev();
        let touching = from_the_last.take_while(|(_, end)| end.saturating_add(1) >= lines.start);
        let mut touching: Vec<(u32, u32)> = touching.map(|(start, end)| (*start, *end)).collect();
        touching.reverse();
        touching
    }

    /// Returns the parts of `lines` outside of the set.
    fn gaps(&self, lines: LineRange) -> Vec<LineRange> {
        let (mut gaps, mut next) = (Vec::new(), lines.start);
        for (start, end) in self.touching_ranges(lines) {
            if start > next {
                gaps.push(LineRange::new(next, start - 1));
            }
            next = next.max(end + 1);
        }
        if next <= lines.end {
            gaps.push(LineRange::new(next, lines.end));
        }
        gaps
    }

    /// Adds lines, and joins the ranges that they touch.
    fn insert(&mut self, lines: LineRange) {
        let (mut start, mut end) = (lines.start, lines.end);
        for (other_start, other_end) in self.touching_ranges(lines) {
            self.0.remove(&other_start);
            (start, end) = (start.min(other_start), end.max(other_end));
        }
        self.0.insert(start, end);
    }
}

impl SelectedPieces {
    /// Creates an empty selection with `room` tokens.
    pub fn new(room: u32) -> Self {
        Self { numbers: Vec::new(), is_in: HashSet::new(), used: 0, room, lines: HashMap::new() }
    }

    /// Returns the number of tokens used so far.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns true if lines of the file are selected.
    pub fn has_file(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    /// Returns the indexes of the selected pieces, in order of selection.
    pub fn piece_indexes(&self) -> &[usize] {
        &self.numbers
    }

    /// Returns the range from the first unselected line of `lines` to the last one. `None` if all are selected.
    pub fn uncovered_span(&self, path: &str, lines: LineRange) -> Option<LineRange> {
        self.lines.get(path).map_or(Some(lines), |taken| taken.uncovered_span(lines))
    }

    /// Selects a piece if the total stays within `most` tokens.
    ///
    /// # Errors
    /// Returns the reason for the exclusion if the piece does not fit or its lines are selected already.
    pub fn try_add(
        &mut self,
        at: usize,
        piece: &ContextPiece,
        price: TokenPrice,
        most: u32,
    ) -> Result<(), ExclusionReason> {
        match piece.lines {
            Some(lines) => {
                self.add_lines(&piece.path, lines, price.head, &|rest| price.for_lines(piece, rest), most)?
            }
            None => {
                let tokens = price.text + price.head;
                if self.used + tokens > most.min(self.room) {
                    return Err(ExclusionReason::Budget);
                }
                self.used += tokens;
            }
        }
        if self.is_in.insert(at) {
            self.numbers.push(at);
        }
        Ok(())
    }

    /// Adds lines of a file if the price of the missing lines and of a title fits within `most`.
    fn add_lines(
        &mut self,
        path: &str,
        lines: LineRange,
        head: u32,
        cost: &dyn Fn(LineRange) -> u32,
        most: u32,
    ) -> Result<(), ExclusionReason> {
        let (gaps, joined) = match self.lines.get(path) {
            Some(known) => (known.gaps(lines), known.touching_ranges(lines).len()),
            None => (vec![lines], 0),
        };
        if gaps.is_empty() {
            return Err(ExclusionReason::Contained);
        }
        // Sections that become one keep only one title.
        let text: u32 = gaps.into_iter().map(cost).sum();
        let tokens = (text + head).saturating_sub(joined as u32 * head);
        if self.used + tokens > most.min(self.room) {
            return Err(ExclusionReason::Budget);
        }
        self.used += tokens;
        self.lines.entry(path.to_owned()).or_default().insert(lines);
        Ok(())
    }
}

/// Formats a section: a title, and fences that nothing in the text or the title can end.
pub(super) fn format_section(path: &str, lines: Option<LineRange>, kind: SectionKind, text: &str) -> String {
    let title = match (path, lines) {
        ("", _) => String::new(),
        (path, None) => format!("{} ({kind})\n", format_path(path, Mask::On)),
        (path, Some(lines)) => format!("{}:{}-{}\n", format_path(path, Mask::On), lines.start, lines.end),
    };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match is_fenced(kind) {
        false => format!("{title}{text}{end}"),
        true => {
            let fence = choose_fence(text);
            format!("{title}{fence}\n{text}{end}{fence}\n")
        }
    }
}

/// Returns true if sections of this kind have fences.
pub(super) fn is_fenced(kind: SectionKind) -> bool {
    use SectionKind::{Diff, Overview, Patterns, Rules, Task, Untested};
    !matches!(kind, Task | Rules | Patterns | Untested | Overview | Diff)
}

/// Builds the sections of the selected pieces, with the strongest need among their pieces. Tokens are not counted yet.
/// If several pieces contain a line, its text comes from the piece with the strongest need, and among equal needs from
/// the piece selected first, because others may be compressed.
pub(super) fn build_sections(pieces: &[ContextPiece], taken: &SelectedPieces) -> Vec<(ContextSection, Need)> {
    let mut sections = Vec::new();
    let mut by_path: BTreeMap<&str, Vec<(LineRange, &ContextPiece)>> = BTreeMap::new();
    for piece in taken.numbers.iter().map(|at| &pieces[*at]) {
        match piece.lines {
            Some(lines) => by_path.entry(&piece.path).or_default().push((lines, piece)),
            None => sections.push((build_section(&[piece], None, &piece.text), piece.need)),
        }
    }
    for mut of_file in by_path.into_values() {
        let told = assign_lines(&of_file);
        of_file.sort_by_key(|(lines, _)| (lines.start, lines.end));
        let mut of_file = of_file.into_iter().peekable();
        let mut told = told.into_iter().peekable();
        while let Some((mut lines, first)) = of_file.next() {
            let mut group = vec![first];
            while let Some((more, piece)) = of_file.next_if(|(more, _)| more.start <= lines.end.saturating_add(1)) {
                lines = LineRange::new(lines.start, lines.end.max(more.end));
                group.push(piece);
            }
            let text: String = std::iter::from_fn(|| Some(told.next_if(|(start, _)| *start <= lines.end)?.1)).collect();
            let need = group.iter().map(|piece| piece.need).min().unwrap_or(first.need);
            sections.push((build_section(&group, Some(lines), &text), need));
        }
    }
    sections
}

/// Assigns each line of a file to one piece. `of_file` is in order of selection. Returns texts with their first lines,
/// in order.
fn assign_lines<'a>(of_file: &[(LineRange, &'a ContextPiece)]) -> Vec<(u32, &'a str)> {
    let mut by_need: Vec<&(LineRange, &ContextPiece)> = of_file.iter().collect();
    by_need.sort_by_key(|(_, piece)| piece.need);
    let (mut known, mut told) = (LineRanges::default(), Vec::new());
    for (lines, piece) in by_need {
        let texts = known.gaps(*lines).into_iter().map(|gap| (gap.start, slice_lines(&piece.text, lines.start, gap)));
        told.extend(texts);
        known.insert(*lines);
    }
    told.sort_by_key(|(start, _)| *start);
    told
}

/// Builds one section from pieces that touch. Kind, score and explanation come from the piece with the highest score.
/// Tokens are not counted yet.
pub(super) fn build_section(pieces: &[&ContextPiece], lines: Option<LineRange>, text: &str) -> ContextSection {
    let strongest = pieces.iter().max_by(|a, b| a.score.total_cmp(&b.score));
    let (path, kind, score, because) = match strongest {
        Some(piece) => (piece.path.clone(), piece.kind, piece.score, Arc::clone(&piece.explanation)),
        None => (String::new(), SectionKind::Window, 0.0, Arc::default()),
    };
    let kind_word = strongest.map_or(kind.word(), |piece| piece.kind_word());
    let is_found = |piece: &&ContextPiece| piece.need == Need::Snippet;
    let because = match pieces.iter().any(is_found) && !strongest.is_some_and(is_found) {
        true => Arc::new(ScoreExplanation {
            reason: format!("{}; a part of it found just in time", because.reason),
            ..(*because).clone()
        }),
        false => because,
    };
    let text = format_section(&path, lines, kind, text);
    ContextSection {
        path,
        lines,
        kind,
        kind_word,
        tokens: 0,
        text,
        score,
        explanation: because,
        pieces: pieces.len() as u32,
        coverage: None,
        cut_declarations: Vec::new(),
        last_change: None,
    }
}
