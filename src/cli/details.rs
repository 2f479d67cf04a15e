//! `revdeck details`: everything about a run or one of its findings, up to a number of bytes; what does not fit is
//! left out whole and counted, never cut in the middle.

use clap::Args;
use serde_json::{Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::resolve::{self, Named};
use super::review::Outcome;
use super::session::Invocation;
use super::{output, show};
use crate::config::Texts;
use crate::report::{Look, json, text};

/// Arguments of `details`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its id, the beginning of it, or `latest`; or a finding, then it is about the run that last reported it
    #[arg(value_name = "RUN|FINDING")]
    run: String,
    /// Only this finding of the run
    finding: Option<String>,
    /// Print at most this many bytes
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    max_bytes: usize,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Less than this and not even an empty result fits.
const LEAST_BYTES: usize = 512;

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    if arguments.max_bytes < LEAST_BYTES {
        return Err(CliError::usage(format!("--max-bytes {} is too little", arguments.max_bytes))
            .hint(format!("allowed: {LEAST_BYTES} or more")));
    }
    let session = invocation.reading_session(Texts::None)?;
    let (id, last) = match resolve::either(&session.store, &arguments.run) {
        Ok(Named::Finding(finding)) if arguments.finding.is_none() => {
            let found = session.store.finding(&finding)?.ok_or_else(|| show::gone("finding", finding.as_str()))?;
            (found.last_run_id, Some(finding))
        }
        Ok(Named::Run(run)) => (run, None),
        // Two findings, or something that could be both: the word about runs is the one that helps.
        Ok(Named::Finding(_)) => (resolve::run(&session.store, &arguments.run)?, None),
        Err(error) => return Err(error),
    };
    let record = session.store.run(&id)?.ok_or_else(|| show::gone("run", id.as_str()))?;
    let mut outcome = Outcome::of(&session.store, record)?;
    let wanted = match &arguments.finding {
        Some(given) => Some(resolve::finding(&session.store, given)?),
        None => last,
    };
    if let Some(wanted) = wanted {
        outcome.keep(&wanted);
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
        PlainFormat::Json => format!("{}\n", output::json_text(&as_json(&outcome, arguments.max_bytes))),
    };
    output::print(&shown)?;
    Ok(Exit::Done)
}

/// The run, then the findings from the most urgent one on as long as they fit, then what was left out and set aside.
fn as_text(look: &Look, outcome: &Outcome, max_bytes: usize) -> String {
    let look = Look { color: false, width: None, ..*look };
    let left_out = |n: usize| format!("\n{n} more left out to stay within {max_bytes} bytes\n");
    let set_aside = match outcome.rejected.len() {
        0 => String::new(),
        n => format!("\n{}\n", text::set_aside_count(n)),
    };
    let reserved = left_out(outcome.findings.len()).len() + set_aside.len();
    let mut shown = text::run(&look, &outcome.run);
    let summary = format!("  {}\n", text::summary(&look, &outcome.findings, &outcome.coverage));
    if shown.len() + summary.len() + reserved > max_bytes {
        shown = format!("{}  {}\n", outcome.run.run_id, outcome.run.status);
    }
    if shown.len() + summary.len() + reserved <= max_bytes {
        shown.push_str(&summary);
    }
    for (index, finding) in outcome.findings.iter().enumerate() {
        let next = format!("\n{}", text::finding(&look, finding, &[]));
        let rest = outcome.findings.len() - index;
        let needed = if rest == 1 { set_aside.len() } else { reserved };
        if shown.len() + next.len() + needed > max_bytes {
            shown.push_str(&left_out(rest));
            break;
        }
        shown.push_str(&next);
    }
    let reasons = text::set_aside(&look, &outcome.rejected);
    match shown.len() + reasons.len() < max_bytes {
        true if !reasons.is_empty() => shown.push_str(&format!("\n{}\n", reasons.trim_end())),
        _ => shown.push_str(&set_aside),
    }
    shown
}

/// As `show RUN --format json` with `findings_left_out`; lists are shortened until it fits: findings from the least
/// urgent one, then the lists of files, then the run's own lists.
fn as_json(outcome: &Outcome, max_bytes: usize) -> Value {
    let mut object = outcome.json();
    let all: Vec<Value> = outcome.findings.iter().map(json::finding).collect();
    object["findings"] = json!([]);
    object["findings_left_out"] = json!(all.len());
    let fits = |object: &Value| output::json_text(object).len() < max_bytes;
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
        // Long texts of the run itself: what remains is what identifies it.
        object["run"] = json!({ "run_id": outcome.run.run_id, "status": outcome.run.status });
    }
    let mut used = output::json_text(&object).len() + 1;
    let mut kept = Vec::new();
    for finding in all {
        let size = output::json_text(&finding).len() + 1;
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
