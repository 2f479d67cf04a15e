//! Waits for the end of a run. Changes of the store's files wake the waiting process; a free lock reveals a dead
//! worker.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::domain::{FindingCounts, RunEvent, RunId, RunRecord, TurnPhase};
use crate::runner::control::run_check::WaitPatience;
use crate::runner::reviewer_access::model_reviewer::max_turns;
use crate::runner::{RunControl, RunnerError};
use crate::store::{Heartbeat, JournalFollower, StoreChange};

/// Interval between two checks of the worker, because the death of a process wakes nobody.
const RECOVERY_INTERVAL: Duration = Duration::from_millis(500);

/// Minimum time between two looks at the store because of a journal, which says what is shown as progress.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Minimum time between two looks because of the record of a run: somebody waits for its end.
const MIN_RECORD_INTERVAL: Duration = Duration::from_millis(2);
/// Minimum time between two reports of progress, which people read.
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Stops the thread that waits for the store when it is dropped.
struct StopOnDrop(crate::store::TailStopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Progress of a run that a process waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitProgress {
    /// Record of the run, with up-to-date counts of coverage and findings.
    pub run: RunRecord,
    /// Turn that the run's model works on; `None` before the first turn, and for a reviewer without turns.
    pub turn: Option<WaitedTurn>,
    /// Activity of the worker; `None` if it reports none.
    pub pulse: Option<Heartbeat>,
}

/// Turn of a run that a process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitedTurn {
    /// Number of the turn, from 1.
    pub number: u32,
    /// Maximum number of turns.
    pub of: u32,
    /// Phase of the review.
    pub phase: TurnPhase,
}

impl RunControl<'_> {
    /// Blocks until the run has ended. Calls `progress` with the changes of the run and of its worker's activity, ten times a
    /// second at most; without changes about twice a second while the worker is active; and at the end, at once. If `progress`
    /// returns `false`, stops waiting; the run continues. Recovers a run whose worker dies meanwhile, and starts a pending run
    /// that nobody starts.
    ///
    /// # Errors
    ///
    /// If there is no such run, if the store cannot be read, or if nothing that this process can do lets the run go on.
    pub fn wait_for_run(
        &self,
        run: &RunId,
        progress: &mut dyn FnMut(&WaitProgress) -> bool,
    ) -> Result<RunRecord, RunnerError> {
        let tail = self.services.store.open_tail().with_min_interval(MIN_LOOK_INTERVAL);
        let mut tail = tail.with_min_run_interval(MIN_RECORD_INTERVAL);
        let _stop = StopOnDrop(tail.stopper());
        let (sender, changes) = channel();
        let watcher = std::thread::Builder::new().name("store-tail".to_owned()).spawn(move || {
            loop {
                match tail.wait() {
                    StoreChange::Viewed | StoreChange::Delivery => {}
                    StoreChange::Store | StoreChange::Heartbeat if sender.send(()).is_ok() => {}
                    StoreChange::Store | StoreChange::Heartbeat | StoreChange::Stopped => return,
                }
            }
        });
        if let Err(error) = watcher {
            tracing::warn!(%error, "the store is looked at twice a second only");
        }
        let mut journal = self.services.store.follow_journal(run, 0);
        let mut live = LiveProgress::default();
        let mut last: Option<(WaitProgress, Instant)> = None;
        let mut is_due = false;
        let mut next_look = Instant::now() + RECOVERY_INTERVAL;
        let mut waited = WaitPatience::default();
        loop {
            let Some(mut record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if !record.status.is_terminal() {
                live.advance(&mut journal)?;
                live.fill_record(&mut record);
            }
            let pulse = self.services.store.heartbeat(run).filter(|_| record.status.is_working());
            let now = WaitProgress { turn: self.waited_turn(&record, &live), run: record, pulse };
            let is_new = last.as_ref().is_none_or(|(told, _)| *told != now) || (is_due && now.pulse.is_some());
            let has_ended = now.run.status.is_terminal();
            let since_last = last.as_ref().map_or(MIN_PROGRESS_INTERVAL, |(_, at)| at.elapsed());
            let rest = MIN_PROGRESS_INTERVAL.saturating_sub(since_last);
            let mut patience = next_look.saturating_duration_since(Instant::now());
            if is_new && (has_ended || rest.is_zero()) {
                let go_on = progress(&now);
                if has_ended || !go_on {
                    return Ok(now.run);
                }
                last = Some((now, Instant::now()));
            } else if is_new {
                // The next look reports it, or what it has become until then.
                patience = patience.min(rest);
            }
            if let Err(RecvTimeoutError::Disconnected) = changes.recv_timeout(patience) {
                // The watcher thread is gone.
                std::thread::sleep(patience);
            }
            // All changes until now are seen in one look.
            while changes.try_recv().is_ok() {}
            // Checked on schedule, however often the store changes.
            is_due = Instant::now() >= next_look;
            if is_due {
                if let Some(reason) = waited.count(self.check_run(run)?) {
                    return Err(RunnerError::Unsettled { run: run.clone(), reason });
                }
                next_look = Instant::now() + RECOVERY_INTERVAL;
            }
        }
    }

    fn waited_turn(&self, run: &RunRecord, live: &LiveProgress) -> Option<WaitedTurn> {
        let (number, phase) = live.turn.filter(|_| run.status.is_working())?;
        let settings = self.services.settings.reviewers.get(&run.reviewed_by.name)?;
        Some(WaitedTurn { number, of: max_turns(settings, &self.services.settings.window), phase })
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
    /// The last turn that was begun, with its phase.
    turn: Option<(u32, TurnPhase)>,
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
                RunEvent::TurnAsked { turn, phase, .. } => self.turn = Some((turn, phase)),
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
