//! `begun`: the run that somebody is about to record, so that what was made for it before can be told from what others
//! keep in the same repository when its maker dies on the way.
//!
//! Written and removed under the store's lock: who finds it there has found what a dead process left.

use std::io::Write as _;

use super::{Locked, Store, StoreError, files};
use crate::domain::RunId;

impl Store {
    /// Whether somebody is about to record a run, or died on the way. Costs next to nothing.
    pub fn has_begun(&self) -> bool {
        self.begun_path().exists()
    }
}

impl Locked<'_> {
    /// Before anything is made for a run that is not recorded yet. [`Locked::create_run`] is the end of it.
    pub fn begin_run(&self, id: &RunId) -> Result<(), StoreError> {
        let path = self.store.begun_path();
        let mut file = files::open_lock_file(&path)?;
        file.set_len(0).and_then(|()| file.write_all(id.as_str().as_bytes())).map_err(StoreError::io("write", &path))
    }

    /// The run that its maker never came to record; `None` when there is none, or it was recorded after all.
    pub fn half_made(&self) -> Result<Option<RunId>, StoreError> {
        let begun = files::read(&self.store.begun_path())?.unwrap_or_default();
        let run = std::str::from_utf8(&begun).ok().and_then(|id| id.parse::<RunId>().ok());
        match run {
            Some(run) if self.store.run(&run)?.is_none() => Ok(Some(run)),
            _ => Ok(None),
        }
    }

    /// Nothing is left of what was begun.
    pub fn end_begun(&self) -> Result<(), StoreError> {
        files::remove(&self.store.begun_path())
    }

    /// Removes the journal of a run that was never recorded.
    pub fn drop_half_made(&self, run: &RunId) -> Result<(), StoreError> {
        files::remove(&self.store.journal_path(run.as_str()))
    }
}
