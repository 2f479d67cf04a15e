//! `revdeck knowledge evaluate`: measures on one-line fixes how well learned patterns point at buggy lines.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::eval::knowledge::cases::{EvaluationSplit, FixCases};
use crate::eval::knowledge::{
    EvaluateError, EvaluationPlan, MAX_KEPT_PATTERNS, PatternEvaluation, RankingHits, RankingRow, SIZE_BOUNDS,
    TOP_LINES, evaluate_patterns,
};
use crate::git::Repo;
use crate::report::{TextOptions, TextStyle, TextTable, json};
use crate::syntax::language::Language;

/// Maximum number of commits that are searched for fixes.
const MAX_HISTORY_COMMITS: usize = 100_000;

const ABOUT: &str = "\
Measure on public one-line fixes how often the buggy line is among the top 5 lines that learned patterns point at. \
The measurement changes no stored pattern.

SOURCE is a git repository (bare or not) or a folder in the layout of CodRep. In a repository, revdeck searches the \
history for commits that say that they fix something and that replace one line of a file. In a folder, Tasks/N.txt \
holds the fixed line, an empty line and the buggy file, and Solutions/N.txt the number of the buggy line; there may \
be one such folder or several numbered ones.

With --pairs, patterns are learned from all sources and tested on the files of two folders.

Otherwise patterns are learned from the earlier part (all numbered folders but the last, or three quarters of the \
fixes by time) and tested on the later part. With --together, the fixes of all repositories are ordered by time \
first. Two baselines are measured as well: a trigram model trained on the earlier files, and chance, which is 5 \
different lines drawn at random from all lines of the file, from its lines of code, and from the lines on which a \
statement or an expression begins. Each figure is also given as a multiple of the first two kinds of chance. Fixes \
of statements and expressions are shown beside all fixes, which include imports, packages and heads of classes and \
functions. The leak rate is the share of learned patterns with an identifier or literal outside of the published \
lists.";

/// Arguments of `knowledge evaluate`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT)]
pub struct KnowledgeEvaluateArgs {
    /// Git repository, or folder of tasks in the layout of CodRep
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// Learn from all sources and test on pairs: files with the same name in two folders, before and after a one-line
    /// fix
    #[arg(long, value_names = ["BROKEN", "FIXED"], num_args = 2)]
    pairs: Vec<PathBuf>,
    /// Order the fixes of all sources (repositories) by time and learn from the earlier part of them
    #[arg(long, conflicts_with = "pairs")]
    together: bool,
    /// Language of the tasks in a folder [default: java]; for repositories, use only fixes in this language
    #[arg(long, value_name = "NAME", value_parser = super::parse_language)]
    language: Option<Language>,
    /// Maximum number of fixes to learn from, spread evenly
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    learn: usize,
    /// Maximum number of fixes to test on, spread evenly
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    ask: usize,
    /// Maximum number of files for the trigram model, spread evenly; its memory grows with each
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    trigram_files: usize,
    /// Set the later part aside and split the earlier part, for tuning
    #[arg(long)]
    validation: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge evaluate`.
///
/// # Errors
///
/// Returns an error if a source has no usable fixes or cannot be read.
pub fn run(invocation: &Invocation, arguments: &KnowledgeEvaluateArgs) -> Result<CliExitCode, CliError> {
    let loaded = invocation.load_settings(None, RequiredAssets::None)?;
    let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
    let plan = EvaluationPlan {
        learn: arguments.learn.max(1),
        ask: arguments.ask.max(1),
        trigram_files: arguments.trigram_files.max(1),
    };
    let all = load_sources(arguments).map_err(|error| CliError::usage(error.to_string()))?;
    let mut say = |what: &str, count: usize| tracing::info!(count, "{what}");
    let measured: Vec<(String, PatternEvaluation)> =
        all.into_iter().map(|(source, cases)| (source, evaluate_patterns(&cases, plan, &mut say))).collect();
    match arguments.format {
        PlainFormat::Text => {
            let texts: Vec<String> =
                measured.iter().map(|(source, measured)| as_text(&look, source, measured)).collect();
            output::print(&texts.join("\n"))?;
        }
        PlainFormat::Json => output::print_json(&as_json(&measured))?,
    }
    Ok(CliExitCode::Done)
}

/// Loads the cases of each source with the name of the source.
fn load_sources(arguments: &KnowledgeEvaluateArgs) -> Result<Vec<(String, FixCases)>, EvaluateError> {
    let names = || arguments.sources.iter().map(|source| source.display().to_string());
    if let [broken, fixed] = arguments.pairs.as_slice() {
        let sources = arguments.sources.iter().map(|source| load_cases(source, arguments)).collect::<Result<_, _>>()?;
        return Ok(vec![(broken.display().to_string(), FixCases::from_pairs(sources, broken, fixed)?)]);
    }
    if arguments.together {
        let repos = arguments.sources.iter().map(|source| Repo::discover(source)).collect::<Result<_, _>>()?;
        let cases =
            FixCases::from_repositories(repos, MAX_HISTORY_COMMITS, arguments.language, evaluation_split(arguments))?;
        return Ok(vec![(names().collect::<Vec<_>>().join(", "), cases)]);
    }
    names().zip(&arguments.sources).map(|(name, source)| Ok((name, load_cases(source, arguments)?))).collect()
}

fn load_cases(source: &Path, arguments: &KnowledgeEvaluateArgs) -> Result<FixCases, EvaluateError> {
    match Repo::discover(source) {
        Ok(repo) if !FixCases::is_task_folder(source) => FixCases::from_repositories(
            vec![repo],
            MAX_HISTORY_COMMITS,
            arguments.language,
            evaluation_split(arguments),
        ),
        _ => FixCases::from_folder(source, arguments.language.unwrap_or(Language::Java), evaluation_split(arguments)),
    }
}

fn evaluation_split(arguments: &KnowledgeEvaluateArgs) -> EvaluationSplit {
    if arguments.validation { EvaluationSplit::Validation } else { EvaluationSplit::Test }
}

/// Returns the measured rankings with their names.
fn named_rows(measured: &PatternEvaluation) -> [(String, &RankingRow); 7] {
    [
        ("learned patterns".to_owned(), &measured.patterns),
        (format!("the {MAX_KEPT_PATTERNS} most frequent"), &measured.kept),
        ("with declarations".to_owned(), &measured.with_declarations),
        ("trigrams".to_owned(), &measured.trigrams),
        ("chance, any line".to_owned(), &measured.chance_of_any),
        ("chance, line of code".to_owned(), &measured.chance),
        ("chance, statement".to_owned(), &measured.chance_of_statements),
    ]
}

/// Returns the names of the columns: all fixes, fixes of statements, and the latter by file size in lines of code.
fn column_names() -> Vec<String> {
    let mut names = vec!["all".to_owned(), "statements".to_owned(), format!("under {} lines", SIZE_BOUNDS[0])];
    names.extend(SIZE_BOUNDS.windows(2).map(|pair| format!("{}-{}", pair[0], pair[1] - 1)));
    names.push(format!("{} and more", SIZE_BOUNDS[SIZE_BOUNDS.len() - 1]));
    names
}

fn as_text(look: &TextOptions, source: &str, measured: &PatternEvaluation) -> String {
    let learned = measured.learned;
    let mut said = format!(
        "{source}\nlearned from {}, of which {} taught something: {}, {}; {} of declarations\nleak rate {:.4} ({} of \
         {})\nasked about {}; passed over {} that the learning part has, {} that cannot be read\n\n",
        format_count(learned.fixes, "fix"),
        learned.telling,
        format_count(learned.patterns, "pattern"),
        format_count(learned.forms, "broken form"),
        format_count(learned.declarations, "pattern"),
        learned.leak_rate(),
        learned.leaks,
        format_count(learned.patterns + learned.declarations, "pattern"),
        format_count(measured.chance.all.cases, "fix"),
        measured.shared,
        measured.unread,
    );
    let mut table = TextTable::default();
    let head: Vec<String> = std::iter::once(format!("top {TOP_LINES} places")).chain(column_names()).collect();
    table.push_row(head.iter().map(|word| (TextStyle::Faint, word.as_str())));
    let cases: Vec<String> = columns(&measured.chance).iter().map(|hits| hits.cases.to_string()).collect();
    table.push_row(
        std::iter::once((TextStyle::Faint, "cases"))
            .chain(cases.iter().map(|count| (TextStyle::Faint, count.as_str()))),
    );
    for (name, row) in named_rows(measured) {
        let cells: Vec<String> =
            columns(row).into_iter().enumerate().map(|(at, hits)| format_cell(measured, at, hits)).collect();
        let cells = cells.iter().map(|cell| (TextStyle::Plain, cell.as_str()));
        table.push_row(std::iter::once((TextStyle::Strong, name.as_str())).chain(cells));
    }
    said.push_str(&table.render(look));
    said.push_str("in brackets: how many times chance of any line, and how many times chance of a line of code\n");
    said
}

fn format_cell(measured: &PatternEvaluation, at: usize, hits: RankingHits) -> String {
    match (times_chance(&measured.chance_of_any, at, hits), times_chance(&measured.chance, at, hits)) {
        (Some(any), Some(code)) => format!("{:.1} % ({any:.1}x {code:.1}x)", hits.rate() * 100.0),
        _ => "-".to_owned(),
    }
}

/// Returns the ratio of the hit rate to chance, or `None` if there are no cases.
fn times_chance(chance: &RankingRow, at: usize, hits: RankingHits) -> Option<f64> {
    Some(columns(chance)[at].hits).filter(|chance| *chance > 0.0).map(|chance| hits.hits / chance)
}

fn columns(row: &RankingRow) -> Vec<RankingHits> {
    [row.all, row.statements].into_iter().chain(row.by_size).collect()
}

fn as_json(measured: &[(String, PatternEvaluation)]) -> Value {
    let one = |(source, measured): &(String, PatternEvaluation)| {
        let row = |(name, row): (String, &RankingRow)| {
            let columns = column_names().into_iter().zip(columns(row)).enumerate().map(|(at, (name, hits))| {
                json!({
                    "fixes": name,
                    "cases": hits.cases,
                    "rate": hits.rate(),
                    "times_chance_any_line": times_chance(&measured.chance_of_any, at, hits),
                    "times_chance_line_of_code": times_chance(&measured.chance, at, hits),
                    "times_chance_statement": times_chance(&measured.chance_of_statements, at, hits).filter(|_| at > 0),
                })
            });
            json!({ "ranking": name, "figures": columns.collect::<Vec<_>>() })
        };
        let learned = measured.learned;
        json!({
            "source": source,
            "fixes": learned.fixes,
            "telling": learned.telling,
            "patterns": learned.patterns,
            "forms": learned.forms,
            "declarations": learned.declarations,
            "leaks": learned.leaks,
            "leak_rate": learned.leak_rate(),
            "asked": measured.chance.all.cases,
            "shared": measured.shared,
            "unread": measured.unread,
            "places": TOP_LINES,
            "rows": named_rows(measured).map(row),
        })
    };
    json::build_versioned([("sources", measured.iter().map(one).collect())])
}
