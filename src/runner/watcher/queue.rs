//! The queue between the threads of a watcher and its loop: events and the request to stop.
//!
//! Invariant: the queue is bounded. It keeps at most [`MAX_QUEUED_PATHS`] paths, and then only a flag for further
//! paths.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of queued paths. Not from the literature: an editor's save changes two or three paths, a branch
/// switch thousands; for many paths, one check of the whole worktree is cheaper than a check of each path.
const MAX_QUEUED_PATHS: usize = 512;

/// The kind of event at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathEventKind {
    /// The path was created, or something was moved to it.
    Made,
    /// The path was removed or moved away.
    Gone,
    Changed,
}

/// All events since the last check.
#[derive(Debug, Default)]
pub(super) struct WatchEvents {
    pub paths: Vec<(PathBuf, PathEventKind)>,
    /// There were more paths than the queue keeps, or the system lost events.
    pub overflowed: bool,
    /// The reason why the system sends no more events.
    pub broken: Option<String>,
    /// A snooze began or ended.
    pub snooze_changed: bool,
    pub stop: bool,
}

impl WatchEvents {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.overflowed && self.broken.is_none() && !self.snooze_changed && !self.stop
    }

    pub fn push_path(&mut self, path: PathBuf, happened: PathEventKind) {
        if self.paths.last().is_some_and(|(last, same)| *last == path && *same == happened) {
            return;
        }
        match self.paths.len() < MAX_QUEUED_PATHS {
            true => self.paths.push((path, happened)),
            false => self.overflowed = true,
        }
    }
}

/// The queue with its condition variable.
#[derive(Debug, Default)]
pub(super) struct WatchQueue {
    news: Mutex<WatchEvents>,
    bell: Condvar,
}

impl WatchQueue {
    pub fn update(&self, change: impl FnOnce(&mut WatchEvents)) {
        let mut news = self.lock();
        change(&mut news);
        if !news.is_empty() {
            self.bell.notify_one();
        }
    }

    /// Takes all events. Waits for the first event, at most for `patience`; without a limit only an event wakes the
    /// caller.
    pub fn wait(&self, patience: Option<Duration>) -> WatchEvents {
        let give_up = patience.map(|patience| Instant::now() + patience);
        let mut news = self.lock();
        while news.is_empty() {
            news = match give_up.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => self.bell.wait_timeout(news, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.bell.wait(news).unwrap_or_else(PoisonError::into_inner),
            };
        }
        std::mem::take(&mut news)
    }

    fn lock(&self) -> MutexGuard<'_, WatchEvents> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_paths_are_a_few_and_a_word() {
        let mail = WatchQueue::default();
        for n in 0..1_000_000 {
            mail.update(|news| news.push_path(PathBuf::from(format!("/w/{n}")), PathEventKind::Made));
        }
        let news = mail.wait(None);
        assert_eq!((news.paths.len(), news.overflowed), (MAX_QUEUED_PATHS, true));
        assert!(mail.wait(Some(Duration::ZERO)).is_empty(), "it is taken");
    }

    #[test]
    fn one_file_written_often_is_one_path() {
        let mail = WatchQueue::default();
        for _ in 0..10_000 {
            mail.update(|news| news.push_path(PathBuf::from("/w/log"), PathEventKind::Changed));
        }
        assert_eq!(mail.wait(None).paths.len(), 1);
    }
}
