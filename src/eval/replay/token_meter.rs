//! Counts the input tokens that a reviewer with a price per token would receive in a replay.
//!
//! Counts the diff as a model sees it (three lines of context, secrets masked) in tokens of o200k_base. The prompt
//! around the diff is the same for each request and is left out on both sides of the comparison. This favours full
//! reviews, which send more requests.

use std::collections::HashMap;

use crate::context::diff_parts::{DiffLimits, DiffPart, build_diff_parts};
use crate::domain::{LineRange, RunOutput, RunRecord};
use crate::git::{GitError, Repo};
use crate::masking::Mask;
use crate::runner::RepositoryRules;
use crate::tokens::{Encoding, count_tokens};

/// Small parts, so that a part is one hunk or a few lines of a large hunk.
const DIFF_MEASURE: DiffLimits =
    DiffLimits { budget_tokens: u64::MAX, max_part_tokens: DiffLimits::MIN_PART_TOKENS, context_lines: 3 };

/// Counts tokens and caches the counts.
pub(super) struct TokenMeter<'a> {
    repo: &'a Repo,
    filter: RepositoryRules,
    /// By base and snapshot.
    full: HashMap<(String, String), u64>,
}

impl<'a> TokenMeter<'a> {
    pub fn new(repo: &'a Repo, filter: RepositoryRules) -> Self {
        Self { repo, filter, full: HashMap::new() }
    }

    /// Counts the whole change of a run.
    ///
    /// # Errors
    ///
    /// If git cannot read the change.
    pub fn count_full(&mut self, run: &RunRecord) -> Result<u64, GitError> {
        let key = (run.subject.base_commit.clone(), run.subject.snapshot_commit.clone());
        if let Some(tokens) = self.full.get(&key) {
            return Ok(*tokens);
        }
        let tokens = self.build_diff_parts(run)?.iter().map(|part| part.tokens).sum();
        self.full.insert(key, tokens);
        Ok(tokens)
    }

    /// Counts the hunks that a run sent to its reviewer, without carried hunks.
    ///
    /// # Errors
    ///
    /// If git cannot read the change.
    pub fn count_sent(&self, output: &RunOutput) -> Result<u64, GitError> {
        let mut covered: HashMap<&str, &[LineRange]> = HashMap::new();
        for file in &output.coverage.files {
            covered.insert(&file.path, &file.hunks);
        }
        let parts = self.build_diff_parts(&output.run)?;
        let is_sent = |part: &&DiffPart| {
            let ranges = covered.get(part.path.as_str()).copied().unwrap_or_default();
            part.hunks.iter().any(|hunk| ranges.iter().any(|range| range.overlaps(*hunk)))
        };
        Ok(parts.iter().filter(is_sent).map(|part| part.tokens).sum())
    }

    fn build_diff_parts(&self, run: &RunRecord) -> Result<Vec<DiffPart>, GitError> {
        let change =
            self.repo.compute_changeset(&run.subject.base_commit, &run.subject.snapshot_commit, &self.filter)?;
        let counted = |text: &str| count_tokens(Encoding::O200kBase, text) as u64;
        Ok(build_diff_parts(self.repo, &change, DIFF_MEASURE, &counted, Mask::On, &|_, _| true, &|| false).parts)
    }
}
