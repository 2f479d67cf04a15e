//! `revdeck context-eval`: measures context retrieval on the commits of a repository.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::context::retrieve::weights::RankingWeights;
use crate::eval::retrieval::cases::CaseSelection;
use crate::eval::retrieval::metrics::{MetricsByBudget, NamedWeights, RetrievalMetrics};
use crate::eval::retrieval::saving::TokenSaving;
use crate::eval::retrieval::{RetrievalEvaluation, evaluate_retrieval};
use crate::eval::single_signals::single_signal_weights;
use crate::git::Repo;
use crate::report::{TextOptions, TextStyle, TextTable, json};

/// Maximum number of commits to read: the measured ones and the history before the oldest of them.
const MAX_HISTORY_COMMITS: usize = 8_000;

/// Arguments of `context-eval`.
#[derive(Debug, Args)]
pub struct ContextEvalArgs {
    /// Git repository, bare or not
    #[arg(value_name = "REPO")]
    repository: PathBuf,
    /// Number of commits to measure: the newest that modify 2 to 15 code files
    #[arg(long, value_name = "N", default_value_t = 60)]
    commits: usize,
    /// Number of the newest such commits to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// Token budgets, separated by commas
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [4_000, 8_000, 16_000, 32_000])]
    budget: Vec<u32>,
    /// Newest commit to consider
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    at: String,
    /// Measure the full ranking only, not each signal alone
    #[arg(long)]
    whole: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck context-eval`.
///
/// # Errors
///
/// Returns an error if the repository cannot be read.
pub fn run(invocation: &Invocation, arguments: &ContextEvalArgs) -> Result<CliExitCode, CliError> {
    let repo = Repo::discover(&arguments.repository)?;
    let loaded = invocation.load_settings(None, RequiredAssets::None)?;
    let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
    let alone = single_signal_weights();
    let mut ways: Vec<NamedWeights<'_>> = vec![("whole", RankingWeights::built_in())];
    if !arguments.whole {
        ways.splice(0..0, alone.iter().map(|(name, weights)| (*name, weights)));
    }
    let folder = invocation.paths.history_folder(&repo.key());
    let tip = repo.resolve_commit(&arguments.at)?;
    let selection = CaseSelection {
        tip: &tip,
        commits: arguments.commits,
        skip: arguments.skip,
        depth: MAX_HISTORY_COMMITS,
        folder: Some(&folder),
    };
    let measured = evaluate_retrieval(&repo, &selection, &arguments.budget, &ways, &mut |_| {})?;
    let (cases, asked) = (measured.saving.whole.cases, arguments.commits);
    if cases < asked {
        let fitting =
            if cases == 0 { "no commit fits".to_owned() } else { format!("only {cases} of {asked} commits fit") };
        output::print_note(&format!(
            "{fitting}: one modifies 2 to 15 files of code, deletes none, and has 100 commits behind it"
        ));
    }
    match arguments.format {
        PlainFormat::Text => output::print(&as_text(&look, &measured))?,
        PlainFormat::Json => output::print_json(&as_json(&measured))?,
    }
    Ok(CliExitCode::Done)
}

fn flatten_rows(
    measured: &[(&'static str, MetricsByBudget)],
) -> impl Iterator<Item = (&'static str, u32, RetrievalMetrics)> {
    measured.iter().flat_map(|(name, row)| row.iter().map(move |(budget, measured)| (*name, *budget, *measured)))
}

fn as_text(look: &TextOptions, measured: &RetrievalEvaluation) -> String {
    let mut table = TextTable::default();
    let head = ["retrieval", "budget", "commits", "file recall", "line recall", "MRR", "tokens"];
    table.push_row(head.map(|word| (TextStyle::Faint, word)));
    for (name, budget, measured) in flatten_rows(&measured.rows) {
        table.push_row([
            (TextStyle::Strong, name),
            (TextStyle::Plain, &budget.to_string()),
            (TextStyle::Plain, &measured.cases.to_string()),
            (TextStyle::Plain, &format!("{:.3}", measured.file_recall)),
            (TextStyle::Plain, &format!("{:.3}", measured.line_recall)),
            (TextStyle::Plain, &format!("{:.3}", measured.reciprocal_rank)),
            (TextStyle::Plain, &format!("{:.0}", measured.tokens)),
        ]);
    }
    format!("{}\n{}", table.render(look), format_saving(look, &measured.saving))
}

/// Formats the comparison with sending whole files.
fn format_saving(look: &TextOptions, saving: &TokenSaving) -> String {
    let mut table = TextTable::default();
    table.push_row(["sent", "file recall", "line recall", "tokens", "less"].map(|word| (TextStyle::Faint, word)));
    let mut row = |name: &str, measured: &RetrievalMetrics, less: &str| {
        table.push_row([
            (TextStyle::Strong, name),
            (TextStyle::Plain, &format!("{:.3}", measured.file_recall)),
            (TextStyle::Plain, &format!("{:.3}", measured.line_recall)),
            (TextStyle::Plain, &format!("{:.0}", measured.tokens)),
            (TextStyle::Plain, less),
        ]);
    };
    row("given files and their imports, whole", &saving.whole, "");
    match saving.equal.zip(saving.percent()) {
        Some(((budget, equal), percent)) => {
            row(&format!("their diff, and sections under {budget}"), &equal, &format!("{percent:.0} %"));
        }
        None if saving.whole.cases == 0 => return String::new(),
        None => return format!("{}no budget that was tried finds as much\n", table.render(look)),
    }
    table.render(look)
}

fn as_json(measured: &RetrievalEvaluation) -> Value {
    let saving = &measured.saving;
    let figures = |measured: &RetrievalMetrics| json!({"file_recall": measured.file_recall, "line_recall": measured.line_recall, "tokens": measured.tokens});
    let equal = saving.equal.map(|(budget, equal)| {
        let mut figures = figures(&equal);
        figures["budget"] = json!(budget);
        figures
    });
    let saved = json!({"whole_files": figures(&saving.whole), "context": equal, "percent": saving.percent()});
    let rows = flatten_rows(&measured.rows).map(|(name, budget, measured)| {
        json!({
            "retrieval": name,
            "budget": budget,
            "commits": measured.cases,
            "file_recall": measured.file_recall,
            "line_recall": measured.line_recall,
            "mrr": measured.reciprocal_rank,
            "tokens": measured.tokens,
        })
    });
    json::build_versioned([("rows", rows.collect()), ("saving", saved)])
}
