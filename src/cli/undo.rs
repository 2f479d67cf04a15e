//! `revdeck undo` and `redo`: undo and redo decisions about findings. Applying a fix is such a decision; undoing it
//! also restores the files.

use std::collections::HashSet;

use clap::Args;
use jiff::tz::TimeZone;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::triage::{format_rating, format_snooze};
use super::{fix, output};
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::domain::{Disposition, FindingId, FindingStatus};
use crate::runner::undo_or_redo_triage;
use crate::store::LastLines;
use crate::store::triage::{UndoDirection, UndoOutcome};

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Redo the decision that was undone last
    #[arg(long)]
    redo: bool,
}

/// Arguments of `redo` (none).
#[derive(Debug, Args)]
pub struct RedoArgs {}

impl UndoArgs {
    /// Returns the direction that `--redo` selects.
    pub fn direction(&self) -> UndoDirection {
        if self.redo { UndoDirection::Redo } else { UndoDirection::Undo }
    }
}

/// Runs `revdeck undo` or `redo`.
///
/// # Errors
///
/// Returns an error if the files of a fix have changed too much, or the store fails.
pub fn run(invocation: &Invocation, direction: UndoDirection) -> Result<CliExitCode, CliError> {
    let actor = invocation.actor()?;
    let (services, _) = invocation.open_reading_session(RequiredAssets::None)?.into_runner();
    let place = (Some(&services.repo), &services.store);
    let step = undo_or_redo_triage(place, &services.ambient, direction, actor.actor)?;
    let said = match (step, direction) {
        // What the user decided, only the user takes back.
        (UndoOutcome::Nothing, _) if actor.is_assistant() => {
            return Err(CliError::usage("no claim of an assistant can be taken back or made again").hint(actor.hint()));
        }
        (UndoOutcome::Nothing, UndoDirection::Undo) => "nothing to take back\n".to_owned(),
        (UndoOutcome::Nothing, UndoDirection::Redo) => "nothing to make again\n".to_owned(),
        (UndoOutcome::Fix(fix), UndoDirection::Undo) => {
            fix::format_fix(&services, &services.fixer().undo_fix(&fix.fix_id, actor.actor)?)?
        }
        (UndoOutcome::Fix(fix), UndoDirection::Redo) => {
            fix::format_fix(&services, &services.fixer().apply_fix(&fix.fix_id, actor.actor)?)?
        }
        (UndoOutcome::Decided(lines), _) => format_decisions(&services.store.triage_log()?, &lines),
        (UndoOutcome::Snoozed(lines), _) => {
            let zone = TimeZone::system();
            lines.iter().map(|line| format_snooze(line, &zone)).collect()
        }
        (UndoOutcome::Rated(lines), _) => lines.iter().map(format_rating).collect(),
    };
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Formats what became of the findings of a step. A report that gave way to the finding of a panel's list is left out where the
/// step is about that finding, too; else the line says what the report is now.
fn format_decisions(log: &[Disposition], lines: &[Disposition]) -> String {
    let mut said = String::new();
    let last = LastLines::new(log);
    let changed: HashSet<&FindingId> = lines.iter().map(|line| &line.finding_id).collect();
    for line in lines {
        let listed = last.follow_merges(&line.finding_id);
        if *listed == line.finding_id {
            said.push_str(&format_disposition(line));
        } else if !changed.contains(listed) {
            let reason = format!("the panel lists the problem as {listed}");
            let now = Disposition { status: FindingStatus::Obsolete, reason, team: None, ..line.clone() };
            said.push_str(&format_disposition(&now));
        }
    }
    said
}

/// Formats what became of a finding: `f_…  dismissed -> open`, or `f_…  stays dismissed, as Bob decided` where a decision of the
/// team stands.
fn format_disposition(line: &Disposition) -> String {
    let reason = if line.reason.is_empty() { String::new() } else { format!("  ({})", sanitize_line(&line.reason)) };
    let by = line.describe_team_decision().map(|decided| format!(", as {decided}"));
    let change = match (line.previous == line.status, &by) {
        (true, Some(_)) => format!("stays {}", line.status),
        _ => format!("{} -> {}", line.previous, line.status),
    };
    format!("{}  {change}{}{reason}\n", line.finding_id, by.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, DecisionId, RunId, TeamClock, TeamOrigin, TeamPerson, Time, TriageAction};

    #[test]
    fn a_report_that_gave_way_is_not_said_to_be_open() {
        let [report, listed] = ["report", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let run: RunId = format!("ar_{:026}", 7).parse().expect("an id");
        let undone = |id: &FindingId| Disposition {
            finding_id: id.clone(),
            status: FindingStatus::Open,
            previous: FindingStatus::Dismissed,
            actor: Actor::User,
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Undo,
            group: "t_1".to_owned(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        let merge = Disposition::from_merge(&report, FindingStatus::Open, &listed, &run, Time::UNIX_EPOCH);
        let log = [undone(&report), undone(&listed), merge];
        let bob = TeamOrigin {
            id: DecisionId { clock: TeamClock { ms: 1, count: 0 }, machine: "bob-1".parse().expect("a name") },
            person: TeamPerson { name: "Bob".to_owned(), email: String::new() },
        };
        let decided_by_bob = [Disposition { team: Some(bob), ..undone(&report) }];
        let gave_way = format!("{report}  dismissed -> obsolete  (the panel lists the problem as {listed})\n");
        for (log, lines, expected) in [
            (&log[..1], &log[..1], format!("{report}  dismissed -> open\n")),
            (&log[..], &log[..2], format!("{listed}  dismissed -> open\n")),
            (&log[..], &log[..1], gave_way.clone()),
            (&log[..], &decided_by_bob[..], gave_way),
        ] {
            assert_eq!(format_decisions(log, lines), expected);
        }
    }
}
