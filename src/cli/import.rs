//! `revdeck import`: takes the findings of another tool into the store.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::run_result::RunResult;
use super::session::{Invocation, Session};
use super::{output, repo_path, runs};
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::report::{json, text};
use crate::runner::{BUILTIN_REVIEWER, ImportOutcome, ImportRequest, Services};
use crate::tool_reports::{MAX_REPORT_BYTES, ReportFormat, ToolReport, parse_report, tool_name};

/// Exit codes of `import`, for its help.
const EXIT_CODES: &str = "\
Exit codes:
  0  imported
  2  a mistake in the command, or the file is no report of this format
  3  imported, but a path leads out of the repository, a problem of a file was refused, or the tool says that it failed";

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ImportArgs {
    /// Format of the report
    #[arg(value_name = "FORMAT")]
    report_format: ReportFormat,
    /// File with the report; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the tool; needed if the report does not say it
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// File or folder that the tool has checked besides the files that the report names; `.` is the current folder. A
    /// finding of the tool that is missing there counts as fixed; may be repeated
    #[arg(long, value_name = "PATH")]
    covered: Vec<String>,
    /// Folder in which the tool ran elsewhere: absolute paths below it are relative to the repository
    #[arg(long, value_name = "FOLDER")]
    tool_root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck import`.
///
/// # Errors
///
/// Returns an error if an assistant asks, the file cannot be read or is no report, or the store cannot be written.
pub fn run(invocation: &Invocation, arguments: &ImportArgs) -> Result<CliExitCode, CliError> {
    // A report may confirm fixes, and whoever writes the file decides what it says.
    invocation.actor()?.require_person("import a report")?;
    let session = invocation.open_session(RequiredAssets::Smells)?;
    let covered = resolve_covered(&session, &arguments.covered)?;
    let bytes = read_report(&arguments.file)?;
    let shown = sanitize_line(&arguments.file.to_string_lossy()).into_owned();
    let reports = parse_report(arguments.report_format, &bytes)
        .map_err(|error| CliError::usage(format!("cannot import {shown}: {error}")))?;
    let (services, _) = session.into_runner();
    runs::reconcile(&services);
    let mut requests = Vec::new();
    for report in reports {
        let tool = choose_name(&services, arguments, &report)?;
        requests.push(ImportRequest {
            report,
            tool,
            covered: covered.clone(),
            tool_root: arguments.tool_root.clone(),
            origin: file_name(&arguments.file),
            author: None,
        });
    }
    let outcomes = services.importer().import_reports(&merge_by_tool(requests))?;
    print_outcomes(&services, arguments.format, &outcomes)?;
    // A view that follows much new data leaves a checkpoint. A hook has no time to write one.
    let _ = services.store.view();
    let is_incomplete = |it: &ImportOutcome| it.outside > 0 || it.doubtful_files > 0 || it.run.is_incomplete();
    let incomplete = outcomes.iter().any(is_incomplete);
    Ok(if incomplete { CliExitCode::Incomplete } else { CliExitCode::Done })
}

/// Reads the report, at most [`MAX_REPORT_BYTES`].
fn read_report(file: &Path) -> Result<Vec<u8>, CliError> {
    let shown = sanitize_line(&file.to_string_lossy()).into_owned();
    let unreadable = |error: std::io::Error| CliError::usage(format!("cannot read {shown}: {error}"));
    let mut bytes = Vec::new();
    let limit = MAX_REPORT_BYTES + 1;
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let metadata = std::fs::metadata(file).map_err(unreadable)?;
        // A pipe is fine, but a folder and a device are a mistake.
        if metadata.is_dir() {
            return Err(CliError::usage(format!("{shown} is a folder, not a report")));
        }
        std::fs::File::open(file).map_err(unreadable)?.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if bytes.len() as u64 > MAX_REPORT_BYTES {
        let most = MAX_REPORT_BYTES >> 20;
        return Err(CliError::usage(format!("{shown} is larger than {most} MiB"))
            .hint("let the tool check fewer files at once, or report fewer rules"));
    }
    Ok(bytes)
}

fn resolve_covered(session: &Session, given: &[String]) -> Result<Vec<String>, CliError> {
    let (root, here) = (session.repo.root(), Invocation::current_folder()?);
    let here = here.canonicalize().unwrap_or(here);
    let resolve = |path: &String| {
        let plain = Path::new(path);
        // The current folder and its parents have no name that could be looked up.
        let is_place = plain.components().all(|part| matches!(part, Component::CurDir | Component::ParentDir));
        let resolved = match is_place {
            true => here.join(plain).canonicalize().ok().and_then(|folder| {
                Some(folder.strip_prefix(root.canonicalize().ok()?).ok()?.to_string_lossy().into_owned())
            }),
            false => repo_path::path_from_root(path, &root, &here).ok(),
        };
        resolved.map(|path| path.trim_end_matches('/').to_owned()).ok_or_else(|| {
            CliError::usage(format!("--covered {:?} is not in this repository", sanitize_line(path)))
                .hint("paths are relative to the current folder, or to the repository")
        })
    };
    given.iter().map(resolve).collect()
}

/// Returns the name of the reviewer for a report. Names of reviewers of the settings are refused: a report could otherwise
/// confirm fixes of what they found.
fn choose_name(services: &Services, arguments: &ImportArgs, report: &ToolReport) -> Result<String, CliError> {
    let name = arguments.tool.as_deref().map_or_else(|| report.tool.clone(), tool_name);
    if name.is_empty() {
        return Err(
            CliError::usage("the report does not name its tool").hint("write --tool NAME, for example --tool eslint")
        );
    }
    if name == BUILTIN_REVIEWER || services.settings.reviewers.contains_key(&name) {
        return Err(CliError::usage(format!("{name} is the name of a reviewer of your settings"))
            .hint("write --tool NAME with another name for the tool"));
    }
    Ok(name)
}

/// Joins the requests of one tool: a second run of a tool in one file must not make the problems of the first one look
/// fixed.
fn merge_by_tool(requests: Vec<ImportRequest>) -> Vec<ImportRequest> {
    let mut merged: Vec<ImportRequest> = Vec::new();
    for request in requests {
        match merged.iter_mut().find(|known| known.tool == request.tool) {
            Some(known) => {
                known.report.problems.extend(request.report.problems);
                known.report.covered.extend(request.report.covered);
                known.report.suppressed += request.report.suppressed;
                known.report.silenced.extend(request.report.silenced);
                known.report.failure = known.report.failure.take().or(request.report.failure);
            }
            None => merged.push(request),
        }
    }
    merged
}

fn print_outcomes(services: &Services, format: PlainFormat, outcomes: &[ImportOutcome]) -> Result<(), CliError> {
    for rejected in outcomes.iter().flat_map(|outcome| &outcome.refused) {
        let place = text::format_reported_location(&rejected.report);
        output::print_note(&format!("warning: refused {place}: {}", sanitize_line(&rejected.reason)));
    }
    let mut said = String::new();
    let mut values: Vec<Value> = Vec::new();
    for outcome in outcomes {
        let run = &outcome.run;
        match format {
            PlainFormat::Text => {
                said.push_str(&format!("{}  {}: {}\n", run.run_id, run.reviewed_by.name, run.summary_with_error()));
                let notes = services.store.output(&run.run_id)?.map(|output| output.notes).unwrap_or_default();
                notes.iter().for_each(|note| said.push_str(&format!("  {}\n", sanitize_line(note))));
            }
            PlainFormat::Json => {
                let result = RunResult::load(&services.repo, &services.store, run.clone(), services.ambient.now())?;
                let mut value = result.to_json();
                value["duplicates"] = outcome.duplicates.into();
                values.push(value);
            }
        }
    }
    match format {
        PlainFormat::Text => output::print(&said),
        PlainFormat::Json => output::print_json(&json::build_versioned([("imported", values.into())])),
    }
}

fn file_name(file: &Path) -> String {
    let name = if file == Path::new("-") {
        "standard input".into()
    } else {
        file.file_name().unwrap_or_default().to_string_lossy()
    };
    sanitize_line(&name).into_owned()
}
