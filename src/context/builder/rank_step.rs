//! Ranks the files of a search space and the passages in them.

use std::cell::RefCell;
use std::collections::HashMap;

use super::query_step::SearchSpace;
use super::{BuildError, ContextBuilder, SplitTask};
use crate::context::embeddings::near_files::build_card;
use crate::context::embeddings::{EmbeddingText, VectorProgress, read_masked_text};
use crate::context::file_analysis::FileVersion;
use crate::context::import_resolver::ImportResolver;
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, RankingInput, rank_files, rerank};
use crate::context::score;
use crate::domain::text::{format_count, sanitize_line};
use crate::git::TreeFile;
use crate::index::document_store::SourceFile;
use crate::index::vocabulary::Vocabulary;
use crate::reviewers::chat::ChatError;

/// Probability that a file is given at least if its vector is among the nearest: enough to be sent where there is room,
/// too little to displace what words and history find.
const MIN_NEAR_PROBABILITY: f32 = 0.02;

/// Files and passages by probability.
pub(super) struct RankedCode {
    /// Files, best first.
    pub files: Vec<RankedFile>,
    pub weights: &'static RankingWeights,
    /// Versions of the files that may be sent, by path.
    pub sent: HashMap<String, FileVersion>,
}

impl ContextBuilder<'_> {
    /// Ranks the files of the search space that no option excludes.
    pub(super) fn rank(
        &mut self,
        task: &SplitTask,
        space: &SearchSpace<'_>,
        vocabulary: &mut Vocabulary,
    ) -> Result<RankedCode, BuildError> {
        let (question, weights) = (self.question, RankingWeights::built_in());
        let mask_files = |files: &[&SourceFile]| self.analyzer.mask_files(files, question.cancelled);
        let near = space.near.paths.iter().map(String::as_str);
        let mentioned = space.mentioned.paths().chain(near).collect();
        let filtered = RefCell::new(std::mem::take(&mut self.filtered));
        let wanted = |path: &str| {
            let by = question.options.file_filter(path);
            by.into_iter().for_each(|by| *filtered.borrow_mut().entry(by).or_default() += 1);
            by.is_none()
        };
        let module = self.repo.file_at(question.tree, "go.mod")?;
        let module = module.and_then(|text| ImportResolver::parse_go_module(&text));
        let paths = space.tree.listing.entries.iter().map(|entry| entry.path.as_str());
        let resolver = ImportResolver::new(paths, module.as_deref());
        let version = |path: &str| space.tree.file_version(path);
        let imports = |paths: &[&str]| self.analyzer.resolve_imports(&resolver, paths, &version, question.cancelled);
        let input = RankingInput {
            files: &space.files,
            history: &space.history.history,
            ancestors: &space.ancestors,
            mask_files: &mask_files,
            named: &mentioned,
            wanted: &wanted,
            imports: &imports,
        };
        let ranked = rank_files(&task.task, &input, weights, vocabulary);
        self.filtered = filtered.into_inner();
        let files = self.rank_by_meaning(space, ranked, weights)?;
        let may_be_sent = |file: &&RankedFile| {
            score::from_probability(file.probability) >= score::MIN_SCORE || space.mentioned.files.contains(&file.path)
        };
        let sent = files.iter().filter(may_be_sent);
        let sent = sent.filter_map(|file| Some((file.path.clone(), version(&file.path)?))).collect();
        Ok(RankedCode { files, weights, sent })
    }

    /// Ranks again by the meaning of code, if there is a scorer for it.
    fn rank_by_meaning(
        &mut self,
        space: &SearchSpace<'_>,
        mut ranked: Vec<RankedFile>,
        weights: &RankingWeights,
    ) -> Result<Vec<RankedFile>, BuildError> {
        let Some(meaning) = self.meaning else { return Ok(ranked) };
        let cards = |most: usize| self.build_cards(space, most);
        let scored = meaning.score_files(&space.meaning_queries, &mut ranked, &cards, self.question.cancelled);
        self.check_cancelled()?;
        match scored {
            Ok(VectorProgress { missing_chunks, new_files }) => {
                ranked = rerank(&ranked, weights);
                raise_near_files(&mut ranked, &space.near.paths);
                let unknown_files = space.near.unknown.len() + space.near.later;
                self.notes.extend(missing_vectors_notes(missing_chunks, unknown_files.saturating_sub(new_files)));
            }
            Err(error) => self.give_up_meaning(&error),
        }
        Ok(ranked)
    }

    /// Builds the cards of at most `most` files of the tree whose vectors are unknown.
    fn build_cards(&self, space: &SearchSpace<'_>, most: usize) -> Vec<EmbeddingText> {
        let files = space.near.unknown.get(..most).unwrap_or(&space.near.unknown);
        let versions: Vec<FileVersion> = files.iter().map(|file| (file.path.clone(), file.blob.clone())).collect();
        self.analyzer.load_syntax(&versions, self.question.cancelled);
        let card = |file: &TreeFile| {
            let syntax = self.analyzer.syntax(&file.path, &file.blob);
            build_card(file, &syntax, || read_masked_text(self.repo, &file.blob, &file.path))
        };
        files.iter().take_while(|_| !(self.question.cancelled)()).filter_map(card).collect()
    }

    /// Goes on without the meaning of code, and says why.
    pub(super) fn give_up_meaning(&mut self, error: &ChatError) {
        self.meaning = None;
        self.notes.push(format!("without what code means: {}", sanitize_line(&error.summary)));
    }
}

/// Raises the probabilities of the files nearest by meaning, so that they may be sent although words and history speak
/// against them. Keeps the order: best first.
fn raise_near_files(ranked: &mut [RankedFile], near: &[String]) {
    for file in ranked.iter_mut().filter(|file| near.contains(&file.path)) {
        file.probability = file.probability.max(MIN_NEAR_PROBABILITY);
    }
    if !near.is_empty() {
        ranked.sort_by(|a, b| b.probability.total_cmp(&a.probability).then_with(|| a.path.cmp(&b.path)));
    }
}

/// Returns notes that the next context may differ, because chunks or files have no vectors yet.
fn missing_vectors_notes(chunks: usize, files: usize) -> Vec<String> {
    let note = |count: usize, noun: &str, what: &str| {
        let count = Some(count).filter(|count| *count > 0)?;
        let texts = format_count(count, noun);
        Some(format!(
            "{texts} of code not yet {what} by meaning: vectors are fetched a part at a time, the next time more"
        ))
    };
    [note(chunks, "piece", "weighed"), note(files, "file", "searched")].into_iter().flatten().collect()
}
