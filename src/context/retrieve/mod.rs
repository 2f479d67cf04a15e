//! Ranks files, and the passages in them, by relevance to a change: history, words, references and paths.
//!
//! The ranking has two steps. First, each file gets the probability that it belongs to the change: figures
//! ([`factors`]) are weighted by [`weights`]; signals on different scales also enter as reciprocal ranks. Then each
//! passage of the leading files gets its share of the file's relevance. Probability and share give the utility of a
//! passage, and [`super::pack`] selects the passages with the highest utility per token.
//!
//! - The ranking is pure: no clock, no randomness. The same files, history and task give the same ranking.
//! - No figure and no score is ever NaN.

pub(crate) mod factors;
mod files;
mod imports;
pub(crate) mod line_history;
pub(crate) mod masked_text;
mod passages;
pub(crate) mod paths;
pub mod task;
#[cfg(test)]
mod tests;
pub(crate) mod unified_diff;
pub mod weights;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::index::document::{Document, Passage};
use crate::index::document_store::SourceFile;
use crate::index::history::{History, PathId};
use crate::index::vocabulary::Vocabulary;
use factors::{FileFactors, PassageFactors};
use files::{CandidateFile, CommitRelation};
use line_history::{FileCommit, compute_line_history};
use masked_text::MaskedFile;
use passages::{ExampleLines, PassageInput, PassageQuery, compute_passage_factors};
use task::{Focus, GivenDocument, IdfTable, Query, RetrievalTask};
use weights::{Calibration, RankingWeights};

use crate::parallel;

/// Number of leading files whose passages are ranked.
const MAX_LEADING_FILES: usize = 100;

/// Inputs of the ranking.
pub struct RankingInput<'a> {
    /// Files of the searched tree.
    pub files: &'a [SourceFile],
    /// Commits that `ancestors` refers to.
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
    /// Path relative to the repository root.
    pub path: String,
    /// Blob id in hexadecimal.
    pub blob: String,
    /// Words, names and passages of the file.
    pub document: Arc<Document>,
    /// Masked texts and token counts of the passages.
    pub masked: MaskedFile,
    /// Probability that the file belongs to the change, from 0 to 1.
    pub probability: f32,
    /// Figures from which `probability` is computed.
    pub factors: FileFactors,
    /// Ordered by line.
    pub passages: Vec<RankedPassage>,
}

/// Ranked passage of a file.
#[derive(Debug, Clone)]
pub struct RankedPassage {
    /// Lines of the passage (0-based, `end` exclusive).
    pub range: Passage,
    /// Share of the file's relevance, from 0 to 1; the shares of a file add up to 1.
    pub share: f32,
    /// Figures from which `share` is computed.
    pub factors: PassageFactors,
}

/// Ranks the leading files and the mentioned files, best first.
pub fn rank_files(
    task: &RetrievalTask,
    sources: &RankingInput<'_>,
    weights: &RankingWeights,
    vocabulary: &mut Vocabulary,
) -> Vec<RankedFile> {
    let given_paths = task.sorted_paths();
    let (given, focus) = find_task_documents(task, sources.files, &given_paths);
    let pairs = sources.files.iter().map(|file| (file.path.as_str(), file.document.as_ref()));
    let rarity = IdfTable::from_documents(pairs, vocabulary);
    let query = Query::from_task(&given, &focus, &task.text, &rarity, vocabulary);
    let candidates = list_candidates(sources.files, &given_paths);
    let mut evidence = files::compute_file_factors(
        &candidates,
        &given_paths,
        &query,
        &rarity,
        sources.history,
        sources.ancestors,
        vocabulary,
    );
    imports::add_imported_factors(&candidates, &given_paths, sources.imports, &mut evidence.factors);
    let leading = choose_leading_files(&candidates, &evidence.factors, sources);
    imports::add_importing_factors(&candidates, &leading, &given_paths, sources.imports, &mut evidence.factors);
    let examples = ExampleLines::from_given(&given, &rarity, vocabulary);
    let change = PassageQuery { query: &query, examples: &examples, rarity: &rarity, vocabulary };
    let leading = LeadingFiles {
        files: leading.iter().map(|number| &sources.files[*number]).collect(),
        factors: leading.iter().map(|number| evidence.factors[*number]).collect(),
    };
    let masked = (sources.mask_files)(&leading.files);
    let passages = leading.compute_passage_factors(&masked, sources, &evidence.relations, change);
    leading.into_ranked(masked, passages, weights)
}

/// Files whose passages are ranked.
struct LeadingFiles<'a> {
    files: Vec<&'a SourceFile>,
    factors: Vec<FileFactors>,
}

impl LeadingFiles<'_> {
    /// Computes the figures of the passages of each file.
    fn compute_passage_factors(
        &self,
        masked: &[MaskedFile],
        sources: &RankingInput<'_>,
        relations: &[CommitRelation],
        change: PassageQuery<'_>,
    ) -> Vec<Vec<PassageFactors>> {
        let commits = collect_file_commits(sources, relations, &self.files);
        let compute = |(number, (file, masked)): &(usize, (&&SourceFile, &MaskedFile))| {
            let document = &file.document;
            let past = compute_line_history(document.line_count(), commits.get(number).map_or(&[], Vec::as_slice));
            compute_passage_factors(&PassageInput { document, past: &past, tokens: &masked.tokens, change })
        };
        let files: Vec<_> = self.files.iter().zip(masked).enumerate().collect();
        parallel::map(&files, compute)
    }

    /// Converts the files to ranked files, best first.
    fn into_ranked(
        self,
        masked: Vec<MaskedFile>,
        passages: Vec<Vec<PassageFactors>>,
        weights: &RankingWeights,
    ) -> Vec<RankedFile> {
        let probabilities = compute_probabilities(&self.factors, weights);
        let files = self.files.into_iter().zip(self.factors).zip(probabilities);
        let ranked =
            files.zip(masked.into_iter().zip(passages)).map(|(((file, factors), probability), (masked, passages))| {
                RankedFile {
                    path: file.path.clone(),
                    blob: file.blob.clone(),
                    document: Arc::clone(&file.document),
                    masked,
                    probability,
                    factors,
                    passages: rank_passages(&file.document, passages, weights),
                }
            });
        let mut ranked: Vec<RankedFile> = ranked.collect();
        sort_by_probability(&mut ranked);
        ranked
    }
}

fn rank_passages(document: &Document, factors: Vec<PassageFactors>, weights: &RankingWeights) -> Vec<RankedPassage> {
    let shares = compute_shares(&factors, weights);
    let passages = document.passages.iter().zip(factors.into_iter().zip(shares));
    passages.map(|(range, (factors, share))| RankedPassage { range: *range, share, factors }).collect()
}

/// Position in focus with the document of its file.
type FocusDocument<'a> = (&'a Focus, &'a Arc<Document>);

/// Returns the given files and the positions in focus, with their documents in the searched tree.
fn find_task_documents<'a>(
    task: &'a RetrievalTask,
    files: &'a [SourceFile],
    given_paths: &[&str],
) -> (Vec<GivenDocument<'a>>, Vec<FocusDocument<'a>>) {
    let given_files = files.iter().filter(|file| is_given(given_paths, &file.path));
    let by_path: HashMap<&str, &Arc<Document>> = given_files.map(|file| (file.path.as_str(), &file.document)).collect();
    let find = |path: &str| by_path.get(path).copied();
    let given = task.given.iter().map(|given| GivenDocument { given, document: find(&given.path) }).collect();
    let focus = task.focus.iter().filter_map(|focus| Some((focus, find(&focus.path)?))).collect();
    (given, focus)
}

/// Returns true if a path is one of the sorted paths.
fn is_given(given_paths: &[&str], path: &str) -> bool {
    given_paths.binary_search(&path).is_ok()
}

fn list_candidates<'a>(files: &'a [SourceFile], given_paths: &[&str]) -> Vec<CandidateFile<'a>> {
    let candidate = |file: &'a SourceFile| CandidateFile {
        path: &file.path,
        document: &file.document,
        is_given: is_given(given_paths, &file.path),
    };
    files.iter().map(candidate).collect()
}

/// Returns the positions of the leading files and of the mentioned ones, best first by the reciprocal ranks of all
/// signals.
fn choose_leading_files(
    candidates: &[CandidateFile<'_>],
    factors: &[FileFactors],
    sources: &RankingInput<'_>,
) -> Vec<usize> {
    let searched = candidates.iter().zip(factors).enumerate();
    let searched = searched.filter(|(_, (file, _))| !file.is_given && file.document.line_count() > 0);
    let mut order: Vec<(usize, f32)> =
        searched.map(|(number, (_, factors))| (number, fuse_reciprocal_ranks(factors))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut others = order.into_iter().map(|(number, _)| number);
    let is_wanted = |number: &usize| (sources.wanted)(candidates[*number].path);
    let mut leading: Vec<usize> = others.by_ref().filter(is_wanted).take(MAX_LEADING_FILES).collect();
    let named = others.filter(|number| sources.named.contains(candidates[*number].path));
    leading.extend(named.filter(is_wanted).take(MAX_LEADING_FILES));
    leading
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

/// Collects the commits of each file, newest first, by the position of the file in `files`.
fn collect_file_commits<'a>(
    sources: &'a RankingInput<'_>,
    relations: &[CommitRelation],
    files: &[&SourceFile],
) -> HashMap<usize, Vec<FileCommit<'a>>> {
    let history = sources.history;
    let paths = files.iter().enumerate().filter_map(|(number, file)| Some((history.find_path(&file.path)?, number)));
    let numbers: HashMap<PathId, usize> = paths.collect();
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
