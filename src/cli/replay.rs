//! `revdeck replay`: replays past commits of a repository as a coding session and measures the cost of its reviews with
//! and without adoption, reuse and carry-over.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::domain::text;
use crate::eval::replay::{ReplayError, ReplayOptions, ReplayReport, replay};
use crate::report::json;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Repository to replay; it is not modified
    #[arg(value_name = "REPO", default_value = ".")]
    repository: PathBuf,
    /// Number of commits up to HEAD
    #[arg(long, value_name = "N", default_value_t = 300)]
    commits: usize,
    /// Seed of the random session
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Maximum number of missing findings in the text output.
const MAX_NAMED_FINDINGS: usize = 20;

/// Runs `revdeck replay`. Exits with 3 if a finding is missing or code was reviewed twice.
///
/// # Errors
///
/// Returns an error if the repository cannot be replayed.
pub fn run(_: &Invocation, arguments: &ReplayArgs) -> Result<CliExitCode, CliError> {
    let source = std::path::absolute(&arguments.repository)
        .map_err(|error| CliError::usage(format!("{}: {error}", arguments.repository.display())))?;
    let folder = tempfile::Builder::new()
        .prefix("revdeck-replay-")
        .tempdir()
        .map_err(|error| CliError::failed(format!("cannot make a folder for the session: {error}")))?;
    let options = ReplayOptions {
        source,
        commits: arguments.commits.max(1),
        seed: arguments.seed,
        folder: folder.path().to_owned(),
    };
    let visible = std::io::stderr().is_terminal();
    let played = replay(&options, &mut |done, all| {
        if visible {
            let _ = write!(std::io::stderr(), "\r\x1b[K{done} of {}", text::format_count(all, "commit"));
        }
    });
    if visible {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let played = played?;
    match arguments.format {
        PlainFormat::Json => output::print_json(&report_to_json(&played))?,
        PlainFormat::Text => output::print(&format_report(&played))?,
    }
    Ok(if played.missing.is_empty() && played.reviewed_twice == 0 {
        CliExitCode::Done
    } else {
        CliExitCode::Incomplete
    })
}

fn report_to_json(played: &ReplayReport) -> serde_json::Value {
    json::build_versioned([(
        "totals",
        json!({
            "commits": played.commits,
            "requests": played.requests,
            "launched": played.launched,
            "adopted": played.adopted,
            "reused": played.reused,
            "resumed": played.resumed,
            "skipped": played.skipped,
            "superseded": played.superseded,
            "killed": played.killed,
            "restarted": played.restarted,
            "tokens_in_full": played.tokens_in_full,
            "tokens_sent": played.tokens_sent,
            "saved_percent": (played.saved_percent() * 10.0).round() / 10.0,
            "hunks_carried": played.hunks_carried,
            "reviewed_twice": played.reviewed_twice,
            "compared": played.compared,
            "findings_in_full": played.findings_in_full,
            "held_back": played.held_back,
            "missing": played.missing,
        }),
    )])
}

fn format_report(played: &ReplayReport) -> String {
    let mut lines = vec![
        format!(
            "{}, {} asked for: {} launched, {} adopted, {} reused, {} resumed, {} skipped; {} superseded; {} killed, {} \
             went on",
            text::format_count(played.commits, "commit"),
            text::format_count(played.requests, "review"),
            played.launched,
            played.adopted,
            played.reused,
            played.resumed,
            played.skipped,
            played.superseded,
            text::format_count(played.killed, "worker"),
            text::format_count(played.restarted, "run"),
        ),
        format!(
            "input    {} tokens where each request in full is {}: {:.1} % fewer; {} carried over",
            played.tokens_sent,
            played.tokens_in_full,
            played.saved_percent(),
            text::format_count(usize::try_from(played.hunks_carried).unwrap_or(usize::MAX), "hunk"),
        ),
        format!("twice    {} reviewed more than once", text::format_count(played.reviewed_twice, "equivalent change")),
        format!(
            "findings {} of full reviews at {}: {} missing, {} held back as a rule says",
            played.findings_in_full,
            text::format_count(played.compared, "place"),
            played.missing.len(),
            played.held_back,
        ),
    ];
    lines.extend(
        played.missing.iter().take(MAX_NAMED_FINDINGS).map(|line| format!("  missing: {}", text::sanitize_line(line))),
    );
    lines.join("\n") + "\n"
}

impl From<ReplayError> for CliError {
    fn from(error: ReplayError) -> Self {
        let message = error.to_string();
        match error {
            ReplayError::Objects(error) => error.into(),
            ReplayError::Store(error) => error.into(),
            ReplayError::Runner(error) => error.into(),
            ReplayError::NoGit { .. } => Self::failed(message).hint("a replay needs the git program on the path"),
            ReplayError::NoCommits { .. } => Self::usage(message).hint("name a repository with some history"),
            ReplayError::Git { .. } => Self::failed(message).hint("the repository itself is as it was"),
            ReplayError::Write { .. } => Self::failed(message),
        }
    }
}
