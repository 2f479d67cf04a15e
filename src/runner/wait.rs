//! Waiting for a run's end: woken by the store's files; dead workers are noticed by their free lock.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{Runner, RunnerError};
use crate::domain::{FindingCounts, RunEvent, RunId, RunRecord, RunStatus};
use crate::store::{JournalFollower, StoreChange};

/// How often a waiting process looks after the worker: the death of a process wakes nobody.
const RECOVERY_INTERVAL: Duration = Duration::from_millis(500);

/// Ends the thread that waits for the store, however the waiting ends.
struct StopOnDrop(crate::store::TailStopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Runner {
    /// Blocks until the run has ended, calling `progress` with each record that differs from the one before, its
    /// coverage and findings counted up to now; `progress` returning false gives up waiting (the run goes on). A run
    /// whose worker dies meanwhile is recovered, a pending one that nobody starts is started.
    pub fn wait_for_run(
        &self,
        run: &RunId,
        progress: &mut dyn FnMut(&RunRecord) -> bool,
    ) -> Result<RunRecord, RunnerError> {
        let mut tail = self.store.open_tail();
        let _stop = StopOnDrop(tail.stopper());
        let (sender, changes) = channel();
        let watcher = std::thread::Builder::new().name("store-tail".to_owned()).spawn(move || {
            loop {
                match tail.wait() {
                    StoreChange::Store if sender.send(()).is_ok() => {}
                    // What a worker is doing this moment changes no record.
                    StoreChange::Heartbeat => {}
                    StoreChange::Store | StoreChange::Stopped => return,
                }
            }
        });
        if let Err(error) = watcher {
            tracing::warn!(%error, "the store is looked at twice a second only");
        }
        let mut journal = self.store.follow_journal(run, 0);
        let mut live = LiveProgress::default();
        let mut last: Option<RunRecord> = None;
        let mut next_look = Instant::now() + RECOVERY_INTERVAL;
        loop {
            let Some(mut record) = self.store.run(run)? else { return Err(self.no_run_error(run)) };
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
                // Without a watcher.
                std::thread::sleep(patience);
            }
            // However much others write meanwhile.
            if Instant::now() >= next_look {
                self.recover_if_dead(run)?;
                next_look = Instant::now() + RECOVERY_INTERVAL;
            }
        }
    }

    fn recover_if_dead(&self, run: &RunId) -> Result<(), RunnerError> {
        match self.store.run(run)? {
            Some(record) if record.status.is_working() && !self.store.is_live(run)? => {
                self.recover()?;
            }
            Some(record) if record.status == RunStatus::Pending => {
                // The worker that should have started it may have died before it could, and so may those it waits for.
                self.recover()?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// What the journal says beyond the record while the run works.
#[derive(Default)]
struct LiveProgress {
    files: u32,
    hunks: u32,
    files_covered: u32,
    hunks_covered: u32,
    /// In files that the reviewer left out.
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
                RunEvent::LeftOut { file, hunks } if !file.reason.is_gap() => {
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
            record.coverage.files_total = self.files;
            record.coverage.hunks_total = self.hunks.saturating_sub(self.hunks_left_out);
        }
        (record.coverage.files_covered, record.coverage.hunks_covered) = (self.files_covered, self.hunks_covered);
        record.finding_counts = self.counts;
    }
}
