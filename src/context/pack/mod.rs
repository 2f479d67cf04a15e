//! What is sent, under an exact budget: what must be there first, then what is worth most for its tokens.
//!
//! Invariants: the sections together, as they are joined, are never more tokens than the budget; a piece is in whole or
//! not at all; no line of a file is in two sections; every piece that is not in is in `left_out` with the reason, but where a budget is too small for anything.

mod sections;
mod selection;
mod shared_text;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::Declaration;
use super::compress::Strength;
use super::test_coverage::LineCoverage;
use super::text::slice_lines;
use crate::domain::text::format_count;
use crate::domain::{LineRange, Time, word_enum};

use sections::SelectedPieces;
pub use shared_text::SharedText;

word_enum!(
    /// What a section is.
    SectionKind {
        Task = "task",
        Diff = "diff",
        /// The place that the task is about.
        Focus = "focus",
        /// What the project says about itself.
        Rules = "rules",
        /// What was learned from earlier findings and fixes.
        Patterns = "patterns",
        /// The changed functions that no test reaches.
        Untested = "untested",
        Function = "function",
        Module = "module",
        Type = "type",
        Test = "test",
        Documentation = "documentation",
        Window = "window",
        /// The head of what did not fit.
        Summary = "summary",
        /// The folders of the tree.
        Overview = "overview",
    }
);

/// How much a piece is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The task, the diff, the place in focus, and what is as good as certain; in the order they come.
    Must,
    /// What the task names: up to half of what is left, the best first; what is more is taken as [`Need::Worth`] is.
    Mentioned,
    /// What is found just in time: it gets a part of what is left, the best first.
    Snippet,
    /// Types that the change uses: they get a part of what is left, the best first.
    Type,
    /// By worth for its tokens.
    ByUtility,
    /// Where there is room left at the end.
    Filler,
    /// Compressed, it says nothing any more: it is not taken.
    Emptied,
}

/// Something that could be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPiece {
    /// Empty for what is of no file.
    pub path: String,
    /// Lines of the file, in whose text each has its line; without them the piece stands by itself.
    pub lines: Option<LineRange>,
    /// Of a summary, the lines in whose place it is.
    pub stands_for: Option<LineRange>,
    pub kind: SectionKind,
    pub text: SharedText,
    /// Of the text, when they are counted already.
    pub tokens: Option<u32>,
    pub need: Need,
    /// From 0 to 1.
    pub score: f32,
    /// What it is worth, on any scale.
    pub utility: f32,
    /// What it is worth besides when it is the first of its file.
    pub first_bonus: f32,
    pub explanation: Arc<ScoreExplanation>,
}

/// Why a piece has its score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoreExplanation {
    /// The parts of the score, by signal.
    pub factors: Vec<(&'static str, f32)>,
    /// For people.
    pub reason: String,
}

/// Why a piece is not in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    Budget,
    /// The task names more than it may take.
    Named,
    /// All of its lines are in another section; of a summary, those that it stands for.
    Contained,
    /// It was nothing but what compression takes away.
    Compressed,
}

impl ExclusionReason {
    pub fn word(self) -> &'static str {
        match self {
            Self::Budget => "over the budget",
            Self::Named => "named by the task, which names too much",
            Self::Contained => "in another section",
            Self::Compressed => "nothing of it is left, compressed",
        }
    }
}

/// What takes files and pieces away before anything is packed: since whoever asks wants none of it, or since nobody would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextFilter {
    Tests,
    Files,
    Kinds,
    Types,
    Documents,
    /// Nobody asked for it to go, but next to nothing speaks for it.
    Unlikely,
}

impl ContextFilter {
    pub fn word(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Files => "files of other paths",
            Self::Kinds => "pieces of other kinds",
            Self::Types => "types",
            Self::Documents => "documents",
            Self::Unlikely => "unlikely pieces",
        }
    }

    /// `1 test file`, `40 pieces of other kinds`.
    pub fn describe_count(self, number: u32) -> String {
        let number = number as usize;
        match self {
            Self::Tests => format_count(number, "test"),
            Self::Files => format!("{} of other paths", format_count(number, "file")),
            Self::Kinds => format!("{} of other kinds", format_count(number, "piece")),
            Self::Types => format_count(number, "type"),
            Self::Documents => format_count(number, "document"),
            Self::Unlikely => format!("{} hardly likely to matter", format_count(number, "piece")),
        }
    }
}

/// Text that is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextSection {
    pub path: String,
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    /// As it is sent, its title included; ends with a line end.
    pub text: String,
    /// Of the text, exact.
    pub tokens: u32,
    pub score: f32,
    pub explanation: Arc<ScoreExplanation>,
    /// How many pieces it is made of.
    pub pieces: u32,
    /// What tests reached of it, where a report says so.
    pub coverage: Option<LineCoverage>,
    /// The declarations that it has only a part of; those of functions and tests its title tells too.
    pub cut_declarations: Vec<Declaration>,
    /// The newest commit that touched its lines, of those that are looked at.
    pub last_change: Option<LastChange>,
}

impl ContextSection {
    /// A line of the file, as it is sent: behind the title and the fence.
    pub fn line(&self, number: u32) -> Option<&str> {
        let lines = self.lines.filter(|lines| (lines.start..=lines.end).contains(&number))?;
        self.text.lines().nth((number - lines.start) as usize + 2)
    }
}

/// A commit, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastChange {
    /// Hexadecimal.
    pub commit: String,
    pub time: Time,
}

/// A changed function that no test reaches, by a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntestedFunction {
    pub path: String,
    pub name: String,
    pub lines: LineRange,
}

/// A piece that is not in.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludedPiece {
    pub path: String,
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    pub tokens: u32,
    pub score: f32,
    pub reason: ExclusionReason,
}

/// What is sent, and what is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedContext {
    /// In the order in which they are sent.
    pub sections: Vec<ContextSection>,
    pub left_out: Vec<ExcludedPiece>,
    /// Of all sections joined, exact.
    pub total_tokens: u32,
    pub budget: u32,
    /// Pieces that are in.
    pub included: u32,
    /// How the code was compressed to have more of it.
    pub compression: Option<Strength>,
    pub untested: Vec<UntestedFunction>,
    /// How much filters took away of the files that lead and of what is in them.
    pub filtered: BTreeMap<ContextFilter, u32>,
    /// What was done without, and why; a line each.
    pub notes: Vec<String>,
}

impl PackedContext {
    /// What is sent.
    pub fn text(&self) -> String {
        join_sections(&self.sections)
    }

    /// With what is sent before it in any case, by which the budget grows.
    pub fn prepend_pieces(mut self, front: &[ContextPiece], count: TokenCounter<'_>) -> Self {
        let own = self.total_tokens;
        let sections = front.iter().map(|piece| {
            let section = sections::build_section(&[piece], piece.lines, &piece.text);
            ContextSection { tokens: count(&section.text) as u32, ..section }
        });
        self.sections.splice(0..0, sections);
        self.included += front.len() as u32;
        self.total_tokens = count(&self.text()) as u32;
        self.budget += self.total_tokens.saturating_sub(own);
        self
    }

    /// From 0 to 1.
    pub fn utilization(&self) -> f32 {
        self.total_tokens as f32 / self.budget.max(1) as f32
    }
}

fn join_sections(sections: &[ContextSection]) -> String {
    sections.iter().map(|section| section.text.as_str()).collect()
}

/// The best piece of each file of which one is wanted, by path.
pub fn find_best_per_file(pieces: &[ContextPiece], is_wanted: &dyn Fn(&ContextPiece) -> bool) -> Vec<usize> {
    let mut best: BTreeMap<&str, (usize, f32)> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| is_wanted(piece)) {
        let known = best.entry(&piece.path).or_insert((at, f32::MIN));
        if piece.utility > known.1 {
            *known = (at, piece.utility);
        }
    }
    best.into_values().map(|(at, _)| at).collect()
}

/// How a token count is had.
pub type TokenCounter<'a> = &'a dyn Fn(&str) -> usize;

/// Takes pieces and makes sections of them, in at most `budget` tokens.
pub fn pack(pieces: &[ContextPiece], budget: u32, count: TokenCounter<'_>) -> PackedContext {
    pack_unless_cancelled(&|| false, pieces, budget, count).unwrap_or_default()
}

/// The same; `None` once it is cancelled. Half a million pieces, those of 100 files of a megabyte, take seconds.
pub fn pack_unless_cancelled(
    cancelled: &dyn Fn() -> bool,
    pieces: &[ContextPiece],
    budget: u32,
    count: TokenCounter<'_>,
) -> Option<PackedContext> {
    let prices = price_pieces(pieces, count);
    let mut room = budget;
    // Prices are sums of parts; joined, parts are a few tokens more or less. What is sent is counted as a whole, and with
    // less room tried again when it is too much.
    loop {
        let (taken, excluded) = selection::select_pieces(pieces, &prices, room, cancelled)?;
        let mut sections = order_sections(sections::build_sections(pieces, &taken));
        let mut total = count(&join_sections(&sections)) as u32;
        if total > budget && room > 0 {
            room = room.saturating_sub((total - budget).max(room / 64).max(1));
            continue;
        }
        if total > budget {
            (sections, total) = (Vec::new(), 0);
        }
        for section in &mut sections {
            section.tokens = count(&section.text) as u32;
        }
        return Some(PackedContext {
            included: if sections.is_empty() { 0 } else { taken.piece_indexes().len() as u32 },
            sections,
            left_out: list_excluded_pieces(pieces, &prices, &taken, excluded, count),
            total_tokens: total,
            budget,
            compression: None,
            untested: Vec::new(),
            filtered: BTreeMap::new(),
            notes: Vec::new(),
        });
    }
}

/// What would be sent, by prices alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackPlan {
    /// The pieces that are taken, by their numbers.
    pub taken: Vec<usize>,
    /// Tokens, about as many.
    pub used: u32,
    /// Tokens of code that does not fit.
    pub excluded_tokens: u64,
}

/// As [`pack_unless`] takes pieces, in a fraction of its time.
pub fn plan_packing(
    cancelled: &dyn Fn() -> bool,
    pieces: &[ContextPiece],
    budget: u32,
    count: TokenCounter<'_>,
) -> Option<PackPlan> {
    let prices = price_pieces(pieces, count);
    let (taken, excluded) = selection::select_pieces(pieces, &prices, budget, cancelled)?;
    let missed =
        excluded.iter().filter(|(at, reason)| pieces[*at].lines.is_some() && *reason == ExclusionReason::Budget);
    let missed = missed.map(|(at, _)| u64::from(prices[*at].text)).sum();
    Some(PackPlan { taken: taken.piece_indexes().to_vec(), used: taken.used(), excluded_tokens: missed })
}

fn list_excluded_pieces(
    pieces: &[ContextPiece],
    prices: &[TokenPrice],
    taken: &SelectedPieces,
    excluded: Vec<(usize, ExclusionReason)>,
    count: TokenCounter<'_>,
) -> Vec<ExcludedPiece> {
    let left = excluded.into_iter().map(|(at, reason)| {
        let piece = &pieces[at];
        let (mut lines, mut tokens) = (piece.lines, prices[at].text);
        // Another piece may have its end or its beginning.
        if let Some((own, rest)) = lines.and_then(|own| Some((own, taken.uncovered_span(&piece.path, own)?)))
            && rest != own
        {
            (lines, tokens) = (Some(rest), count(slice_lines(&piece.text, own.start, rest)) as u32);
        }
        ExcludedPiece { path: piece.path.clone(), lines, kind: piece.kind, tokens, score: piece.score, reason }
    });
    let mut left: Vec<ExcludedPiece> = left.collect();
    left.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines))));
    left
}

/// What a piece costs, in tokens.
#[derive(Debug, Clone, Copy)]
struct TokenPrice {
    text: u32,
    /// Its title and its fences; pieces that touch pay it once.
    head: u32,
}

/// What each piece costs. Heads of a file whose line numbers are as long cost the same: an encoding cuts digits by threes.
fn price_pieces<'a>(pieces: &'a [ContextPiece], count: TokenCounter<'_>) -> Vec<TokenPrice> {
    let length = |line: u32| line.checked_ilog10().unwrap_or(0);
    let mut heads = HashMap::new();
    let price = |piece: &'a ContextPiece| {
        let ContextPiece { path, lines, kind, text, tokens, .. } = piece;
        let head = || count(&sections::format_section(path, *lines, *kind, "")) as u32;
        let head = match lines {
            Some(lines) => {
                let shape = (path.as_str(), length(lines.start), length(lines.end), sections::is_fenced(*kind));
                *heads.entry(shape).or_insert_with(head)
            }
            None => head(),
        };
        TokenPrice { text: tokens.unwrap_or_else(|| count(text) as u32), head }
    };
    pieces.iter().map(price).collect()
}

impl TokenPrice {
    /// What some lines of its piece cost: by their bytes, since nothing is counted that may not be sent, and a token for
    /// the one that is cut.
    fn for_lines(self, piece: &ContextPiece, lines: LineRange) -> u32 {
        let Some(own) = piece.lines.filter(|own| *own != lines) else { return self.text };
        let bytes = slice_lines(&piece.text, own.start, lines).len() as u64;
        (u64::from(self.text) * bytes / piece.text.len().max(1) as u64) as u32 + 1
    }

    /// What it adds where it closes the gap between two sections.
    fn min_tokens(self) -> u32 {
        self.text.saturating_sub(self.head)
    }
}

/// What must be there stays in front; of the other files the strongest comes first and the second strongest last, since
/// models overlook what stands in the middle, where fillers are.
fn order_sections(sections: Vec<(ContextSection, Need)>) -> Vec<ContextSection> {
    let (must, mut others): (Vec<_>, Vec<_>) = sections.into_iter().partition(|(section, need)| {
        use SectionKind::{Diff, Focus, Patterns, Rules, Task, Untested};
        *need == Need::Must && matches!(section.kind, Task | Diff | Focus | Rules | Patterns | Untested)
    });
    let is_filler = |kind| matches!(kind, SectionKind::Documentation | SectionKind::Overview | SectionKind::Summary);
    let fillers: Vec<_> = others.extract_if(.., |(section, _)| is_filler(section.kind)).collect();
    let best = find_best_scores(&others);
    let strength = |section: &ContextSection| best.get(section.path.as_str()).copied().unwrap_or(section.score);
    // Sections of a file stay together, by line; files by their best one.
    others.sort_by(|(a, _), (b, _)| {
        strength(b).total_cmp(&strength(a)).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines)))
    });
    let first = others.first().map(|(section, _)| section.path.clone());
    let second = others.iter().map(|(section, _)| &section.path).find(|path| Some(*path) != first.as_ref()).cloned();
    let last: Vec<_> = others.extract_if(.., |(section, _)| Some(&section.path) == second.as_ref()).collect();
    must.into_iter().chain(others).chain(fillers).chain(last).map(|(section, _)| section).collect()
}

fn find_best_scores(sections: &[(ContextSection, Need)]) -> HashMap<String, f32> {
    let mut best: HashMap<String, f32> = HashMap::new();
    for (section, _) in sections.iter().filter(|(section, _)| !section.path.is_empty()) {
        let known = best.entry(section.path.clone()).or_insert(section.score);
        *known = known.max(section.score);
    }
    best
}
