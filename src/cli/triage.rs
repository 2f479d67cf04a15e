//! `revdeck triage`: sets the status of findings. Decisions are stored before they are printed; one command is one step
//! for `undo`.

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{FindingId, FindingStatus};
use crate::policy;
use crate::runner::{SetStatusError, StatusChange, set_status};

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
}

impl From<TriageStatus> for FindingStatus {
    fn from(wanted: TriageStatus) -> Self {
        match wanted {
            TriageStatus::Addressed => FindingStatus::Addressed,
            TriageStatus::Dismissed => FindingStatus::Dismissed,
            TriageStatus::Open => FindingStatus::Open,
        }
    }
}

/// Runs `revdeck triage`.
///
/// # Errors
///
/// Returns an error if a finding is unknown, a dismissal has no reason or the status is not allowed.
pub fn run(invocation: &Invocation, arguments: &TriageArgs) -> Result<CliExitCode, CliError> {
    let status = FindingStatus::from(arguments.status);
    let reason = arguments.reason.trim();
    if policy::needs_reason(status) && reason.is_empty() {
        return Err(CliError::usage("a dismissal needs its reason")
            .hint("write --reason TEXT: it is kept, and the finding is not raised again"));
    }
    let actor = invocation.actor()?;
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let view = session.store.view()?;
    let mut chosen: Vec<FindingId> = Vec::new();
    for given in &arguments.findings {
        let id = resolve_id::resolve_finding_in(&view, given)?;
        if !chosen.contains(&id) {
            chosen.push(id);
        }
    }
    let change = StatusChange { actor: actor.actor, status, reason };
    let lines = set_status(&session.store, &session.ambient, &chosen, change).map_err(|error| match error {
        SetStatusError::Store(error) => error.into(),
        refused => {
            let error = CliError::usage(refused.to_string());
            if actor.is_assistant() { error.hint(actor.hint()) } else { error }
        }
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
