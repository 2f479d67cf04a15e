//! From pieces that are taken to sections: lines that touch or overlap become one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Excluded, Need, Piece, Price, Section, SectionKind};
use crate::context::text::fence_around;
use crate::domain::LineRange;

/// What is taken so far.
pub(super) struct Taken {
    numbers: Vec<usize>,
    used: u32,
    room: u32,
    /// By path, the taken lines as ranges that neither touch nor overlap, by their first line.
    lines: HashMap<String, BTreeMap<u32, u32>>,
}

impl Taken {
    pub fn new(room: u32) -> Self {
        Self { numbers: Vec::new(), used: 0, room, lines: HashMap::new() }
    }

    pub fn used(&self) -> u32 {
        self.used
    }

    pub fn has(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    pub fn into_numbers(self) -> Vec<usize> {
        self.numbers
    }

    /// Takes a piece when there is room for it below `most`.
    pub fn try_take(&mut self, at: usize, piece: &Piece, price: Price, most: u32) -> Result<(), Excluded> {
        let most = most.min(self.room);
        let Some(lines) = piece.lines else {
            let tokens = price.text + price.head;
            if self.used + tokens > most {
                return Err(Excluded::Budget);
            }
            self.used += tokens;
            self.numbers.push(at);
            return Ok(());
        };
        let known = self.lines.get(&piece.path);
        // Ranges that it would be one with.
        let joined: Vec<(u32, u32)> = known
            .into_iter()
            .flat_map(|known| known.range(..=lines.end.saturating_add(1)))
            .filter(|(_, end)| **end + 1 >= lines.start)
            .map(|(start, end)| (*start, *end))
            .collect();
        if joined.iter().any(|(start, end)| *start <= lines.start && *end >= lines.end) {
            return Err(Excluded::Contained);
        }
        // Of the heads of all that becomes one section, one is left.
        let tokens = (price.text + price.head).saturating_sub(joined.len() as u32 * price.head);
        if self.used + tokens > most {
            return Err(Excluded::Budget);
        }
        self.used += tokens;
        self.numbers.push(at);
        let known = self.lines.entry(piece.path.clone()).or_default();
        let (mut start, mut end) = (lines.start, lines.end);
        for (other_start, other_end) in joined {
            known.remove(&other_start);
            (start, end) = (start.min(other_start), end.max(other_end));
        }
        known.insert(start, end);
        Ok(())
    }
}

/// A section around a text: its title, and fences that nothing in the text can end.
pub(super) fn frame(path: &str, lines: Option<LineRange>, kind: SectionKind, text: &str) -> String {
    let title = match (path, lines) {
        ("", _) => String::new(),
        (path, None) => format!("{} ({kind})\n", crate::domain::text::one_line(path)),
        (path, Some(lines)) => format!("{}:{}-{}\n", crate::domain::text::one_line(path), lines.start, lines.end),
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
    !matches!(kind, SectionKind::Task | SectionKind::Rules | SectionKind::Overview | SectionKind::Diff)
}

/// The sections of the taken pieces, each with the strongest need of its pieces; not counted yet.
pub(super) fn sections(pieces: &[Piece], taken: &[usize]) -> Vec<(Section, Need)> {
    let mut sections = Vec::new();
    let mut by_path: BTreeMap<&str, Vec<(LineRange, &Piece)>> = BTreeMap::new();
    for piece in taken.iter().map(|at| &pieces[*at]) {
        match piece.lines {
            Some(lines) => by_path.entry(&piece.path).or_default().push((lines, piece)),
            None => sections.push((section(&[piece], None, &piece.text), piece.need)),
        }
    }
    for mut of_file in by_path.into_values() {
        of_file.sort_by_key(|(lines, _)| (lines.start, lines.end));
        let mut group: Vec<&Piece> = Vec::new();
        let mut text: Vec<&str> = Vec::new();
        let (mut start, mut end) = (0, 0);
        let mut close = |group: &mut Vec<&Piece>, text: &mut Vec<&str>, range: LineRange| {
            let need = group.iter().map(|piece| piece.need).min();
            if let Some(need) = need {
                sections.push((section(group, Some(range), &text.concat()), need));
            }
            group.clear();
            text.clear();
        };
        for (lines, piece) in of_file {
            if group.is_empty() || lines.start > end + 1 {
                close(&mut group, &mut text, LineRange::new(start, end));
                (start, end) = (lines.start, lines.start - 1);
            }
            group.push(piece);
            if lines.end > end {
                let known = (end + 1 - lines.start) as usize;
                text.extend(piece.text.split_inclusive('\n').skip(known));
                end = lines.end;
            }
        }
        close(&mut group, &mut text, LineRange::new(start, end));
    }
    sections
}

/// One section of pieces that touch; it is what its strongest piece is.
fn section(pieces: &[&Piece], lines: Option<LineRange>, text: &str) -> Section {
    let strongest = pieces.iter().max_by(|a, b| a.score.total_cmp(&b.score));
    let (path, kind, score, because) = match strongest {
        Some(piece) => (piece.path.clone(), piece.kind, piece.score, Arc::clone(&piece.because)),
        None => (String::new(), SectionKind::Window, 0.0, Arc::default()),
    };
    let text = frame(&path, lines, kind, text);
    Section { path, lines, kind, tokens: 0, text, score, because, pieces: pieces.len() as u32, coverage: None }
}
