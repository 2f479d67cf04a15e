//! Creates and changes runs under the store's lock.

use std::cell::Cell;
use std::sync::Arc;

use super::extents::TrackedFile;
use super::load::TailLength;
use super::{Store, StoreError, StoreView, run_record};
use crate::domain::{RunId, RunRecord, Time};

/// Writer that holds the store's lock.
#[derive(Debug)]
pub struct LockedStore<'a> {
    pub(super) store: &'a Store,
    /// True when the runs view had to read many bytes behind the checkpoint.
    pub(super) long_tail: Cell<bool>,
}

impl LockedStore<'_> {
    /// Returns the runs without findings, as they are under the lock; see [`Store::runs_view`].
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn runs_view(&self) -> Result<Arc<StoreView>, StoreError> {
        let (view, length) = self.store.load_runs()?;
        self.long_tail.set(length == TailLength::Long);
        Ok(view)
    }

    /// Appends a new run's first line. The pending marker of [`LockedStore::write_pending_marker`] is removed, because
    /// the run is recorded now.
    ///
    /// # Errors
    /// Returns an error when the record cannot be written.
    pub fn create_run(&self, record: &RunRecord) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(record).map_err(|source| StoreError::Encode { what: "a run", source })?;
        line.push(b'\n');
        self.store.append_tracked(TrackedFile::Runs, &line)?;
        if let Err(error) = self.clear_pending_marker() {
            // A later recovery finds the marker and also finds the run.
            tracing::warn!(run = %record.run_id, %error, "what was begun for a run stays");
        }
        Ok(())
    }

    /// Does the same as [`Store::update_run`].
    ///
    /// # Errors
    /// Returns an error when the run does not exist or the store cannot be read or written.
    pub fn update_run(
        &self,
        id: &RunId,
        now: Time,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        self.change_run(id, Some(now), change)
    }

    /// Does the same as [`LockedStore::update_run`] for remarks about a run that are not its own activity: `updated_at`
    /// is kept.
    ///
    /// # Errors
    /// Returns an error when the run does not exist or the store cannot be read or written.
    pub fn annotate_run(&self, id: &RunId, change: impl FnOnce(&mut RunRecord)) -> Result<RunRecord, StoreError> {
        self.change_run(id, None, change)
    }

    /// Does [`LockedStore::update_run`] for one run and [`LockedStore::annotate_run`] for another one, as a single, synced write.
    /// Returns both records.
    ///
    /// # Errors
    /// Returns an error when a run does not exist or the store cannot be read or written. Then nothing is changed.
    pub fn update_and_annotate(
        &self,
        id: &RunId,
        now: Time,
        change: impl FnOnce(&mut RunRecord),
        other: &RunId,
        remark: impl FnOnce(&mut RunRecord),
    ) -> Result<(RunRecord, RunRecord), StoreError> {
        debug_assert_ne!(id, other, "the second change would undo the first");
        let (updated, mut lines) = self.build_change(id, Some(now), change)?;
        let (annotated, line) = self.build_change(other, None, remark)?;
        lines.extend(line);
        self.append_run_lines(&lines)?;
        Ok((updated, annotated))
    }

    fn change_run(
        &self,
        id: &RunId,
        now: Option<Time>,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<RunRecord, StoreError> {
        let (record, line) = self.build_change(id, now, change)?;
        self.append_run_lines(&line)?;
        Ok(record)
    }

    fn append_run_lines(&self, lines: &[u8]) -> Result<(), StoreError> {
        match lines.is_empty() {
            true => Ok(()),
            false => self.store.append_tracked(TrackedFile::Runs, lines),
        }
    }

    /// Returns the changed record and its line; an empty line if nothing changes.
    fn build_change(
        &self,
        id: &RunId,
        now: Option<Time>,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<(RunRecord, Vec<u8>), StoreError> {
        let path = self.store.runs_path();
        let Some(mut latest) = run_record::find_latest_record(&path, id)? else {
            return Err(StoreError::NoRun { id: id.to_string(), path });
        };
        let before = latest.record;
        let mut after = before.clone();
        change(&mut after);
        if after == before || (before.status.is_terminal() && after.status != before.status) {
            return Ok((before, Vec::new()));
        }
        // The id and creation time are fixed, and `updated_at` never decreases.
        after.run_id = before.run_id.clone();
        after.created_at = before.created_at;
        after.updated_at = now.map_or(before.updated_at, |now| now.max(before.updated_at));
        run_record::merge_changes(&mut latest.raw, &run_record::to_object(&before)?, &run_record::to_object(&after)?);
        let mut line =
            serde_json::to_vec(&latest.raw).map_err(|source| StoreError::Encode { what: "a run's record", source })?;
        line.push(b'\n');
        Ok((after, line))
    }
}
