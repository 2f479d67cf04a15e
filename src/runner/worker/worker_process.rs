//! Executes a run in the process of its worker, and does what the end of a run leaves to do.

use crate::domain::{ErrorClass, RunId};
use crate::review::{JournalMetrics, JournalState};
use crate::runner::worker::run_claim::RunClaim;
use crate::runner::worker::{RunWorker, Worker};
use crate::runner::{RunnerError, conclude, process};

impl Worker<'_> {
    /// Executes one run to its end, then settles dead runs and starts the next pending one. Returns at once if another
    /// worker has the run, the run has ended, or no slot is free.
    ///
    /// # Errors
    ///
    /// If the run cannot be claimed, executed or recorded; the run is failed first, as far as the store still accepts
    /// it.
    pub fn run_worker(&self, run: &RunId) -> Result<(), RunnerError> {
        process::ignore_the_terminal();
        let (lock, record) = match self.claim_run(run)? {
            RunClaim::Mine(lock, record) => (lock, *record),
            // The process that has the run, or a slot, starts the next run.
            RunClaim::Taken | RunClaim::NoSlot => return Ok(()),
            RunClaim::Over => {
                self.services.launcher().start_pending_or_log();
                self.services.team().publish_left_result(run);
                return Ok(());
            }
        };
        let may_learn = self.services.learning().may_learn_from(&record);
        let worked = RunWorker::new(self.services, record).and_then(RunWorker::execute);
        if let Err(error) = &worked {
            tracing::error!(%run, %error, "the run ends because its worker cannot go on");
            // A run that cannot be failed now is settled by the next recovery.
            if let Err(error) = self.fail_run(run, error) {
                tracing::error!(%run, %error, "the failure is not recorded");
            }
        }
        drop(lock);
        // Also recovers the runs of other workers that died, because perhaps no other process will.
        let recovered = self.services.recovery().recover();
        // Others may wait for the result; the next run of this machine does not.
        let worked = worked.map(|mut rest| {
            self.services.team().publish(rest.claim.take(), run);
            rest
        });
        if let Err(error) = self.services.recovery().remove_leftovers() {
            tracing::warn!(%error, "what dead processes left stays");
        }
        self.services.recovery().run_housekeeping();
        if may_learn {
            self.services.learning().learn_after_run();
        }
        let rest = worked?;
        if let Some(commit) = &rest.unindexed {
            self.services.indexer().index_after_review(commit);
        }
        if let Some(sources) = &rest.unread {
            process::stand_back();
            self.services.indexer().read_ahead_after_review(sources);
        }
        recovered.map(drop)
    }

    /// Fails a run whose worker met an internal error, as far as the store still accepts it.
    fn fail_run(&self, run: &RunId, error: &RunnerError) -> Result<(), RunnerError> {
        let class = match error {
            RunnerError::Git(_) => ErrorClass::Git,
            RunnerError::Store(_) => ErrorClass::Store,
            RunnerError::UnknownReviewer { .. }
            | RunnerError::UnknownPanel { .. }
            | RunnerError::Limits(_)
            | RunnerError::Config(_) => ErrorClass::Configuration,
            RunnerError::MissingKey(_) => ErrorClass::Auth,
            RunnerError::Reviewer(error) => error.class,
            RunnerError::Spawn { .. }
            | RunnerError::Unkillable { .. }
            | RunnerError::EngineStuck { .. }
            | RunnerError::Unsettled { .. }
            | RunnerError::NotReviewed { .. }
            | RunnerError::WatchedElsewhere { .. }
            | RunnerError::WatcherStays { .. }
            | RunnerError::Ask(_)
            | RunnerError::Fix(_) => ErrorClass::Internal,
        };
        let Some(record) = self.services.store.run(run)? else { return Ok(()) };
        let entries = self.services.store.read_journal(run)?;
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        let timings = JournalMetrics::add_unrecorded_attempt(record.usage.phase_timings, &entries);
        let mut outcome = conclude::failed_outcome(&replayed, class, error.to_string());
        self.services.closer().conclude_run(run, &mut outcome, timings)?;
        Ok(())
    }
}
