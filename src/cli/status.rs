//! `revdeck status`: the state of the reviews of this worktree in a few words, for tmux, starship and other status lines.

use std::cell::RefCell;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{Invocation, Session};
use crate::config::RequiredAssets;
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{FindingCounts, RunStatus, Shortfall, Time};
use crate::git::Repo;
use crate::masking::mask_name;
use crate::report::{json, text};
use crate::runner::{SnoozedFindings, UncommittedElsewhere, WatchState};
use crate::store::{FindingFacts, FindingSelector, RunRow, Store, StoreView, WatcherStatus};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one short line, or nothing: outside of a repository, before the first review, and if there is nothing to
    /// decide
    #[arg(long, conflicts_with = "format")]
    line: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: StatusFormat,
}

/// Output formats of `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    #[default]
    Text,
    Json,
}

/// State of the reviews of a worktree.
struct ReviewState<'a> {
    /// Undecided findings by priority.
    undecided: FindingCounts,
    /// Runs that have not ended, newest first.
    active: Vec<RunRow<'a>>,
    /// Newest run that ended and was not skipped.
    latest: Option<RunRow<'a>>,
    is_watched: bool,
}

/// Runs `revdeck status`.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the store fails; with `--line`, prints nothing instead.
pub fn run(invocation: &Invocation, arguments: &StatusArgs) -> Result<CliExitCode, CliError> {
    match print_status(invocation, arguments) {
        // A status line is drawn in every folder, and has no place for an error.
        Err(error) if arguments.line => {
            tracing::debug!(error = %error.message, "no status line");
            Ok(CliExitCode::Done)
        }
        printed => printed.map(|()| CliExitCode::Done),
    }
}

fn print_status(invocation: &Invocation, arguments: &StatusArgs) -> Result<(), CliError> {
    let session = match arguments.line {
        true => invocation.open_quiet_session()?,
        false => invocation.open_reading_session(RequiredAssets::None)?,
    };
    let now = session.ambient.now();
    let worktree = session.repo.root().to_string_lossy().into_owned();
    let (view, undecided) = count_undecided(&session.store, Some(&session.repo), Some(&worktree), now)?;
    let state = read_state(&session, &view, &worktree, undecided, now);
    if arguments.line {
        let line = state.format_line();
        return output::print(&if line.is_empty() { line } else { format!("{line}\n") });
    }
    match arguments.format {
        StatusFormat::Text => output::print(&state.format_text(&session, now))?,
        StatusFormat::Json => output::print_json(&state.to_json(&session))?,
    }
    Ok(())
}

/// Loads the runs, and counts the undecided findings that a run of `worktree`, or of any, reported last, without loading
/// them. Snoozed ones do not count, nor do those of uncommitted code of other machines. Without `repo`, a snooze until a file
/// changes is over, as if the file had changed.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub(super) fn count_undecided(
    store: &Store,
    repo: Option<&Repo>,
    worktree: Option<&str>,
    now: Time,
) -> Result<(Arc<StoreView>, FindingCounts), CliError> {
    let counts = RefCell::new(FindingCounts::default());
    let mut is_here = Vec::new();
    let ids = store.snoozes()?.into_iter().map(|snooze| snooze.finding_id.as_str().to_owned()).collect();
    let view = store.select_findings(|runs| {
        let elsewhere = UncommittedElsewhere::read(runs);
        let is_counted = |index| match worktree {
            Some(worktree) => runs.run_worktree(index) == worktree,
            None => !elsewhere.has_run(index),
        };
        is_here = (0..runs.run_count()).map(is_counted).collect();
        let (is_here, counts) = (&is_here, &counts);
        let rank = move |facts: &FindingFacts| -> Option<()> {
            if facts.status.is_undecided() && is_here.get(facts.last_run).copied().unwrap_or(false) {
                counts.borrow_mut().add(facts.priority);
            }
            None
        };
        Ok(FindingSelector { paths: Vec::new(), ids, limit: 0, rank: Box::new(rank) })
    })?;
    let mut counts = counts.into_inner();
    let snoozed = SnoozedFindings::read(repo, store, &view, now)?;
    // Findings that are snoozed or changed since the checkpoint, or all without one, are rows of the view.
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        let run = view.last_reporting_run(index);
        let is_here = run.is_some_and(|run| is_here.get(run).copied().unwrap_or(false));
        if row.status.is_undecided() && is_here && !snoozed.hides(row.id, row.status) {
            counts.add(row.priority);
        }
    }
    Ok((view, counts))
}

fn read_state<'a>(
    session: &Session,
    view: &'a StoreView,
    worktree: &str,
    undecided: FindingCounts,
    now: Time,
) -> ReviewState<'a> {
    let here = || (0..view.run_count()).filter(|index| view.run_worktree(*index) == worktree);
    let is_result = |index: &usize| {
        let status = view.run_status(*index);
        status.is_terminal() && status != RunStatus::Skipped
    };
    let watch = WatchState::read(&session.store, now);
    ReviewState {
        undecided,
        active: here().filter(|index| !view.run_status(*index).is_terminal()).map(|index| view.run(index)).collect(),
        latest: here().find(is_result).map(|index| view.run(index)),
        is_watched: watch.is_ok_and(|watch| watch.watcher != WatcherStatus::None),
    }
}

impl ReviewState<'_> {
    /// Formats the state in at most about 40 columns: the active run, then the undecided findings of p0 to p2. Empty if
    /// there is neither.
    fn format_line(&self) -> String {
        let counts = self.undecided.by_priority();
        let findings = (0..3).filter(|at| counts[*at] > 0).map(|at| format!("{} p{at}", counts[at]));
        let active = self.active.first().map(format_progress);
        let broken = self.latest.filter(|run| matches!(run.status, RunStatus::Failed | RunStatus::Lost));
        let broken = broken.map(|run| format!("review {}", run.status));
        active.into_iter().chain(broken).chain(findings).collect::<Vec<_>>().join(" ")
    }

    fn format_text(&self, session: &Session, now: Time) -> String {
        let branch = session.repo.branch();
        let branch = if branch.is_empty() { "detached HEAD".to_owned() } else { branch };
        let mut page =
            format!("{} ({})\n", sanitize_line(&mask_name(&session.repo.name())), sanitize_line(&mask_name(&branch)));
        for run in &self.active {
            page.push_str(&format!("  {} {}\n", run.id, format_progress(run)));
        }
        if let Some(run) = self.latest {
            let ago = now.as_millisecond().saturating_sub(run.updated_ms).max(0) / 60_000;
            let state = match run.shortfall() {
                Some(Shortfall::Gaps) => format!("{}, {}", run.state_word(), Shortfall::Gaps.word()),
                Some(Shortfall::NothingReviewed) => Shortfall::NothingReviewed.word().to_owned(),
                None => run.state_word().to_owned(),
            };
            page.push_str(&format!("  {} {state}, {} ago\n", run.id, format_minutes(ago)));
        }
        let undecided = match self.undecided.total() {
            0 if self.latest.is_none() && self.active.is_empty() => "nothing reviewed yet".to_owned(),
            0 => "nothing to decide".to_owned(),
            _ => format!("{} to decide", text::format_counts(&self.undecided)),
        };
        page.push_str(&format!("  {undecided}\n"));
        if self.is_watched {
            page.push_str("  watching for changes\n");
        }
        page
    }

    fn to_json(&self, session: &Session) -> serde_json::Value {
        let counts = self.undecided.by_priority();
        let run = |row: &RunRow<'_>| {
            json!({
                "run_id": row.id, "status": row.status, "scope": row.scope, "reviewer": row.reviewer,
                "hunks_covered": row.hunks_covered, "hunks_total": row.hunks_total, "incomplete": row.is_incomplete(),
            })
        };
        json::build_versioned([
            ("repo", json!(session.repo.name())),
            ("branch", json!(session.repo.branch())),
            ("undecided", json!({ "p0": counts[0], "p1": counts[1], "p2": counts[2], "p3": counts[3] })),
            ("active", json!(self.active.iter().map(run).collect::<Vec<_>>())),
            ("latest", json!(self.latest.as_ref().map(run))),
            ("watching", json!(self.is_watched)),
            ("line", json!(self.format_line())),
        ])
    }
}

/// Formats the phase of an active run and its progress.
fn format_progress(run: &RunRow<'_>) -> String {
    match run.hunks_total {
        _ if run.is_paused() => "paused".to_owned(),
        0 => run.status.to_string(),
        total => format!("{} {}/{total}", run.status, run.hunks_covered.min(total)),
    }
}

/// Formats an age in minutes: `3 minutes`, `4 h`, `5 days`.
pub(super) fn format_minutes(minutes: i64) -> String {
    match minutes {
        0..60 => format_count(usize::try_from(minutes).unwrap_or(0), "minute"),
        60..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}
