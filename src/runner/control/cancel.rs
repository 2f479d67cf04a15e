//! Cancels a run on request: at once if it has not begun, otherwise through its worker, otherwise by force.

use std::time::{Duration, Instant};

use crate::domain::{CancelReason, RunId, RunRecord, RunStatus};
use crate::runner::{CancelOutcome, RunControl, RunnerError, process};

/// Time that a worker has to obey a cancellation before its process group is killed.
pub const MAX_CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Time that a killed process may take to disappear.
const MAX_KILL_WAIT: Duration = Duration::from_secs(5);

/// The stage of a run that is to be cancelled.
enum CancelStage {
    Over,
    Waiting,
    Working,
}

impl RunControl<'_> {
    /// Cancels a run and waits for its end. Kills the process group of its worker after [`MAX_CANCEL_WAIT`].
    /// The findings of the run are kept.
    ///
    /// # Errors
    ///
    /// If there is no such run, the store cannot be read or written, or the worker survives SIGKILL.
    /// The run of a panel takes its members with it, apart from those that others asked for.
    pub fn cancel(&self, run: &RunId, note: &str) -> Result<CancelOutcome, RunnerError> {
        if self.services.launcher().is_panel(run) {
            self.cancel_members(run, note)?;
        }
        let stage = self.services.store.with_lock_as(|locked| -> Result<CancelStage, RunnerError> {
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status.is_terminal() {
                return Ok(CancelStage::Over);
            }
            let asked = locked.update_run(run, self.services.ambient.now(), |record| {
                // The user's decision takes precedence over a decision of the policy.
                record.ending.cancel_reason = Some(CancelReason::UserStop);
                note.clone_into(&mut record.ending.cancel_note);
            })?;
            if asked.status != RunStatus::Pending {
                return Ok(CancelStage::Working);
            }
            self.services.closer().end_pending_run(locked, &asked)?;
            Ok(CancelStage::Waiting)
        })?;
        match stage {
            CancelStage::Over => Ok(CancelOutcome::AlreadyOver),
            CancelStage::Waiting => {
                self.services.launcher().start_pending_or_log();
                Ok(CancelOutcome::BeforeStart)
            }
            CancelStage::Working => self.end_worker(run),
        }
    }

    /// Cancels the members of a panel. The panel is asked to end first, so that it does not begin meanwhile.
    fn cancel_members(&self, panel_run: &RunId, note: &str) -> Result<(), RunnerError> {
        let members = self.services.store.with_lock_as(|locked| -> Result<Vec<RunId>, RunnerError> {
            let Some(record) = self.services.store.run(panel_run)? else { return Ok(Vec::new()) };
            if record.status.is_terminal() {
                return Ok(Vec::new());
            }
            locked.annotate_run(panel_run, |record| record.ending.cancel_reason = Some(CancelReason::UserStop))?;
            let panel = record.links.panel.unwrap_or_default();
            let members = self.services.launcher().active_own_members(panel_run, &panel);
            // All of them are asked before the first one is waited for, so that none sends another request.
            for member in &members {
                locked.annotate_run(member, |record| {
                    record.ending.cancel_reason = Some(CancelReason::UserStop);
                    note.clone_into(&mut record.ending.cancel_note);
                })?;
            }
            Ok(members)
        })?;
        let ended: Vec<Result<CancelOutcome, RunnerError>> =
            members.iter().map(|member| self.cancel(member, note)).collect();
        ended.into_iter().try_for_each(|ended| ended.map(drop))
    }

    fn end_worker(&self, run: &RunId) -> Result<CancelOutcome, RunnerError> {
        let patience = Instant::now() + MAX_CANCEL_WAIT;
        loop {
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status.is_terminal() {
                let ended = matches!(record.status, RunStatus::Cancelled | RunStatus::Superseded);
                return Ok(if ended { CancelOutcome::ByWorker } else { CancelOutcome::AlreadyOver });
            }
            if !self.services.store.is_live(run)? {
                break;
            }
            if Instant::now() >= patience {
                self.kill_worker_group(&record)?;
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.services.recovery().recover_one(run)?;
        self.services.launcher().start_pending_or_log();
        Ok(CancelOutcome::Killed)
    }

    /// Kills the process group of the worker that holds the run's lock, and waits until the lock is free.
    fn kill_worker_group(&self, record: &RunRecord) -> Result<(), RunnerError> {
        let run = &record.run_id;
        let patience = Instant::now() + MAX_KILL_WAIT;
        let mut worker = 0;
        while self.services.store.is_live(run)? {
            let replayed = self.services.replay_journal(run)?;
            // The lock's holder is the worker of the record's attempt. Its first journal entry contains its process id.
            // An older entry may name a process id that now belongs to another process.
            if replayed.attempt == record.attempt
                && let Some(process) = replayed.worker
            {
                worker = process;
                process::kill_group(process);
            }
            if Instant::now() >= patience {
                return Err(RunnerError::Unkillable { run: run.clone(), worker });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}
