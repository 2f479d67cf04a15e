//! Notices that the repository is not at its place any more, and when it is back.
//!
//! Threads that read from the repository look, so that a cockpit at rest looks at nothing. Only while the repository is
//! gone, a thread looks once a second.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::effects::spawn_worker;
use super::event_source::MessageSender;
use super::message::AppMessage;
use crate::domain::text;
use crate::git::Repo;
use crate::store::TailStopper;

/// Time between two looks while the repository is gone: short for a person who mounts a disk again.
const RETURN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches over the place of the repository.
pub struct RepositoryPresence {
    /// Path of the root, as it is shown.
    root: String,
    watched: Mutex<WatchedRepository>,
    /// Ends the wait for changes of the store, with which the freshness of runs is read.
    tail: OnceLock<TailStopper>,
    messages: MessageSender,
}

struct WatchedRepository {
    /// `None` if the repository could not be opened a second time; then nothing is noticed.
    repo: Option<Repo>,
    is_gone: bool,
}

impl RepositoryPresence {
    /// Watches over a repository, which is there now.
    pub fn new(repo: &Repo, messages: MessageSender) -> Arc<Self> {
        let root = text::sanitize_line(&repo.root().to_string_lossy()).into_owned();
        let watched = Mutex::new(WatchedRepository { repo: repo.reopen().ok(), is_gone: false });
        Arc::new(Self { root, watched, tail: OnceLock::new(), messages })
    }

    /// Has the freshness of runs read again when the repository goes or comes.
    pub fn wake_at_change(&self, tail: TailStopper) {
        let _ = self.tail.set(tail);
    }

    /// Looks whether the repository is there, and reports a change.
    pub fn look(self: &Arc<Self>) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = watched.repo.as_ref().is_some_and(Repo::is_gone);
        if std::mem::replace(&mut watched.is_gone, is_gone) == is_gone {
            return;
        }
        // Under the lock, so that the reports of two threads keep their order.
        let _ = self.messages.send(AppMessage::RepositoryGone(is_gone.then(|| self.root.clone())));
        drop(watched);
        if let Some(tail) = self.tail.get() {
            tail.wake();
        }
        if is_gone {
            self.await_return();
        }
    }

    fn await_return(self: &Arc<Self>) {
        let presence = Arc::clone(self);
        spawn_worker("repository", self.messages.clone(), move || {
            while presence.watched.lock().unwrap_or_else(PoisonError::into_inner).is_gone {
                thread::sleep(RETURN_CHECK_INTERVAL);
                presence.look();
            }
        });
    }
}
