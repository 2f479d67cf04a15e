//! From pieces that are taken to sections: lines that touch or overlap become one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Because, Excluded, Need, Piece, Price, Section, SectionKind};
use crate::context::mask::Mask;
use crate::context::text::{fence_around, lines_of, shown_path};
use crate::domain::LineRange;

/// What is taken so far.
pub(super) struct Taken {
    numbers: Vec<usize>,
    is_in: HashSet<usize>,
    used: u32,
    room: u32,
    /// By path.
    lines: HashMap<String, Ranges>,
}

/// Lines as ranges that neither touch nor overlap: each one's last line by its first.
#[derive(Default)]
struct Ranges(BTreeMap<u32, u32>);

impl Ranges {
    /// The range in which a line is.
    fn at(&self, line: u32) -> Option<(u32, u32)> {
        let (start, end) = self.0.range(..=line).next_back()?;
        (*end >= line).then_some((*start, *end))
    }

    /// Of some lines, from the first that is in none to the last; `None` where all are.
    fn missing(&self, lines: LineRange) -> Option<LineRange> {
        let start = self.at(lines.start).map_or(lines.start, |(_, end)| end + 1);
        let end = self.at(lines.end).map_or(lines.end, |(start, _)| start - 1);
        (start <= end).then(|| LineRange::new(start, end))
    }

    /// The ranges that some lines would be one with, in order.
    fn touching(&self, lines: LineRange) -> Vec<(u32, u32)> {
        // By their ends they are in the same order.
        let from_the_last = self.0.range(..=lines.end.saturating_add(1)).rev();
        let touching = from_the_last.take_while(|(_, end)| end.saturating_add(1) >= lines.start);
        let mut touching: Vec<(u32, u32)> = touching.map(|(start, end)| (*start, *end)).collect();
        touching.reverse();
        touching
    }

    /// Of some lines, those that are in none.
    fn gaps(&self, lines: LineRange) -> Vec<LineRange> {
        let (mut gaps, mut next) = (Vec::new(), lines.start);
        for (start, end) in self.touching(lines) {
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

    fn put(&mut self, lines: LineRange) {
        let (mut start, mut end) = (lines.start, lines.end);
        for (other_start, other_end) in self.touching(lines) {
            self.0.remove(&other_start);
            (start, end) = (start.min(other_start), end.max(other_end));
        }
        self.0.insert(start, end);
    }
}

impl Taken {
    pub fn new(room: u32) -> Self {
        Self { numbers: Vec::new(), is_in: HashSet::new(), used: 0, room, lines: HashMap::new() }
    }

    pub fn used(&self) -> u32 {
        self.used
    }

    pub fn has(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    /// The pieces that are in.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Of some lines, from the first that is not taken to the last; `None` where all are.
    pub fn missing(&self, path: &str, lines: LineRange) -> Option<LineRange> {
        self.lines.get(path).map_or(Some(lines), |taken| taken.missing(lines))
    }

    /// Takes a piece when there is room for it below `most`.
    pub fn try_take(&mut self, at: usize, piece: &Piece, price: Price, most: u32) -> Result<(), Excluded> {
        match piece.lines {
            Some(lines) => self.add(&piece.path, lines, price.head, &|rest| price.of_lines(piece, rest), most)?,
            None => {
                let tokens = price.text + price.head;
                if self.used + tokens > most.min(self.room) {
                    return Err(Excluded::Budget);
                }
                self.used += tokens;
            }
        }
        if self.is_in.insert(at) {
            self.numbers.push(at);
        }
        Ok(())
    }

    /// Makes lines of a file a part of what is taken when there is room below `most` for a head and what those of them cost
    /// that are not there yet.
    fn add(
        &mut self,
        path: &str,
        lines: LineRange,
        head: u32,
        cost: &dyn Fn(LineRange) -> u32,
        most: u32,
    ) -> Result<(), Excluded> {
        let (gaps, joined) = match self.lines.get(path) {
            Some(known) => (known.gaps(lines), known.touching(lines).len()),
            None => (vec![lines], 0),
        };
        if gaps.is_empty() {
            return Err(Excluded::Contained);
        }
        // Of the heads of all that becomes one section, one is left.
        let text: u32 = gaps.into_iter().map(cost).sum();
        let tokens = (text + head).saturating_sub(joined as u32 * head);
        if self.used + tokens > most.min(self.room) {
            return Err(Excluded::Budget);
        }
        self.used += tokens;
        self.lines.entry(path.to_owned()).or_default().put(lines);
        Ok(())
    }
}

/// A section around a text: its title, and fences that nothing in the text or the title can end.
pub(super) fn frame(path: &str, lines: Option<LineRange>, kind: SectionKind, text: &str) -> String {
    let title = match (path, lines) {
        ("", _) => String::new(),
        (path, None) => format!("{} ({kind})\n", shown_path(path, Mask::On)),
        (path, Some(lines)) => format!("{}:{}-{}\n", shown_path(path, Mask::On), lines.start, lines.end),
    };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match is_fenced(kind) {
        false => format!("{title}{text}{end}"),
        true => {
            let fence = fence_around(text);
            format!("{title}{fence}\n{text}{end}{fence}\n")
        }
    }
}

/// Whether a section quotes code.
pub(super) fn is_fenced(kind: SectionKind) -> bool {
    use SectionKind::{Diff, Overview, Patterns, Rules, Task, Untested};
    !matches!(kind, Task | Rules | Patterns | Untested | Overview | Diff)
}

/// The sections of the taken pieces, each with the strongest need of its pieces; not counted yet. A line that several
/// pieces have is told by the one that is needed most, of those by the one that was taken first: it may be compressed in
/// the others.
pub(super) fn sections(pieces: &[Piece], taken: &Taken) -> Vec<(Section, Need)> {
    let mut sections = Vec::new();
    let mut by_path: BTreeMap<&str, Vec<(LineRange, &Piece)>> = BTreeMap::new();
    for piece in taken.numbers.iter().map(|at| &pieces[*at]) {
        match piece.lines {
            Some(lines) => by_path.entry(&piece.path).or_default().push((lines, piece)),
            None => sections.push((section(&[piece], None, &piece.text), piece.need)),
        }
    }
    for mut of_file in by_path.into_values() {
        let told = told(&of_file);
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
            sections.push((section(&group, Some(lines), &text), need));
        }
    }
    sections
}

/// What is told of a file by pieces in the order in which they were taken: texts and their first lines, in order, each line
/// of the file once.
fn told<'a>(of_file: &[(LineRange, &'a Piece)]) -> Vec<(u32, &'a str)> {
    let mut by_need: Vec<&(LineRange, &Piece)> = of_file.iter().collect();
    by_need.sort_by_key(|(_, piece)| piece.need);
    let (mut known, mut told) = (Ranges::default(), Vec::new());
    for (lines, piece) in by_need {
        let texts = known.gaps(*lines).into_iter().map(|gap| (gap.start, lines_of(&piece.text, lines.start, gap)));
        told.extend(texts);
        known.put(*lines);
    }
    told.sort_by_key(|(start, _)| *start);
    told
}

/// One section of pieces that touch; it is what its strongest piece is. Not counted yet.
pub(super) fn section(pieces: &[&Piece], lines: Option<LineRange>, text: &str) -> Section {
    let strongest = pieces.iter().max_by(|a, b| a.score.total_cmp(&b.score));
    let (path, kind, score, because) = match strongest {
        Some(piece) => (piece.path.clone(), piece.kind, piece.score, Arc::clone(&piece.because)),
        None => (String::new(), SectionKind::Window, 0.0, Arc::default()),
    };
    let is_found = |piece: &&Piece| piece.need == Need::Found;
    let because = match pieces.iter().any(is_found) && !strongest.is_some_and(is_found) {
        true => Arc::new(Because {
            reason: format!("{}; a part of it found just in time", because.reason),
            ..(*because).clone()
        }),
        false => because,
    };
    let text = frame(&path, lines, kind, text);
    Section {
        path,
        lines,
        kind,
        tokens: 0,
        text,
        score,
        because,
        pieces: pieces.len() as u32,
        coverage: None,
        of: Vec::new(),
        last_change: None,
    }
}
