//! Computes the figures of each passage of a file: words, similarity to changed lines, declarations, and line history.
//!
//! - Pure. Figures compare passages of one file, not passages of different files.

use std::sync::Arc;

use super::document::Document;
use super::factors::{PassageFactors, to_figure};
use super::history::{LineHistory, Touch};
use super::task::{GivenDocument, IdfTable, Query, old_line_range};
use super::words::{Vocabulary, Word, WordMap};

/// Most lines that passages are compared with.
const MAX_EXAMPLE_LINES: usize = 400;
/// Lines on each side of a hunk that serve as examples.
const CONTEXT_LINES: u32 = 2;

/// Lines that the lines of candidate files are compared with.
#[derive(Debug, Default)]
pub struct ExampleLines {
    removed: ExampleIndex,
    near: ExampleIndex,
}

/// Index of lines by word.
#[derive(Debug, Default)]
struct ExampleIndex {
    /// Total rarity of each line's words.
    sums: Vec<f32>,
    /// For each word: 1 + position of its list in `with_word`; 0 if no line has the word.
    lists: WordMap<u32>,
    /// Lines that contain the word.
    with_word: Vec<Vec<u32>>,
}

/// Line that is compared: its distinct words with their rarity.
#[derive(Debug, Default)]
struct ComparedLine {
    words: Vec<(Word, f32)>,
    /// Total rarity.
    sum: f32,
}

/// Scratch memory of a comparison: the shared rarity for each line, and the lines that share a word.
#[derive(Debug, Default)]
struct OverlapScratch {
    sums: Vec<f32>,
    lines: Vec<u32>,
}

impl ExampleIndex {
    fn build(mut lines: Vec<Vec<Word>>, rarity: &IdfTable) -> Self {
        lines.sort();
        lines.dedup();
        let mut found = Self::default();
        for (number, line) in (0u32..).zip(&lines) {
            found.sums.push(line.iter().map(|word| rarity.word(*word)).sum());
            for word in line {
                let list = found.lists.get_mut(*word);
                if *list == 0 {
                    found.with_word.push(Vec::new());
                    *list = found.with_word.len() as u32;
                }
                found.with_word[*list as usize - 1].push(number);
            }
        }
        found
    }

    /// Returns the similarity to the most similar line, from 0 to 1. Short lines and lines of common words get less.
    fn best_similarity(&self, line: &ComparedLine, common: &mut OverlapScratch) -> f32 {
        if line.words.len() < 2 {
            return 0.0;
        }
        common.sums.resize(self.sums.len().max(common.sums.len()), 0.0);
        for (word, rare) in &line.words {
            let list = (self.lists.get(*word) as usize).checked_sub(1);
            for number in list.and_then(|list| self.with_word.get(list)).into_iter().flatten() {
                let sum = &mut common.sums[*number as usize];
                if *sum == 0.0 {
                    common.lines.push(*number);
                }
                *sum += rare;
            }
        }
        let mut likest = 0.0f32;
        for number in common.lines.drain(..) {
            let both = std::mem::take(&mut common.sums[number as usize]);
            let like = both / (line.sum + self.sums[number as usize] - both).max(0.1) * (both / (both + 6.0));
            likest = likest.max(like);
        }
        likest
    }
}

impl ComparedLine {
    fn fill(&mut self, line: &[Word], rarity: &IdfTable) {
        self.words.clear();
        self.words.extend(line.iter().map(|word| (*word, rarity.word(*word))));
        self.words.sort_unstable_by_key(|(word, _)| *word);
        self.words.dedup_by_key(|(word, _)| *word);
        self.sum = self.words.iter().map(|(_, rare)| rare).sum();
    }
}

fn distinct_words(line: &[Word]) -> Vec<Word> {
    let mut words = line.to_vec();
    words.sort_unstable();
    words.dedup();
    words
}

impl ExampleLines {
    /// Collects the removed lines of the change and the lines around its hunks.
    pub fn from_given(known: &[GivenDocument<'_>], rarity: &IdfTable, vocabulary: &mut Vocabulary) -> Self {
        let (mut removed, mut near): (Vec<Vec<Word>>, Vec<Vec<Word>>) = Default::default();
        for GivenDocument { given, document } in known {
            for hunk in &given.hunks {
                let lines = hunk.removed.iter().map(|line| distinct_words(&vocabulary.intern_line(line)));
                removed.extend(lines.filter(|line| line.len() > 1));
                let Some(document) = document.filter(|_| given.touch == Touch::Modified) else { continue };
                let (start, end) = old_line_range(&hunk.range);
                for line in
                    start.saturating_sub(CONTEXT_LINES)..end.saturating_add(CONTEXT_LINES).min(document.line_count())
                {
                    if (line < start || line >= end) && document.line_words(line).len() > 1 {
                        near.push(distinct_words(document.line_words(line)));
                    }
                }
            }
        }
        removed.truncate(MAX_EXAMPLE_LINES);
        near.truncate(MAX_EXAMPLE_LINES);
        Self { removed: ExampleIndex::build(removed, rarity), near: ExampleIndex::build(near, rarity) }
    }

    /// Returns true if an example line contains the word.
    fn has_word(&self, word: Word) -> bool {
        self.removed.lists.get(word) != 0 || self.near.lists.get(word) != 0
    }
}

/// Computes the figures of each passage of a file.
pub fn compute_passage_factors(
    document: &Arc<Document>,
    past: &[LineHistory],
    query: &Query,
    examples: &ExampleLines,
    rarity: &IdfTable,
    vocabulary: &Vocabulary,
    tokens: &[u32],
) -> Vec<PassageFactors> {
    let (mut compared, mut common) = (ComparedLine::default(), OverlapScratch::default());
    let count = document.passages.len();
    let mut factors = vec![PassageFactors::default(); count];
    let (mut words, mut changed, mut like) = (vec![0.0f32; count], vec![0.0f32; count], vec![0.0f32; count]);
    for (at, (passage, factors)) in document.passages.iter().zip(&mut factors).enumerate() {
        let range = passage.start..passage.end;
        let found = query.overlap(range.clone().flat_map(|line| document.line_words(line).iter().copied()));
        words[at] = found.iter().zip([2.0, 1.0, 1.0, 0.4, 1.0]).map(|(sum, weight)| sum * weight).sum();
        let [removed, added, near_changed, near, enclosing] = found.map(f32::ln_1p);
        (factors.removed, factors.added, factors.changed, factors.near, factors.enclosing) =
            (removed, added, near_changed, near, enclosing);
        let (mut parts, mut seen): (f32, Vec<Word>) = (0.0, Vec::new());
        let mut imports = 0.0f32;
        for line in range.clone() {
            let mut best = [0.0f32; 3];
            for word in document.line_words(line) {
                let roles = query.roles.get(*word);
                if roles != 0 {
                    let rare = rarity.word(*word);
                    let alone = 1.0 / ((-rare).exp() * rarity.files).max(1.0);
                    let figures = [&mut factors.rare_removed, &mut factors.rare_added, &mut factors.rare_changed];
                    for (role, figure) in figures.into_iter().enumerate().filter(|(role, _)| roles >> role & 1 == 1) {
                        best[role] = best[role].max(rare);
                        *figure = figure.max(alone);
                    }
                }
                let parts_of = if query.has_parts.get(*word) { vocabulary.parts(*word) } else { &[] };
                for part in parts_of {
                    let weight = query.parts.get(*part);
                    if weight > 0.0 && !seen.contains(part) {
                        seen.push(*part);
                        parts += weight;
                    }
                }
            }
            factors.lines_removed += best[0];
            factors.lines_added += best[1];
            factors.lines_changed += best[2];
            if document.line_words(line).iter().any(|word| examples.has_word(*word)) {
                compared.fill(document.line_words(line), rarity);
                let likest = examples.removed.best_similarity(&compared, &mut common);
                factors.like_removed = factors.like_removed.max(likest);
                factors.likes_removed += likest * likest;
                factors.like_near = factors.like_near.max(examples.near.best_similarity(&compared, &mut common));
            }
            if let Some(past) = past.get(line as usize) {
                factors.past += past.changed;
                factors.past_together += past.together;
                factors.past_alike += past.alike;
                factors.past_latest = factors.past_latest.max(past.latest);
            }
            imports += to_figure(document.imports.get(line as usize).is_some_and(|imports| *imports));
        }
        factors.parts = parts.ln_1p();
        changed[at] = factors.past + 2.0 * factors.past_together;
        like[at] = factors.like_removed + 0.3 * factors.like_near;
        let lines = (passage.end - passage.start).max(1) as f32;
        factors.imports = to_figure(imports / lines > 0.3);
        factors.is_first = to_figure(at == 0);
        factors.is_last = to_figure(at + 1 == count);
        factors.place = passage.start as f32 / document.line_count().max(1) as f32;
        factors.tokens = (tokens.get(at).copied().unwrap_or(0) as f32).ln_1p() - 4.0;
        factors.lines = lines.ln() - 2.0;
        let declared = document.declarations.partition_point(|(line, _)| *line <= passage.start);
        if let Some((_, name)) = declared.checked_sub(1).and_then(|last| document.declarations.get(last))
            && query.roles.get(*name) != 0
        {
            factors.inside = rarity.word(*name) / 8.0;
        }
        let end = document.declarations.partition_point(|(line, _)| *line < passage.end);
        let start = document.declarations.partition_point(|(line, _)| *line < passage.start);
        for (_, name) in document.declarations.get(start..end).unwrap_or_default() {
            factors.has_declaration = 1.0;
            let roles = query.roles.get(*name);
            if roles & 0b111 != 0 {
                factors.declares += rarity.word(*name);
            }
            if roles & 0b1_0000 != 0 {
                factors.declares_enclosing = 1.0;
            }
        }
        for figure in [
            &mut factors.declares,
            &mut factors.lines_removed,
            &mut factors.lines_added,
            &mut factors.lines_changed,
            &mut factors.likes_removed,
            &mut factors.past,
            &mut factors.past_together,
            &mut factors.past_alike,
        ] {
            *figure = figure.ln_1p();
        }
    }
    let most = |figures: &[f32]| figures.iter().copied().fold(0.01, f32::max);
    let (most_words, most_changed) = (most(&words), most(&changed));
    for (at, factors) in factors.iter_mut().enumerate() {
        let beside = |figures: &[f32]| {
            let before = at.checked_sub(1).and_then(|before| figures.get(before)).copied().unwrap_or(0.0);
            before.max(figures.get(at + 1).copied().unwrap_or(0.0)).ln_1p()
        };
        factors.beside_words = beside(&words);
        factors.beside_past = beside(&changed);
        factors.words_part = words[at] / most_words;
        factors.past_part = changed[at] / most_changed;
    }
    assign_reciprocal_ranks(&mut factors, &words, |factors| &mut factors.words_first);
    assign_reciprocal_ranks(&mut factors, &changed, |factors| &mut factors.past_first);
    assign_reciprocal_ranks(&mut factors, &like, |factors| &mut factors.like_first);
    factors
}

fn assign_reciprocal_ranks(factors: &mut [PassageFactors], figures: &[f32], slot: fn(&mut PassageFactors) -> &mut f32) {
    let mut order: Vec<usize> = (0..figures.len()).filter(|at| figures[*at] > 0.0).collect();
    order.sort_by(|a, b| figures[*b].total_cmp(&figures[*a]).then(a.cmp(b)));
    for (rank, at) in order.into_iter().enumerate() {
        *slot(&mut factors[at]) = 1.0 / (rank as f32 + 2.0);
    }
}
