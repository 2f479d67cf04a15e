//! `revdeck undo` and `redo`: take back decisions about findings, and make them again.

use clap::Args;

use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::text::one_line;

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
    let session = invocation.reading_session(Texts::None)?;
    let at = session.ambient.now();
    let lines = match direction {
        Direction::Undo => session.store.undo(at)?,
        Direction::Redo => session.store.redo(at)?,
    };
    if lines.is_empty() {
        output::print(match direction {
            Direction::Undo => "nothing to take back\n",
            Direction::Redo => "nothing to make again\n",
        })?;
        return Ok(Exit::Done);
    }
    let mut said = String::new();
    for line in &lines {
        let reason = if line.reason.is_empty() { String::new() } else { format!("  ({})", one_line(&line.reason)) };
        said.push_str(&format!("{}  {} -> {}{reason}\n", line.finding_id, line.previous, line.status));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
