//! `revdeck undo` and `redo`: take back decisions about findings, and make them again. Applying a fix is such a decision, and
//! goes back with what it wrote.

use clap::Args;

use super::error::{CliError, Exit};
use super::session::Invocation;
use super::{fix, output};
use crate::config::Texts;
use crate::domain::Disposition;
use crate::domain::text::one_line;
use crate::store::triage::Step;

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Make the decision again that was taken back last
    #[arg(long)]
    redo: bool,
}

/// Arguments of `redo`: none.
#[derive(Debug, Args)]
pub struct RedoArguments {}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Undo,
    Redo,
}

impl Arguments {
    pub fn direction(&self) -> Direction {
        if self.redo { Direction::Redo } else { Direction::Undo }
    }
}

pub fn run(invocation: &Invocation, direction: Direction) -> Result<Exit, CliError> {
    let (runner, _) = invocation.reading_session(Texts::None)?.into_runner();
    let at = runner.ambient.now();
    let step = match direction {
        Direction::Undo => runner.store.undo(at)?,
        Direction::Redo => runner.store.redo(at)?,
    };
    let said = match (step, direction) {
        (Step::Nothing, Direction::Undo) => "nothing to take back\n".to_owned(),
        (Step::Nothing, Direction::Redo) => "nothing to make again\n".to_owned(),
        (Step::Fix(fix), Direction::Undo) => fix::told(&runner, &runner.undo_fix(&fix.fix_id)?)?,
        (Step::Fix(fix), Direction::Redo) => fix::told(&runner, &runner.apply_fix(&fix.fix_id)?)?,
        (Step::Decided(lines), _) => lines.iter().map(told).collect(),
    };
    output::print(&said)?;
    Ok(Exit::Done)
}

fn told(line: &Disposition) -> String {
    let reason = if line.reason.is_empty() { String::new() } else { format!("  ({})", one_line(&line.reason)) };
    format!("{}  {} -> {}{reason}\n", line.finding_id, line.previous, line.status)
}
