//! Measures how well retrieval finds the context of a change, on past commits of a repository.
//!
//! A case is a commit that is no merge, has no deletions or renames, and modifies 2 to 15 files of code. Half of the
//! modified files (rounded up, chosen by a hash of commit and path) and all added files form the task, with their diff.
//! The other modified files are hidden: they are searched in the parent's tree, with the history up to the parent. The
//! metrics of the hidden files are:
//!
//! - *file recall*: the share of hidden files with a line in a section;
//! - *line recall*: the share of old-side lines changed or removed by the commit that are in sections; for a pure
//!   insertion, the lines directly before and after it count;
//! - *reciprocal rank*: 1 divided by the rank of the first hidden file, with files in the order of their best score.
//!
//! Each metric is the mean over all cases. Sections are packed as for a review, and every token of a title is counted.
//!
//! [`TokenSaving`](saving::TokenSaving) compares this with sending whole files.

pub mod cases;
pub mod metrics;
pub mod saving;

use cases::{CaseReader, CaseSelection};
use metrics::{MetricsByBudget, NamedWeights, RetrievalMetrics, WeightsComparison};
use saving::{SavingMeter, TokenSaving};

use crate::git::{GitError, Repo};

/// Result of an evaluation. `rows` has one entry for each set of weights, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievalEvaluation {
    pub rows: Vec<(&'static str, MetricsByBudget)>,
    pub saving: TokenSaving,
}

/// Measures retrieval with each named set of weights at each of `budgets`, and the tokens that the built-in weights
/// save. `progress` receives the number of finished cases after each case.
///
/// # Errors
/// Returns an error if git cannot read the history, a tree or a commit.
pub fn evaluate_retrieval(
    repo: &Repo,
    selection: &CaseSelection<'_>,
    budgets: &[u32],
    weights: &[NamedWeights<'_>],
    progress: &mut dyn FnMut(usize),
) -> Result<RetrievalEvaluation, GitError> {
    let (mut comparison, mut saving) = (WeightsComparison::new(weights, budgets), SavingMeter::default());
    let mut finished = 0;
    CaseReader::open(repo, selection)?.for_each_case(selection, &mut |case| {
        comparison.add_case(case);
        saving.add_case(case);
        finished += 1;
        progress(finished);
    })?;
    Ok(RetrievalEvaluation { rows: comparison.finish(), saving: saving.finish() })
}

/// Measures retrieval like [`evaluate_retrieval`], at one budget and without the tokens saved.
///
/// # Errors
/// Returns an error if git cannot read the history, a tree or a commit.
pub fn compare_weights(
    repo: &Repo,
    selection: &CaseSelection<'_>,
    budget: u32,
    weights: &[NamedWeights<'_>],
) -> Result<Vec<RetrievalMetrics>, GitError> {
    let mut comparison = WeightsComparison::new(weights, &[budget]);
    CaseReader::open(repo, selection)?.for_each_case(selection, &mut |case| comparison.add_case(case))?;
    Ok(comparison.finish().into_iter().map(|(_, row)| row.get(&budget).copied().unwrap_or_default()).collect())
}
