//! `revdeck triage`: decide about findings. Stored before anything is said; one command is one step for `undo`.

use clap::{Args, ValueEnum};

use super::error::{CliError, Exit};
use super::session::{Invocation, Session};
use super::{output, resolve};
use crate::config::Texts;
use crate::domain::text::{count, one_line};
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, TriageAction};
use crate::policy;
use crate::store::triage::status_after;

/// Arguments of `triage`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The findings: ids or the beginnings of them
    #[arg(value_name = "FINDING", required = true, num_args = 1..)]
    findings: Vec<String>,
    /// What becomes of them
    #[arg(value_name = "STATUS", required = true)]
    status: Wanted,
    /// Why; needed to dismiss, and kept with the decision
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

/// What a person may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// It is fixed
    Addressed,
    /// It is no problem; it will not be raised again
    Dismissed,
    /// It stands after all
    Open,
}

impl From<Wanted> for FindingStatus {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Addressed => FindingStatus::Addressed,
            Wanted::Dismissed => FindingStatus::Dismissed,
            Wanted::Open => FindingStatus::Open,
        }
    }
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let status = FindingStatus::from(arguments.status);
    let reason = arguments.reason.trim();
    if policy::needs_reason(status) && reason.is_empty() {
        return Err(CliError::usage("a dismissal needs its reason")
            .hint("write --reason TEXT: it is kept, and the finding is not raised again"));
    }
    let session = invocation.reading_session(Texts::None)?;
    let view = session.store.view()?;
    let mut chosen: Vec<FindingId> = Vec::new();
    for given in &arguments.findings {
        let id = resolve::finding_in(&view, given)?;
        if !chosen.contains(&id) {
            chosen.push(id);
        }
    }
    let lines = session.store.decide(|log| decisions(&session, log, &chosen, status, reason))?;
    let already = chosen.len() - lines.len();
    if already > 0 {
        output::note(&format!("note: {} {status} already", count(already, "finding")));
    }
    let mut said = String::new();
    for line in &lines {
        said.push_str(&format!("{}  {} -> {}\n", line.finding_id, line.previous, line.status));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}

/// The lines that say so; all or none. Findings that are so already are left alone.
fn decisions(
    session: &Session,
    log: &[Disposition],
    chosen: &[FindingId],
    status: FindingStatus,
    reason: &str,
) -> Result<Vec<Disposition>, CliError> {
    let at = session.ambient.now();
    let group = session.ambient.run_id().to_string().replacen("ar_", "t_", 1);
    let mut lines = Vec::new();
    for id in chosen {
        let previous = status_after(log, id);
        match policy::may_set(Actor::User, previous, status) {
            Ok(()) => lines.push(Disposition {
                finding_id: id.clone(),
                status,
                previous,
                actor: Actor::User,
                reason: one_line(reason).into_owned(),
                at,
                action: TriageAction::Set,
                group: group.clone(),
                run_id: None,
            }),
            Err(policy::Refusal::AlreadySo(_)) => {}
            Err(refusal) => return Err(CliError::usage(format!("{id} cannot become {status}: {refusal}"))),
        }
    }
    Ok(lines)
}
