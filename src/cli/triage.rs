//! `revdeck triage`: sets the status of findings. Decisions are stored before they are printed; one command is one step
//! for `undo`.

use std::fmt::Display;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;

use jiff::tz::TimeZone;

use super::actor::CommandActor;
use super::error::{CliError, CliExitCode};
use super::session::{Invocation, Session};
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{FindingId, FindingRating, FindingSnooze, FindingStatus, RatingWish};
use crate::policy;
use crate::report::describe_snooze_end;
use crate::runner::{
    RatingError, SetStatusError, SnoozeError, SnoozeWish, StatusChange, rate_findings, set_status, snooze_findings,
};
use crate::store::StoreView;

/// Arguments of `triage`.
#[derive(Debug, Args)]
pub struct TriageArgs {
    /// Findings: ids or beginnings of ids
    #[arg(value_name = "FINDING", required = true, num_args = 1.., add = ArgValueCandidates::new(complete::list_findings))]
    findings: Vec<String>,
    /// New status
    #[arg(value_name = "STATUS", required = true)]
    status: TriageStatus,
    /// Reason, stored with the decision; required for dismissed
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// End of a snooze: 3d, 2w, 12h, a date such as 2026-12-01, `change` (until the file changes), or `off`
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Priority and kind of a rating: p1, SECURITY, "p1 SECURITY", or `reported`
    #[arg(long = "as", value_name = "RATING")]
    rating: Option<String>,
}

/// Statuses that a user may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TriageStatus {
    /// The problem is fixed
    Addressed,
    /// The report is not a problem; it is not raised again
    Dismissed,
    /// The problem still stands
    Open,
    /// The status stays, but the finding is out of sight until `--until`
    Snoozed,
    /// The status stays, but the finding has the priority and kind of `--as`
    Rated,
}

impl TriageStatus {
    /// Returns the status of the finding; `None` if it stays.
    fn to_status(self) -> Option<FindingStatus> {
        match self {
            Self::Addressed => Some(FindingStatus::Addressed),
            Self::Dismissed => Some(FindingStatus::Dismissed),
            Self::Open => Some(FindingStatus::Open),
            Self::Snoozed | Self::Rated => None,
        }
    }
}

/// Runs `revdeck triage`.
///
/// # Errors
///
/// Returns an error if a finding is unknown, a dismissal has no reason or the status is not allowed.
pub fn run(invocation: &Invocation, arguments: &TriageArgs) -> Result<CliExitCode, CliError> {
    if arguments.until.is_some() && arguments.status != TriageStatus::Snoozed {
        return Err(CliError::usage("only a snooze has an end").hint("write snoozed --until WHEN"));
    }
    if arguments.rating.is_some() && arguments.status != TriageStatus::Rated {
        return Err(CliError::usage("only a rating has --as").hint("write rated --as p1"));
    }
    let status = match (arguments.status, arguments.status.to_status()) {
        (_, Some(status)) => status,
        (TriageStatus::Rated, None) => return run_rating(invocation, arguments),
        (_, None) => return run_snooze(invocation, arguments),
    };
    let reason = arguments.reason.trim();
    if policy::needs_reason(status) && reason.is_empty() {
        return Err(CliError::usage("a dismissal needs its reason")
            .hint("write --reason TEXT: it is kept, and the finding is not raised again"));
    }
    let actor = invocation.actor()?;
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let chosen = resolve_findings(&session, arguments)?;
    let change = StatusChange { actor: actor.actor, status, reason };
    let places = (Some(&session.repo), &session.store);
    let lines = set_status(places, &session.ambient, &chosen, change).map_err(|error| match error {
        SetStatusError::Store(error) => error.into(),
        refused => refuse(&actor, &refused),
    })?;
    let already = chosen.len() - lines.len();
    if already > 0 {
        output::print_note(&format!("note: {} {status} already", format_count(already, "finding")));
    }
    let mut said = String::new();
    for line in &lines {
        said.push_str(&format!("{}  {} -> {}\n", line.finding_id, line.previous, line.status));
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Creates the error for a refused change, with the reason for an assistant.
fn refuse(actor: &CommandActor, refusal: &dyn Display) -> CliError {
    let error = CliError::usage(refusal.to_string());
    if actor.is_assistant() { error.hint(actor.hint()) } else { error }
}

fn resolve_findings(session: &Session, arguments: &TriageArgs) -> Result<Vec<FindingId>, CliError> {
    let view = session.store.view()?;
    let mut chosen: Vec<FindingId> = Vec::new();
    for given in &arguments.findings {
        let id = resolve_id::resolve_finding_in(&view, given)?;
        if !chosen.contains(&id) {
            chosen.push(id);
        }
    }
    if arguments.status.to_status().is_none_or(policy::follows_merge) {
        follow_merged(session, &view, &mut chosen)?;
    }
    Ok(chosen)
}

/// Replaces reports that a panel merged into a finding with another id by that finding, and says so: a decision is about the
/// problem.
fn follow_merged(session: &Session, view: &StoreView, chosen: &mut Vec<FindingId>) -> Result<(), CliError> {
    let mut listed: Vec<FindingId> = Vec::new();
    for (id, target) in chosen.iter().zip(session.store.follow_merged(view, chosen.as_slice())?) {
        if target != *id {
            output::print_note(&format!("note: a panel lists {id} as {target}"));
        }
        if !listed.contains(&target) {
            listed.push(target);
        }
    }
    *chosen = listed;
    Ok(())
}

/// Snoozes the findings, or ends their snoozes.
fn run_snooze(invocation: &Invocation, arguments: &TriageArgs) -> Result<CliExitCode, CliError> {
    let Some(until) = &arguments.until else {
        return Err(
            CliError::usage("a snooze needs its end").hint("write --until 3d, --until 2026-12-01 or --until change")
        );
    };
    if !arguments.reason.is_empty() {
        return Err(CliError::usage("a snooze has no reason").hint("in the cockpit, `i` writes a note"));
    }
    let actor = invocation.actor()?;
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let zone = TimeZone::system();
    let wish = SnoozeWish::parse(until, session.ambient.now(), &zone).map_err(CliError::usage)?;
    let chosen = resolve_findings(&session, arguments)?;
    let places = (&session.repo, &session.store);
    let lines = snooze_findings(places, &session.ambient, &chosen, wish, actor.actor).map_err(|error| match error {
        SnoozeError::Store(error) => error.into(),
        refused => refuse(&actor, &refused),
    })?;
    if lines.len() < chosen.len() {
        let already = format_count(chosen.len() - lines.len(), "finding");
        output::print_note(&format!("note: {already} snoozed like that already"));
    }
    output::print(&lines.iter().map(|line| format_snooze(line, &zone)).collect::<String>())?;
    Ok(CliExitCode::Done)
}

/// Rates the findings, or removes their ratings.
fn run_rating(invocation: &Invocation, arguments: &TriageArgs) -> Result<CliExitCode, CliError> {
    let Some(rating) = &arguments.rating else {
        return Err(CliError::usage("a rating needs its value").hint("write --as p1, --as SECURITY or --as reported"));
    };
    if !arguments.reason.is_empty() {
        return Err(CliError::usage("a rating has no reason").hint("in the cockpit, `i` writes a note"));
    }
    let wish = RatingWish::parse(rating).map_err(CliError::usage)?;
    let actor = invocation.actor()?;
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let chosen = resolve_findings(&session, arguments)?;
    let lines =
        rate_findings(&session.store, &session.ambient, &chosen, wish, actor.actor).map_err(|error| match error {
            RatingError::Store(error) => error.into(),
            refused => refuse(&actor, &refused),
        })?;
    if lines.len() < chosen.len() {
        let already = format_count(chosen.len() - lines.len(), "finding");
        output::print_note(&format!("note: {already} rated like that already"));
    }
    output::print(&lines.iter().map(format_rating).collect::<String>())?;
    Ok(CliExitCode::Done)
}

/// Formats a stored rating: `f_…  as reported -> p1 SECURITY`.
pub fn format_rating(line: &FindingRating) -> String {
    format!("{}  {} -> {}\n", line.finding_id, line.previous, line.rating)
}

/// Formats a stored snooze: `f_…  snoozed until 2026-12-01 00:00`.
pub fn format_snooze(line: &FindingSnooze, zone: &TimeZone) -> String {
    format!("{}  {}\n", line.finding_id, describe_snooze_end(line.until.as_ref(), zone))
}
