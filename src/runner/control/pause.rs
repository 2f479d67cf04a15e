//! Pauses and resumes a run.
//!
//! - The request is one line in the run's record, written under the store's lock, so that it outlives the worker.
//! - An ended run is neither paused nor resumed.

use crate::config::ReviewerKind;
use crate::domain::{RunId, RunRecord};
use crate::runner::{BUILTIN_REVIEWER, PauseOutcome, RunControl, RunnerError};

impl RunControl<'_> {
    /// Asks a run to send no requests until [`crate::runner::RunControl::resume`]. An answer that is under way still arrives.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store cannot be read or written.
    pub fn pause(&self, run: &RunId) -> Result<PauseOutcome, RunnerError> {
        let pausing = self.set_paused(run, true)?;
        if pausing == PauseOutcome::Recorded {
            // A run that waits for this run need not wait any longer.
            self.services.launcher().start_pending_or_log();
        }
        Ok(pausing)
    }

    /// Resumes a paused run.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store cannot be read or written.
    pub fn resume(&self, run: &RunId) -> Result<PauseOutcome, RunnerError> {
        self.set_paused(run, false)
    }

    /// Returns `true` if a run must send no requests now.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn is_paused(&self, run: &RunId) -> Result<bool, RunnerError> {
        Ok(self.services.store.run(run)?.is_some_and(|record| record.is_paused()))
    }

    fn set_paused(&self, run: &RunId, paused: bool) -> Result<PauseOutcome, RunnerError> {
        self.services.store.with_lock_as(|locked| {
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
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
            // A panel sends its requests through its members.
            for member in record.links.panel.iter().flat_map(|panel| &panel.members) {
                let member = self.services.store.run(&member.run_id)?;
                let own = member.filter(|member| {
                    member.links.member_of.as_ref() == Some(run)
                        && !member.status.is_terminal()
                        && self.has_turns(member)
                });
                if let Some(member) = own {
                    locked.annotate_run(&member.run_id, |record| record.paused = paused)?;
                }
            }
            Ok(PauseOutcome::Recorded)
        })
    }

    /// Returns `true` if the reviewer of a run works in turns.
    fn has_turns(&self, record: &RunRecord) -> bool {
        let builtin = |name: &str| {
            name == BUILTIN_REVIEWER
                || self
                    .services
                    .settings
                    .reviewers
                    .get(name)
                    .is_some_and(|reviewer| reviewer.kind == ReviewerKind::Builtin)
        };
        !builtin(&record.reviewed_by.name)
    }
}
