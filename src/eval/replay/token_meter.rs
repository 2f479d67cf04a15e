//! The token meter of a replay: what a reviewer that is paid by the token would be sent.
//!
//! Counted is the diff as a model sees it (three lines of context, secrets masked), in tokens of o200k_base. The prompt
//! around it, the same for each request, is left out on both sides of the comparison: that favours reviewing everything
//! in full, which asks more often.

use std::collections::HashMap;

use crate::context::diff_parts::{DiffLimits, DiffPart, build_diff_parts};
use crate::domain::{LineRange, RunOutput, RunRecord};
use crate::git::{FilterSettings, GitError, Repo};
use crate::masking::Mask;
use crate::tokens::{Encoding, count_tokens};

/// In small parts, so that a part is one hunk or a few lines of a large one.
const DIFF_MEASURE: DiffLimits =
    DiffLimits { budget_tokens: u64::MAX, max_part_tokens: DiffLimits::MIN_PART_TOKENS, context_lines: 3 };

/// Counts, and remembers what it has counted.
pub(super) struct TokenMeter<'a> {
    repo: &'a Repo,
    filter: FilterSettings,
    /// By base and snapshot.
    full: HashMap<(String, String), u64>,
}

impl<'a> TokenMeter<'a> {
    pub fn new(repo: &'a Repo, filter: FilterSettings) -> Self {
        Self { repo, filter, full: HashMap::new() }
    }

    /// All of what a run was asked to review.
    pub fn count_full(&mut self, run: &RunRecord) -> Result<u64, GitError> {
        let key = (run.base_commit.clone(), run.snapshot_commit.clone());
        if let Some(tokens) = self.full.get(&key) {
            return Ok(*tokens);
        }
        let tokens = self.build_diff_parts(run)?.iter().map(|part| part.tokens).sum();
        self.full.insert(key, tokens);
        Ok(tokens)
    }

    /// What a run really put before its reviewer: hunks that it carried over are not in it.
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
        let change = self.repo.compute_changeset(&run.base_commit, &run.snapshot_commit, &self.filter)?;
        let counted = |text: &str| count_tokens(Encoding::O200kBase, text) as u64;
        Ok(build_diff_parts(self.repo, &change, DIFF_MEASURE, &counted, Mask::On, &|_, _| true, &|| false).parts)
    }
}
