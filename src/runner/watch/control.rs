//! Watchers as others handle them: start one in the background, end it, ask after it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::super::{Runner, RunnerError, process};
use crate::domain::Time;
use crate::store::{Store, StoreError, Watcher};

/// How long a watcher may take to begin or to end; own: both take milliseconds, and a large worktree some seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Where a watcher in the background writes.
const LOG: &str = "watch.log";

/// What is to be known about watching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchState {
    pub watcher: Watcher,
    pub snoozed: Option<Time>,
}

impl WatchState {
    /// Who watches, and whether somebody wants to be left alone. Makes nothing.
    pub fn of(store: &Store, now: Time) -> Result<Self, StoreError> {
        Ok(Self { watcher: store.watcher()?, snoozed: store.snoozed(now) })
    }
}

/// What came of ending a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    Now,
    /// Nobody was watching.
    Before,
}

impl Runner {
    /// Starts a watcher that goes on when whoever started it ends, unless there is one; who watches then.
    pub fn start_watch(&self) -> Result<Watcher, RunnerError> {
        match self.store.watcher()? {
            Watcher::None => {}
            watcher => return Ok(watcher),
        }
        let root = self.repo.root();
        let mut arguments = vec!["watch", "--detached"];
        if self.settings.learning.is_refused_by_flag() {
            arguments.push("--no-learning");
        }
        let mut child = process::ourselves(&self.repo, &self.paths, &root, &arguments, Stdio::null(), LOG)?;
        let give_up = Instant::now() + PATIENCE;
        let watcher = loop {
            let watcher = self.store.watcher()?;
            let ended = child.try_wait().ok().flatten().is_some();
            if matches!(watcher, Watcher::Known(_)) || ended || Instant::now() > give_up {
                break watcher;
            }
            std::thread::sleep(LOOK);
        };
        process::reap(child);
        Ok(watcher)
    }

    /// Where a watcher in the background says what it does.
    pub fn watch_log_path(&self) -> std::path::PathBuf {
        self.paths.logs.join(LOG)
    }

    /// Asks the watcher to end and waits until it has.
    ///
    /// # Errors
    /// It runs on another machine, or does not end.
    pub fn stop_watch(&self) -> Result<Stopped, RunnerError> {
        let give_up = Instant::now() + PATIENCE;
        let mut asked = None;
        loop {
            match self.store.watcher()? {
                Watcher::None => return Ok(if asked.is_some() { Stopped::Now } else { Stopped::Before }),
                // It has the lock and is about to say who it is.
                Watcher::Unknown if Instant::now() > give_up => return Err(RunnerError::WatchStays { watcher: None }),
                Watcher::Unknown => {}
                Watcher::Known(watching) if host(&watching.owner) != host(&process::owner()) => {
                    return Err(RunnerError::WatchedElsewhere { pid: watching.pid, owner: watching.owner });
                }
                Watcher::Known(watching) if Instant::now() > give_up => {
                    return Err(RunnerError::WatchStays { watcher: Some(watching.pid) });
                }
                // Asked once: another one may have begun meanwhile, and that one was not meant.
                Watcher::Known(watching) => match asked {
                    Some(pid) if pid == watching.pid => {}
                    Some(_) => return Ok(Stopped::Now),
                    None => {
                        process::ask_to_end(watching.pid);
                        asked = Some(watching.pid);
                    }
                },
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn host(owner: &str) -> &str {
    owner.rsplit('@').next().unwrap_or_default()
}
