//! `begun`: the run that somebody is about to record, so that what was made for it before can be told from what others
//! keep in the same repository when its maker dies on the way.
//!
//! Written and removed under the store's lock: who finds it there has found what a dead process left.

use std::io::Write as _;

use super::{LockedStore, Store, StoreError, files};
use crate::domain::RunId;

impl Store {
    /// Whether somebody is about to record a run, or died on the way. Costs next to nothing.
    pub fn has_pending_run(&self) -> bool {
        self.pending_marker_path().exists()
    }
}

impl LockedStore<'_> {
    /// Before anything is made for a run that is not recorded yet. [`Locked::create_run`] is the end of it.
    pub fn write_pending_marker(&self, id: &RunId) -> Result<(), StoreError> {
        let path = self.store.pending_marker_path();
        let mut file = files::open_lock_file(&path)?;
        file.set_len(0).and_then(|()| file.write_all(id.as_str().as_bytes())).map_err(StoreError::io("write", &path))
    }

    /// The run that its maker never came to record; `None` when there is none, or it was recorded after all.
    pub fn abandoned_run(&self) -> Result<Option<RunId>, StoreError> {
        let begun = files::read(&self.store.pending_marker_path())?.unwrap_or_default();
        let run = std::str::from_utf8(&begun).ok().and_then(|id| id.parse::<RunId>().ok());
        match run {
            Some(run) if self.store.run(&run)?.is_none() => Ok(Some(run)),
            _ => Ok(None),
        }
    }

    /// Nothing is left of what was begun.
    pub fn clear_pending_marker(&self) -> Result<(), StoreError> {
        files::remove(&self.store.pending_marker_path())
    }

    /// Removes the journal of a run that was never recorded.
    pub fn remove_abandoned_journal(&self, run: &RunId) -> Result<(), StoreError> {
        files::remove(&self.store.journal_path(run.as_str()))
    }
}
