//! Stopping a run for a while, and letting it go on.
//!
//! Invariants: the wish is one line of the run's record, written under the store's lock, so that it outlives the worker;
//! a run that has ended is neither paused nor resumed.

use super::{PauseOutcome, Runner, RunnerError};
use crate::config::ReviewerKind;
use crate::domain::{RunId, RunRecord};

impl Runner {
    /// Asks a run to ask for nothing until [`Runner::resume`]. An answer that is on its way still comes in.
    pub fn pause(&self, run: &RunId) -> Result<PauseOutcome, RunnerError> {
        let pausing = self.set_paused(run, true)?;
        if pausing == PauseOutcome::Recorded {
            // Whoever waits for it to end does not any more.
            self.start_pending_or_log();
        }
        Ok(pausing)
    }

    /// Lets a paused run go on.
    pub fn resume(&self, run: &RunId) -> Result<PauseOutcome, RunnerError> {
        self.set_paused(run, false)
    }

    /// Whether a run is to ask for nothing now.
    pub fn is_paused(&self, run: &RunId) -> Result<bool, RunnerError> {
        Ok(self.store.run(run)?.is_some_and(|record| record.is_paused()))
    }

    fn set_paused(&self, run: &RunId, paused: bool) -> Result<PauseOutcome, RunnerError> {
        self.store.with_lock_as(|locked| {
            let Some(record) = self.store.run(run)? else { return Err(self.no_run_error(run)) };
            if record.status.is_terminal() {
                return Ok(PauseOutcome::Over);
            }
            if record.paused == paused {
                return Ok(PauseOutcome::Already);
            }
            if paused && !self.has_turns(&record) {
                return Ok(PauseOutcome::NoTurns);
            }
            locked.annotate_run(run, |record| record.paused = paused)?;
            Ok(PauseOutcome::Recorded)
        })
    }

    /// Whether the reviewer of a run is asked in turns.
    fn has_turns(&self, record: &RunRecord) -> bool {
        let builtin = |name: &str| {
            name == Self::BUILTIN
                || self.settings.reviewers.get(name).is_some_and(|reviewer| reviewer.kind == ReviewerKind::Builtin)
        };
        !builtin(&record.reviewer)
    }
}
