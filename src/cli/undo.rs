//! `revdeck undo` and `redo`: undo and redo decisions about findings. Applying a fix is such a decision; undoing it
//! also restores the files.

use clap::Args;
use jiff::tz::TimeZone;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::triage::{format_rating, format_snooze};
use super::{fix, output};
use crate::config::RequiredAssets;
use crate::domain::Disposition;
use crate::domain::text::sanitize_line;
use crate::store::triage::UndoOutcome;

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

/// Direction of a step through the history of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoDirection {
    Undo,
    Redo,
}

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
    let (at, email) = (services.ambient.now(), services.repo.user_email());
    let step = match direction {
        UndoDirection::Undo => services.store.undo(actor.actor, email.as_deref(), at)?,
        UndoDirection::Redo => services.store.redo(actor.actor, email.as_deref(), at)?,
    };
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
        (UndoOutcome::Decided(lines), _) => lines.iter().map(format_disposition).collect(),
        (UndoOutcome::Snoozed(lines), _) => {
            let zone = TimeZone::system();
            lines.iter().map(|line| format_snooze(line, &zone)).collect()
        }
        (UndoOutcome::Rated(lines), _) => lines.iter().map(format_rating).collect(),
    };
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn format_disposition(line: &Disposition) -> String {
    let reason = if line.reason.is_empty() { String::new() } else { format!("  ({})", sanitize_line(&line.reason)) };
    format!("{}  {} -> {}{reason}\n", line.finding_id, line.previous, line.status)
}
