//! Reads and writes the state of the repository's watcher and the snooze: `locks/watch.lock` proves that a watcher
//! lives, `watch.json` describes it, and `snooze.json` holds the end of the snooze.
//!
//! Invariants:
//! - The lock file is never unlinked.
//! - The description left by a killed watcher is ignored, because its lock is free.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{RunLock, Store, StoreError, lock};
use crate::domain::{Time, WatchMode};

/// Names of both files, also used by the code that waits for their changes.
pub(super) const WATCH_FILE: &str = "watch.json";
pub(super) const SNOOZE_FILE: &str = "snooze.json";
/// Size limit in bytes; revdeck does not write larger files.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Description of a watcher, written by the watcher itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatcherInfo {
    /// Process id.
    pub pid: u32,
    /// User and host of the watcher, as `user@host`.
    pub owner: String,
    /// Start time of the watcher.
    pub since: Time,
    /// Way in which the watcher detects changes.
    #[serde(flatten)]
    pub mode: WatchMode,
    /// Root folders of the watched working trees.
    pub worktrees: Vec<String>,
}

/// Status of a repository's watcher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WatcherStatus {
    /// No watcher lives.
    #[default]
    None,
    /// A watcher lives, but its description is missing or not readable by this version.
    Unknown,
    /// A watcher lives, with its description.
    Known(WatcherInfo),
}

#[derive(Serialize, Deserialize)]
struct Snooze {
    until: Time,
}

impl Store {
    fn watch_lock_path(&self) -> PathBuf {
        self.root.join("locks").join("watch.lock")
    }

    fn watch_path(&self) -> PathBuf {
        self.root.join(WATCH_FILE)
    }

    /// Returns the path of the file with the end of the snooze.
    pub fn snooze_path(&self) -> PathBuf {
        self.root.join(SNOOZE_FILE)
    }

    /// Takes the watcher's lock, which the watcher holds for its life, and deletes the description of an earlier
    /// watcher. Returns `None` when another watcher lives.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked, or the description cannot be deleted.
    pub fn lock_watcher(&self) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        let lock = lock::lock_run(&self.watch_lock_path())?;
        if lock.is_some() {
            files::remove(&self.watch_path())?;
        }
        Ok(lock)
    }

    /// Returns the status of the watcher without creating a file.
    ///
    /// # Errors
    /// Returns an error when the lock cannot be tested.
    pub fn watcher_status(&self) -> Result<WatcherStatus, StoreError> {
        if !lock::is_held(&self.watch_lock_path())? {
            return Ok(WatcherStatus::None);
        }
        Ok(read_json(&self.watch_path()).map_or(WatcherStatus::Unknown, WatcherStatus::Known))
    }

    /// Blocks until no watcher lives.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be opened or locked.
    pub fn wait_for_watcher_end(&self) -> Result<(), StoreError> {
        let path = self.watch_lock_path();
        let Some(file) = files::open_read(&path)? else { return Ok(()) };
        file.lock_shared().map_err(StoreError::io("wait for the lock", &path))?;
        file.unlock().map_err(StoreError::io("unlock", &path))
    }

    /// Writes the watcher's description. The caller must hold the watcher's lock.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn write_watcher_info(&self, watching: &WatcherInfo) -> Result<(), StoreError> {
        write_json(&self.watch_path(), watching, "what the watcher does")
    }

    /// Deletes the watcher's description at its end. The caller must hold the watcher's lock.
    ///
    /// # Errors
    /// Returns an error when the file cannot be deleted.
    pub fn remove_watcher_info(&self) -> Result<(), StoreError> {
        files::remove(&self.watch_path())
    }

    /// Pauses automatic reviews until the given time; `None` ends the pause. Manual reviews are not affected.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written or deleted.
    pub fn set_snooze(&self, until: Option<Time>) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        match until {
            Some(until) => write_json(&self.snooze_path(), &Snooze { until }, "a snooze"),
            None => files::remove(&self.snooze_path()),
        }
    }

    /// Returns the end of the snooze; `None` when there is none or it is over.
    pub fn snoozed_until(&self, now: Time) -> Option<Time> {
        read_json::<Snooze>(&self.snooze_path()).map(|snooze| snooze.until).filter(|until| *until > now)
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let plain = std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_FILE_BYTES);
    serde_json::from_slice(&std::fs::read(path).ok().filter(|_| plain)?).ok()
}

fn write_json<T: Serialize>(path: &Path, value: &T, what: &'static str) -> Result<(), StoreError> {
    let mut json = serde_json::to_vec(value).map_err(|source| StoreError::Encode { what, source })?;
    json.push(b'\n');
    files::write_beside(path, ExistingPolicy::Replace, SyncPolicy::Now, |file| std::io::Write::write_all(file, &json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RepoInfo;

    fn store(folder: &tempfile::TempDir) -> Store {
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        Store::open(folder.path(), info).expect("a store")
    }

    fn at(text: &str) -> Time {
        text.parse().expect("a time")
    }

    #[test]
    fn what_a_watcher_says_counts_while_it_lives() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        assert_eq!(store.watcher_status().expect("asked"), WatcherStatus::None);
        assert!(!store.root().exists(), "asking makes nothing");
        store.wait_for_watcher_end().expect("nobody to wait for");
        let lock = store.lock_watcher().expect("locks").expect("free");
        assert!(store.lock_watcher().expect("locks").is_none());
        assert_eq!(store.watcher_status().expect("asked"), WatcherStatus::Unknown);
        let watching = WatcherInfo {
            pid: 7,
            owner: "a@b".into(),
            since: at("2026-03-04T12:00:00Z"),
            mode: WatchMode::Polling { reason: "no watches left".into() },
            worktrees: vec!["/n".into()],
        };
        store.write_watcher_info(&watching).expect("written");
        assert_eq!(store.watcher_status().expect("asked"), WatcherStatus::Known(watching));
        // As after `kill -9`, the file remains.
        drop(lock);
        assert_eq!(store.watcher_status().expect("asked"), WatcherStatus::None);
        store.wait_for_watcher_end().expect("at once");
        let _lock = store.lock_watcher().expect("locks").expect("free");
        assert_eq!(store.watcher_status().expect("asked"), WatcherStatus::Unknown, "an earlier one's words are gone");
        assert_eq!(store.verify().expect("verified").problems, []);
    }

    #[test]
    fn a_snooze_ends_by_itself_or_is_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let (noon, one) = (at("2026-03-04T12:00:00Z"), at("2026-03-04T13:00:00Z"));
        assert_eq!(store.snoozed_until(noon), None);
        store.set_snooze(Some(one)).expect("stored");
        assert_eq!((store.snoozed_until(noon), store.snoozed_until(one)), (Some(one), None));
        store.set_snooze(None).expect("taken back");
        store.set_snooze(None).expect("again");
        assert_eq!(store.snoozed_until(noon), None);
        std::fs::write(store.snooze_path(), "{\"until\":\"soon\"}").expect("written");
        assert_eq!(store.snoozed_until(noon), None, "what is no moment holds nobody back");
    }
}
