//! What the threads of a watcher tell its loop: something moved, somebody wants it to end.
//!
//! Invariant: bounded. However much moves, what is kept of it is [`MOST_PATHS`] paths, and beyond them that there was more.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Paths kept until the loop looks. Own: an editor's save is two or three, a branch switch thousands, and from some number
/// on looking at all of the worktree once costs less than looking at each.
const MOST_PATHS: usize = 512;

/// What happened at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// Something was made here, or moved here.
    Made,
    /// It was removed, or moved away.
    Gone,
    Changed,
}

/// All that was told since the last look.
#[derive(Debug, Default)]
pub(super) struct News {
    pub paths: Vec<(PathBuf, Happened)>,
    /// More paths than are kept, or the system lost some.
    pub more: bool,
    /// The system cannot go on telling; why.
    pub broken: Option<String>,
    /// A snooze began or ended.
    pub snooze: bool,
    pub stop: bool,
}

impl News {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.more && self.broken.is_none() && !self.snooze && !self.stop
    }

    pub fn path(&mut self, path: PathBuf, happened: Happened) {
        if self.paths.last().is_some_and(|(last, same)| *last == path && *same == happened) {
            return;
        }
        match self.paths.len() < MOST_PATHS {
            true => self.paths.push((path, happened)),
            false => self.more = true,
        }
    }
}

/// Where news is left and waited for.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    news: Mutex<News>,
    bell: Condvar,
}

impl Mailbox {
    pub fn tell(&self, change: impl FnOnce(&mut News)) {
        let mut news = self.lock();
        change(&mut news);
        if !news.is_empty() {
            self.bell.notify_one();
        }
    }

    /// Takes what there is; waits for something, at most so long. Without a limit nothing wakes but news.
    pub fn wait(&self, patience: Option<Duration>) -> News {
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

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_paths_are_a_few_and_a_word() {
        let mail = Mailbox::default();
        for n in 0..1_000_000 {
            mail.tell(|news| news.path(PathBuf::from(format!("/w/{n}")), Happened::Made));
        }
        let news = mail.wait(None);
        assert_eq!((news.paths.len(), news.more), (MOST_PATHS, true));
        assert!(mail.wait(Some(Duration::ZERO)).is_empty(), "it is taken");
    }

    #[test]
    fn one_file_written_often_is_one_path() {
        let mail = Mailbox::default();
        for _ in 0..10_000 {
            mail.tell(|news| news.path(PathBuf::from("/w/log"), Happened::Changed));
        }
        assert_eq!(mail.wait(None).paths.len(), 1);
    }
}
