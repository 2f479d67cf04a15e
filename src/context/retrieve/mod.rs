//! Ranks files, and the passages in them, by relevance to a change: history, words, references and paths.
//!
//! The ranking has two steps. First, each file gets the probability that it belongs to the change: figures
//! ([`factors`]) are weighted by [`weights`]; signals on different scales also enter as reciprocal ranks. Then each
//! passage of the leading files gets its share of the file's relevance. Probability and share give the utility of a
//! passage, and [`super::pack`] selects the passages with the highest utility per token.
//!
//! - The ranking is pure: no clock, no randomness. The same files, history and task give the same ranking.
//! - No figure and no score is ever NaN.

pub mod document;
pub mod factors;
mod files;
pub mod history;
mod imports;
pub mod masked_text;
mod passages;
pub mod paths;
pub mod task;
#[cfg(test)]
mod tests;
pub mod unified_diff;
pub mod weights;
pub mod words;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use document::{Document, Passage};
use factors::{FileFactors, PassageFactors};
use files::CandidateFile;
use history::{FileCommit, History, compute_line_history};
use masked_text::MaskedFile;
use passages::ExampleLines;
use task::{GivenDocument, IdfTable, Query, RetrievalTask};
use weights::{Calibration, RankingWeights};
use words::Vocabulary;

use super::parallel;

/// Number of leading files whose passages are ranked.
const MAX_LEADING_FILES: usize = 100;

/// File that the ranking considers.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: String,
    /// Blob id in hexadecimal.
    pub blob: String,
    pub document: Arc<Document>,
}

/// Inputs of the ranking.
pub struct RankingInput<'a> {
    pub files: &'a [SourceFile],
    pub history: &'a History,
    /// Positions of the commits in `history` that are ancestors of the searched tree, newest first.
    pub ancestors: &'a [usize],
    /// Returns the masked texts of files; called for the leading files.
    pub mask_files: &'a dyn Fn(&[&SourceFile]) -> Vec<MaskedFile>,
    /// Paths of files that are ranked at any position; at most as many as there are leading files.
    pub named: &'a HashSet<&'a str>,
    /// Returns true if a file may be a leading file; called once per path, best file first.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Returns for each path the files of the tree that it imports; called for the given files and the leading files.
    pub imports: &'a dyn Fn(&[&str]) -> Vec<Vec<String>>,
}

/// Ranked file with its passages.
#[derive(Debug, Clone)]
pub struct RankedFile {
    pub path: String,
    pub blob: String,
    pub document: Arc<Document>,
    pub masked: MaskedFile,
    /// Probability that the file belongs to the change, from 0 to 1.
    pub probability: f32,
    pub factors: FileFactors,
    /// Ordered by line.
    pub passages: Vec<RankedPassage>,
}

/// Ranked passage of a file.
#[derive(Debug, Clone)]
pub struct RankedPassage {
    pub range: Passage,
    /// Share of the file's relevance, from 0 to 1; the shares of a file add up to 1.
    pub share: f32,
    pub factors: PassageFactors,
}

/// Ranks the leading files and the mentioned files, best first.
pub fn rank_files(
    task: &RetrievalTask,
    sources: &RankingInput<'_>,
    weights: &RankingWeights,
    vocabulary: &mut Vocabulary,
) -> Vec<RankedFile> {
    let given: HashSet<&str> = task.paths().collect();
    let by_path: HashMap<&str, &Arc<Document>> = sources
        .files
        .iter()
        .filter(|file| given.contains(file.path.as_str()))
        .map(|file| (file.path.as_str(), &file.document))
        .collect();
    let known: Vec<GivenDocument<'_>> = task
        .given
        .iter()
        .map(|given| GivenDocument { given, document: by_path.get(given.path.as_str()).copied() })
        .collect();
    let focus: Vec<_> =
        task.focus.iter().filter_map(|focus| Some((focus, *by_path.get(focus.path.as_str())?))).collect();
    let pairs = sources.files.iter().map(|file| (file.path.as_str(), file.document.as_ref()));
    let rarity = IdfTable::from_documents(pairs, vocabulary);
    let query = Query::from_task(&known, &focus, &task.text, &rarity, vocabulary);
    let candidates: Vec<CandidateFile<'_>> = sources
        .files
        .iter()
        .map(|file| CandidateFile {
            path: &file.path,
            document: &file.document,
            is_given: given.contains(file.path.as_str()),
        })
        .collect();
    let mut paths: Vec<&str> = given.into_iter().collect();
    paths.sort_unstable();
    let mut evidence = files::compute_file_factors(
        &candidates,
        &paths,
        &query,
        &rarity,
        sources.history,
        sources.ancestors,
        vocabulary,
    );
    imports::add_imported_factors(&candidates, &paths, sources.imports, &mut evidence.factors);
    let mut leading: Vec<(usize, f32)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, file)| !file.is_given && file.document.line_count() > 0)
        .map(|(number, _)| (number, fuse_reciprocal_ranks(&evidence.factors[number])))
        .collect();
    leading.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut others = leading.into_iter();
    let is_wanted = |(number, _): &(usize, f32)| (sources.wanted)(candidates[*number].path);
    let mut leading: Vec<(usize, f32)> = others.by_ref().filter(is_wanted).take(MAX_LEADING_FILES).collect();
    let named = others.filter(|(number, _)| sources.named.contains(candidates[*number].path));
    leading.extend(named.filter(is_wanted).take(MAX_LEADING_FILES));
    let examples = ExampleLines::from_given(&known, &rarity, vocabulary);
    let pasts = collect_file_commits(sources, &evidence.relations, leading.iter().map(|(number, _)| *number));
    let numbers: Vec<usize> = leading.iter().map(|(number, _)| *number).collect();
    imports::add_importing_factors(&candidates, &numbers, &paths, sources.imports, &mut evidence.factors);
    let of_leading: Vec<FileFactors> = leading.iter().map(|(number, _)| evidence.factors[*number]).collect();
    let probabilities = compute_probabilities(&of_leading, weights);
    let told = (sources.mask_files)(&leading.iter().map(|(number, _)| &sources.files[*number]).collect::<Vec<_>>());
    let words = &*vocabulary;
    let weigh = |(number, told): &(usize, &MaskedFile)| {
        let document = &sources.files[*number].document;
        let past = compute_line_history(document.line_count(), pasts.get(number).map_or(&[], Vec::as_slice));
        passages::compute_passage_factors(document, &past, &query, &examples, &rarity, words, &told.tokens)
    };
    let looked_at: Vec<(usize, &MaskedFile)> = leading.iter().map(|(number, _)| *number).zip(&told).collect();
    let passages = parallel::map_init(&looked_at, || (), |(), file| weigh(file));
    let mut ranked: Vec<RankedFile> = leading
        .iter()
        .zip(&probabilities)
        .zip(told.into_iter().zip(passages))
        .map(|(((number, _), probability), (told, factors))| {
            let file = &sources.files[*number];
            let document = &file.document;
            let shares = compute_shares(&factors, weights);
            RankedFile {
                path: file.path.clone(),
                blob: file.blob.clone(),
                document: Arc::clone(document),
                probability: *probability,
                factors: evidence.factors[*number],
                passages: document
                    .passages
                    .iter()
                    .zip(factors.into_iter().zip(shares))
                    .map(|(place, (factors, share))| RankedPassage { range: *place, share, factors })
                    .collect(),
                masked: told,
            }
        })
        .collect();
    sort_by_probability(&mut ranked);
    ranked
}

/// Ranks the same files with other weights.
pub fn rerank(files: &[RankedFile], weights: &RankingWeights) -> Vec<RankedFile> {
    let mut files = files.to_vec();
    let factors: Vec<FileFactors> = files.iter().map(|file| file.factors).collect();
    for (file, probability) in files.iter_mut().zip(compute_probabilities(&factors, weights)) {
        file.probability = probability;
        let factors: Vec<PassageFactors> = file.passages.iter().map(|passage| passage.factors).collect();
        for (passage, share) in file.passages.iter_mut().zip(compute_shares(&factors, weights)) {
            passage.share = share;
        }
    }
    sort_by_probability(&mut files);
    files
}

fn sort_by_probability(files: &mut [RankedFile]) {
    files.sort_by(|a, b| b.probability.total_cmp(&a.probability).then_with(|| a.path.cmp(&b.path)));
}

/// Adds up the reciprocal ranks of all signals; decides which files are leading files.
fn fuse_reciprocal_ranks(factors: &FileFactors) -> f32 {
    2.0 * factors.together_first
        + factors.alike_first
        + factors.parts_first
        + factors.words_first
        + factors.passage_first
        + 0.5 * factors.path_first
        + factors.pair
        + 2.0 * factors.together
        + 0.5 * factors.imported
        + 0.1 * factors.imported_word
        + 0.2 * factors.importing_word
        + 0.05 * factors.declares
}

/// Computes for each file the probability that it belongs to the change: a logistic function of its weighted figures
/// and its lead over the other files.
fn compute_probabilities(factors: &[FileFactors], weights: &RankingWeights) -> Vec<f32> {
    let sum = |factors: &FileFactors| -> f32 {
        factors.values().iter().zip(&weights.files).map(|(figure, weight)| figure * weight).sum()
    };
    let sums: Vec<f32> = factors.iter().map(sum).collect();
    let most = sums.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let all = sums.iter().map(|sum| (sum - most).exp()).sum::<f32>().ln() + most;
    let Calibration { own, lead, bias, .. } = weights.calibration;
    let odds = sums.iter().map(|sum| (bias + own * sum + lead * (sum - all)).clamp(-30.0, 30.0));
    odds.map(|odds| 1.0 / (1.0 + (-odds).exp())).collect()
}

/// Computes the share of each passage: the softmax of the weighted figures.
fn compute_shares(factors: &[PassageFactors], weights: &RankingWeights) -> Vec<f32> {
    let sum = |factors: &PassageFactors| -> f32 {
        factors.values().iter().zip(&weights.passages).map(|(figure, weight)| figure * weight).sum()
    };
    let sums: Vec<f32> = factors.iter().map(sum).collect();
    let most = sums.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let odds: Vec<f32> = sums.iter().map(|sum| (sum - most).exp()).collect();
    let all: f32 = odds.iter().sum();
    odds.iter().map(|odds| odds / all.max(f32::MIN_POSITIVE)).collect()
}

/// Collects the commits of each file, newest first.
fn collect_file_commits<'a>(
    sources: &'a RankingInput<'_>,
    relations: &[files::CommitRelation],
    files: impl Iterator<Item = usize>,
) -> HashMap<usize, Vec<FileCommit<'a>>> {
    let history = sources.history;
    let paths = files.filter_map(|number| Some((history.find_path(&sources.files[number].path)?, number)));
    let numbers: HashMap<history::PathId, usize> = paths.collect();
    let mut pasts: HashMap<usize, Vec<FileCommit<'a>>> = HashMap::new();
    history.walk(sources.ancestors, |age, commit, moves| {
        let Some(relation) = relations.get(age) else { return };
        let Some(commit_files) = history.commits.get(relation.commit).map(|commit| &commit.files) else { return };
        for file in commit_files {
            if let Some(number) = numbers.get(&moves.current_path(file.path)) {
                let bearing =
                    FileCommit { file, size: commit.files.len(), together: relation.together, alike: relation.alike };
                pasts.entry(*number).or_default().push(bearing);
            }
        }
    });
    pasts
}
