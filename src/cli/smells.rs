//! `revdeck smells`: the built-in reviewer over files and folders as they are, without a repository and without a store.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use serde_json::{Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{self, Invocation};
use crate::config::Texts;
use crate::domain::text::{count, path_from_bytes};
use crate::domain::{Finding, FindingId};
use crate::git::Repo;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::source::Parsers;
use crate::provider::builtin::{Builtin, FileReport};
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
    let reports = analyze(&Builtin::new(limits), &files(&arguments.paths)?);
    match arguments.format {
        PlainFormat::Text => output::print(&as_text(&look, &reports, arguments.metrics))?,
        PlainFormat::Json => output::print_json(&as_json(&reports))?,
    }
    Ok(Exit::Done)
}

/// The files below the paths, sorted; a path that is not there is wrong use.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = std::fs::metadata(path)
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
        if !metadata.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in ignore::WalkBuilder::new(path).hidden(false).filter_entry(|entry| entry.file_name() != ".git").build() {
            match entry {
                Ok(entry) if entry.file_type().is_some_and(|sort| sort.is_file()) => files.push(entry.into_path()),
                Ok(_) => {}
                Err(error) => output::note(&format!("warning: {error}")),
            }
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// A file that could be read, with what was found; by path.
struct Analysed {
    report: FileReport,
    content: Vec<u8>,
}

/// All files on all cores, in the order of their paths.
fn analyze(builtin: &Builtin, files: &[PathBuf]) -> Vec<Analysed> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Analysed)>> = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let work = || {
        let mut parsers = Parsers::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index) else { break };
            if let Some(analysed) = analyze_one(builtin, &mut parsers, path) {
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, analysed));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, analysed)| analysed).collect()
}

fn analyze_one(builtin: &Builtin, parsers: &mut Parsers, path: &Path) -> Option<Analysed> {
    let content = match std::fs::read(path) {
        Ok(content) => content,
        Err(error) => {
            output::note(&format!("warning: cannot read {}: {error}", path.display()));
            return None;
        }
    };
    let name = path_from_bytes(path.as_os_str().as_encoded_bytes());
    let name = name.strip_prefix("./").unwrap_or(&name);
    let report = builtin.analyze_file(parsers, name, &content)?;
    Some(Analysed { report, content })
}

/// The lines `start..=end` of a file, counted from 1.
fn quote(content: &[u8], start: u32, end: u32) -> String {
    let lines = (end.saturating_sub(start) as usize + 1).min(Finding::MAX_QUOTE_LINES);
    let lines: Vec<_> = content
        .split(|byte| *byte == b'\n')
        .skip(start.saturating_sub(1) as usize)
        .take(lines)
        .map(String::from_utf8_lossy)
        .collect();
    lines.join("\n")
}

/// Findings have the keys of a reviewed one; what only a run could know is null.
fn as_json(files: &[Analysed]) -> Value {
    let (mut findings, mut functions) = (Vec::new(), Vec::new());
    for Analysed { report, content } in files {
        let mut seen = std::collections::HashMap::new();
        for smell in &report.smells {
            let anchor = quote(content, smell.anchor.0, smell.anchor.1);
            let ordinal = seen.entry((smell.kind, anchor.clone())).and_modify(|n| *n += 1).or_insert(0u32);
            findings.push(json!({
                "finding_id": FindingId::of(smell.kind.word(), &report.path, &anchor, *ordinal),
                "first_run_id": null,
                "last_run_id": null,
                "priority": smell.priority,
                "severity": smell.severity,
                "confidence": smell.confidence,
                "kind": smell.kind,
                "title": smell.title,
                "explanation": smell.explanation,
                "repo_relative_path": report.path,
                "line_start": smell.line_start,
                "line_end": smell.line_end,
                "quoted_code": quote(content, smell.line_start, smell.line_end),
                "suggestion": smell.suggestion,
                "status": "open",
                "detail_ref": null,
                "figure": smell.figure,
            }));
        }
        for function in &report.functions {
            functions.push(json!({
                "path": report.path,
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
    json::versioned([("findings", findings.into()), ("functions", functions.into())])
}

fn as_text(look: &Look, files: &[Analysed], metrics: bool) -> String {
    let mut shown = String::new();
    let mut total = 0;
    let mut table = Table::default();
    for Analysed { report, .. } in files {
        for smell in &report.smells {
            total += 1;
            table.row([
                (Paint::Place, format!("{}:{}", report.path, text::lines_of(smell.line_start, smell.line_end)).as_str()),
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
        for Analysed { report, .. } in files {
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
    let functions: usize = files.iter().map(|file| file.report.functions.len()).sum();
    shown.push_str(&format!(
        "{}{}{}, {}\n",
        if total == 0 { "no findings".to_owned() } else { count(total, "finding") },
        look.dot(),
        count(files.len(), "file"),
        count(functions, "function")
    ));
    shown
}
