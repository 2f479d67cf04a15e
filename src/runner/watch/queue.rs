//! What the threads of a watcher tell its loop: something moved, somebody wants it to end.
//!
//! Invariant: bounded. However much moves, what is kept of it is [`MOST_PATHS`] paths, and beyond them that there was more.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Paths kept until the loop looks. Own: an editor's save is two or three, a branch switch thousands, and from some number
/// on looking at all of the worktree once costs less than looking at each.
const MAX_QUEUED_PATHS: usize = 512;

/// What happened at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathEventKind {
    /// Something was made here, or moved here.
    Made,
    /// It was removed, or moved away.
    Gone,
    Changed,
}

/// All that was told since the last look.
#[derive(Debug, Default)]
pub(super) struct WatchEvents {
    pub paths: Vec<(PathBuf, PathEventKind)>,
    /// More paths than are kept, or the system lost some.
    pub overflowed: bool,
    /// The system cannot go on telling; why.
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

/// Where news is left and waited for.
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

    /// Takes what there is; waits for something, at most so long. Without a limit nothing wakes but news.
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
