//! `revdeck details`: prints all details of a run or of one of its findings within a byte limit, and says what was left
//! out and how to get more. Items that do not fit are left out whole; only the parts of a single finding are cut.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::resolve_id::{self, RunOrFinding};
use super::run_result::RunResult;
use super::session::Invocation;
use super::{complete, output, show};
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::domain::{Finding, FindingId, RunId};
use crate::masking::mask_name;
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
    /// Maximum size of the output in bytes, 512 to 64000
    #[arg(long, value_name = "N", default_value_t = DEFAULT_OUTPUT_BYTES)]
    max_bytes: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Minimum of `--max-bytes`: room for a result without findings.
const MIN_OUTPUT_BYTES: usize = 512;
/// Default of `--max-bytes`: about 3,000 tokens in the context of an assistant.
const DEFAULT_OUTPUT_BYTES: usize = 12_000;
/// Maximum of `--max-bytes`: about 16,000 tokens. The next step is `show`, which has no limit.
const MAX_OUTPUT_BYTES: usize = 64_000;

/// Length of the entry `more` in the JSON output, at most.
const MORE_BYTES: usize = 96;

/// Runs `revdeck details`.
///
/// # Errors
///
/// Returns an error if `--max-bytes` is too small, or the run or finding is unknown.
pub fn run(invocation: &Invocation, arguments: &DetailsArgs) -> Result<CliExitCode, CliError> {
    if !(MIN_OUTPUT_BYTES..=MAX_OUTPUT_BYTES).contains(&arguments.max_bytes) {
        let amount = if arguments.max_bytes < MIN_OUTPUT_BYTES { "too little" } else { "too much" };
        return Err(CliError::usage(format!("--max-bytes {} is {amount}", arguments.max_bytes))
            .hint(format!("allowed: {MIN_OUTPUT_BYTES} to {MAX_OUTPUT_BYTES}; `revdeck show` has no limit")));
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
        PlainFormat::Text => format_details(&session.look, &outcome, arguments.max_bytes),
        PlainFormat::Json => format!("{}\n", output::to_json_text(&as_json(&outcome, arguments.max_bytes))),
    };
    output::print(&shown)?;
    Ok(CliExitCode::Done)
}

/// Formats the run, then as many findings as fit (most urgent first), then the counts of omitted and rejected ones with
/// the way to get more.
fn format_details(look: &TextOptions, outcome: &RunResult, max_bytes: usize) -> String {
    let look = TextOptions { color: false, width: None, ..*look };
    let run = &outcome.run.run_id;
    let left_out = |n: usize, next: Option<&FindingId>| {
        let one = next.map_or(String::new(), |id| format!("\n  next: revdeck details {id}"));
        format!("\n{n} more left out to stay within {max_bytes} bytes{one}\n  all: {}\n", larger_call(run, max_bytes))
    };
    let set_aside = match outcome.rejected.len() {
        0 => String::new(),
        n => format!("\n{}\n", text::describe_set_aside(n)),
    };
    let reserved = left_out(outcome.findings.len(), outcome.findings.first().map(|it| &it.finding_id)).len();
    let reserved = reserved + set_aside.len();
    let mut shown = text::render_run(&look, &outcome.run, outcome.freshness);
    let mut summary =
        format!("  {}\n", text::describe_findings(&look, &outcome.run, &outcome.findings, &outcome.coverage));
    for note in &outcome.notes {
        summary.push_str(&format!("  {}\n", sanitize_line(&mask_name(note))));
    }
    if shown.len() + summary.len() + reserved > max_bytes {
        shown = format!("{}  {}\n", outcome.run.run_id, outcome.run.status);
    }
    if shown.len() + summary.len() + reserved <= max_bytes {
        shown.push_str(&summary);
    }
    for (index, finding) in outcome.findings.iter().enumerate() {
        let mut next = format!("\n{}", text::render_finding(&look, finding));
        let rest = outcome.findings.len() - index;
        let needed = if rest == 1 { set_aside.len() } else { reserved };
        if shown.len() + next.len() + needed > max_bytes {
            // The first finding is what was asked for: it is cut, not left out.
            if index > 0 {
                shown.push_str(&left_out(rest, Some(&finding.finding_id)));
                break;
            }
            next = cut_finding(&look, finding, max_bytes.saturating_sub(shown.len() + needed));
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

/// Formats a finding in at most `room` bytes: without its code and replacement, then with the beginning of its
/// explanation. Says what was cut.
fn cut_finding(look: &TextOptions, finding: &Finding, room: usize) -> String {
    let id = &finding.finding_id;
    let mut cut = finding.clone();
    let code = std::mem::take(&mut cut.quoted_code).len();
    let replacement = cut.suggestion.as_mut().and_then(|it| it.replacement.take()).map_or(0, |text| text.len());
    let voices = cut.voices.iter_mut().map(|voice| std::mem::take(&mut voice.explanation).len()).sum::<usize>();
    let note = |explanation: usize| {
        let parts = [
            ("the code", code),
            ("the replacement", replacement),
            ("explanations of reviewers", voices),
            ("of the explanation", explanation),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(what, bytes)| format!("{what} ({bytes} bytes)"))
            .collect();
        format!("  left out: {}; all of it: revdeck show {id}\n", parts.join(", "))
    };
    let render =
        |cut: &Finding, explanation: usize| format!("\n{}{}", text::render_finding(look, cut), note(explanation));
    let shown = render(&cut, 0);
    if shown.len() <= room {
        return shown;
    }
    let whole = std::mem::take(&mut cut.explanation);
    let bare = render(&cut, whole.len()).len();
    // Every line of the explanation is indented and may be wrapped: a quarter is kept free for that.
    let keep = whole.floor_char_boundary(room.saturating_sub(bare + 16) * 3 / 4);
    if keep > 0 {
        cut.explanation = format!("{}\u{2026}", &whole[..keep]);
    }
    let shown = render(&cut, whole.len() - keep);
    if shown.len() <= room {
        return shown;
    }
    let left_out = format!("\n{id} left out: it needs {} bytes; all of it: revdeck show {id}\n", shown.len());
    let shortest = format!("\n{id} left out\n");
    [left_out, shortest].into_iter().find(|text| text.len() <= room).unwrap_or_default()
}

/// Returns the command with the next larger limit.
fn larger_call(run: &RunId, max_bytes: usize) -> String {
    match max_bytes < MAX_OUTPUT_BYTES {
        true => format!("revdeck details {run} --max-bytes {MAX_OUTPUT_BYTES}"),
        false => format!("revdeck show {run}"),
    }
}

/// Builds the JSON of `show RUN` plus `findings_left_out` and `more` within `max_bytes`. If it does not fit, empties the lists of
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
        "/run/scanned_findings",
        "/run/listed_as",
        "/run/merged_reports",
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
    if !outcome.findings.is_empty() {
        used += MORE_BYTES;
    }
    let mut kept = Vec::new();
    for finding in all {
        let size = output::to_json_text(&finding).len() + 1;
        if used + size > max_bytes {
            break;
        }
        used += size;
        kept.push(finding);
    }
    if kept.len() < outcome.findings.len() {
        // The room for these two words was kept free.
        object["more"] = json!(larger_call(&outcome.run.run_id, max_bytes));
    }
    object["findings_left_out"] = json!(outcome.findings.len() - kept.len());
    object["findings"] = kept.into();
    object
}
