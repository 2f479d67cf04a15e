//! `revdeck knowledge evaluate`: how well learned patterns point at buggy lines, measured on fixes of one line.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::{self, Invocation};
use crate::config::Texts;
use crate::git::Repo;
use crate::knowledge::evaluate::cases::{Cases, Part};
use crate::knowledge::evaluate::{EvaluateError, Hits, KEPT, Measured, PLACES, Plan, Row, SIZES, evaluate};
use crate::provider::builtin::language::Language;
use crate::report::{Look, Paint, Table, json};

/// Commits of history that fixes are looked for in.
const DEPTH: usize = 100_000;

const ABOUT: &str = "\
Measures how often a learned pattern points at the true buggy line among its top 5 places in the file, on public fixes of \
one line. Nothing is kept of it.

SOURCE is a git repository, bare or not, whose history is searched for commits that say they fix something and replace one \
line of a file; or a folder in CodRep's layout: Tasks/N.txt with the fixed line, an empty line and the buggy file, \
Solutions/N.txt with the number of the buggy line, in one folder or in several numbered ones.

With --pairs, patterns are learned from all of the sources, and asked about are the files of two folders.

Patterns are learned from the earlier part (all numbered folders but the last, or three quarters of the fixes by time), and \
asked about the later one. Beside them stand chance (5 different lines of code drawn blindly) and a plain trigram model \
trained on the earlier files. The fixes of statements and expressions are told beside all, which have imports, packages \
and heads of classes and functions among them; with a stricter chance for them. The leak rate is the share of learned patterns with an identifier or a literal that is not in \
the published lists.";

/// Arguments of `knowledge evaluate`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT)]
pub struct Arguments {
    /// A git repository, or a folder of tasks in CodRep's layout
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// Learn from all of the sources, and ask about pairs: files of the same name in two folders, before and after a fix
    /// of one line
    #[arg(long, value_names = ["BROKEN", "FIXED"], num_args = 2)]
    pairs: Vec<PathBuf>,
    /// The language of the tasks in a folder
    #[arg(long, value_name = "NAME", default_value = "java", value_parser = super::parse_language)]
    language: Language,
    /// Learn from so many fixes at most, spread evenly
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    learn: usize,
    /// Ask about so many fixes at most, spread evenly
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    ask: usize,
    /// Train the trigram model on so many files at most, spread evenly: it grows with each
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    trigram_files: usize,
    /// Put the later part away and divide the earlier one, for tuning
    #[arg(long)]
    validation: bool,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let loaded = invocation.settings(None, Texts::None)?;
    let look = session::look(&loaded, invocation.ambient()?.now());
    let plan = Plan {
        learn: arguments.learn.max(1),
        ask: arguments.ask.max(1),
        trigram_files: arguments.trigram_files.max(1),
    };
    let wrong = |error: EvaluateError| CliError::usage(error.to_string());
    let all: Vec<(String, Cases)> = match arguments.pairs.as_slice() {
        [broken, fixed] => {
            let sources = arguments.sources.iter().map(|source| cases(source, arguments));
            let cases = sources.collect::<Result<_, _>>().and_then(|sources| Cases::of_pairs(sources, broken, fixed));
            vec![(broken.display().to_string(), cases.map_err(wrong)?)]
        }
        _ => {
            let named = |source: &PathBuf| Ok((source.display().to_string(), cases(source, arguments)?));
            arguments.sources.iter().map(named).collect::<Result<_, _>>().map_err(wrong)?
        }
    };
    let mut say = |what: &str, count: usize| tracing::info!(count, "{what}");
    let measured: Vec<(String, Measured)> =
        all.into_iter().map(|(source, cases)| (source, evaluate(&cases, plan, &mut say))).collect();
    match arguments.format {
        PlainFormat::Text => {
            let texts: Vec<String> =
                measured.iter().map(|(source, measured)| as_text(&look, source, measured)).collect();
            output::print(&texts.join("\n"))?;
        }
        PlainFormat::Json => output::print_json(&as_json(&measured))?,
    }
    Ok(Exit::Done)
}

fn cases(source: &Path, arguments: &Arguments) -> Result<Cases, EvaluateError> {
    let part = if arguments.validation { Part::Validation } else { Part::Test };
    let is_folder_of_tasks = ["Tasks", "Datasets"].iter().any(|name| source.join(name).is_dir());
    match Repo::discover(source) {
        Ok(repo) if !is_folder_of_tasks => {
            let tip = repo.resolve_commit("HEAD")?;
            Cases::of_repository(repo, &tip, DEPTH, part)
        }
        _ => Cases::of_folder(source, arguments.language, part),
    }
}

/// The rankings by name.
fn rows(measured: &Measured) -> [(String, &Row); 6] {
    [
        ("learned patterns".to_owned(), &measured.patterns),
        (format!("the {KEPT} most frequent"), &measured.kept),
        ("with declarations".to_owned(), &measured.with_declarations),
        ("trigrams".to_owned(), &measured.trigrams),
        ("chance".to_owned(), &measured.chance),
        ("chance among statements".to_owned(), &measured.chance_of_statements),
    ]
}

/// Of which fixes the columns are; the sizes are lines of code, of the fixes of statements.
fn names() -> Vec<String> {
    let mut names = vec!["all".to_owned(), "statements".to_owned(), format!("under {} lines", SIZES[0])];
    names.extend(SIZES.windows(2).map(|pair| format!("{}-{}", pair[0], pair[1] - 1)));
    names.push(format!("{} and more", SIZES[SIZES.len() - 1]));
    names
}

fn as_text(look: &Look, source: &str, measured: &Measured) -> String {
    let learned = measured.learned;
    let mut said = format!(
        "{source}\nlearned from {} fixes, of which {} taught something: {} patterns, {} broken forms; {} patterns of \
         declarations\nleak rate {:.4} ({} of {} \
         patterns)\nasked about {} fixes; passed over {} that the learning part has, {} that cannot be read\n\n",
        learned.fixes,
        learned.telling,
        learned.patterns,
        learned.forms,
        learned.declarations,
        learned.leak_rate(),
        learned.leaks,
        learned.patterns + learned.declarations,
        measured.chance.all.cases,
        measured.shared,
        measured.unread,
    );
    let mut table = Table::default();
    let head: Vec<String> = std::iter::once(format!("top {PLACES} places")).chain(names()).collect();
    table.row(head.iter().map(|word| (Paint::Faint, word.as_str())));
    let cases: Vec<String> = columns(&measured.chance).iter().map(|hits| hits.cases.to_string()).collect();
    table.row(std::iter::once((Paint::Faint, "cases")).chain(cases.iter().map(|count| (Paint::Faint, count.as_str()))));
    for (name, row) in rows(measured) {
        let cells: Vec<String> = columns(row)
            .iter()
            .zip(columns(&measured.chance))
            .map(|(hits, chance)| match chance.hits > 0.0 {
                true => format!("{:.1} % ({:.1}x)", hits.rate() * 100.0, hits.hits / chance.hits),
                false => "-".to_owned(),
            })
            .collect();
        let cells = cells.iter().map(|cell| (Paint::Plain, cell.as_str()));
        table.row(std::iter::once((Paint::Strong, name.as_str())).chain(cells));
    }
    said.push_str(&table.render(look));
    said
}

fn columns(row: &Row) -> Vec<Hits> {
    [row.all, row.statements].into_iter().chain(row.by_size).collect()
}

fn as_json(measured: &[(String, Measured)]) -> Value {
    let one = |(source, measured): &(String, Measured)| {
        let row = |(name, row): (String, &Row)| {
            let chance = columns(&measured.chance);
            let columns = names().into_iter().zip(columns(row)).zip(chance).map(|((name, hits), chance)| {
                json!({
                    "fixes": name,
                    "cases": hits.cases,
                    "rate": hits.rate(),
                    "times_chance": if chance.hits > 0.0 { json!(hits.hits / chance.hits) } else { Value::Null },
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
            "places": PLACES,
            "rows": rows(measured).map(row),
        })
    };
    json::versioned([("sources", measured.iter().map(one).collect())])
}
