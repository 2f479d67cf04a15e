//! Metrics of the sections that were packed for a case.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::cases::RankedCase;
use crate::context::pack::{ContextSection, PackedContext};
use crate::context::retrieve::task::GivenFile;
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, rerank};
use crate::domain::LineRange;
use crate::git::Hunk;

/// Retrieval metrics, as means over cases.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RetrievalMetrics {
    pub cases: usize,
    pub file_recall: f64,
    pub line_recall: f64,
    pub reciprocal_rank: f64,
    /// Tokens of the sections.
    pub tokens: f64,
}

/// Metrics of one set of weights, by budget in tokens.
pub type MetricsByBudget = BTreeMap<u32, RetrievalMetrics>;

/// Set of weights with its name.
pub type NamedWeights<'a> = (&'static str, &'a RankingWeights);

/// Metrics of several sets of weights on the same cases.
pub struct WeightsComparison<'a> {
    weights: &'a [NamedWeights<'a>],
    budgets: BTreeSet<u32>,
    rows: Vec<(&'static str, MetricsByBudget)>,
}

impl<'a> WeightsComparison<'a> {
    /// Creates a comparison without cases.
    pub fn new(weights: &'a [NamedWeights<'a>], budgets: &[u32]) -> Self {
        let rows = weights.iter().map(|(name, _)| (*name, MetricsByBudget::new())).collect();
        Self { weights, budgets: budgets.iter().copied().collect(), rows }
    }

    /// Ranks a case again with each set of weights, and packs and measures it at each budget.
    pub fn add_case(&mut self, case: &RankedCase<'_>) {
        for ((_, weights), (_, row)) in self.weights.iter().zip(&mut self.rows) {
            let ranked = rerank(&case.ranked, weights);
            for budget in &self.budgets {
                let packed = case.pack(&ranked, weights, *budget);
                row.entry(*budget).or_default().add_case(&case.case.hidden, &ranked, &packed);
            }
        }
    }

    /// Returns the means over the cases, one row for each set of weights. A row without cases is empty.
    pub fn finish(mut self) -> Vec<(&'static str, MetricsByBudget)> {
        self.rows.iter_mut().flat_map(|(_, row)| row.values_mut()).for_each(RetrievalMetrics::average);
        self.rows
    }
}

impl RetrievalMetrics {
    /// Adds the metrics of a case to the sums.
    pub(super) fn add_case(&mut self, hidden: &[GivenFile], ranked: &[RankedFile], packed: &PackedContext) {
        let mut sent: HashMap<&str, Vec<&ContextSection>> = HashMap::new();
        for section in packed.sections.iter().filter(|section| section.lines.is_some()) {
            sent.entry(&section.path).or_default().push(section);
        }
        let (mut files, mut lines, mut all_lines) = (0usize, 0usize, 0usize);
        for file in hidden {
            let known = ranked.iter().find(|ranked| ranked.path == file.path);
            let changed = changed_lines(file, known.map_or(u32::MAX, |known| known.document.line_count()));
            all_lines += changed.len();
            let Some(sent) = sent.get(file.path.as_str()) else { continue };
            files += 1;
            let is_sent = |line: &&u32| sent.iter().any(|section| has_line(section, **line, known));
            lines += changed.iter().filter(is_sent).count();
        }
        let is_hidden = |ranked: &RankedFile| hidden.iter().any(|file| file.path == ranked.path);
        self.cases += 1;
        self.file_recall += files as f64 / hidden.len().max(1) as f64;
        self.line_recall += lines as f64 / all_lines.max(1) as f64;
        self.reciprocal_rank += ranked.iter().position(is_hidden).map_or(0.0, |at| 1.0 / (at + 1) as f64);
        self.tokens += f64::from(packed.total_tokens);
    }

    /// Divides the sums by the number of cases.
    pub(super) fn average(&mut self) {
        let cases = self.cases.max(1) as f64;
        for sum in [&mut self.file_recall, &mut self.line_recall, &mut self.reciprocal_rank, &mut self.tokens] {
            *sum /= cases;
        }
    }
}

/// Returns the old-side lines that count as changed, 1-based and not above `lines`.
pub fn changed_lines(file: &GivenFile, lines: u32) -> HashSet<u32> {
    let places = file.hunks.iter().map(|hunk| hunk.range);
    let of = |place: Hunk| match place.old_lines {
        0 => place.old_start..place.old_start + 2,
        count => place.old_start..place.old_start + count,
    };
    places.flat_map(of).filter(|line| (1..=lines).contains(line)).collect()
}

/// Returns true if a section contains the line as in the file, apart from indentation. Compressed lines may be empty.
fn has_line(section: &ContextSection, line: u32, known: Option<&RankedFile>) -> bool {
    let Some(said) = find_section_line(section, line) else { return false };
    let Some(known) = known else { return true };
    let texts = &known.masked.texts;
    let (place, _) = texts.locate_lines(&known.document.passages, LineRange::new(line, line));
    let own = texts.all.get(place).unwrap_or_default();
    said.trim() == own.trim()
}

/// Returns the text of a line of the file (1-based). In a section it comes after the title and the fence.
fn find_section_line(section: &ContextSection, number: u32) -> Option<&str> {
    let lines = section.lines.filter(|lines| (lines.start..=lines.end).contains(&number))?;
    section.text.lines().nth((number - lines.start) as usize + 2)
}
