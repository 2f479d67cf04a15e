//! Spawns workers. The worker itself decides whether its run begins, see [`crate::runner::Worker`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::domain::{ErrorClass, RunId, RunRecord, RunStatus};
use crate::policy::MAX_ATTEMPTS;
use crate::review::JournalState;
use crate::runner::{Launcher, RunnerError, conclude, known_runs, process};
use crate::store::{StartLock, StoreView};

/// Name of the workers' log file.
pub(in crate::runner) const WORKER_LOG: &str = "worker.log";

/// The result of starting a worker.
enum StartResult {
    Begun,
    /// A worker that was started for the run is alive.
    Underway,
    /// The run has failed, because no worker ever claimed it.
    GivenUp,
}

/// Result of one look at the pending runs.
#[derive(Default)]
pub(in crate::runner) struct StartReport {
    /// Runs whose worker was started.
    pub started: Vec<RunId>,
    /// Runs whose worker was started earlier, lives, and has not claimed its run yet.
    pub unclaimed: Vec<RunId>,
    /// Runs whose worker could not be started, with the error.
    pub failed: Vec<(RunId, RunnerError)>,
}

/// A run that waits for a worker.
pub(in crate::runner) struct PendingRun {
    pub run: RunId,
    pub worktree: PathBuf,
}

impl Launcher<'_> {
    /// Starts workers for pending runs while fewer than `max_parallel_runs` work. Returns the started runs.
    ///
    /// # Errors
    ///
    /// If the runs cannot be listed, or no worker could be started at all.
    pub fn start_pending(&self) -> Result<Vec<RunId>, RunnerError> {
        self.start_next(self.services.store.runs_view()?.as_ref(), None, &[])
    }

    /// Starts workers like [`Launcher::start_waiting`]. Returns the started runs.
    ///
    /// # Errors
    ///
    /// If no worker could be started at all.
    pub(in crate::runner) fn start_next(
        &self,
        view: &StoreView,
        added: Option<PendingRun>,
        ended: &[RunId],
    ) -> Result<Vec<RunId>, RunnerError> {
        let mut report = self.start_waiting(view, added, ended);
        match report.failed.pop() {
            Some((_, error)) if report.started.is_empty() => Err(error),
            _ => Ok(report.started),
        }
    }

    /// Starts workers for pending runs while slots are free, from a view that may be slightly old: `added` is a new run,
    /// and the runs in `ended` have ended since. A worker too many costs only its start, because each worker checks for
    /// itself whether it may begin.
    ///
    /// A run takes no slot from the runs behind it if its worker cannot be started, or ends before it reads the run.
    /// Such a run fails after [`MAX_ATTEMPTS`] starts.
    pub(in crate::runner) fn start_waiting(
        &self,
        view: &StoreView,
        added: Option<PendingRun>,
        ended: &[RunId],
    ) -> StartReport {
        let mut report = StartReport::default();
        let (mut busy, mut waiting) = (HashSet::new(), Vec::new());
        // Oldest first.
        for row in known_runs::run_rows(view).collect::<Vec<_>>().into_iter().rev() {
            if row.status.is_terminal() {
                continue;
            }
            let Ok(run) = row.id.parse::<RunId>() else { continue };
            match row.status {
                _ if ended.contains(&run) => {}
                // The lock is held: a worker is about to begin the run.
                RunStatus::Pending if self.services.has_worker(&run) => {
                    busy.insert(self.slot_of(&run));
                    report.unclaimed.push(run);
                }
                RunStatus::Pending => waiting.push(PendingRun { run, worktree: PathBuf::from(row.worktree) }),
                _ if self.services.has_worker(&run) && !self.waits_elsewhere(&run) => {
                    busy.insert(self.slot_of(&run));
                }
                _ => {}
            }
        }
        waiting.extend(added);
        let slots = self.services.settings.max_parallel_runs.max(1);
        let mut has_panel = busy.iter().any(|slot| self.is_panel(slot));
        for next in waiting {
            if busy.len() >= slots && !has_panel {
                break;
            }
            let slot = self.slot_of(&next.run);
            // A panel's other members have the slot already.
            if (busy.len() >= slots && !busy.contains(&slot)) || self.must_wait_by_id(&next.run) {
                continue;
            }
            has_panel |= slot != next.run;
            match self.start_worker(&next) {
                Ok(StartResult::Begun) => {
                    busy.insert(slot);
                    report.started.push(next.run);
                }
                Ok(StartResult::Underway) => {
                    busy.insert(slot);
                    report.unclaimed.push(next.run);
                }
                Ok(StartResult::GivenUp) => {}
                Err(error) => {
                    tracing::warn!(run = %next.run, %error, "no worker was started");
                    report.failed.push((next.run, error));
                }
            }
        }
        report
    }

    /// Returns `true` if a run must stay pending because an older run may finish first.
    /// The run of a panel waits for its members.
    pub(in crate::runner) fn must_wait(&self, run: &RunRecord) -> bool {
        if let Some(panel) = &run.links.panel {
            return self.has_active_member(panel);
        }
        let Some(older) = run.links.waits_for.as_ref().filter(|older| **older < run.run_id) else { return false };
        match self.services.store.run(older) {
            Ok(Some(older)) => !older.status.is_terminal() && !older.is_paused(),
            // The awaited run is unknown.
            Ok(None) | Err(_) => false,
        }
    }

    fn must_wait_by_id(&self, run: &RunId) -> bool {
        self.services.store.run(run).ok().flatten().is_some_and(|run| self.must_wait(&run))
    }

    fn start_worker(&self, next: &PendingRun) -> Result<StartResult, RunnerError> {
        let Some(starting) = self.services.store.lock_start(&next.run)? else { return Ok(StartResult::Underway) };
        if starting.failed_starts() >= u64::from(MAX_ATTEMPTS) {
            self.fail_unclaimed_run(&next.run)?;
            return Ok(StartResult::GivenUp);
        }
        self.spawn_worker(&next.run, &next.worktree, starting)?;
        Ok(StartResult::Begun)
    }

    /// Fails a run that no worker ever claimed.
    fn fail_unclaimed_run(&self, run: &RunId) -> Result<(), RunnerError> {
        self.services.store.with_lock_as(|_| {
            let Some(record) = self.services.store.run(run)? else { return Ok(()) };
            if record.status != RunStatus::Pending {
                return Ok(());
            }
            let replayed = match record.attempt {
                0 => JournalState::default(),
                _ => self.services.replay_journal(run)?,
            };
            let log = self.services.paths.logs.join(WORKER_LOG);
            let text = format!(
                "{MAX_ATTEMPTS} workers were started for it and none of them came as far as beginning; {} says why",
                log.display()
            );
            let mut outcome = conclude::failed_outcome(&replayed, ErrorClass::WorkerDied, text);
            if record.attempt == 0 {
                outcome.coverage = record.outcome.coverage.clone();
            }
            self.services.closer().conclude_run(run, &mut outcome, record.usage.phase_timings).map(drop)
        })
    }

    /// Starts workers like [`crate::runner::Launcher::start_pending`], but only logs a failure: the next process starts the runs.
    pub(in crate::runner) fn start_pending_or_log(&self) {
        if let Err(error) = self.start_pending() {
            tracing::warn!(%error, "no worker was started");
        }
    }

    /// Returns the folder in which a worker finds this repository: the run's worktree, or the main worktree if that is
    /// gone or replaced.
    fn worker_folder(&self, worktree: &Path) -> PathBuf {
        let root = self.services.repo.root();
        let ours = worktree != root && self.services.repo.is_discoverable_from(worktree);
        if ours { worktree.to_owned() } else { root }
    }

    fn spawn_worker(&self, run: &RunId, worktree: &Path, starting: StartLock) -> Result<(), RunnerError> {
        let folder = self.worker_folder(worktree);
        // Counted before the start, and locked for the life of the worker.
        let lock = starting.record_start()?;
        let arguments = ["worker", run.as_str()];
        let child =
            process::spawn_detached(&self.services.repo, &self.services.paths, &folder, &arguments, lock, WORKER_LOG)?;
        process::reap(child);
        Ok(())
    }
}
