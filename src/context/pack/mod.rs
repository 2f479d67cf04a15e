//! Packs pieces into sections under an exact token budget: required pieces first, then the greatest utility per token.
//!
//! Invariants:
//! - The joined sections never have more tokens than the budget.
//! - A piece is included completely or not at all.
//! - No line of a file is in two sections.
//! - Every piece that is not included is in `left_out` with a reason, unless the budget is too small for any section.

mod sections;
mod selection;
mod shared_text;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compress::Strength;
use super::test_coverage::LineCoverage;
use super::text::slice_lines;
use crate::domain::text::format_count;
use crate::domain::{LineRange, Time, word_enum};
use crate::index::chunk::{ChunkKind, Declaration};

use sections::SelectedPieces;
pub(crate) use shared_text::SharedText;

word_enum!(
    /// Kind of a section.
    SectionKind {
        Task = "task",
        Diff = "diff",
        /// Code around the place that the task is about.
        Focus = "focus",
        /// Guidelines of the project.
        Rules = "rules",
        /// Patterns learned from earlier findings and fixes.
        Patterns = "patterns",
        /// Changed functions that no test reaches.
        Untested = "untested",
        Function = "function",
        Module = "module",
        Type = "type",
        Test = "test",
        Documentation = "documentation",
        Window = "window",
        /// Head of code that did not fit.
        Summary = "summary",
        /// Folders of the tree.
        Overview = "overview",
    }
);

/// Need for a piece. The order of the variants is the order of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Required, in the given order: task, diff, focus, and near-certain code.
    Must,
    /// Mentioned by the task. These pieces get up to half of the remaining budget, best first; the rest is treated like
    /// [`Need::ByUtility`].
    Mentioned,
    /// Keyword snippet. These pieces get a quarter of the remaining budget, best first.
    Snippet,
    /// Type that the change uses. These pieces get a tenth of the remaining budget, best first.
    Type,
    /// Selected by utility per token.
    ByUtility,
    /// Selected if room is left at the end.
    Filler,
    /// Not selected: after compression, no word is left.
    Emptied,
}

/// Piece of text that can be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPiece {
    /// Path of the file. Empty if the piece belongs to no file.
    pub path: String,
    /// Lines of the file (1-based, inclusive); `text` has one line for each. `None` for a piece that belongs to no
    /// lines.
    pub lines: Option<LineRange>,
    /// Lines that a summary replaces. `None` for other pieces.
    pub stands_for: Option<LineRange>,
    pub kind: SectionKind,
    /// Kind of the chunk, if the piece is one. It says more than `kind`, by which pieces are packed.
    pub chunk: Option<ChunkKind>,
    pub text: SharedText,
    /// Tokens of `text`, if they are counted already.
    pub tokens: Option<u32>,
    pub need: Need,
    /// Score of relevance, from 0 to 1.
    pub score: f32,
    /// Utility, on any scale that is common to all pieces.
    pub utility: f32,
    /// Extra utility if this is the first piece of its file.
    pub first_bonus: f32,
    pub explanation: Arc<ScoreExplanation>,
}

/// Explanation of a score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoreExplanation {
    /// Contribution of each signal to the score.
    pub factors: Vec<(&'static str, f32)>,
    /// Reason in words.
    pub reason: String,
}

/// Reason why a piece is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    Budget,
    /// The task mentions more than its part of the budget.
    Named,
    /// All lines of the piece, or all lines that a summary replaces, are in another section.
    Contained,
    /// Compression left nothing of the piece.
    Compressed,
}

impl ContextPiece {
    /// Returns the kind in one word, as a user reads it.
    pub fn kind_word(&self) -> &'static str {
        kind_word(self.kind, self.chunk)
    }
}

/// Returns the word for a kind: that of the chunk, if there is one that says more.
fn kind_word(kind: SectionKind, chunk: Option<ChunkKind>) -> &'static str {
    match (kind, chunk) {
        // Tests are told apart by their paths, and windows are cut from anything.
        (SectionKind::Test, _) | (_, None | Some(ChunkKind::Window | ChunkKind::Summary)) => kind.word(),
        (_, Some(chunk)) => chunk.word(),
    }
}

impl ExclusionReason {
    /// Returns the reason in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Budget => "over the budget",
            Self::Named => "named by the task, which names too much",
            Self::Contained => "in another section",
            Self::Compressed => "nothing of it is left, compressed",
        }
    }
}

/// Filter that removes files and pieces before packing, because the caller excluded them or because they are unlikely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextFilter {
    Tests,
    Files,
    Kinds,
    Types,
    Documents,
    /// Nobody excluded the piece, but its score is too low.
    Unlikely,
}

impl ContextFilter {
    /// Returns the name of the removed elements.
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

    /// Describes a number of removed elements: `1 test`, `40 pieces of other kinds`.
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
    /// Kind in one word, as a user reads it.
    pub kind_word: &'static str,
    /// Complete text with its title. Ends with a line end.
    pub text: String,
    /// Exact number of tokens of `text`.
    pub tokens: u32,
    pub score: f32,
    pub explanation: Arc<ScoreExplanation>,
    /// Number of pieces in the section.
    pub pieces: u32,
    /// Test coverage, if a report has it.
    pub coverage: Option<LineCoverage>,
    /// Declarations that the section holds only partly. The title names incomplete functions and tests.
    pub cut_declarations: Vec<Declaration>,
    /// Newest commit, among those read, that touched the lines.
    pub last_change: Option<LastChange>,
}

/// Last commit that changed some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastChange {
    /// Commit id in hexadecimal.
    pub commit: String,
    pub time: Time,
}

/// Changed function that no test reaches according to a coverage report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntestedFunction {
    pub path: String,
    pub name: String,
    pub lines: LineRange,
}

/// Piece that is not included.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludedPiece {
    pub path: String,
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    /// Kind in one word, as a user reads it.
    pub kind_word: &'static str,
    pub tokens: u32,
    pub score: f32,
    pub reason: ExclusionReason,
}

/// Sources that were read only in part, because reading took too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartialSources {
    /// Commits of the history; `None` if all wanted commits were read.
    pub commits: Option<ReadShare>,
    /// Files of code; `None` if all chosen files were read.
    pub files: Option<ReadShare>,
}

/// Part of a source that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadShare {
    /// Number of elements that were read.
    pub read: u32,
    /// Number of elements that were wanted.
    pub total: u32,
}

impl PartialSources {
    /// Returns true if all sources were read.
    pub fn is_whole(&self) -> bool {
        self.commits.is_none() && self.files.is_none()
    }

    /// Returns a note for each source that was read in part.
    pub fn notes(&self) -> Vec<String> {
        let note = |share: Option<ReadShare>, noun: &str, source: &str| {
            let ReadShare { read, total } = share?;
            let all = format_count(total as usize, noun);
            Some(format!(
                "only {read} of {all} of {source} were read in time (context.reading_seconds): the next context has more"
            ))
        };
        let notes = [note(self.commits, "commit", "the history"), note(self.files, "file", "code")];
        notes.into_iter().flatten().collect()
    }
}

/// Result of packing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedContext {
    /// Sections in the order in which they are sent.
    pub sections: Vec<ContextSection>,
    pub left_out: Vec<ExcludedPiece>,
    /// Exact number of tokens of all sections joined.
    pub total_tokens: u32,
    pub budget: u32,
    /// Number of included pieces.
    pub included: u32,
    /// Strength of compression, if code was compressed to fit more of it.
    pub compression: Option<Strength>,
    pub untested: Vec<UntestedFunction>,
    /// Number of files and pieces that filters removed.
    pub filtered: BTreeMap<ContextFilter, u32>,
    /// Notes about missing inputs, one line each.
    pub notes: Vec<String>,
    /// Sources that were read only in part.
    pub partial: PartialSources,
}

impl PackedContext {
    /// Returns the complete text that is sent.
    pub fn text(&self) -> String {
        join_sections(&self.sections)
    }

    /// Puts `front` before the sections. The budget grows by the tokens of these pieces.
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

    /// Returns the used share of the budget, from 0 to 1.
    pub fn utilization(&self) -> f32 {
        self.total_tokens as f32 / self.budget.max(1) as f32
    }
}

fn join_sections(sections: &[ContextSection]) -> String {
    sections.iter().map(|section| section.text.as_str()).collect()
}

/// Returns the index of the best wanted piece of each file, sorted by path.
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

/// Function that counts the tokens of a text.
pub type TokenCounter<'a> = &'a dyn Fn(&str) -> usize;

/// Packs pieces into sections with at most `budget` tokens.
pub fn pack(pieces: &[ContextPiece], budget: u32, count: TokenCounter<'_>) -> PackedContext {
    pack_unless_cancelled(&|| false, pieces, budget, count).unwrap_or_default()
}

/// Does the same as [`pack`], but returns `None` after cancellation. Half a million pieces (100 files of a megabyte
/// each) take seconds.
pub fn pack_unless_cancelled(
    cancelled: &dyn Fn() -> bool,
    pieces: &[ContextPiece],
    budget: u32,
    count: TokenCounter<'_>,
) -> Option<PackedContext> {
    let prices = price_pieces(pieces, count);
    let mut room = budget;
    // Prices are sums of parts, and joined text may have a few tokens more or fewer. The final text is therefore
    // counted as a whole; if it is too large, packing is repeated with less room.
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
            partial: PartialSources::default(),
        });
    }
}

/// Estimated result of packing, from prices only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackPlan {
    /// Indexes of the selected pieces.
    pub taken: Vec<usize>,
    /// Approximate number of tokens used.
    pub used: u32,
    /// Tokens of code that does not fit.
    pub excluded_tokens: u64,
}

/// Selects pieces like [`pack_unless_cancelled`], in a fraction of its time. `None` after cancellation.
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
        // Another piece may already contain its beginning or its end.
        if let Some((own, rest)) = lines.and_then(|own| Some((own, taken.uncovered_span(&piece.path, own)?)))
            && rest != own
        {
            (lines, tokens) = (Some(rest), count(slice_lines(&piece.text, own.start, rest)) as u32);
        }
        let (path, kind_word) = (piece.path.clone(), piece.kind_word());
        ExcludedPiece { path, lines, kind: piece.kind, kind_word, tokens, score: piece.score, reason }
    });
    let mut left: Vec<ExcludedPiece> = left.collect();
    left.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines))));
    left
}

/// Price of a piece in tokens.
#[derive(Debug, Clone, Copy)]
struct TokenPrice {
    text: u32,
    /// Tokens of the title and the fences. Pieces that touch pay them once.
    head: u32,
}

/// Computes the price of each piece. Titles of a file whose line numbers have the same lengths cost the same, because
/// an encoding splits numbers into groups of three digits.
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
    /// Returns the price of some lines of the piece. It is estimated by bytes, because text that may not be sent is not
    /// counted; one token is added for the cut.
    fn for_lines(self, piece: &ContextPiece, lines: LineRange) -> u32 {
        let Some(own) = piece.lines.filter(|own| *own != lines) else { return self.text };
        let bytes = slice_lines(&piece.text, own.start, lines).len() as u64;
        (u64::from(self.text) * bytes / piece.text.len().max(1) as u64) as u32 + 1
    }

    /// Returns the least additional price, which applies if the piece closes the gap between two sections.
    fn min_tokens(self) -> u32 {
        self.text.saturating_sub(self.head)
    }
}

/// Orders sections for sending. Required text about the task stays first. Of the other files, the best comes first and
/// the second best last, because models overlook the middle; fillers stand there.
fn order_sections(sections: Vec<(ContextSection, Need)>) -> Vec<ContextSection> {
    let (must, mut others): (Vec<_>, Vec<_>) = sections.into_iter().partition(|(section, need)| {
        use SectionKind::{Diff, Focus, Patterns, Rules, Task, Untested};
        *need == Need::Must && matches!(section.kind, Task | Diff | Focus | Rules | Patterns | Untested)
    });
    let is_filler = |kind| matches!(kind, SectionKind::Documentation | SectionKind::Overview | SectionKind::Summary);
    let fillers: Vec<_> = others.extract_if(.., |(section, _)| is_filler(section.kind)).collect();
    let best = find_best_scores(&others);
    let strength = |section: &ContextSection| best.get(section.path.as_str()).copied().unwrap_or(section.score);
    // Sections of a file stay together, sorted by line. Files are sorted by their best section.
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
