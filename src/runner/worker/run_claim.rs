//! Claims a pending run for a worker: its lock, then a slot.

use std::time::{Duration, Instant};

use crate::domain::{RunId, RunRecord, RunStatus};
use crate::runner::conclude::elapsed_ms;
use crate::runner::worker::Worker;
use crate::runner::{RunnerError, known_runs, process};
use crate::store::RunLock;

/// Time that a worker waits for the lock of a pending run. Another worker may hold the lock while it checks for a free
/// slot.
const MAX_CLAIM_WAIT: Duration = Duration::from_secs(5);

/// The result of claiming a run.
pub(super) enum RunClaim {
    Mine(RunLock, Box<RunRecord>),
    /// Another worker has the run.
    Taken,
    /// All slots are taken, or the run waits for an older run.
    NoSlot,
    /// The run ended before it began.
    Over,
}

impl Worker<'_> {
    /// Takes the run's lock and then a slot, in this order; see the invariants in [`crate::runner`].
    pub(super) fn claim_run(&self, run: &RunId) -> Result<RunClaim, RunnerError> {
        let give_up = Instant::now() + MAX_CLAIM_WAIT;
        let lock = loop {
            if let Some(lock) = self.services.store.lock_run(run)? {
                break lock;
            }
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status != RunStatus::Pending || Instant::now() > give_up {
                return Ok(RunClaim::Taken);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.services.store.with_lock_as(move |locked| {
            // Every result but `Mine` drops the run's lock inside this closure, under the store's lock, so that no
            // later reader finds it held.
            let lock = lock;
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status != RunStatus::Pending {
                return Ok(RunClaim::Over);
            }
            let view = locked.runs_view()?;
            let working = known_runs::run_rows(&view).filter(|row| row.status.is_working() && row.id != run.as_str());
            let working = working.filter_map(|row| row.id.parse().ok()).filter(|id| self.services.has_worker(id));
            let launcher = self.services.launcher();
            let slots = launcher.collect_slots(working);
            // A panel's other members have the slot already.
            let own = launcher.slot_of(run);
            let busy = if slots.contains(&own) { 0 } else { slots.len() };
            if busy >= self.services.settings.max_parallel_runs.max(1) || self.services.launcher().must_wait(&record) {
                self.clear_failed_starts(run);
                // Released under the store's lock, like the run's lock, so that the next process that ends finds the
                // run startable.
                process::unlock_input();
                return Ok(RunClaim::NoSlot);
            }
            let now = self.services.ambient.now();
            let record = locked.update_run(run, now, |record| {
                record.status = RunStatus::Snapshotting;
                record.attempt += 1;
                // Later attempts did not wait in the queue: the record has changed since the request.
                if record.updated_at == record.created_at {
                    record.usage.phase_timings.queued_ms = elapsed_ms(record.created_at, now);
                }
            })?;
            // Only now: a worker that cannot write its claim has not begun.
            self.clear_failed_starts(run);
            Ok(RunClaim::Mine(lock, Box::new(record)))
        })
    }

    fn clear_failed_starts(&self, run: &RunId) {
        if let Err(error) = self.services.store.clear_failed_starts(run) {
            tracing::warn!(%run, %error, "starts that came to nothing go on to be counted");
        }
    }
}
