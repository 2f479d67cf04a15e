//! `revdeck smells`: the built-in reviewer over files and folders as they are, without a repository and without a store.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{self, Invocation};
use crate::config::Texts;
use crate::domain::text::count;
use crate::domain::{Finding, RunId, Time};
use crate::git::Repo;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::{Builtin, FileReport, to_findings};
use crate::report::{Look, Paint, Table, json, text};

/// Arguments of `smells`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files, or folders with all files below them; what .gitignore names is passed over in folders
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Show the figures of every function as well
    #[arg(long)]
    metrics: bool,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    // Inside of a repository its thresholds apply; without one the user's.
    let root = Repo::discover(&Invocation::here()?).ok().map(|repo| repo.root());
    let loaded = invocation.settings(root.as_deref(), Texts::Smells)?;
    let look = session::look(&loaded, invocation.ambient()?.now());
    let limits = Limits::layered([("smells.toml", loaded.settings.smells.as_str())])
        .map_err(|error| CliError::usage(error.to_string()))?;
    let report = Builtin::new(limits)
        .analyze_paths(&arguments.paths, loaded.settings.max_file_bytes)
        .map_err(|error| CliError::usage(error.to_string()))?;
    for (path, why) in &report.unreadable {
        output::note(&format!("warning: cannot read {}: {why}", path.display()));
    }
    for (path, why) in &report.left_out {
        output::note(&format!("warning: left out {}: {why}", path.display()));
    }
    match arguments.format {
        PlainFormat::Text => output::print(&as_text(&look, &report.files, arguments.metrics))?,
        PlainFormat::Json => output::print_json(&as_json(&report.files, look.now)?)?,
    }
    Ok(Exit::Done)
}

/// Stands for the run that there is not; never printed.
const NO_RUN: &str = "ar_00000000000000000000000000";

/// The findings of a file, with the ids that a review would give them.
fn findings(file: &FileReport, now: Time) -> Result<Vec<Finding>, CliError> {
    if file.smells.is_empty() {
        return Ok(Vec::new());
    }
    let no_run: RunId = NO_RUN.parse().map_err(|error| CliError::failed(format!("{error}")))?;
    // A name that is not UTF-8 does not lead back to its file: its findings then quote nothing.
    let content = std::fs::read(&file.path).unwrap_or_default();
    Ok(to_findings(&file.smells, &file.path, &content, &no_run, now))
}

/// Findings have the keys of a reviewed one; what only a run could know is null.
fn as_json(files: &[FileReport], now: Time) -> Result<Value, CliError> {
    let (mut found, mut functions) = (Vec::new(), Vec::new());
    for file in files {
        for finding in findings(file, now)? {
            let mut value = json::finding(&finding);
            for key in ["first_run_id", "last_run_id", "detail_ref", "reported_at"] {
                value[key] = Value::Null;
            }
            found.push(value);
        }
        for function in &file.functions {
            functions.push(json!({
                "path": file.path,
                "name": function.name,
                "start_line": function.line_start,
                "end_line": function.line_end,
                "nloc": function.nloc,
                "cyclomatic": function.cyclomatic,
                "cognitive": function.cognitive,
                "parameters": function.parameters,
                "nesting": function.nesting,
            }));
        }
    }
    Ok(json::versioned([("findings", found.into()), ("functions", functions.into())]))
}

fn as_text(look: &Look, files: &[FileReport], metrics: bool) -> String {
    let mut shown = String::new();
    let mut total = 0;
    let mut table = Table::default();
    for report in files {
        for smell in &report.smells {
            total += 1;
            table.row([
                (
                    Paint::Place,
                    format!("{}:{}", report.path, text::lines_of(smell.line_start, smell.line_end)).as_str(),
                ),
                (Paint::of_priority(smell.priority), ["p0", "p1", "p2", "p3"][smell.priority.index()]),
                (Paint::Plain, smell.kind.word()),
                (Paint::Strong, &smell.title),
            ]);
        }
    }
    shown.push_str(&table.render(look));
    if metrics {
        let mut table = Table::default();
        let head = ["function", "nloc", "cyclomatic", "cognitive", "parameters", "nesting", "place"];
        table.row(head.map(|word| (Paint::Faint, word)));
        for report in files {
            for function in &report.functions {
                let figures =
                    [function.nloc, function.cyclomatic, function.cognitive, function.parameters, function.nesting];
                let figures = figures.map(|figure| figure.to_string());
                let place = format!("{}:{}", report.path, text::lines_of(function.line_start, function.line_end));
                let mut cells = vec![(Paint::Plain, function.name.as_str())];
                cells.extend(figures.iter().map(|figure| (Paint::Plain, figure.as_str())));
                cells.push((Paint::Place, &place));
                table.row(cells);
            }
        }
        shown.push_str(&format!("{}{}", if total > 0 { "\n" } else { "" }, table.render(look)));
    }
    let functions: usize = files.iter().map(|file| file.functions.len()).sum();
    shown.push_str(&format!(
        "{}{}{}, {}\n",
        if total == 0 { "no findings".to_owned() } else { count(total, "finding") },
        look.dot(),
        count(files.len(), "file"),
        count(functions, "function")
    ));
    shown
}
