//! Stores runs, findings and dispositions in append-only journals and sidecar files, with locks, tailing, verify and
//! repair.
//!
//! Invariants:
//! - Every line is a single write under an exclusive lock.
//! - A line with a finding or a change of state is synced before the call returns.
//! - No line is rewritten in place; lock files are never unlinked.
//! - Every error names its path.
//!
//! | module | purpose |
//! |---|---|
//! | `files` | private folders, appends that seal torn lines, atomic sidecars |
//! | `lines` | reading the lines of a file forwards and backwards |
//! | `lock` | the store's lock, and each run's lock as the proof of liveness |
//! | `locked_store` | runs that are created and changed under the store's lock |
//! | `run_record` | latest record of a run; updates that keep unknown fields |
//! | [`id_lookup`] | ids that a user writes, resolved by a unique prefix |
//! | `journal` | a run's journal: append, read, follow |
//! | `heartbeat` | current activity of a working run |
//! | `output` | run outputs, findings by id, dispositions |
//! | [`triage`] | undo and redo, pure |
//! | `decision_history` | decisions about a finding as people read them |
//! | `latest_statuses` | current statuses of findings, read from the end of `triage.ndjson` |
//! | `latest_dispositions` | last disposition of each finding, and the engine's dispositions that follow |
//! | `listed_reports` | reports of a panel's members, followed to the findings of its list |
//! | `finding_notes` | notes about findings, for the user |
//! | `finding_snoozes` | findings that are out of sight for a time |
//! | `muted_kinds` | kinds of findings that are not reported |
//! | `recovery_notices` | repairs made while no user interface was open |
//! | `pending_marker` | marker of a run that is about to be recorded |
//! | `ledger_deliveries` | ledgers delivered to an assistant |
//! | `latest_records` | latest records of all runs |
//! | `fixes` | fixes, their patches, and the original file contents |
//! | `spending` | costs of paid answers |
//! | `pending_lessons` | dispositions and fixes that the knowledge base has not learned from yet |
//! | `parse`, `chunked_columns`, `tables`, `live_journal` | parsing lines into rows; tables that are cheap to clone |
//! | `load`, `checkpoint`, `view` | building a [`StoreView`] from files, with a checkpoint file for speed |
//! | `finding_scan` | selecting a few findings without loading the others |
//! | `tail` | waiting for changes |
//! | `team` | records of the team: own, received and set aside; runs of other machines |
//! | `team_places` | exchanges with places beside the joined one |
//! | `team_log_state` | who has signed another machine's log, and why a part of it was set aside |
//! | `watcher_state` | the watcher of the repository, and the snooze |
//! | `extents` | how far the append-only files have grown, to notice what was deleted |
//! | `check`, `cross_check`, `restore`, `prune` | verify, repair, prune |

mod check;
mod checkpoint;
mod chunked_columns;
mod cross_check;
mod decision_history;
mod error;
mod extents;
pub(crate) mod files;
mod finding_notes;
mod finding_questions;
mod finding_ratings;
mod finding_scan;
mod finding_snoozes;
mod fixes;
mod heartbeat;
pub(crate) mod id_lookup;
mod journal;
mod last_visit;
mod latest_dispositions;
mod latest_records;
mod latest_statuses;
mod ledger_deliveries;
mod lines;
mod listed_reports;
mod live_journal;
mod load;
mod lock;
mod locked_store;
mod muted_kinds;
mod output;
mod parse;
mod pending_lessons;
mod pending_marker;
mod prune;
mod recovery_notices;
mod restore;
mod run_figures;
mod run_record;
mod spending;
mod tables;
mod tail;
mod team;
mod team_log_state;
mod team_places;
mod team_runs;
mod team_set_aside;
pub(crate) mod triage;
mod view;
mod viewed_files;
mod watcher_state;

pub use check::{StoreCheckReport, StoreProblem};
#[cfg(test)]
pub(crate) use decision_history::HistoryBuilder;
pub use decision_history::{DecisionHistory, VoidCause};
pub use error::StoreError;
pub use finding_questions::UnsettledQuestion;
pub(crate) use finding_ratings::rating_after;
pub use finding_scan::{FindingFacts, FindingSelector};
pub(crate) use finding_snoozes::snooze_after;
pub use heartbeat::Heartbeat;
pub use heartbeat::{HeartbeatState, HeartbeatWriter};
pub use journal::JournalFollower;
pub use journal::JournalWriter;
pub use last_visit::LastVisit;
pub use latest_dispositions::LatestDispositions;
pub use listed_reports::{LastLines, ListedReports};
pub use locked_store::LockedStore;
pub use pending_lessons::{PendingFixes, PendingLessons};
pub use prune::PruneReport;
pub use recovery_notices::{Leftover, RecoveryNotice};
pub use spending::PaidAnswer;
pub use spending::{SpendingLog, SpendingTotal};
pub use tail::{StoreChange, StoreTail, TailStopper};
pub use team::{
    DisputeSide, LogProgress, PreparedProgress, SetAsideSegment, TeamMembership, TeamProgress, TeamStatus,
    UnsentRecords,
};
pub use team_log_state::{LogSignatureState, SetAsideCause};
pub use team_places::OtherTeamPlace;
pub use team_runs::{RefusedTeamRun, TeamRunImport};
pub use team_set_aside::SetAsideEntry;
pub use view::{FindingOutline, FindingRow, RunRow, StoreView, StoreViewBuilder};
pub use watcher_state::WatcherInfo;
pub use watcher_state::WatcherStatus;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::domain::{Actor, Disposition, JournalEntry, RunId, RunRecord, SCHEMA_VERSION, Time};

use extents::TrackedFile;
use files::{ExistingPolicy, SyncPolicy};
use lock::StoreLock;

/// File with the delivered ledgers.
const DELIVERIES_FILE: &str = "surfaced.ndjson";
/// File with the marks of viewed files.
const VIEWED_FILE: &str = "viewed.ndjson";
/// File that says how far the exchange with the team has come.
const TEAM_FILE: &str = "team.json";
/// Subfolders of the store that contain files; the empty name is the store's own folder.
const STORE_FOLDERS: [&str; 5] = ["", "events", "outputs", "fixes", "locks"];

/// The store of a repository: `<home>/state/review/repo-<key>/auto-review`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    /// Folder of all stores and of the log of spending.
    state: PathBuf,
    info: RepoInfo,
    /// Schema version of the store when a newer revdeck wrote it.
    newer: Option<u32>,
    learning: LearningPolicy,
    /// True in a job of continuous integration.
    acts_for_ci: bool,
    /// Place of a team beside the joined one, with which records are exchanged; `None` for the joined one.
    team_place: Option<String>,
}

/// Permission to learn from the dispositions written through this store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearningPolicy {
    /// Later readers may learn from each line.
    #[default]
    Allowed,
    /// Each line is marked as private, so that later readers do not learn from it.
    Refused,
}

/// Content of `repo.json`: the identity of the repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RepoInfo {
    /// Schema version of the store.
    pub version: u32,
    /// Key of the repository: a hash of its common git dir in hexadecimal.
    pub key: String,
    /// Display name of the repository.
    pub name: String,
    /// Absolute path of the git dir that all linked worktrees share.
    pub common_dir: String,
}

/// Proof that a worker lives: an exclusive lock on `locks/<run_id>.lock`. The kernel releases it when the worker dies.
#[derive(Debug)]
pub struct RunLock {
    file: std::fs::File,
}

/// Right to start a worker for a run: an exclusive lock on `locks/<run_id>.start`. The worker inherits the locked file
/// as its standard input, so the lock is held from before the worker's first instruction until its end. The file
/// contains a byte for each started worker that has not reported success with [`Store::clear_failed_starts`].
#[derive(Debug)]
pub struct StartLock {
    file: std::fs::File,
    path: PathBuf,
    failed_starts: u64,
}

impl StartLock {
    /// Returns the number of earlier workers that failed to start.
    pub fn failed_starts(&self) -> u64 {
        self.failed_starts
    }

    /// Counts another start and returns the locked file for the worker.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn record_start(mut self) -> Result<std::fs::File, StoreError> {
        use std::io::{Seek, Write};
        let counted = self.file.seek(std::io::SeekFrom::End(0)).and_then(|_| self.file.write_all(b"."));
        counted.map_err(StoreError::io("write", &self.path))?;
        Ok(self.file)
    }
}

/// Returns the folder of a store. A key is a hash; other characters are replaced, so that the path cannot leave the
/// state folder.
fn store_folder(state: &Path, key: &str) -> PathBuf {
    let key: String = key.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
    state.join("review").join(format!("repo-{key}")).join("auto-review")
}

impl Store {
    /// Opens the store below a state folder. A store that does not exist reads as empty; the first write creates it. A
    /// store with a newer schema can be read, but every write returns an error.
    ///
    /// # Errors
    /// Returns an error when `repo.json` exists but cannot be read.
    pub fn open(state: &Path, info: RepoInfo) -> Result<Self, StoreError> {
        let root = store_folder(state, &info.key);
        let (state, learning) = (state.to_owned(), LearningPolicy::default());
        let mut store = Self { root, state, info, newer: None, learning, acts_for_ci: false, team_place: None };
        store.newer = store.read_schema()?.filter(|version| *version > SCHEMA_VERSION);
        Ok(store)
    }

    /// Lists the repositories that have a store below a state folder, sorted by key. A store whose `repo.json` is missing
    /// or damaged is left out; `store verify` in its repository names it.
    ///
    /// # Errors
    /// Returns an error when the folder of the stores cannot be listed.
    pub fn list_repositories(state: &Path) -> Result<Vec<RepoInfo>, StoreError> {
        let folder = state.join("review");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        let mut found: Vec<RepoInfo> = Vec::new();
        for entry in entries {
            let file = entry.map_err(StoreError::io("list", &folder))?.path().join("auto-review").join("repo.json");
            let bytes = files::read(&file).ok().flatten();
            found.extend(bytes.and_then(|bytes| serde_json::from_slice::<RepoInfo>(&bytes).ok()));
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Returns the path of the repository with this key, which may no longer exist; `None` when no store contains it.
    pub fn repository_path(state: &Path, key: &str) -> Option<PathBuf> {
        let bytes = files::read(&store_folder(state, key).join("repo.json")).ok()??;
        let info: RepoInfo = serde_json::from_slice(&bytes).ok()?;
        Some(info.common_dir.into())
    }

    /// Returns the store with another learning policy for later dispositions.
    pub fn with_learning(self, learning: LearningPolicy) -> Self {
        Self { learning, ..self }
    }

    /// Returns the store with another mark for later decisions of the user: if true, a job of continuous integration made them.
    pub fn with_ci(self, acts_for_ci: bool) -> Self {
        Self { acts_for_ci, ..self }
    }

    /// Returns true if a job of continuous integration uses the store.
    pub fn acts_for_ci(&self) -> bool {
        self.acts_for_ci
    }

    /// Returns the folder of the store; it may not exist yet.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the content of `repo.json`, or its future content when nothing is written yet.
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

    fn notes_path(&self) -> PathBuf {
        self.root.join("notes.ndjson")
    }

    fn viewed_path(&self) -> PathBuf {
        self.root.join(VIEWED_FILE)
    }

    fn questions_path(&self) -> PathBuf {
        self.root.join("questions.ndjson")
    }

    fn ratings_path(&self) -> PathBuf {
        self.root.join("ratings.ndjson")
    }

    fn snoozes_path(&self) -> PathBuf {
        self.root.join("snoozes.ndjson")
    }

    fn notices_path(&self) -> PathBuf {
        self.root.join("news.ndjson")
    }

    fn pending_marker_path(&self) -> PathBuf {
        self.root.join("begun")
    }

    fn deliveries_path(&self) -> PathBuf {
        self.root.join(DELIVERIES_FILE)
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

    /// Returns the schema version in `repo.json`; `None` when the file is missing or damaged, which `verify` reports.
    fn read_schema(&self) -> Result<Option<u32>, StoreError> {
        #[derive(serde::Deserialize)]
        struct SchemaField {
            version: u32,
        }
        let bytes = files::read(&self.root.join("repo.json"))?.unwrap_or_default();
        Ok(serde_json::from_slice::<SchemaField>(&bytes).ok().map(|repo| repo.version))
    }

    /// Returns the schema version of a store that a newer revdeck wrote; such a store is read-only.
    pub fn newer_schema(&self) -> Option<u32> {
        self.newer
    }

    fn newer_schema_error(&self) -> Option<StoreError> {
        self.newer.map(|found| StoreError::Newer { path: self.root.clone(), found, known: SCHEMA_VERSION })
    }

    /// Prepares a write: creates the folder and `repo.json` if needed, and rejects a newer schema.
    fn prepare_for_write(&self) -> Result<(), StoreError> {
        match self.read_schema()? {
            Some(found) if found > SCHEMA_VERSION => {
                Err(StoreError::Newer { path: self.root.clone(), found, known: SCHEMA_VERSION })
            }
            Some(_) => Ok(()),
            None => {
                files::make_folder(&self.root)?;
                // The sync of the folder behind `repo.json` holds for them, too, so that the first review makes none.
                for name in ["events", "outputs", "locks"] {
                    files::create_missing_folder(&self.root.join(name))?;
                }
                let mut json = serde_json::to_vec_pretty(&self.info)
                    .map_err(|source| StoreError::Encode { what: "the repository's name", source })?;
                json.push(b'\n');
                files::write_atomically(&self.root.join("repo.json"), &json, ExistingPolicy::Keep)
            }
        }
    }

    /// Runs `work` under the store's exclusive lock, so that a decision and its record are a single step. `work` must
    /// be short, because all other writers wait. A nested call on the same thread joins the outer call.
    ///
    /// # Errors
    /// Returns an error when the store cannot be written or locked, or the error of `work`.
    pub fn with_lock<T>(&self, work: impl FnOnce(&LockedStore<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.with_lock_as(work)
    }

    /// Does the same as [`Store::with_lock`] for work with its own error type.
    ///
    /// # Errors
    /// Returns an error when the store cannot be written or locked, or the error of `work`.
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
            // No complete view was opened for a long time; opening a view here writes a fresh checkpoint for the next
            // request.
            let _ = self.view();
        }
        done
    }

    /// Returns the latest record of a run; `None` when there is no such run.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn run(&self, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(run_record::find_latest_record(&self.runs_path(), id)?.map(|latest| latest.record))
    }

    /// Returns the record of a run that a view shows, from the line that the view knows: the file is not searched, which takes
    /// longer the more runs there are. Does the same as [`Store::run`] if the view does not have the run or its line, or if the
    /// run has not ended there: the view may be older than the end of the run.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn run_in(&self, view: &StoreView, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        match run_record::read_record_in(&self.runs_path(), view, id)? {
            Some(record) => Ok(Some(record)),
            None => self.run(id),
        }
    }

    /// Returns the latest records of these runs, without those that do not exist. The file is read once, whatever their number.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn runs_of(&self, ids: &HashSet<&RunId>) -> Result<HashMap<RunId, RunRecord>, StoreError> {
        run_record::find_latest_records(&self.runs_path(), ids)
    }

    /// Updates a run's record: reads its latest line, applies `change`, and appends the result. Fields unknown to this
    /// version are kept. A terminal status never changes to another status; the call then returns the unchanged record.
    ///
    /// # Errors
    /// Returns an error when the run does not exist or the store cannot be read or written.
    pub fn update_run(
        &self,
        id: &RunId,
        now: Time,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        self.with_lock(|locked| locked.update_run(id, now, change))
    }

    /// Opens a run's journal for appending and seals a torn last line. The caller must hold the run's lock.
    ///
    /// # Errors
    /// Returns an error when the journal cannot be opened or sealed.
    pub fn open_journal(&self, id: &RunId) -> Result<JournalWriter, StoreError> {
        self.prepare_for_write()?;
        self.open_tracked_journal(id)
    }

    /// Returns every readable entry of a run's journal, in order.
    ///
    /// # Errors
    /// Returns an error when the journal cannot be read.
    pub fn read_journal(&self, id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        self.follow_journal(id, 0).advance()
    }

    /// Returns a follower that reads a growing journal from the entry with sequence number `from`.
    pub fn follow_journal(&self, id: &RunId, from: u64) -> JournalFollower {
        JournalFollower::new(self.journal_path(id.as_str()), from)
    }

    /// Appends dispositions as a single, synced write. Own ones of the user say whether a job of continuous integration made
    /// them.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked or written.
    pub fn append_dispositions(&self, lines: &[Disposition]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(lines.len() * 256);
        for line in lines {
            let mut line = std::borrow::Cow::Borrowed(line);
            if line.team.is_none() && line.actor == Actor::User && line.ci != self.acts_for_ci {
                line.to_mut().ci = self.acts_for_ci;
            }
            let line = pending_lessons::DispositionLine {
                disposition: &line,
                // A decision of the team is learned from where it was made.
                private: self.learning == LearningPolicy::Refused || line.team.is_some(),
            };
            serde_json::to_writer(&mut bytes, &line)
                .map_err(|source| StoreError::Encode { what: "a disposition", source })?;
            bytes.push(b'\n');
        }
        self.with_lock(|locked| locked.store.append_tracked(TrackedFile::Triage, &bytes))
    }

    /// Takes a run's lock; `None` when another process holds it.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked.
    pub fn lock_run(&self, id: &RunId) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_run(&self.lock_path(id.as_str()))
    }

    /// Returns true when a process holds the run's lock.
    ///
    /// # Errors
    /// Returns an error when the lock cannot be tested.
    pub fn is_live(&self, id: &RunId) -> Result<bool, StoreError> {
        lock::is_held(&self.lock_path(id.as_str()))
    }

    /// Takes the right to start a worker for a run; `None` when a started worker lives or is being started.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created, locked or read.
    pub fn lock_start(&self, id: &RunId) -> Result<Option<StartLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_start(&self.start_path(id.as_str()))
    }

    /// Resets the count of failed starts; called when the run's worker has started successfully.
    ///
    /// # Errors
    /// Returns an error when the file cannot be emptied.
    pub fn clear_failed_starts(&self, id: &RunId) -> Result<(), StoreError> {
        let path = self.start_path(id.as_str());
        match std::fs::OpenOptions::new().write(true).truncate(true).open(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("empty", &path)(error)),
            _ => Ok(()),
        }
    }

    /// Returns the epoch; 0 before its first advance. When the epoch file is missing, empty or unreadable, returns the
    /// greatest epoch of any run, so that the epoch never falls behind a value already used.
    ///
    /// # Errors
    /// Returns an error when the epoch file gives no value and `runs.ndjson` cannot be read.
    pub fn epoch(&self) -> Result<u64, StoreError> {
        match self.recorded_epoch() {
            Some(epoch) => Ok(epoch),
            None => self.greatest_epoch(),
        }
    }

    /// Returns the epoch in its file; `None` when the file is missing or damaged, and the greatest epoch of the runs
    /// counts.
    pub fn recorded_epoch(&self) -> Option<u64> {
        let bytes = std::fs::read(self.root.join("epoch")).unwrap_or_default();
        std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok())
    }

    /// Returns the greatest epoch in `runs.ndjson`; reads the whole file.
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

    /// Adds 1 to the epoch and returns it. The write is not synced, because every request waits for it; the line in
    /// `runs.ndjson` that follows an advance is synced.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
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
