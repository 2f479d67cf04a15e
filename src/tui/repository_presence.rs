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
use crate::git::{Repo, RepositoryPlace};
use crate::store::TailStopper;

/// Time between two looks while the repository is gone: short for a person who mounts a disk again.
const RETURN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches over the place of the repository.
pub struct RepositoryPresence {
    /// Path of the root, as it is shown.
    root: String,
    place: RepositoryPlace,
    is_gone: Mutex<bool>,
    /// Ends the wait for changes of the store, with which the freshness of runs is read.
    tail: OnceLock<TailStopper>,
    messages: MessageSender,
}

impl RepositoryPresence {
    /// Watches over a repository that was there when it was opened.
    pub fn new(repo: &Repo, messages: MessageSender) -> Arc<Self> {
        let root = text::sanitize_line(&repo.root().to_string_lossy()).into_owned();
        Arc::new(Self { root, place: repo.place(), is_gone: Mutex::new(false), tail: OnceLock::new(), messages })
    }

    /// Has the freshness of runs read again when the repository goes or comes.
    pub fn wake_at_change(&self, tail: TailStopper) {
        let _ = self.tail.set(tail);
    }

    /// Looks whether the repository is there, and reports a change.
    pub fn look(self: &Arc<Self>) {
        let mut known = self.is_gone.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = self.place.is_gone();
        if std::mem::replace(&mut *known, is_gone) == is_gone {
            return;
        }
        // Under the lock, so that the reports of two threads keep their order.
        let _ = self.messages.send(AppMessage::RepositoryGone(is_gone.then(|| self.root.clone())));
        drop(known);
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
            while *presence.is_gone.lock().unwrap_or_else(PoisonError::into_inner) {
                thread::sleep(RETURN_CHECK_INTERVAL);
                presence.look();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::event_source::EventSource;
    use super::*;

    #[test]
    fn a_repository_that_went_before_the_first_look_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("repo");
        git2::Repository::init(&place).expect("a repository");
        let repo = Repo::discover(&place).expect("opened");
        fs::rename(&place, folder.path().join("away")).expect("renamed");
        let (mut events, _typed, messages) = EventSource::piped();
        let presence = RepositoryPresence::new(&repo, messages);
        presence.look();
        assert!(
            matches!(events.try_next(), Some(AppMessage::RepositoryGone(Some(root))) if root.trim_end_matches('/').ends_with("/repo"))
        );
        presence.look();
        assert!(events.try_next().is_none(), "it is said once");
        fs::rename(folder.path().join("away"), &place).expect("renamed");
        presence.look();
        assert!(matches!(events.try_next(), Some(AppMessage::RepositoryGone(None))));
    }
}
