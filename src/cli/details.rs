//! `revdeck details`: prints all details of a run or of one of its findings within a byte limit. Items that do not fit
//! are left out whole and counted, never cut in the middle.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::resolve_id::{self, RunOrFinding};
use super::review::RunResult;
use super::session::Invocation;
use super::{complete, output, show};
use crate::config::RequiredAssets;
use crate::report::{TextOptions, json, text};

/// Arguments of `details`.
#[derive(Debug, Args)]
pub struct DetailsArgs {
    /// Run: an id, the beginning of an id, or `latest`. For a finding, the run that reported it last
    #[arg(value_name = "RUN|FINDING", add = ArgValueCandidates::new(complete::list_runs_and_findings))]
    run: String,
    /// Show only this finding of the run
    #[arg(add = ArgValueCandidates::new(complete::list_findings))]
    finding: Option<String>,
    /// Maximum size of the output in bytes
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    max_bytes: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Minimum of `--max-bytes`: room for a result without findings.
const MIN_OUTPUT_BYTES: usize = 512;

/// Runs `revdeck details`.
///
/// # Errors
///
/// Returns an error if `--max-bytes` is too small, or the run or finding is unknown.
pub fn run(invocation: &Invocation, arguments: &DetailsArgs) -> Result<CliExitCode, CliError> {
    if arguments.max_bytes < MIN_OUTPUT_BYTES {
        return Err(CliError::usage(format!("--max-bytes {} is too little", arguments.max_bytes))
            .hint(format!("allowed: {MIN_OUTPUT_BYTES} or more")));
    }
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let (id, last) = match resolve_id::resolve_run_or_finding(&session.store, &arguments.run) {
        Ok(RunOrFinding::Finding(finding)) if arguments.finding.is_none() => {
            let found =
                session.store.finding(&finding)?.ok_or_else(|| show::unreadable_error("finding", finding.as_str()))?;
            (found.last_run_id, Some(finding))
        }
        Ok(RunOrFinding::Run(run)) => (run, None),
        // Two findings were given: report the first one as an unknown run.
        Ok(RunOrFinding::Finding(_)) => (resolve_id::resolve_run(&session.store, &arguments.run)?, None),
        Err(error) => return Err(error),
    };
    let record = session.store.run(&id)?.ok_or_else(|| show::unreadable_error("run", id.as_str()))?;
    let mut outcome = RunResult::load(&session.repo, &session.store, record, session.ambient.now())?;
    let wanted = match &arguments.finding {
        Some(given) => Some(resolve_id::resolve_finding(&session.store, given)?),
        None => last,
    };
    if let Some(wanted) = wanted {
        outcome.retain_finding(&wanted);
        if outcome.findings.is_empty() {
            return Err(CliError::usage(format!("the run {id} did not report the finding {wanted}"))
                .hint(format!("`revdeck findings --run {id}` lists what it reported")));
        }
    }
    outcome.findings.sort_by(|a, b| {
        (a.priority, &a.repo_relative_path, a.line_start).cmp(&(b.priority, &b.repo_relative_path, b.line_start))
    });
    let shown = match arguments.format {
        PlainFormat::Text => as_text(&session.look, &outcome, arguments.max_bytes),
        PlainFormat::Json => format!("{}\n", output::to_json_text(&as_json(&outcome, arguments.max_bytes))),
    };
    output::print(&shown)?;
    Ok(CliExitCode::Done)
}

/// Formats the run, then as many findings as fit (most urgent first), then the counts of omitted and rejected ones.
fn as_text(look: &TextOptions, outcome: &RunResult, max_bytes: usize) -> String {
    let look = TextOptions { color: false, width: None, ..*look };
    let left_out = |n: usize| format!("\n{n} more left out to stay within {max_bytes} bytes\n");
    let set_aside = match outcome.rejected.len() {
        0 => String::new(),
        n => format!("\n{}\n", text::describe_set_aside(n)),
    };
    let reserved = left_out(outcome.findings.len()).len() + set_aside.len();
    let mut shown = text::render_run(&look, &outcome.run, outcome.freshness);
    let summary = format!("  {}\n", text::describe_findings(&look, &outcome.findings, &outcome.coverage));
    if shown.len() + summary.len() + reserved > max_bytes {
        shown = format!("{}  {}\n", outcome.run.run_id, outcome.run.status);
    }
    if shown.len() + summary.len() + reserved <= max_bytes {
        shown.push_str(&summary);
    }
    for (index, finding) in outcome.findings.iter().enumerate() {
        let next = format!("\n{}", text::render_finding(&look, finding, &[]));
        let rest = outcome.findings.len() - index;
        let needed = if rest == 1 { set_aside.len() } else { reserved };
        if shown.len() + next.len() + needed > max_bytes {
            shown.push_str(&left_out(rest));
            break;
        }
        shown.push_str(&next);
    }
    let reasons = text::render_set_aside(&look, &outcome.rejected);
    match shown.len() + reasons.len() < max_bytes {
        true if !reasons.is_empty() => shown.push_str(&format!("\n{}\n", reasons.trim_end())),
        _ => shown.push_str(&set_aside),
    }
    shown
}

/// Builds the JSON of `show RUN` plus `findings_left_out` within `max_bytes`. If it does not fit, empties the lists of
/// rejected reports, files and notes first, then adds findings (most urgent first) while there is room.
fn as_json(outcome: &RunResult, max_bytes: usize) -> Value {
    let mut object = outcome.to_json();
    let all: Vec<Value> = outcome.findings.iter().map(json::encode_finding).collect();
    object["findings"] = json!([]);
    object["findings_left_out"] = json!(all.len());
    let fits = |object: &Value| output::to_json_text(object).len() < max_bytes;
    for path in [
        "/rejected",
        "/coverage/files",
        "/coverage/left_out",
        "/held_back",
        "/notes",
        "/run/changed_paths",
        "/run/finding_digests",
    ] {
        if fits(&object) {
            break;
        }
        if let Some(list) = object.pointer_mut(path) {
            *list = json!([]);
        }
        object["lists_left_out"] = json!(true);
    }
    if !fits(&object) {
        // The record of the run alone is too long: keep only its id and status.
        object["run"] = json!({ "run_id": outcome.run.run_id, "status": outcome.run.status });
    }
    let mut used = output::to_json_text(&object).len() + 1;
    let mut kept = Vec::new();
    for finding in all {
        let size = output::to_json_text(&finding).len() + 1;
        if used + size > max_bytes {
            break;
        }
        used += size;
        kept.push(finding);
    }
    object["findings_left_out"] = json!(outcome.findings.len() - kept.len());
    object["findings"] = kept.into();
    object
}
