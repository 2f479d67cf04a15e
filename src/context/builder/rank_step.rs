//! Ranks the files of a search space and the passages in them.

use std::cell::RefCell;
use std::collections::HashMap;

use super::query_step::SearchSpace;
use super::{BuildError, ContextBuilder, SplitTask};
use crate::context::file_analysis::FileVersion;
use crate::context::import_resolver::ImportResolver;
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, RankingInput, rank_files, rerank};
use crate::context::score;
use crate::domain::text::{format_count, sanitize_line};
use crate::index::document_store::SourceFile;
use crate::index::vocabulary::Vocabulary;

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
        let mentioned = space.mentioned.paths().collect();
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
        let files = self.rank_by_meaning(task, space, ranked, weights)?;
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
        task: &SplitTask,
        space: &SearchSpace<'_>,
        mut ranked: Vec<RankedFile>,
        weights: &RankingWeights,
    ) -> Result<Vec<RankedFile>, BuildError> {
        let (repo, cancelled) = (self.repo, self.question.cancelled);
        let scored = self
            .question
            .meaning
            .map(|meaning| meaning.score_files(repo, &task.task, &mut ranked, &space.tree.blobs, cancelled));
        self.check_cancelled()?;
        match scored {
            Some(Ok(missing)) => {
                ranked = rerank(&ranked, weights);
                self.notes.extend((missing > 0).then(|| missing_vectors_note(missing)));
            }
            Some(Err(error)) => {
                self.notes.push(format!("without what code means: {}", sanitize_line(&error.summary)));
            }
            None => {}
        }
        Ok(ranked)
    }
}

/// Returns a note that the next context may differ, because `pieces` pieces have no vectors yet.
fn missing_vectors_note(pieces: usize) -> String {
    let pieces = format_count(pieces, "piece");
    format!("{pieces} of code not yet weighed by meaning: vectors are fetched a part at a time, the next time more")
}
