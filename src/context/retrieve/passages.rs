//! Computes the figures of each passage of a file: words, similarity to changed lines, declarations, and line history.
//!
//! - Pure. Figures compare passages of one file, not passages of different files.

use super::factors::{PassageFactors, to_figure};
use super::line_history::LineHistory;
use super::task::{GivenDocument, IdfTable, Query, old_line_range};
use crate::index::document::{Document, Passage};
use crate::index::history::Touch;
use crate::index::vocabulary::{Vocabulary, Word, WordMap};

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

/// Words and lines of the change, with which passages are compared.
#[derive(Clone, Copy)]
pub struct PassageQuery<'a> {
    pub query: &'a Query,
    pub examples: &'a ExampleLines,
    pub rarity: &'a IdfTable,
    pub vocabulary: &'a Vocabulary,
}

/// File whose passages get figures.
#[derive(Clone, Copy)]
pub struct PassageInput<'a> {
    pub document: &'a Document,
    /// History of each line.
    pub past: &'a [LineHistory],
    /// Tokens of each passage.
    pub tokens: &'a [u32],
    pub change: PassageQuery<'a>,
}

/// Scores of each passage by which the passages of a file are compared.
struct PassageScores {
    words: Vec<f32>,
    changed: Vec<f32>,
    like: Vec<f32>,
}

/// Memory that is used again for each line.
#[derive(Default)]
struct LineScratch {
    compared: ComparedLine,
    common: OverlapScratch,
}

/// Total weight of the word parts of a passage; each part counts once.
#[derive(Default)]
struct PartSum {
    total: f32,
    seen: Vec<Word>,
}

/// Computes the figures of each passage of a file.
pub fn compute_passage_factors(input: &PassageInput<'_>) -> Vec<PassageFactors> {
    let passages = &input.document.passages;
    let mut scratch = LineScratch::default();
    let mut factors = vec![PassageFactors::default(); passages.len()];
    let zeros = vec![0.0f32; passages.len()];
    let mut scores = PassageScores { words: zeros.clone(), changed: zeros.clone(), like: zeros };
    for (at, (passage, factors)) in passages.iter().zip(&mut factors).enumerate() {
        scores.words[at] = input.add_query_words(passage, factors);
        input.add_lines(passage, &mut scratch, factors);
        scores.changed[at] = factors.past + 2.0 * factors.past_together;
        scores.like[at] = factors.like_removed + 0.3 * factors.like_near;
        input.add_shape(at, passage, factors);
        input.add_declarations(passage, factors);
        dampen_sums(factors);
    }
    compare_passages(&mut factors, &scores);
    factors
}

impl PassageInput<'_> {
    /// Adds the weight of the query words by role, and returns them in one score.
    fn add_query_words(&self, passage: &Passage, factors: &mut PassageFactors) -> f32 {
        let words = (passage.start..passage.end).flat_map(|line| self.document.line_words(line).iter().copied());
        let found = self.change.query.overlap(words);
        [factors.removed, factors.added, factors.changed, factors.near, factors.enclosing] = found.map(f32::ln_1p);
        found.iter().zip([2.0, 1.0, 1.0, 0.4, 1.0]).map(|(sum, weight)| sum * weight).sum()
    }

    /// Adds the figures of the lines of a passage.
    fn add_lines(&self, passage: &Passage, scratch: &mut LineScratch, factors: &mut PassageFactors) {
        let mut parts = PartSum::default();
        let mut imports = 0.0f32;
        for line in passage.start..passage.end {
            self.add_line_words(line, &mut parts, factors);
            self.add_line_similarity(line, scratch, factors);
            self.add_line_history(line, factors);
            imports += to_figure(self.document.imports.get(line as usize).is_some_and(|imports| *imports));
        }
        factors.parts = parts.total.ln_1p();
        factors.imports = to_figure(imports / line_count(passage) > 0.3);
    }

    /// Adds the rarity of the query words of a line, and the weight of their parts.
    fn add_line_words(&self, line: u32, parts: &mut PartSum, factors: &mut PassageFactors) {
        let PassageQuery { query, rarity, vocabulary, .. } = self.change;
        let mut best = [0.0f32; 3];
        for word in self.document.line_words(line) {
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
                if weight > 0.0 && !parts.seen.contains(part) {
                    parts.seen.push(*part);
                    parts.total += weight;
                }
            }
        }
        factors.lines_removed += best[0];
        factors.lines_added += best[1];
        factors.lines_changed += best[2];
    }

    /// Adds the similarity of a line to the lines of the change.
    fn add_line_similarity(&self, line: u32, scratch: &mut LineScratch, factors: &mut PassageFactors) {
        let PassageQuery { examples, rarity, .. } = self.change;
        let (words, LineScratch { compared, common }) = (self.document.line_words(line), scratch);
        if !words.iter().any(|word| examples.has_word(*word)) {
            return;
        }
        compared.fill(words, rarity);
        let likest = examples.removed.best_similarity(compared, common);
        factors.like_removed = factors.like_removed.max(likest);
        factors.likes_removed += likest * likest;
        factors.like_near = factors.like_near.max(examples.near.best_similarity(compared, common));
    }

    fn add_line_history(&self, line: u32, factors: &mut PassageFactors) {
        let Some(past) = self.past.get(line as usize) else { return };
        factors.past += past.changed;
        factors.past_together += past.together;
        factors.past_alike += past.alike;
        factors.past_latest = factors.past_latest.max(past.latest);
    }

    /// Adds the size of a passage and its place in the file.
    fn add_shape(&self, at: usize, passage: &Passage, factors: &mut PassageFactors) {
        factors.is_first = to_figure(at == 0);
        factors.is_last = to_figure(at + 1 == self.document.passages.len());
        factors.place = passage.start as f32 / self.document.line_count().max(1) as f32;
        factors.tokens = (self.tokens.get(at).copied().unwrap_or(0) as f32).ln_1p() - 4.0;
        factors.lines = line_count(passage).ln() - 2.0;
    }

    /// Adds the declaration that a passage is in, and the declarations in it.
    fn add_declarations(&self, passage: &Passage, factors: &mut PassageFactors) {
        let PassageQuery { query, rarity, .. } = self.change;
        let declarations = &self.document.declarations;
        let declared = declarations.partition_point(|(line, _)| *line <= passage.start);
        if let Some((_, name)) = declared.checked_sub(1).and_then(|last| declarations.get(last))
            && query.roles.get(*name) != 0
        {
            factors.inside = rarity.word(*name) / 8.0;
        }
        let end = declarations.partition_point(|(line, _)| *line < passage.end);
        let start = declarations.partition_point(|(line, _)| *line < passage.start);
        for (_, name) in declarations.get(start..end).unwrap_or_default() {
            factors.has_declaration = 1.0;
            let roles = query.roles.get(*name);
            if roles & 0b111 != 0 {
                factors.declares += rarity.word(*name);
            }
            if roles & 0b1_0000 != 0 {
                factors.declares_enclosing = 1.0;
            }
        }
    }
}

/// Returns the number of lines of a passage.
fn line_count(passage: &Passage) -> f32 {
    (passage.end - passage.start).max(1) as f32
}

/// Replaces sums over lines by their logarithms.
fn dampen_sums(factors: &mut PassageFactors) {
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

/// Adds the figures that compare each passage with its neighbours and with the best passage of the file.
fn compare_passages(factors: &mut [PassageFactors], scores: &PassageScores) {
    let PassageScores { words, changed, like } = scores;
    let most = |figures: &[f32]| figures.iter().copied().fold(0.01, f32::max);
    let (most_words, most_changed) = (most(words), most(changed));
    for (at, factors) in factors.iter_mut().enumerate() {
        let beside = |figures: &[f32]| {
            let before = at.checked_sub(1).and_then(|before| figures.get(before)).copied().unwrap_or(0.0);
            before.max(figures.get(at + 1).copied().unwrap_or(0.0)).ln_1p()
        };
        factors.beside_words = beside(words);
        factors.beside_past = beside(changed);
        factors.words_part = words[at] / most_words;
        factors.past_part = changed[at] / most_changed;
    }
    assign_reciprocal_ranks(factors, words, |factors| &mut factors.words_first);
    assign_reciprocal_ranks(factors, changed, |factors| &mut factors.past_first);
    assign_reciprocal_ranks(factors, like, |factors| &mut factors.like_first);
}

fn assign_reciprocal_ranks(factors: &mut [PassageFactors], figures: &[f32], slot: fn(&mut PassageFactors) -> &mut f32) {
    let mut order: Vec<usize> = (0..figures.len()).filter(|at| figures[*at] > 0.0).collect();
    order.sort_by(|a, b| figures[*b].total_cmp(&figures[*a]).then(a.cmp(b)));
    for (rank, at) in order.into_iter().enumerate() {
        *slot(&mut factors[at]) = 1.0 / (rank as f32 + 2.0);
    }
}
