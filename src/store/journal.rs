//! A run's journal: written by the holder of its lock, read by anybody at any time.
//!
//! Invariants: sequence numbers grow by one; an entry that carries a finding or a change of state is synced before
//! `append` returns; a reader never sees half an entry.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files::{self, SyncPolicy};
use super::{StoreError, lines};
use crate::domain::{JournalEntry, RunEvent, Time};

/// Appends to one run's journal. One writer per run: whoever holds its [`super::RunLock`].
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    next_seq: u64,
}

impl JournalWriter {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = files::open_append(path)?;
        if files::is_torn(&file).map_err(StoreError::io("read", path))? {
            files::append_to(&file, path, b"", SyncPolicy::Now)?;
        }
        // The number after the greatest one that can be read, so that a torn entry never makes two of one number.
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
        Ok(Self { path: path.to_owned(), file, next_seq: next })
    }

    /// Appends an event with the next sequence number; synced when it carries a finding or a change of state.
    pub fn append(&mut self, at: Time, event: RunEvent) -> Result<JournalEntry, StoreError> {
        let entry = JournalEntry { seq: self.next_seq, at, event };
        self.append_all(at, std::slice::from_ref(&entry.event))?;
        Ok(entry)
    }

    /// Appends events in their order as one write with at most one sync: when they could not all be written, none of
    /// them counts, and when the process dies meanwhile, those that are there are the first ones.
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
            files::append_to(&self.file, &self.path, &bytes, sync)?;
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
        | RunEvent::Restated { .. }
        | RunEvent::Rejected { .. }
        | RunEvent::Judged { .. }
        | RunEvent::Paused
        | RunEvent::Resumed
        | RunEvent::Phase { .. }
        | RunEvent::Failed { .. }
        | RunEvent::Finished { .. }
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

/// Reads a journal as it grows: each call of [`Follow::advance`] returns what came since the one before.
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

    /// The complete entries that were appended since the last call, in order; what cannot be read is skipped.
    pub fn advance(&mut self) -> Result<Vec<JournalEntry>, StoreError> {
        let mut entries = Vec::new();
        let Some(file) = files::open_read(&self.path)? else { return Ok(entries) };
        let fail = |error| StoreError::io("read", &self.path)(error);
        if files::length(&file).map_err(fail)? < self.offset {
            // Cut back after a failed write, or replaced by a repair: the numbers say what is new.
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

    /// Lines that could not be read so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}
