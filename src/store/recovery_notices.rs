//! Stores notices of automatic repairs in `news.ndjson` until a user interface shows them.
//!
//! Invariants:
//! - Each line is shown once.
//! - The file has a maximum size; the oldest lines are dropped.
//! - All information about runs and findings is also in the records and journals.

use super::files::{self, SyncPolicy};
use super::{Store, StoreError, lines};
use crate::domain::{RunId, RunStatus};

/// Notice of a repair.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum RecoveryNotice {
    /// A run whose worker had died.
    Run {
        /// Id of the run.
        run_id: RunId,
        /// New status of the run; pending when it was resumed.
        status: RunStatus,
        /// Cause, such as "worker died in turn 7".
        cause: String,
        /// Number of findings in its journal; all are kept.
        findings: u32,
    },
    /// Leftovers of dead processes were removed.
    Removed {
        /// Kind of the leftovers.
        leftover: Leftover,
        /// Number of removed leftovers, at least 1.
        count: u32,
    },
    /// Derived data was damaged and is rebuilt.
    Repaired {
        /// Description, such as "the index was not as it should be (...) and is rebuilt".
        said: String,
    },
}

/// Kind of leftover of a dead process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// A temporary checkout for an external reviewer.
    Worktree,
    /// A snapshot of a run that was never recorded.
    Snapshot,
    /// A partially written file.
    File,
}

/// Size limit in bytes; a longer file loses its older half. The limit holds about 300 lines, more than anybody reads
/// one by one.
const MAX_NOTICES_BYTES: usize = 48 << 10;

impl Store {
    /// Appends notices for the next user interface.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked or written.
    pub fn append_notices(&self, news: &[RecoveryNotice]) -> Result<(), StoreError> {
        if news.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for news in news {
            serde_json::to_writer(&mut bytes, news)
                .map_err(|source| StoreError::Encode { what: "what was set right", source })?;
            bytes.push(b'\n');
        }
        self.with_lock(|_| {
            let path = self.notices_path();
            files::append(&path, &bytes, SyncPolicy::Later)?;
            let kept = files::read(&path)?.unwrap_or_default();
            if kept.len() > MAX_NOTICES_BYTES {
                let half = kept.len() - MAX_NOTICES_BYTES / 2;
                let from = kept[half..].iter().position(|byte| *byte == b'\n').map_or(kept.len(), |at| half + at + 1);
                files::write_atomically(&path, &kept[from..], files::ExistingPolicy::Replace)?;
            }
            Ok(())
        })
    }

    /// Returns the notices since the last call and deletes them.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, or the file cannot be read or removed.
    pub fn take_notices(&self) -> Result<Vec<RecoveryNotice>, StoreError> {
        let path = self.notices_path();
        if self.newer_schema().is_some() || !path.exists() {
            return Ok(Vec::new());
        }
        self.with_lock(|_| {
            let mut news = Vec::new();
            let Some(file) = files::open_read(&path)? else { return Ok(news) };
            lines::read_forwards(&file, 0, |_, line| news.extend(serde_json::from_slice::<RecoveryNotice>(line).ok()))
                .map_err(StoreError::io("read", &path))?;
            std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            Ok(news)
        })
    }
}
