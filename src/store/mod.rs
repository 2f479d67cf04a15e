//! The run store: append-only journals, sidecars, locks, tailing, verify and repair.
//!
//! Invariants: one write per line under an exclusive lock; what carries a finding or a change of state is synced
//! before the call returns; nothing is rewritten in place; lock files are never unlinked; every error names its path.
//!
//! | file | for |
//! |---|---|
//! | `files` | private folders, appends that seal torn lines, atomic sidecars |
//! | `lines` | lines of a file, forwards and backwards |
//! | `lock` | the store's lock, and each run's as the proof of liveness |
//! | `record` | run records: the latest of a run, changes that keep unknown fields |
//! | `journal` | a run's journal: append, read, follow |
//! | `pulse` | what a working run is doing this moment |
//! | `output` | outputs, findings by id, dispositions |
//! | [`triage`] | undo and redo, pure |
//! | `latest` | where findings stand, read from the end of `triage.ndjson` |
//! | `said` | what was last said about findings, and the engine's word after it |
//! | `mutes` | the kinds of findings that are not raised |
//! | `news` | what was set right while nobody looked |
//! | `begun` | the run that somebody is about to record |
//! | `surfaced` | ledgers that were handed to an assistant |
//! | `records` | the latest records of all runs |
//! | `fixes` | fixes, their patches, and what was in files before |
//! | `parse`, `shelf`, `columns`, `live` | lines as rows; tables of rows that are cheap to copy |
//! | `load`, `checkpoint`, `view` | from files to a [`View`], the derived file that makes it quick |
//! | `tail` | waiting for changes |
//! | `watch` | who watches the repository, and the snooze |
//! | `check`, `prune` | verify, repair, prune |

mod check;
mod checkpoint;
mod chunked_columns;
mod cross_check;
mod error;
pub(crate) mod files;
mod fixes;
mod heartbeat;
mod journal;
mod latest_dispositions;
mod latest_records;
mod latest_statuses;
mod ledger_deliveries;
mod lines;
mod live_journal;
mod load;
mod lock;
mod muted_kinds;
mod output;
mod parse;
mod pending_lessons;
mod pending_marker;
mod prune;
mod recovery_notices;
mod run_record;
mod spending;
mod tables;
mod tail;
pub mod triage;
mod view;
mod watcher_state;

pub use check::{StoreCheckReport, StoreProblem};
pub use error::StoreError;
pub use heartbeat::{Heartbeat, HeartbeatState, HeartbeatWriter};
pub use journal::{JournalFollower, JournalWriter};
pub use latest_dispositions::LatestDispositions;
pub use pending_lessons::PendingLessons;
pub use prune::PruneReport;
pub use recovery_notices::{Leftover, RecoveryNotice};
pub use spending::{PaidAnswer, SpendingLog, SpendingTotal};
pub use tail::{StoreChange, StoreTail, TailStopper};
pub use view::{FindingRow, RunRow, StoreView, StoreViewBuilder};
pub use watcher_state::{WatcherInfo, WatcherStatus};

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{Disposition, JournalEntry, RunId, RunRecord, SCHEMA_VERSION, Time};

use files::{ExistingPolicy, SyncPolicy};
use lock::StoreLock;

/// The store's folders that hold files; the first one is its own.
const STORE_FOLDERS: [&str; 5] = ["", "events", "outputs", "fixes", "locks"];

/// The store of one repository: `<home>/state/review/repo-<key>/auto-review`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    info: RepoInfo,
    /// The schema version of a store that a newer revdeck made.
    newer: Option<u32>,
    learning: LearningPolicy,
}

/// Whether what is decided through a store may be learned from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearningPolicy {
    #[default]
    Allowed,
    /// Its lines say so, for whoever reads them later.
    Refused,
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
    file: std::fs::File,
}

/// The right to start a worker for a run: an exclusive lock on `locks/<run_id>.start`, handed on to the worker as its
/// standard input, so that it is held from before the worker's first instruction until the worker's end. The file has
/// one byte for each worker that was started and has not come as far as saying so ([`Store::started_well`]).
#[derive(Debug)]
pub struct StartLock {
    file: std::fs::File,
    path: PathBuf,
    failed_starts: u64,
}

impl StartLock {
    /// Workers that were started before and came to nothing.
    pub fn failed_starts(&self) -> u64 {
        self.failed_starts
    }

    /// Counts one more start and gives the locked file out, for the worker.
    pub fn record_start(mut self) -> Result<std::fs::File, StoreError> {
        use std::io::{Seek, Write};
        let counted = self.file.seek(std::io::SeekFrom::End(0)).and_then(|_| self.file.write_all(b"."));
        counted.map_err(StoreError::io("write", &self.path))?;
        Ok(self.file)
    }
}

/// The folder of a store. A key is a hash; anything else in it must not lead out of the state folder.
fn store_folder(state: &Path, key: &str) -> PathBuf {
    let key: String = key.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
    state.join("review").join(format!("repo-{key}")).join("auto-review")
}

impl Store {
    /// The store below a state folder. Reads of a store that does not exist yet find it empty; the first write makes it.
    /// A store of a newer schema opens, too: every write to it is refused.
    pub fn open(state: &Path, info: RepoInfo) -> Result<Self, StoreError> {
        let root = store_folder(state, &info.key);
        let mut store = Self { root, info, newer: None, learning: LearningPolicy::default() };
        store.newer = store.read_schema()?.filter(|version| *version > SCHEMA_VERSION);
        Ok(store)
    }

    /// Where the repository of this key is or was; `None` when no store says so.
    pub fn repository_path(state: &Path, key: &str) -> Option<PathBuf> {
        let bytes = files::read(&store_folder(state, key).join("repo.json")).ok()??;
        let info: RepoInfo = serde_json::from_slice(&bytes).ok()?;
        Some(info.common_dir.into())
    }

    /// From here on what is decided may be learned from, or not.
    pub fn with_learning(self, learning: LearningPolicy) -> Self {
        Self { learning, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What `repo.json` says, or will say once something is written.
    pub fn info(&self) -> &RepoInfo {
        &self.info
    }

    pub(crate) fn runs_path(&self) -> PathBuf {
        self.root.join("runs.ndjson")
    }

    fn triage_path(&self) -> PathBuf {
        self.root.join("triage.ndjson")
    }

    fn mutes_path(&self) -> PathBuf {
        self.root.join("mutes.ndjson")
    }

    fn notices_path(&self) -> PathBuf {
        self.root.join("news.ndjson")
    }

    fn pending_marker_path(&self) -> PathBuf {
        self.root.join("begun")
    }

    fn deliveries_path(&self) -> PathBuf {
        self.root.join("surfaced.ndjson")
    }

    fn journal_path(&self, id: &str) -> PathBuf {
        self.root.join("events").join(format!("{id}.jsonl"))
    }

    fn output_path(&self, id: &str) -> PathBuf {
        self.root.join("outputs").join(format!("{id}.json"))
    }

    fn lock_path(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(format!("{id}.lock"))
    }

    fn start_path(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(format!("{id}.start"))
    }

    fn checkpoint_path(&self) -> PathBuf {
        self.root.join("view.cache")
    }

    /// The schema version in `repo.json`; `None` when it is not there or damaged (`verify` tells).
    fn read_schema(&self) -> Result<Option<u32>, StoreError> {
        #[derive(serde::Deserialize)]
        struct SchemaField {
            version: u32,
        }
        let bytes = files::read(&self.root.join("repo.json"))?.unwrap_or_default();
        Ok(serde_json::from_slice::<SchemaField>(&bytes).ok().map(|repo| repo.version))
    }

    /// The schema version of a store that a newer revdeck made: it can be read and not written.
    pub fn newer_schema(&self) -> Option<u32> {
        self.newer
    }

    fn newer_schema_error(&self) -> Option<StoreError> {
        self.newer.map(|found| StoreError::Newer { path: self.root.clone(), found, known: SCHEMA_VERSION })
    }

    /// Before every write: the folder is there, says which repository it is for, and is not of a newer version.
    fn prepare_for_write(&self) -> Result<(), StoreError> {
        match self.read_schema()? {
            Some(found) if found > SCHEMA_VERSION => {
                Err(StoreError::Newer { path: self.root.clone(), found, known: SCHEMA_VERSION })
            }
            Some(_) => Ok(()),
            None => {
                files::make_folder(&self.root)?;
                let mut json = serde_json::to_vec_pretty(&self.info)
                    .map_err(|source| StoreError::Encode { what: "the repository's name", source })?;
                json.push(b'\n');
                files::write_atomically(&self.root.join("repo.json"), &json, ExistingPolicy::Keep)
            }
        }
    }

    /// Runs `work` under the store's exclusive lock, so that a decision and the line that records it are one step.
    /// Keep it short: every other writer waits. A nested call from the same thread is part of the outer one.
    pub fn with_lock<T>(&self, work: impl FnOnce(&LockedStore<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.with_lock_as(work)
    }

    /// As [`Store::locked`], for work that has errors of its own.
    pub fn with_lock_as<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&LockedStore<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.prepare_for_write()?;
        let lock = StoreLock::acquire(&self.root)?;
        let locked = LockedStore { store: self, long_tail: Cell::new(false) };
        let done = work(&locked);
        drop(lock);
        if locked.long_tail.get() && !lock::is_held_by_thread(&self.root) {
            // Nobody opened a complete view for long: once, so that the next request finds a fresh checkpoint.
            let _ = self.view();
        }
        done
    }

    /// The latest record of a run.
    pub fn run(&self, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(run_record::find_latest_record(&self.runs_path(), id)?.map(|latest| latest.record))
    }

    /// Changes a run's record: reads its latest line, applies `change`, appends the result; fields this version does
    /// not know survive. A terminal status never changes to another (the call then returns the record as it is).
    pub fn update_run(
        &self,
        id: &RunId,
        now: Time,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        self.with_lock(|locked| locked.update_run(id, now, change))
    }

    /// Opens a run's journal for appending; seals a torn last line. Only for the holder of the run's lock.
    pub fn open_journal(&self, id: &RunId) -> Result<JournalWriter, StoreError> {
        self.prepare_for_write()?;
        JournalWriter::open(&self.journal_path(id.as_str()))
    }

    /// Every readable entry of a run's journal, in order.
    pub fn read_journal(&self, id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        self.follow_journal(id, 0).advance()
    }

    /// Reads a journal as it grows, from the entry with number `from` on.
    pub fn follow_journal(&self, id: &RunId, from: u64) -> JournalFollower {
        JournalFollower::new(self.journal_path(id.as_str()), from)
    }

    /// Appends dispositions as one write, synced.
    pub fn append_dispositions(&self, lines: &[Disposition]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(lines.len() * 256);
        for line in lines {
            let line = pending_lessons::DispositionLine {
                disposition: line,
                private: self.learning == LearningPolicy::Refused,
            };
            serde_json::to_writer(&mut bytes, &line)
                .map_err(|source| StoreError::Encode { what: "a disposition", source })?;
            bytes.push(b'\n');
        }
        self.with_lock(|locked| files::append(&locked.store.triage_path(), &bytes, SyncPolicy::Now))
    }

    /// Takes a run's lock; `None` when another process holds it.
    pub fn lock_run(&self, id: &RunId) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_run(&self.lock_path(id.as_str()))
    }

    /// Whether some process holds the run's lock.
    pub fn is_live(&self, id: &RunId) -> Result<bool, StoreError> {
        lock::is_held(&self.lock_path(id.as_str()))
    }

    /// Takes the right to start a worker for a run; `None` when one that was started lives, or is just being started.
    pub fn lock_start(&self, id: &RunId) -> Result<Option<StartLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_start(&self.start_path(id.as_str()))
    }

    /// Whether a worker that was started for the run lives.
    pub fn is_starting(&self, id: &RunId) -> Result<bool, StoreError> {
        lock::is_held(&self.start_path(id.as_str()))
    }

    /// The worker of a run has come as far as looking at it: the starts that came to nothing count no more.
    pub fn clear_failed_starts(&self, id: &RunId) -> Result<(), StoreError> {
        let path = self.start_path(id.as_str());
        match std::fs::OpenOptions::new().write(true).truncate(true).open(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("empty", &path)(error)),
            _ => Ok(()),
        }
    }

    /// The epoch; 0 before it was ever advanced. Where its file is gone, empty or unreadable, the greatest epoch of any
    /// run, so that it never falls back behind one that was given out.
    pub fn epoch(&self) -> Result<u64, StoreError> {
        let bytes = std::fs::read(self.root.join("epoch")).unwrap_or_default();
        match std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()) {
            Some(epoch) => Ok(epoch),
            None => self.greatest_epoch(),
        }
    }

    /// The greatest epoch in any line of `runs.ndjson`; reads all of it.
    fn greatest_epoch(&self) -> Result<u64, StoreError> {
        #[derive(serde::Deserialize)]
        struct EpochField {
            #[serde(default)]
            epoch: u64,
        }
        let path = self.runs_path();
        let mut greatest = 0;
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| {
                if let Ok(run) = serde_json::from_slice::<EpochField>(line) {
                    greatest = greatest.max(run.epoch);
                }
            })
            .map_err(StoreError::io("read", &path))?;
        }
        Ok(greatest)
    }

    /// Adds one to the epoch and returns it. Not synced by itself, as every request waits for it: what it is advanced for
    /// is a line of `runs.ndjson`, and that is.
    pub fn advance_epoch(&self) -> Result<u64, StoreError> {
        self.with_lock(|locked| {
            let next = locked.store.epoch()?.saturating_add(1);
            let text = format!("{next}\n");
            let path = self.root.join("epoch");
            files::write_beside(&path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
                std::io::Write::write_all(file, text.as_bytes())
            })?;
            Ok(next)
        })
    }
}

/// Writes under the store's lock.
#[derive(Debug)]
pub struct LockedStore<'a> {
    store: &'a Store,
    /// Reading the runs took longer than it has to.
    long_tail: Cell<bool>,
}

impl LockedStore<'_> {
    /// The runs as they are under the lock, without findings: see [`Store::runs_view`].
    pub fn runs_view(&self) -> Result<Arc<StoreView>, StoreError> {
        let (view, length) = self.store.load_runs()?;
        self.long_tail.set(length == load::TailLength::Long);
        Ok(view)
    }

    /// Appends a new run's first line. What was begun for it with [`Locked::begin_run`] is its own from here on.
    pub fn create_run(&self, record: &RunRecord) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(record).map_err(|source| StoreError::Encode { what: "a run", source })?;
        line.push(b'\n');
        files::append(&self.store.runs_path(), &line, SyncPolicy::Now)?;
        if let Err(error) = self.clear_pending_marker() {
            // Whoever finds it finds the run as well.
            tracing::warn!(run = %record.run_id, %error, "what was begun for a run stays");
        }
        Ok(())
    }

    /// As [`Store::update_run`].
    pub fn update_run(
        &self,
        id: &RunId,
        now: Time,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        self.change_run(id, Some(now), change)
    }

    /// As [`Locked::update_run`], for what is said about a run and is not its own doing: `updated_at` stays.
    pub fn annotate_run(&self, id: &RunId, change: impl FnOnce(&mut RunRecord)) -> Result<RunRecord, StoreError> {
        self.change_run(id, None, change)
    }

    fn change_run(
        &self,
        id: &RunId,
        now: Option<Time>,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        let path = self.store.runs_path();
        let Some(mut latest) = run_record::find_latest_record(&path, id)? else {
            return Err(StoreError::NoRun { id: id.to_string(), path });
        };
        let before = latest.record;
        let mut after = before.clone();
        change(&mut after);
        if after == before || (before.status.is_terminal() && after.status != before.status) {
            return Ok(before);
        }
        // Who a run is and when it was asked for are not open to change; time does not go backwards in a run.
        after.run_id = before.run_id.clone();
        after.created_at = before.created_at;
        after.updated_at = now.map_or(before.updated_at, |now| now.max(before.updated_at));
        run_record::merge_changes(&mut latest.raw, &run_record::to_object(&before)?, &run_record::to_object(&after)?);
        let mut line =
            serde_json::to_vec(&latest.raw).map_err(|source| StoreError::Encode { what: "a run's record", source })?;
        line.push(b'\n');
        files::append(&path, &line, SyncPolicy::Now)?;
        Ok(after)
    }
}
