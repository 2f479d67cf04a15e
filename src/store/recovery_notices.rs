//! `news.ndjson`: what was set right while nobody looked, until somebody is told of it.
//!
//! Invariants: a line is told once; the file has an end, and what it drops is the oldest. Of runs and findings it
//! says nothing that is not in the records and journals as well.

use super::files::{self, SyncPolicy};
use super::{Store, StoreError, lines};
use crate::domain::{RunId, RunStatus};

/// Something that was set right.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum RecoveryNotice {
    /// A run whose worker was gone.
    Run {
        run_id: RunId,
        /// What it is since; pending when it was resumed.
        status: RunStatus,
        /// "worker died in turn 7".
        cause: String,
        /// Findings that its journal held: all of them are kept.
        findings: u32,
    },
    /// Things that dead processes left.
    Removed { leftover: Leftover, count: u32 },
    /// Something that can be made again was not as it should be.
    Repaired {
        /// "the index was not as it should be (...) and is rebuilt".
        said: String,
    },
}

/// What a dead process can leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// A checkout for a program that reviews.
    Worktree,
    /// A snapshot of a run that was never recorded.
    Snapshot,
    /// A file that was not written to its end.
    File,
}

/// A longer file loses its older half. Bytes; own: some 300 lines, which nobody will read one by one.
const MAX_NOTICES_BYTES: usize = 48 << 10;

impl Store {
    /// Appends news for whoever starts next.
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

    /// The news since somebody asked last; from now on they are told.
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
