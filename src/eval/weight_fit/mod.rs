//! Fits the weights of the ranking in `assets/retrieval.toml` to past commits.
//!
//! The cases are those of [`retrieval`](super::retrieval): a commit is split into a task and hidden files, and the files
//! of its parent are ranked. Their figures do not depend on the weights, and neither does which files lead. Three fits
//! follow, each by Newton's method with a ridge penalty, from weights of 0:
//!
//! 1. `[files]`: a softmax over the leading files of a case, in which the hidden ones share the probability;
//! 2. `[passages]`: a softmax over the passages of a hidden file, by their shares of its changed lines;
//! 3. `own`, `lead` and `bias`: a logistic regression of whether a leading file is a hidden one, on its sum of weighted
//!    figures and on its lead.
//!
//! Both sets of weights are then measured on the newest commits, which no fit sees.
//!
//! - A weight whose figure never differs within a list stays as it is, and so do `confidence` and `first`.
//! - The same commits give the same bytes: nothing is random, and no sum depends on the number of threads.

pub mod examples;
mod logistic;
mod newton;
mod softmax;
mod weights_file;

use std::path::PathBuf;

use thiserror::Error;

use self::examples::FitExamples;
use self::logistic::{LogisticExample, LogisticLoss};
pub use self::newton::NewtonError;
use self::newton::{dot, minimize};
use self::softmax::{ChoiceList, SoftmaxLoss, log_sum_exp, varying_columns};
use self::weights_file::{replace_weights, round_weight};
use super::retrieval::cases::{CaseReader, CaseSelection};
use super::retrieval::compare_weights;
use super::retrieval::metrics::RetrievalMetrics;
use crate::context::retrieve::factors::{FileFactors, PassageFactors};
use crate::context::retrieve::weights::{Calibration, RankingWeights};
use crate::git::{GitError, Repo};

/// Text of the weights file that this program was compiled with.
const BUILT_IN_TEXT: &str = include_str!("../../../assets/retrieval.toml");
/// Number of the newest cases of a repository that no weights are fitted to. `docs/retrieval.md` measures on them.
pub const HELD_OUT_CASES: usize = 40;
/// Budget, in tokens, at which weights are compared: the main one of `docs/retrieval.md`.
pub const COMPARED_BUDGET: u32 = 8_000;

/// Reason why no weights were fitted. Each names the repository as the plan does.
#[derive(Debug, Error)]
pub enum WeightFitError {
    #[error("{name}: {error}")]
    Git { name: String, error: GitError },
    #[error("{name} is named twice")]
    NamedTwice { name: String },
    #[error("{name}: no commit can be used to fit weights")]
    NoCommits { name: String },
    #[error("{name}: no commit can be used to measure weights")]
    NothingToMeasure { name: String },
    #[error("in no commit do the files that lead and the passages in them differ in what the commit changed")]
    NoExamples,
    #[error("no weights of {table} fit: {error}")]
    Newton { table: &'static str, error: NewtonError },
}

/// Repository with commits to fit to or to measure.
pub struct FitSource {
    /// Name for messages.
    pub name: String,
    pub repo: Repo,
    /// Commit to start from.
    pub tip: String,
    /// Folder of the history cache.
    pub folder: PathBuf,
}

/// Repositories and limits of a fit.
pub struct FitPlan {
    /// Repositories to fit to. Their newest cases are held out and measured.
    pub fitted: Vec<FitSource>,
    /// Repositories to measure only.
    pub held_out: Vec<FitSource>,
    /// Maximum number of cases to fit to, of each repository.
    pub commits: usize,
    /// Maximum number of cases to measure, of each repository; at most [`HELD_OUT_CASES`].
    pub measured: usize,
    /// Strength of the ridge penalty: 1 divided by the variance of the normal distribution that is expected of weights.
    pub penalty: f64,
    /// Number of commits behind a tip to read.
    pub depth: usize,
}

/// Built-in and fitted weights, measured on the held-out cases of a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutRow {
    pub name: String,
    /// True if weights were fitted to older commits of this repository.
    pub is_fitted: bool,
    pub before: RetrievalMetrics,
    pub after: RetrievalMetrics,
}

/// Fitted weights with what they were fitted to and how much they find.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightFit {
    pub weights: RankingWeights,
    /// Text of the weights file with the fitted weights.
    pub text: String,
    /// Names of the figures that never differed, with their table. Their weights stayed as they were.
    pub unvaried: Vec<String>,
    /// Number of cases that were fitted to, by repository.
    pub commits: Vec<(String, usize)>,
    /// Number of lists of files, and of lists of passages.
    pub lists: (usize, usize),
    pub rows: Vec<HeldOutRow>,
}

impl WeightFit {
    /// Returns the means over the repositories before and after the fit. Each repository counts the same.
    pub fn means(&self) -> (RetrievalMetrics, RetrievalMetrics) {
        (average(self.rows.iter().map(|row| row.before)), average(self.rows.iter().map(|row| row.after)))
    }

    /// Returns true if the mean of file recall, line recall and reciprocal rank got lower.
    pub fn is_worse(&self) -> bool {
        let quality = |of: RetrievalMetrics| of.file_recall + of.line_recall + of.reciprocal_rank;
        let (before, after) = self.means();
        quality(after) < quality(before) - f64::EPSILON
    }
}

fn average(rows: impl ExactSizeIterator<Item = RetrievalMetrics>) -> RetrievalMetrics {
    let count = rows.len().max(1) as f64;
    let mut mean = RetrievalMetrics::default();
    for row in rows {
        mean.cases += row.cases;
        mean.file_recall += row.file_recall / count;
        mean.line_recall += row.line_recall / count;
        mean.reciprocal_rank += row.reciprocal_rank / count;
        mean.tokens += row.tokens / count;
    }
    mean
}

/// Fits the weights and measures them. `progress` receives each repository and the number of its finished cases.
///
/// # Errors
/// Returns an error if a repository cannot be read or has no cases, or if no weights fit.
pub fn fit_weights(plan: &FitPlan, progress: &mut dyn FnMut(&str, usize)) -> Result<WeightFit, WeightFitError> {
    check_names(plan)?;
    let mut examples = FitExamples::default();
    let mut commits = Vec::new();
    for source in &plan.fitted {
        let found = collect_examples(source, plan, &mut examples, progress)?;
        if found == 0 {
            return Err(WeightFitError::NoCommits { name: source.name.clone() });
        }
        commits.push((source.name.clone(), found));
    }
    let FittedTables { weights, unvaried } = fit_tables(&examples, RankingWeights::built_in(), plan.penalty)?;
    let rows = measure_held_out(plan, &weights, progress)?;
    Ok(WeightFit {
        text: replace_weights(BUILT_IN_TEXT, &weights),
        weights,
        unvaried,
        commits,
        lists: (examples.files.len(), examples.passages.len()),
        rows,
    })
}

/// Checks that each repository is named once: held-out commits must not be fitted to.
fn check_names(plan: &FitPlan) -> Result<(), WeightFitError> {
    let mut keys = Vec::new();
    for source in plan.fitted.iter().chain(&plan.held_out) {
        let key = source.repo.key();
        if keys.contains(&key) {
            return Err(WeightFitError::NamedTwice { name: source.name.clone() });
        }
        keys.push(key);
    }
    Ok(())
}

impl FitSource {
    fn select_cases(&self, plan: &FitPlan, commits: usize, skip: usize) -> CaseSelection<'_> {
        CaseSelection { tip: &self.tip, commits, skip, depth: plan.depth, folder: Some(&self.folder) }
    }

    fn git_error(&self) -> impl Fn(GitError) -> WeightFitError {
        |error| WeightFitError::Git { name: self.name.clone(), error }
    }
}

/// Adds the examples of a repository's cases behind the held-out ones, and returns the number of these cases.
fn collect_examples(
    source: &FitSource,
    plan: &FitPlan,
    examples: &mut FitExamples,
    progress: &mut dyn FnMut(&str, usize),
) -> Result<usize, WeightFitError> {
    let selection = source.select_cases(plan, plan.commits, HELD_OUT_CASES);
    let mut reader = CaseReader::open(&source.repo, &selection).map_err(source.git_error())?;
    let mut found = 0;
    let cases = reader.for_each_case(&selection, &mut |case| {
        examples.add_case(case);
        found += 1;
        progress(&source.name, found);
    });
    cases.map_err(source.git_error())?;
    Ok(found)
}

/// Measures the built-in and the fitted weights on the newest cases of each repository.
fn measure_held_out(
    plan: &FitPlan,
    weights: &RankingWeights,
    progress: &mut dyn FnMut(&str, usize),
) -> Result<Vec<HeldOutRow>, WeightFitError> {
    let compared = [("before", RankingWeights::built_in()), ("after", weights)];
    let mut rows = Vec::new();
    for (number, source) in plan.fitted.iter().chain(&plan.held_out).enumerate() {
        let selection = source.select_cases(plan, plan.measured.min(HELD_OUT_CASES), 0);
        let measured =
            compare_weights(&source.repo, &selection, COMPARED_BUDGET, &compared).map_err(source.git_error())?;
        let [before, after] = measured.as_slice() else { continue };
        if before.cases == 0 {
            return Err(WeightFitError::NothingToMeasure { name: source.name.clone() });
        }
        progress(&source.name, before.cases);
        let is_fitted = number < plan.fitted.len();
        rows.push(HeldOutRow { name: source.name.clone(), is_fitted, before: *before, after: *after });
    }
    Ok(rows)
}

/// Fitted weights, and the names of the figures that never differed.
struct FittedTables {
    weights: RankingWeights,
    unvaried: Vec<String>,
}

/// Fits all tables. `before` has the weights of figures that never differ.
fn fit_tables(examples: &FitExamples, before: &RankingWeights, penalty: f64) -> Result<FittedTables, WeightFitError> {
    if examples.files.is_empty() || examples.passages.is_empty() {
        return Err(WeightFitError::NoExamples);
    }
    let mut weights = before.clone();
    let kept_files = fit_softmax("[files]", &examples.files, &mut weights.files, penalty)?;
    let kept_passages = fit_softmax("[passages]", &examples.passages, &mut weights.passages, penalty)?;
    weights.calibration = fit_calibration(&examples.files, &weights, penalty)?;
    let files = kept_files.into_iter().filter_map(|at| FileFactors::NAMES.get(at).map(|name| format!("files.{name}")));
    let passages =
        kept_passages.into_iter().filter_map(|at| PassageFactors::NAMES.get(at).map(|name| format!("passages.{name}")));
    Ok(FittedTables { unvaried: files.chain(passages).collect(), weights })
}

/// Fits the weights of the columns that vary, and returns the other columns.
fn fit_softmax(
    table: &'static str,
    lists: &[ChoiceList],
    weights: &mut [f32],
    penalty: f64,
) -> Result<Vec<usize>, WeightFitError> {
    let columns = varying_columns(lists);
    let loss = SoftmaxLoss { lists, columns: &columns };
    let fitted = minimize(&loss, penalty).map_err(|error| WeightFitError::Newton { table, error })?;
    for (column, weight) in columns.iter().zip(fitted) {
        weights[*column] = round_weight(weight);
    }
    Ok((0..weights.len()).filter(|column| !columns.contains(column)).collect())
}

/// Fits `own`, `lead` and `bias` to the leading files of all cases, with the fitted weights of files.
fn fit_calibration(
    lists: &[ChoiceList],
    weights: &RankingWeights,
    penalty: f64,
) -> Result<Calibration, WeightFitError> {
    let examples: Vec<LogisticExample<3>> =
        lists.iter().flat_map(|list| list_calibration_examples(list, weights)).collect();
    let fitted = minimize(&LogisticLoss(&examples), penalty)
        .map_err(|error| WeightFitError::Newton { table: "own, lead and bias", error })?;
    let [own, lead, bias] = [0, 1, 2].map(|at| fitted.get(at).copied().map_or(0.0, round_weight));
    Ok(Calibration { own, lead, bias, ..weights.calibration })
}

/// Returns the sum and the lead of each file, as [`Calibration`] weighs them, with a constant for the bias.
fn list_calibration_examples(list: &ChoiceList, weights: &RankingWeights) -> Vec<LogisticExample<3>> {
    let weights: Vec<f64> = weights.files.iter().copied().map(f64::from).collect();
    let sum = |row: &[f32]| dot(&row.iter().copied().map(f64::from).collect::<Vec<_>>(), &weights);
    let sums: Vec<f64> = list.rows().map(sum).collect();
    let all = log_sum_exp(&sums);
    let example =
        |(sum, share): (&f64, &f64)| LogisticExample { figures: [*sum, sum - all, 1.0], outcome: *share > 0.0 };
    sums.iter().zip(list.shares()).map(example).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(names: &[&str], name: &str) -> usize {
        names.iter().position(|other| *other == name).expect("a figure")
    }

    /// Lists of four files in which the one with the highest `path` is hidden three times out of four.
    fn examples() -> FitExamples {
        let file = |path: f32, is_hidden: bool| {
            let figures = FileFactors { path, ..FileFactors::default() };
            (figures.values(), f64::from(u8::from(is_hidden)))
        };
        let passage = |lines: f32, changed: f64| {
            let figures = PassageFactors { lines, ..PassageFactors::default() };
            (figures.values(), changed)
        };
        let files = (0..8).map(|at| [file(1.0, at % 4 != 0), file(0.5, false), file(0.0, at % 4 == 0)]);
        let passages = (0..8).map(|at| [passage(1.0, 3.0), passage(0.0, f64::from(at % 2))]);
        FitExamples {
            files: files.filter_map(|rows| ChoiceList::from_rows(&rows)).collect(),
            passages: passages.filter_map(|rows| ChoiceList::from_rows(&rows)).collect(),
        }
    }

    #[test]
    fn weights_that_nothing_varies_stay() {
        let before = RankingWeights::built_in();
        let (path, lines) = (position(FileFactors::NAMES, "path"), position(PassageFactors::NAMES, "lines"));
        let FittedTables { weights, unvaried } = fit_tables(&examples(), before, 1e-3).expect("weights");
        assert!(weights.files[path] > 0.0 && weights.passages[lines] > 0.0, "{weights:?}");
        let mut others = (0..weights.files.len()).filter(|at| *at != path);
        assert!(others.all(|at| weights.files[at] == before.files[at]));
        assert_eq!(unvaried.len(), FileFactors::NAMES.len() + PassageFactors::NAMES.len() - 2);
        assert!(unvaried.contains(&"files.together".to_owned()) && !unvaried.contains(&"passages.lines".to_owned()));
        assert_eq!((weights.calibration.confidence, weights.first), (before.calibration.confidence, before.first));
        assert!(weights.calibration.own > 0.0 && weights.calibration.bias < 0.0, "{:?}", weights.calibration);
    }

    #[test]
    fn the_penalty_decides_how_far_weights_go() {
        let fit = |penalty| fit_tables(&examples(), RankingWeights::built_in(), penalty).expect("weights").weights;
        let path = position(FileFactors::NAMES, "path");
        let paths = [1e-3, 1.0, 100.0].map(|penalty| fit(penalty).files[path]);
        assert!(paths.is_sorted_by(|one, other| one > other) && paths[2] > 0.0, "{paths:?}");
        assert_eq!(fit(1.0), fit(1.0));
    }

    #[test]
    fn without_examples_there_are_no_weights() {
        let none = fit_tables(&FitExamples::default(), RankingWeights::built_in(), 1.0);
        assert!(matches!(none, Err(WeightFitError::NoExamples)));
    }

    #[test]
    fn each_repository_counts_the_same() {
        let metrics = |cases, recall| RetrievalMetrics {
            cases,
            file_recall: recall,
            line_recall: recall,
            reciprocal_rank: recall,
            tokens: 0.0,
        };
        let row = |cases, before, after| HeldOutRow {
            name: String::new(),
            is_fitted: true,
            before: metrics(cases, before),
            after: metrics(cases, after),
        };
        let fit = |rows| WeightFit {
            weights: RankingWeights::built_in().clone(),
            text: String::new(),
            unvaried: Vec::new(),
            commits: Vec::new(),
            lists: (0, 0),
            rows,
        };
        let better = fit(vec![row(40, 0.5, 0.6), row(4, 0.5, 0.45)]);
        assert!((better.means().1.file_recall - 0.525).abs() < 1e-12 && !better.is_worse());
        assert!(fit(vec![row(40, 0.5, 0.55), row(4, 0.5, 0.4)]).is_worse());
        assert!(!fit(vec![row(40, 0.7, 0.7)]).is_worse());
    }
}
