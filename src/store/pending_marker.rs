//! Marks the run that is about to be recorded, in the file `begun`. If the process dies before it records the run, the
//! marker identifies the objects made for that run.
//!
//! The marker is written and removed under the store's lock, so a process that finds it under the lock has found the
//! leftover of a dead process.

use std::io::Write as _;

use super::{LockedStore, Store, StoreError, files};
use crate::domain::RunId;

impl Store {
    /// Returns true when a process is about to record a run, or died before it did. The check is cheap.
    pub fn has_pending_run(&self) -> bool {
        self.pending_marker_path().exists()
    }
}

impl LockedStore<'_> {
    /// Writes the marker before anything is created for an unrecorded run. [`LockedStore::create_run`] removes it.
    ///
    /// # Errors
    /// Returns an error when the marker cannot be written.
    pub fn write_pending_marker(&self, id: &RunId) -> Result<(), StoreError> {
        let path = self.store.pending_marker_path();
        let mut file = files::open_lock_file(&path)?;
        file.set_len(0).and_then(|()| file.write_all(id.as_str().as_bytes())).map_err(StoreError::io("write", &path))
    }

    /// Returns the run that was never recorded by a dead process; `None` when there is no marker or the run was
    /// recorded.
    ///
    /// # Errors
    /// Returns an error when the marker or the runs cannot be read.
    pub fn abandoned_run(&self) -> Result<Option<RunId>, StoreError> {
        let begun = files::read(&self.store.pending_marker_path())?.unwrap_or_default();
        let run = std::str::from_utf8(&begun).ok().and_then(|id| id.parse::<RunId>().ok());
        match run {
            Some(run) if self.store.run(&run)?.is_none() => Ok(Some(run)),
            _ => Ok(None),
        }
    }

    /// Removes the marker.
    ///
    /// # Errors
    /// Returns an error when the marker cannot be removed.
    pub fn clear_pending_marker(&self) -> Result<(), StoreError> {
        files::remove(&self.store.pending_marker_path())
    }

    /// Removes the journal of a run that was never recorded.
    ///
    /// # Errors
    /// Returns an error when the journal cannot be removed.
    pub fn remove_abandoned_journal(&self, run: &RunId) -> Result<(), StoreError> {
        self.store.remove_journal(run.as_str())
    }
}
