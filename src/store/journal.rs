//! Appends to and reads a run's journal. Only the holder of the run's lock writes; any process can read at any time.
//!
//! Invariants:
//! - Sequence numbers increase by 1.
//! - An entry with a finding or a change of state is synced before `append` returns.
//! - A reader never sees a partial entry.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::extents::{ExtentFile, ExtentFollower, TailCheck};
use super::files::{self, SyncPolicy};
use super::{StoreError, lines};
use crate::domain::{JournalEntry, RunEvent, Time};

/// Writer of a run's journal. Only the holder of the run's [`super::RunLock`] may use it.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    next_seq: u64,
    /// Memory of the journal's length; `None` when it has lost lines, until a repair.
    extent: Option<ExtentFollower>,
}

impl JournalWriter {
    pub(super) fn open(path: &Path, extent: &ExtentFile) -> Result<Self, StoreError> {
        // A journal that is gone has lost its lines, and a new one must not hide it.
        let is_lost = extent.find_loss(path, "", TailCheck::No).is_some();
        let file = files::open_append(path)?;
        if files::is_torn(&file).map_err(StoreError::io("read", path))? {
            files::append_to(&file, path, b"", SyncPolicy::Now)?;
        }
        // The next number follows the greatest readable number, so that a torn entry does not cause a duplicate.
        let mut next = 0;
        lines::read_forwards(&file, 0, |_, line| {
            #[derive(serde::Deserialize)]
            struct SeqField {
                seq: u64,
            }
            if let Ok(entry) = serde_json::from_slice::<SeqField>(line) {
                next = next.max(entry.seq.saturating_add(1));
            }
        })
        .map_err(StoreError::io("read", path))?;
        let extent = if is_lost { None } else { extent.follow(&file, path) };
        Ok(Self { path: path.to_owned(), file, next_seq: next, extent })
    }

    /// Appends an event with the next sequence number; synced when it carries a finding or a change of state.
    ///
    /// # Errors
    /// Returns an error when the entry cannot be written.
    pub fn append(&mut self, at: Time, event: RunEvent) -> Result<JournalEntry, StoreError> {
        let entry = JournalEntry { seq: self.next_seq, at, event };
        self.append_all(at, std::slice::from_ref(&entry.event))?;
        Ok(entry)
    }

    /// Appends events in order as a single write with at most one sync. When the write fails, no event is stored. When
    /// the process dies during the write, the stored events are a prefix of `events`.
    ///
    /// # Errors
    /// Returns an error when the entries cannot be written.
    pub fn append_all(&mut self, at: Time, events: &[RunEvent]) -> Result<(), StoreError> {
        #[derive(serde::Serialize)]
        struct JournalLine<'a> {
            seq: u64,
            at: Time,
            #[serde(flatten)]
            event: &'a RunEvent,
        }
        let mut bytes = Vec::with_capacity(events.len() * 256);
        let mut sync = SyncPolicy::Later;
        for (seq, event) in (self.next_seq..).zip(events) {
            serde_json::to_writer(&mut bytes, &JournalLine { seq, at, event })
                .map_err(|source| StoreError::Encode { what: "an entry of a run's journal", source })?;
            bytes.push(b'\n');
            if sync_policy(event) == SyncPolicy::Now {
                sync = SyncPolicy::Now;
            }
        }
        if !bytes.is_empty() {
            let is_sealed = files::append_to(&self.file, &self.path, &bytes, sync)?;
            if let Some(extent) = &mut self.extent {
                extent.note_append(&self.file, is_sealed, &bytes, sync);
            }
        }
        self.next_seq = self.next_seq.saturating_add(events.len() as u64);
        Ok(())
    }
}

fn sync_policy(event: &RunEvent) -> SyncPolicy {
    match event {
        RunEvent::Finding { .. }
        | RunEvent::Covered { .. }
        | RunEvent::Carried { .. }
        | RunEvent::TurnAnswered { .. }
        | RunEvent::Unanswered { .. }
        | RunEvent::TookOver { .. }
        | RunEvent::Surrounded { .. }
        | RunEvent::Steered { .. }
        | RunEvent::Restated { .. }
        | RunEvent::Rejected { .. }
        | RunEvent::Judged { .. }
        | RunEvent::Paused
        | RunEvent::Resumed
        | RunEvent::Phase { .. }
        | RunEvent::Failed { .. }
        | RunEvent::OutOfMemory { .. }
        | RunEvent::Finished { .. }
        | RunEvent::BudgetReached { .. }
        | RunEvent::CancelAsked { .. } => SyncPolicy::Now,
        RunEvent::Started { .. }
        | RunEvent::Planned { .. }
        | RunEvent::LeftOut { .. }
        | RunEvent::TurnAsked { .. }
        | RunEvent::Waiting { .. }
        | RunEvent::ToolAnswered { .. }
        | RunEvent::Repeated { .. }
        | RunEvent::CodeSmellsAccumulated { .. }
        | RunEvent::SlidingWindowApplied { .. }
        | RunEvent::FinalCodeSmellsSummary { .. }
        | RunEvent::Note { .. }
        | RunEvent::Unknown => SyncPolicy::Later,
    }
}

/// Reader of a growing journal: each call of [`JournalFollower::advance`] returns the new entries.
#[derive(Debug, Clone)]
pub struct JournalFollower {
    path: PathBuf,
    offset: u64,
    next_seq: u64,
    skipped: usize,
}

impl JournalFollower {
    pub(super) fn new(path: PathBuf, next_seq: u64) -> Self {
        Self { path, offset: 0, next_seq, skipped: 0 }
    }

    /// Returns the complete entries appended since the last call, in order; unreadable lines are skipped.
    ///
    /// # Errors
    /// Returns an error when the journal cannot be read.
    pub fn advance(&mut self) -> Result<Vec<JournalEntry>, StoreError> {
        let mut entries = Vec::new();
        let Some(file) = files::open_read(&self.path)? else { return Ok(entries) };
        let fail = |error| StoreError::io("read", &self.path)(error);
        if files::length(&file).map_err(fail)? < self.offset {
            // The file was truncated after a failed write or replaced by a repair; the sequence numbers identify new
            // entries.
            self.offset = 0;
        }
        let (mut from, mut skipped) = (self.next_seq, self.skipped);
        let end =
            lines::read_forwards(&file, self.offset, |_, line| match serde_json::from_slice::<JournalEntry>(line) {
                Ok(entry) if entry.seq >= from => {
                    from = entry.seq.saturating_add(1);
                    entries.push(entry);
                }
                Ok(_) => {}
                Err(_) => skipped += 1,
            })
            .map_err(fail)?;
        (self.offset, self.next_seq, self.skipped) = (end, from, skipped);
        Ok(entries)
    }

    /// Returns the number of unreadable lines so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}
