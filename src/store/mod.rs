//! The run store: append-only journals, sidecars, locks, tailing, verify and repair.
//!
//! Invariants: one write per line under an exclusive lock; what carries a finding or a change of state is synced
//! before the call returns; nothing is rewritten in place; lock files are never unlinked; every error names its path.

mod error;
mod view;

pub use error::StoreError;
pub use view::{FindingRow, RunRow, View, ViewBuilder};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{Disposition, Finding, FindingId, JournalEntry, RunEvent, RunId, RunOutput, RunRecord, Time};

/// The store of one repository: `<home>/state/review/repo-<key>/auto-review`.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// What `repo.json` says about the repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RepoInfo {
    pub version: u32,
    pub key: String,
    pub name: String,
    pub common_dir: String,
}

/// The proof that a worker lives: an exclusive lock on `locks/<run_id>.lock`, given up by the kernel when it dies.
#[derive(Debug)]
pub struct RunLock {
    _file: std::fs::File,
}

/// Appends to one run's journal. One writer per run: whoever holds its [`RunLock`].
#[derive(Debug)]
pub struct Journal {
    _path: PathBuf,
}

impl Journal {
    /// Appends an event with the next sequence number; synced when it carries a finding or a change of state.
    pub fn append(&mut self, _at: Time, _event: RunEvent) -> Result<JournalEntry, StoreError> {
        unimplemented!()
    }
}

impl Store {
    /// The store below a state folder. Reads of a store that does not exist yet find it empty; the first write makes it.
    pub fn open(_state: &Path, _info: RepoInfo) -> Result<Self, StoreError> {
        unimplemented!()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs `work` under the store's exclusive lock, so that a decision and the line that records it are one step.
    /// Appends inside it must go through `Locked`.
    pub fn locked<T>(&self, _work: impl FnOnce(&Locked<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        unimplemented!()
    }

    /// The latest record of a run.
    pub fn run(&self, _id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        unimplemented!()
    }

    /// Changes a run's record: reads its latest line, applies `change`, appends the result; fields this version does
    /// not know survive. A terminal status never changes to another (the call then returns the record as it is).
    pub fn update_run(
        &self,
        _id: &RunId,
        _now: Time,
        _change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        unimplemented!()
    }

    /// Opens a run's journal for appending; seals a torn last line.
    pub fn journal(&self, _id: &RunId) -> Result<Journal, StoreError> {
        unimplemented!()
    }

    /// Every readable entry of a run's journal, in order.
    pub fn read_journal(&self, _id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        unimplemented!()
    }

    /// Writes `outputs/<run_id>.json` atomically. An output that is there already stays.
    pub fn write_output(&self, _output: &RunOutput) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// The result of a run: its output, or what its journal holds so far.
    pub fn output(&self, _id: &RunId) -> Result<Option<RunOutput>, StoreError> {
        unimplemented!()
    }

    /// One finding with its present status, as its last run reported it.
    pub fn finding(&self, _id: &FindingId) -> Result<Option<Finding>, StoreError> {
        unimplemented!()
    }

    /// Everything ever said about a finding, oldest first.
    pub fn dispositions(&self, _id: &FindingId) -> Result<Vec<Disposition>, StoreError> {
        unimplemented!()
    }

    /// Appends dispositions as one write, synced.
    pub fn append_dispositions(&self, _lines: &[Disposition]) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// Takes a run's lock; `None` when another process holds it.
    pub fn lock_run(&self, _id: &RunId) -> Result<Option<RunLock>, StoreError> {
        unimplemented!()
    }

    /// Whether some process holds the run's lock.
    pub fn is_live(&self, _id: &RunId) -> Result<bool, StoreError> {
        unimplemented!()
    }

    pub fn epoch(&self) -> Result<u64, StoreError> {
        unimplemented!()
    }

    /// Adds one to the epoch and returns it.
    pub fn advance_epoch(&self) -> Result<u64, StoreError> {
        unimplemented!()
    }

    /// Everything, for lists: all runs and findings with their present status.
    pub fn view(&self) -> Result<Arc<View>, StoreError> {
        unimplemented!()
    }

    /// The newest runs and their findings only, read from the end of the files: for a first paint at once.
    pub fn recent(&self, _runs: usize) -> Result<Arc<View>, StoreError> {
        unimplemented!()
    }
}

/// Writes under the store's lock.
#[derive(Debug)]
pub struct Locked<'a> {
    _store: &'a Store,
}

impl Locked<'_> {
    /// The view as it is under the lock.
    pub fn view(&self) -> Result<Arc<View>, StoreError> {
        unimplemented!()
    }

    /// Appends a new run's first line.
    pub fn create_run(&self, _record: &RunRecord) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// As [`Store::update_run`].
    pub fn update_run(
        &self,
        _id: &RunId,
        _now: Time,
        _change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        unimplemented!()
    }
}
