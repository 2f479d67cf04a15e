//! Controls watchers from other processes: starts one in the background, stops it, reads its state.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::domain::Time;
use crate::runner::{RunnerError, Watcher, process};
use crate::store::{Store, StoreError, WatcherStatus};

/// Time that a watcher may take to begin or to end. Not from the literature: both take milliseconds, or some seconds
/// for a large worktree.
const MAX_WATCHER_WAIT: Duration = Duration::from_secs(20);
/// Interval between two checks during that time.
const WATCHER_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Log file of a watcher in the background.
const WATCH_LOG: &str = "watch.log";

/// The state of watching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchState {
    pub watcher: WatcherStatus,
    pub snoozed: Option<Time>,
}

impl WatchState {
    /// Reads the watcher and the snooze. Creates nothing.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn read(store: &Store, now: Time) -> Result<Self, StoreError> {
        Ok(Self { watcher: store.watcher_status()?, snoozed: store.snoozed_until(now) })
    }
}

/// The outcome of stopping a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopOutcome {
    Now,
    /// There was no watcher.
    Before,
}

impl Watcher<'_> {
    /// Starts a watcher that outlives the caller, unless there is one. Returns the watcher that is active then.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the process cannot be started.
    pub fn start_watch(&self) -> Result<WatcherStatus, RunnerError> {
        match self.services.store.watcher_status()? {
            WatcherStatus::None => {}
            watcher => return Ok(watcher),
        }
        let root = self.services.repo.root();
        let mut arguments = vec!["watch", "--detached"];
        if self.services.settings.learning.is_refused_by_flag() {
            arguments.push("--no-learning");
        }
        let mut child = process::spawn_detached(
            &self.services.repo,
            &self.services.paths,
            &root,
            &arguments,
            Stdio::null(),
            WATCH_LOG,
        )?;
        let give_up = Instant::now() + MAX_WATCHER_WAIT;
        let watcher = loop {
            let watcher = self.services.store.watcher_status()?;
            let ended = child.try_wait().ok().flatten().is_some();
            if matches!(watcher, WatcherStatus::Known(_)) || ended || Instant::now() > give_up {
                break watcher;
            }
            std::thread::sleep(WATCHER_POLL_INTERVAL);
        };
        process::reap(child);
        Ok(watcher)
    }

    /// Returns the path of the background watcher's log.
    pub fn watch_log_path(&self) -> std::path::PathBuf {
        self.services.paths.logs.join(WATCH_LOG)
    }

    /// Asks the watcher to end and waits until it has ended.
    ///
    /// # Errors
    ///
    /// If the watcher runs on another machine, or does not end.
    pub fn stop_watch(&self) -> Result<StopOutcome, RunnerError> {
        let give_up = Instant::now() + MAX_WATCHER_WAIT;
        let mut asked = None;
        loop {
            match self.services.store.watcher_status()? {
                WatcherStatus::None => return Ok(if asked.is_some() { StopOutcome::Now } else { StopOutcome::Before }),
                // The watcher has the lock and has not written its identity yet.
                WatcherStatus::Unknown if Instant::now() > give_up => {
                    return Err(RunnerError::WatcherStays { watcher: None });
                }
                WatcherStatus::Unknown => {}
                WatcherStatus::Known(watching) if owner_host(&watching.owner) != owner_host(&process::owner()) => {
                    return Err(RunnerError::WatchedElsewhere { pid: watching.pid, owner: watching.owner });
                }
                WatcherStatus::Known(watching) if Instant::now() > give_up => {
                    return Err(RunnerError::WatcherStays { watcher: Some(watching.pid) });
                }
                // Signal only one process: a new watcher may have begun meanwhile.
                WatcherStatus::Known(watching) => match asked {
                    Some(pid) if pid == watching.pid => {}
                    Some(_) => return Ok(StopOutcome::Now),
                    None => {
                        process::ask_to_end(watching.pid);
                        asked = Some(watching.pid);
                    }
                },
            }
            std::thread::sleep(WATCHER_POLL_INTERVAL);
        }
    }
}

fn owner_host(owner: &str) -> &str {
    owner.rsplit('@').next().unwrap_or_default()
}
