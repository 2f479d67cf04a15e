//! Tokens that the ranking saves compared with sending whole files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cases::{RankedCase, count_case_tokens, join_added_lines};
use super::metrics::RetrievalMetrics;
use crate::context::pack::{ContextPiece, Need, PackedContext, ScoreExplanation, SectionKind, pack};
use crate::context::retrieve::task::{GivenFile, old_line_range};
use crate::context::retrieve::weights::RankingWeights;
use crate::domain::LineRange;

/// Unchanged lines around each change of a diff. This is two more than a review sends
/// ([`crate::context::diff_parts::DiffLimits::DEFAULT_CONTEXT_LINES`]), so that the saving is not overstated.
const DIFF_CONTEXT_LINES: u32 = 8;
/// Budgets, in tokens, that are tried to reach the recall of whole files.
const BUDGET_LADDER: [u32; 14] =
    [250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000, 64_000];

/// Tokens saved compared with sending the given files and their direct imports as whole files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenSaving {
    /// Metrics of sending whole files. No ranking is involved.
    pub whole: RetrievalMetrics,
    /// Metrics of sending the diff of the given files with [`DIFF_CONTEXT_LINES`] lines around each change, plus
    /// sections under the smallest budget of [`BUDGET_LADDER`] that reaches the same file recall and line recall as
    /// whole files. The first value is that budget. `None` if no budget reaches it.
    pub equal: Option<(u32, RetrievalMetrics)>,
}

impl TokenSaving {
    /// Returns the share of tokens that are not sent, in percent. `None` without an equal budget.
    pub fn percent(&self) -> Option<f64> {
        let (_, equal) = self.equal.filter(|_| self.whole.tokens > 0.0)?;
        Some((1.0 - equal.tokens / self.whole.tokens) * 100.0)
    }
}

/// Sums of both ways to send the code of a case: whole files, and sections under each budget of the ladder.
#[derive(Debug, Default)]
pub struct SavingMeter {
    whole: RetrievalMetrics,
    ladder: [RetrievalMetrics; BUDGET_LADDER.len()],
}

impl SavingMeter {
    /// Measures a case in both ways.
    pub fn add_case(&mut self, case: &RankedCase<'_>) {
        let hidden = &case.case.hidden;
        self.whole.add_case(hidden, &case.ranked, &pack_whole_files(case));
        let diff_tokens = count_case_tokens(&format_diff(case)) as f64;
        for (budget, measured) in BUDGET_LADDER.iter().zip(&mut self.ladder) {
            let packed = case.pack(&case.ranked, RankingWeights::built_in(), *budget);
            measured.add_case(hidden, &case.ranked, &packed);
            measured.tokens += diff_tokens;
        }
    }

    /// Returns the means over the cases, with the smallest budget that finds as much as whole files.
    pub fn finish(mut self) -> TokenSaving {
        self.ladder.iter_mut().chain([&mut self.whole]).for_each(RetrievalMetrics::average);
        let whole = self.whole;
        let is_equal = |measured: &RetrievalMetrics| {
            measured.file_recall >= whole.file_recall && measured.line_recall >= whole.line_recall
        };
        let ladder = BUDGET_LADDER.into_iter().zip(self.ladder);
        let equal = ladder.filter(|_| whole.cases > 0).find(|(_, measured)| is_equal(measured));
        TokenSaving { whole, equal }
    }
}

/// Packs the given files and the files that they import directly, each as one piece.
fn pack_whole_files(case: &RankedCase<'_>) -> PackedContext {
    let task = &case.case.task;
    let text = |given: &GivenFile| {
        let text = case.tree.load_text(&given.path).unwrap_or_else(|| join_added_lines(given));
        (given.path.clone(), text)
    };
    let mut sent: BTreeMap<String, String> = task.given.iter().map(text).collect();
    for path in case.imports.resolve(&task.paths().collect::<Vec<_>>()).into_iter().flatten() {
        if let Some(text) = case.tree.load_text(&path) {
            sent.entry(path).or_insert(text);
        }
    }
    let pieces: Vec<ContextPiece> = sent.into_iter().map(whole_file_piece).collect();
    pack(&pieces, u32::MAX, &count_case_tokens)
}

fn whole_file_piece((path, text): (String, String)) -> ContextPiece {
    ContextPiece {
        path,
        lines: Some(LineRange::new(1, text.lines().count().max(1) as u32)),
        stands_for: None,
        chunk: None,
        kind: SectionKind::Window,
        text: text.into(),
        tokens: None,
        need: Need::Must,
        score: 1.0,
        utility: 1.0,
        first_bonus: 0.0,
        explanation: Arc::new(ScoreExplanation::default()),
    }
}

/// Formats the diff of the given files.
fn format_diff(case: &RankedCase<'_>) -> String {
    let mut diff = String::new();
    for given in &case.case.task.given {
        diff.push_str(&format!("### {}\n", given.path));
        let text = case.tree.load_text(&given.path).unwrap_or_default();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let around = |start: usize, end: usize| lines[start.min(lines.len())..end.min(lines.len())].concat();
        for hunk in &given.hunks {
            let (start, end) = old_line_range(&hunk.range);
            let (start, end) = (start as usize, end as usize);
            let changed = hunk.removed.iter().chain(&hunk.added).flat_map(|line| [line.as_str(), "\n"]);
            diff.push_str(&around(start.saturating_sub(DIFF_CONTEXT_LINES as usize), start));
            diff.extend(changed);
            diff.push_str(&around(end, end.saturating_add(DIFF_CONTEXT_LINES as usize)));
        }
    }
    diff
}
