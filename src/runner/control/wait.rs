//! Waits for the end of a run. Changes of the store's files wake the waiting process; a free lock reveals a dead
//! worker.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::domain::{FindingCounts, RunEvent, RunId, RunRecord, RunStatus};
use crate::runner::{RunControl, RunnerError};
use crate::store::{JournalFollower, StoreChange};

/// Interval between two checks of the worker, because the death of a process wakes nobody.
const RECOVERY_INTERVAL: Duration = Duration::from_millis(500);

/// Stops the thread that waits for the store when it is dropped.
struct StopOnDrop(crate::store::TailStopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl RunControl<'_> {
    /// Blocks until the run has ended. Calls `progress` with each record that differs from the one before, with
    /// up-to-date counts of coverage and findings. If `progress` returns `false`, stops waiting; the run continues.
    /// Recovers a run whose worker dies meanwhile, and starts a pending run that nobody starts.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store cannot be read.
    pub fn wait_for_run(
        &self,
        run: &RunId,
        progress: &mut dyn FnMut(&RunRecord) -> bool,
    ) -> Result<RunRecord, RunnerError> {
        let mut tail = self.services.store.open_tail();
        let _stop = StopOnDrop(tail.stopper());
        let (sender, changes) = channel();
        let watcher = std::thread::Builder::new().name("store-tail".to_owned()).spawn(move || {
            loop {
                match tail.wait() {
                    StoreChange::Store if sender.send(()).is_ok() => {}
                    // A heartbeat changes no record.
                    StoreChange::Heartbeat => {}
                    StoreChange::Store | StoreChange::Stopped => return,
                }
            }
        });
        if let Err(error) = watcher {
            tracing::warn!(%error, "the store is looked at twice a second only");
        }
        let mut journal = self.services.store.follow_journal(run, 0);
        let mut live = LiveProgress::default();
        let mut last: Option<RunRecord> = None;
        let mut next_look = Instant::now() + RECOVERY_INTERVAL;
        loop {
            let Some(mut record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if !record.status.is_terminal() {
                live.advance(&mut journal)?;
                live.fill_record(&mut record);
            }
            if last.as_ref() != Some(&record) {
                let go_on = progress(&record);
                if record.status.is_terminal() || !go_on {
                    return Ok(record);
                }
                last = Some(record);
            }
            let patience = next_look.saturating_duration_since(Instant::now());
            if let Err(RecvTimeoutError::Disconnected) = changes.recv_timeout(patience) {
                // The watcher thread is gone.
                std::thread::sleep(patience);
            }
            // Checked on schedule, however often the store changes.
            if Instant::now() >= next_look {
                self.recover_if_dead(run)?;
                next_look = Instant::now() + RECOVERY_INTERVAL;
            }
        }
    }

    fn recover_if_dead(&self, run: &RunId) -> Result<(), RunnerError> {
        match self.services.store.run(run)? {
            Some(record) if record.status.is_working() && !self.services.store.is_live(run)? => {
                self.services.recovery().recover()?;
            }
            Some(record) if record.status == RunStatus::Pending => {
                // The worker that should have started the run may have died, and so may the run it waits for.
                self.services.recovery().recover()?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The progress in the journal that the record does not contain while the run works.
#[derive(Default)]
struct LiveProgress {
    files: u32,
    hunks: u32,
    files_covered: u32,
    hunks_covered: u32,
    /// Hunks in files that the reviewer left out.
    hunks_left_out: u32,
    counts: FindingCounts,
}

impl LiveProgress {
    fn advance(&mut self, journal: &mut JournalFollower) -> Result<(), RunnerError> {
        for entry in journal.advance()? {
            match entry.event {
                RunEvent::Planned { files, hunks, .. } => (self.files, self.hunks) = (files, hunks),
                RunEvent::Covered { file } => {
                    self.files_covered += 1;
                    self.hunks_covered += u32::try_from(file.hunks.len()).unwrap_or(u32::MAX);
                }
                RunEvent::LeftOut { file, hunks } if !file.is_gap() => {
                    self.hunks_left_out = self.hunks_left_out.saturating_add(hunks);
                }
                RunEvent::Finding { finding } => self.counts.add(finding.priority),
                _ => {}
            }
        }
        Ok(())
    }

    fn fill_record(&self, record: &mut RunRecord) {
        if self.files > 0 {
            record.outcome.coverage.files_total = self.files;
            record.outcome.coverage.hunks_total = self.hunks.saturating_sub(self.hunks_left_out);
        }
        (record.outcome.coverage.files_covered, record.outcome.coverage.hunks_covered) =
            (self.files_covered, self.hunks_covered);
        record.outcome.finding_counts = self.counts;
    }
}
