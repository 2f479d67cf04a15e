//! `revdeck smells`: runs the built-in reviewer on files and folders. Needs neither a repository nor a store.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{Finding, RunId, Time};
use crate::git::Repo;
use crate::masking::mask_name;
use crate::report::{
    ExportedFinding, FindingExport, OutputFormat, TextOptions, TextStyle, TextTable, json, markdown, text,
};
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::{Builtin, FileReport, to_findings};
use crate::runner::limit_memory;

/// Arguments of `smells`.
#[derive(Debug, Args)]
pub struct SmellsArgs {
    /// Files or folders; folders are searched recursively, without files that .gitignore excludes
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Also print metrics of every function
    #[arg(long)]
    metrics: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
}

/// Runs `revdeck smells`. Returns [`CliExitCode::Incomplete`] if a file was not checked.
///
/// # Errors
///
/// Returns an error if a path does not exist or the settings are invalid.
pub fn run(invocation: &Invocation, arguments: &SmellsArgs) -> Result<CliExitCode, CliError> {
    // Before any thread starts.
    limit_memory();
    // Inside a repository its thresholds apply too; outside only the user's.
    let root = Repo::discover(&Invocation::current_folder()?).ok().map(|repo| repo.root());
    let loaded = invocation.load_settings(root.as_deref(), RequiredAssets::Smells)?;
    let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
    let limits = Limits::from_layers([("smells.toml", loaded.settings.smells.as_str())])
        .map_err(|error| CliError::usage(error.to_string()))?;
    let report = Builtin::new(limits)
        .analyze_paths(&arguments.paths, loaded.settings.max_file_bytes)
        .map_err(|error| CliError::usage(error.to_string()))?;
    for (path, why) in &report.unreadable {
        output::print_note(&format!("warning: cannot read {}: {why}", path.display()));
    }
    for (path, why) in &report.left_out {
        output::print_note(&format!("warning: left out {}: {why}", path.display()));
    }
    let missing = describe_missing(report.unreadable.iter().chain(&report.left_out));
    let code = if missing.is_some() { CliExitCode::Incomplete } else { CliExitCode::Done };
    match (arguments.format, arguments.format.exporter()) {
        (_, Some(render)) => {
            let findings = collect_findings(&report.files, look.now)?;
            let exported = findings.iter().map(|finding| ExportedFinding::new(finding, None)).collect();
            output::print(&render(&FindingExport::new(exported, missing, "")))?;
        }
        (OutputFormat::Json, _) => output::print_json(&as_json(&report.files, missing, look.now)?)?,
        (OutputFormat::Markdown, _) => {
            let findings = collect_findings(&report.files, look.now)?;
            output::print(&markdown::render_findings(&findings, missing.as_deref()))?;
        }
        _ => output::print(&as_text(&look, &report.files, arguments.metrics))?,
    }
    Ok(code)
}

/// Maximum number of files that are named as not reviewed. Not from the literature: what fits into one line.
const MAX_NAMED_FILES: usize = 3;

/// Returns a sentence that names the files that were not checked; `None` if all were.
fn describe_missing<'a>(files: impl Iterator<Item = &'a (PathBuf, String)> + Clone) -> Option<String> {
    let total = files.clone().count();
    let named: Vec<String> =
        files.take(MAX_NAMED_FILES).map(|(path, why)| format!("{}: {why}", path.display())).collect();
    let more = total.saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (total > 0).then(|| format!("{} not checked: {}{more}", format_count(total, "file"), named.join(", ")))
}

fn collect_findings(files: &[FileReport], now: Time) -> Result<Vec<Finding>, CliError> {
    let mut found = Vec::new();
    for file in files {
        found.extend(build_findings(file, now)?);
    }
    Ok(found)
}

/// Run id for findings without a run; never printed.
const PLACEHOLDER_RUN_ID: &str = "ar_00000000000000000000000000";

/// Converts the smells of a file to findings with the ids that a review would assign.
fn build_findings(file: &FileReport, now: Time) -> Result<Vec<Finding>, CliError> {
    if file.smells.is_empty() {
        return Ok(Vec::new());
    }
    let no_run: RunId = PLACEHOLDER_RUN_ID.parse().map_err(|error| CliError::failed(format!("{error}")))?;
    // A path that is not UTF-8 cannot be opened by its text; such findings quote no code.
    let content = std::fs::read(&file.path).unwrap_or_default();
    Ok(to_findings(&file.smells, &file.path, &content, &no_run, now))
}

/// Builds the JSON report. Findings have the same keys as those of a run; keys that need a run are null.
fn as_json(files: &[FileReport], missing: Option<String>, now: Time) -> Result<Value, CliError> {
    let (mut found, mut functions) = (Vec::new(), Vec::new());
    for file in files {
        for finding in build_findings(file, now)? {
            let mut value = json::encode_finding(&finding);
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
    Ok(json::build_versioned([
        ("findings", found.into()),
        ("functions", functions.into()),
        ("incomplete", missing.into()),
    ]))
}

fn as_text(look: &TextOptions, files: &[FileReport], metrics: bool) -> String {
    let mut shown = String::new();
    let mut total = 0;
    let mut table = TextTable::default();
    for report in files {
        for smell in &report.smells {
            total += 1;
            table.push_row([
                (
                    TextStyle::Location,
                    format!(
                        "{}:{}",
                        mask_name(&report.path),
                        text::format_line_range(smell.line_start, smell.line_end)
                    )
                    .as_str(),
                ),
                (TextStyle::from_priority(smell.priority), ["p0", "p1", "p2", "p3"][smell.priority.index()]),
                (TextStyle::Plain, smell.kind.word()),
                (TextStyle::Strong, &smell.title),
            ]);
        }
    }
    shown.push_str(&table.render(look));
    if metrics {
        let mut table = TextTable::default();
        let head = ["function", "nloc", "cyclomatic", "cognitive", "parameters", "nesting", "place"];
        table.push_row(head.map(|word| (TextStyle::Faint, word)));
        for report in files {
            for function in &report.functions {
                let figures =
                    [function.nloc, function.cyclomatic, function.cognitive, function.parameters, function.nesting];
                let figures = figures.map(|figure| figure.to_string());
                let lines = text::format_line_range(function.line_start, function.line_end);
                let place = format!("{}:{lines}", mask_name(&report.path));
                let mut cells = vec![(TextStyle::Plain, function.name.as_str())];
                cells.extend(figures.iter().map(|figure| (TextStyle::Plain, figure.as_str())));
                cells.push((TextStyle::Location, &place));
                table.push_row(cells);
            }
        }
        shown.push_str(&format!("{}{}", if total > 0 { "\n" } else { "" }, table.render(look)));
    }
    let functions: usize = files.iter().map(|file| file.functions.len()).sum();
    shown.push_str(&format!(
        "{}{}{}, {}\n",
        if total == 0 { "no findings".to_owned() } else { format_count(total, "finding") },
        look.separator(),
        format_count(files.len(), "file"),
        format_count(functions, "function")
    ));
    shown
}
