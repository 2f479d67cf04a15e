//! `revdeck fit-weights`: fits the weights of context retrieval to past commits of repositories.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::context::retrieve::factors::{FileFactors, PassageFactors};
use crate::context::retrieve::weights::RankingWeights;
use crate::domain::text::format_count;
use crate::eval::retrieval::metrics::RetrievalMetrics;
use crate::eval::weight_fit::{
    COMPARED_BUDGET, FitPlan, FitSource, HELD_OUT_CASES, WeightFit, WeightFitError, fit_weights,
};
use crate::git::Repo;
use crate::report::{TextOptions, TextStyle, TextTable, json};

/// Maximum number of commits to read of a repository, as for `context-eval`.
const MAX_HISTORY_COMMITS: usize = 8_000;

const ABOUT: &str = "\
Fit the weights of context retrieval (assets/retrieval.toml) to past commits of repositories, and measure the weights \
before and after on newer commits.

A commit is used if it is no merge, modifies 2 to 15 code files, deletes and renames none, and has 100 commits behind \
it. The newest 40 such commits of each repository are never fitted to: they are measured, and so are those of each \
repository named with --held-out. The new weights are not written if they find less.

Only numbers of the file change; its comments and their order stay. The same commits give the same file.";

/// Arguments of `fit-weights`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT)]
pub struct FitWeightsArgs {
    /// Git repositories to fit to, bare or not
    #[arg(value_name = "REPO", required = true)]
    repositories: Vec<PathBuf>,
    /// Maximum number of commits of each REPO to fit to
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..))]
    commits: u32,
    /// Git repository to measure only; may be repeated
    #[arg(long, value_name = "REPO")]
    held_out: Vec<PathBuf>,
    /// Maximum number of the newest commits of each repository to measure
    #[arg(
        long,
        value_name = "N",
        default_value_t = HELD_OUT_CASES as u32,
        value_parser = clap::value_parser!(u32).range(1..=HELD_OUT_CASES as i64)
    )]
    measured: u32,
    /// Strength of the ridge penalty: the higher, the closer all weights are to 0
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_penalty)]
    penalty: f64,
    /// Weights file to write
    #[arg(long, value_name = "FILE", default_value = "assets/retrieval.toml")]
    output: PathBuf,
    /// Write nothing
    #[arg(long, conflicts_with_all = ["output", "force"])]
    dry_run: bool,
    /// Write the weights even if they find less
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

fn parse_penalty(text: &str) -> Result<f64, String> {
    let penalty = text.parse().ok().filter(|penalty: &f64| penalty.is_finite() && *penalty > 0.0);
    penalty.ok_or_else(|| "expected a number above 0".to_owned())
}

/// Runs `revdeck fit-weights`.
///
/// # Errors
///
/// Returns an error if a repository has no usable commits, or if the fitted weights find less than before and are not
/// written.
pub fn run(invocation: &Invocation, arguments: &FitWeightsArgs) -> Result<CliExitCode, CliError> {
    if !arguments.dry_run {
        check_output(&arguments.output)?;
    }
    let plan = plan_fit(invocation, arguments)?;
    let loaded = invocation.load_settings(None, RequiredAssets::None)?;
    let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
    let fit = fit_with_progress(&plan)?;
    let is_refused = fit.is_worse() && !arguments.force;
    let target = Some(&arguments.output).filter(|_| !arguments.dry_run && !is_refused);
    if let Some(path) = target {
        std::fs::write(path, &fit.text)
            .map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))?;
    }
    for (name, found) in fit.commits.iter().filter(|(_, found)| *found < plan.commits) {
        output::print_note(&format!("{name}: only {found} of {} commits fit", plan.commits));
    }
    match arguments.format {
        PlainFormat::Text => output::print(&as_text(&look, &fit, target.map(PathBuf::as_path)))?,
        PlainFormat::Json => output::print_json(&as_json(&fit, target.map(PathBuf::as_path)))?,
    }
    if is_refused && !arguments.dry_run {
        let message = format!("the fitted weights find less: {} is as it was", arguments.output.display());
        return Err(CliError::failed(message).hint("name more repositories or commits, or write them with --force"));
    }
    Ok(CliExitCode::Done)
}

/// Checks early that the file can be written: a fit takes minutes.
fn check_output(path: &Path) -> Result<(), CliError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || path.is_dir() || !folder.is_dir() {
        return Err(CliError::usage(format!("cannot write {}: there is no such folder", path.display()))
            .hint("run the command in a checkout of revdeck, name another file with --output, or pass --dry-run"));
    }
    Ok(())
}

fn plan_fit(invocation: &Invocation, arguments: &FitWeightsArgs) -> Result<FitPlan, CliError> {
    let open = |paths: &[PathBuf]| paths.iter().map(|path| open_source(invocation, path)).collect::<Result<_, _>>();
    Ok(FitPlan {
        fitted: open(&arguments.repositories)?,
        held_out: open(&arguments.held_out)?,
        commits: arguments.commits as usize,
        measured: arguments.measured as usize,
        penalty: arguments.penalty,
        depth: MAX_HISTORY_COMMITS,
    })
}

fn open_source(invocation: &Invocation, path: &Path) -> Result<FitSource, CliError> {
    let repo = Repo::discover(path)?;
    Ok(FitSource {
        name: output::format_path(path),
        tip: repo.resolve_commit("HEAD")?,
        folder: invocation.paths.history_folder(&repo.key()),
        repo,
    })
}

fn fit_with_progress(plan: &FitPlan) -> Result<WeightFit, WeightFitError> {
    let visible = std::io::stderr().is_terminal();
    let show = |line: &str| {
        if visible {
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
    };
    let fit = fit_weights(plan, &mut |name, done| {
        show(&format!("{name}: {}", format_count(done, "commit")));
    });
    show("");
    fit
}

fn as_text(look: &TextOptions, fit: &WeightFit, target: Option<&Path>) -> String {
    let mut table = TextTable::default();
    let head = ["newest commits of", "weights", "commits", "file recall", "line recall", "MRR", "tokens"];
    table.push_row(head.map(|word| (TextStyle::Faint, word)));
    let (before, after) = fit.means();
    let rows = fit.rows.iter().map(|row| (row.name.as_str(), row.before, row.after));
    for (name, before, after) in rows.chain([("mean", before, after)]) {
        push_metrics(&mut table, name, "before", before);
        push_metrics(&mut table, "", "after", after);
    }
    let repositories = fit.commits.iter().map(|(name, commits)| format!("{name} ({commits})")).collect::<Vec<_>>();
    let commits: usize = fit.commits.iter().map(|(_, commits)| commits).sum();
    let mut said = format!(
        "{}budget {COMPARED_BUDGET}\nfitted to {}: {}\n{} of files, {} of passages\n",
        table.render(look),
        format_count(commits, "commit"),
        repositories.join(", "),
        format_count(fit.lists.0, "list"),
        format_count(fit.lists.1, "list"),
    );
    if !fit.unvaried.is_empty() {
        said.push_str(&format!("as they were, because nothing varies their figures: {}\n", fit.unvaried.join(", ")));
    }
    said.push_str(&match target {
        Some(path) => format!("written to {}; its comments describe the fit before: correct them\n", path.display()),
        None => "nothing is written\n".to_owned(),
    });
    said
}

fn push_metrics(table: &mut TextTable, name: &str, weights: &str, metrics: RetrievalMetrics) {
    table.push_row([
        (TextStyle::Strong, name),
        (TextStyle::Plain, weights),
        (TextStyle::Plain, &metrics.cases.to_string()),
        (TextStyle::Plain, &format!("{:.3}", metrics.file_recall)),
        (TextStyle::Plain, &format!("{:.3}", metrics.line_recall)),
        (TextStyle::Plain, &format!("{:.3}", metrics.reciprocal_rank)),
        (TextStyle::Plain, &format!("{:.0}", metrics.tokens)),
    ]);
}

fn as_json(fit: &WeightFit, target: Option<&Path>) -> Value {
    let figures = |metrics: RetrievalMetrics| {
        json!({
            "file_recall": metrics.file_recall,
            "line_recall": metrics.line_recall,
            "mrr": metrics.reciprocal_rank,
            "tokens": metrics.tokens,
        })
    };
    let row = |name: &str, is_fitted: bool, before: RetrievalMetrics, after: RetrievalMetrics| {
        json!({
            "repository": name,
            "fitted": is_fitted,
            "commits": before.cases,
            "before": figures(before),
            "after": figures(after),
        })
    };
    let (before, after) = fit.means();
    json::build_versioned([
        ("fitted", fit.commits.iter().map(|(name, commits)| json!({"repository": name, "commits": commits})).collect()),
        ("held_out", fit.rows.iter().map(|held| row(&held.name, held.is_fitted, held.before, held.after)).collect()),
        ("mean", json!({"before": figures(before), "after": figures(after)})),
        ("worse", json!(fit.is_worse())),
        ("weights", weights_to_json(&fit.weights)),
        ("unvaried", json!(fit.unvaried)),
        ("written", json!(target.map(|path| path.display().to_string()))),
    ])
}

fn weights_to_json(weights: &RankingWeights) -> Value {
    let table = |names: &[&str], weights: &[f32]| -> Map<String, Value> {
        names.iter().zip(weights).map(|(name, weight)| ((*name).to_owned(), json!(weight))).collect()
    };
    json!({
        "own": weights.calibration.own,
        "lead": weights.calibration.lead,
        "bias": weights.calibration.bias,
        "files": table(FileFactors::NAMES, &weights.files),
        "passages": table(PassageFactors::NAMES, &weights.passages),
    })
}

impl From<WeightFitError> for CliError {
    fn from(error: WeightFitError) -> Self {
        let message = error.to_string();
        match error {
            WeightFitError::Git { error, .. } => Self { message, ..error.into() },
            WeightFitError::NamedTwice { .. } => {
                Self::usage(message).hint("name each repository once: to fit to it, or with --held-out")
            }
            WeightFitError::NoCommits { .. } => Self::usage(message).hint(format!(
                "name a repository with more history: behind the newest {HELD_OUT_CASES} there must be a commit that \
                 modifies 2 to 15 files of code, deletes none, and has 100 commits behind it"
            )),
            WeightFitError::NothingToMeasure { .. } => Self::usage(message).hint(
                "name a repository with a commit that modifies 2 to 15 files of code, deletes none, and has 100 commits \
                 behind it",
            ),
            WeightFitError::NoExamples => Self::failed(message).hint("name more repositories, or more with --commits"),
            WeightFitError::Newton { .. } => Self::failed(message).hint("try again with a higher --penalty"),
        }
    }
}
