//! Measures the progress of an older run, and how much of its work still applies to newer code. The policy decides with
//! it whether the older run may finish.
//!
//! A user waits for the request, so this module reads little: the older run's journal, and those of its files that the
//! newer change contains. Files that are not read count as changed.

use std::collections::HashMap;

use crate::domain::{LineRange, RunId, RunRecord};
use crate::git::{FileChange, Hunk, Snapshot};
use crate::policy::Liveness;
use crate::policy::supersede::{RunProgress, WorkerState};
use crate::review::JournalState;
use crate::runner::{Launcher, RunnerError, hunk_keys};
use crate::store::RunRow;

/// Maximum number of files whose texts are compared. Not from the literature: the user waits for it.
const MAX_COMPARED_FILES: usize = 32;

impl Launcher<'_> {
    /// Measures the progress of an unfinished run against the snapshot of a new request. Returns `None` if it is
    /// unknown.
    pub(in crate::runner) fn measure_progress(
        &self,
        row: &RunRow<'_>,
        liveness: Liveness,
        newer: &Snapshot,
    ) -> Result<Option<RunProgress>, RunnerError> {
        let Ok(id) = row.id.parse::<RunId>() else { return Ok(None) };
        match liveness {
            Liveness::Waiting => return Ok(Some(RunProgress::new_idle(WorkerState::Waiting))),
            Liveness::Dead => return Ok(Some(RunProgress::new_idle(WorkerState::Dead))),
            _ => {}
        }
        let Some(record) = self.services.store.run(&id)? else { return Ok(None) };
        if record.is_paused() {
            return Ok(Some(RunProgress::new_idle(WorkerState::Paused)));
        }
        let replayed = self.services.replay_journal(&id)?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let carried = replayed.carried().iter().map(|carried| carried.file.hunks.len()).sum();
        let delivered = replayed.covered().iter().map(|file| file.hunks.len()).sum();
        let hunks = replayed.planned.map_or(0, |planned| planned.hunks).saturating_sub(count(carried));
        let UnchangedHunks { all, left } = self.count_unchanged_hunks(&record, &replayed, newer);
        let open = hunks.saturating_sub(count(delivered));
        let estimate = record.usage.prompt_estimate.saturating_mul(u64::from(open)) / u64::from(hunks.max(1));
        Ok(Some(RunProgress {
            pace: WorkerState::Working,
            hunks,
            delivered: count(delivered),
            left_unchanged: left.min(open),
            unchanged: all.min(hunks),
            tokens: record.usage.tokens.total(),
            tokens_left: estimate,
        }))
    }

    /// Counts the hunks of the run that are unchanged in the newer change. Carried hunks do not count.
    fn count_unchanged_hunks(&self, run: &RunRecord, replayed: &JournalState, newer: &Snapshot) -> UnchangedHunks {
        let files: HashMap<&str, &FileChange> =
            newer.change.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let lines = |path: &str, hunks: &[(&str, &[LineRange])], hunk: &Hunk| {
            hunks.iter().any(|(other, hunks)| *other == path && hunks.contains(&hunk.new_range()))
        };
        let covered: Vec<(&str, &[LineRange])> =
            replayed.covered().iter().map(|file| (file.path.as_str(), file.hunks.as_slice())).collect();
        let carried: Vec<(&str, &[LineRange])> = replayed
            .carried()
            .iter()
            .map(|carried| (carried.file.path.as_str(), carried.file.hunks.as_slice()))
            .collect();
        let (mut unchanged, mut compared) = (UnchangedHunks { all: 0, left: 0 }, 0);
        for path in &run.subject.changed_paths {
            let Some(file) = files.get(path.as_str()) else { continue };
            let Some(hunks) = self.find_kept_hunks(run, path, file, &mut compared) else { continue };
            for hunk in hunks.iter().filter(|hunk| !lines(path, &carried, hunk)) {
                unchanged.all = unchanged.all.saturating_add(1);
                if !lines(path, &covered, hunk) {
                    unchanged.left = unchanged.left.saturating_add(1);
                }
            }
        }
        unchanged
    }

    /// Returns the hunks of a run's file that the newer change contains too, with their lines in the run's snapshot.
    fn find_kept_hunks(
        &self,
        run: &RunRecord,
        path: &str,
        newer: &FileChange,
        compared: &mut usize,
    ) -> Option<Vec<Hunk>> {
        let new_blob = self.services.repo.blob_at(&run.subject.snapshot_commit, path).ok()??;
        let old_path = newer.old_path.as_deref().unwrap_or(path);
        let old_blob = match run.subject.base_commit.is_empty() {
            true => None,
            false => self.services.repo.blob_at(&run.subject.base_commit, old_path).ok()?,
        };
        if new_blob == newer.new_blob && old_blob == newer.old_blob {
            return Some(newer.hunks.clone());
        }
        *compared += 1;
        if *compared > MAX_COMPARED_FILES {
            return None;
        }
        let (old, new) = hunk_keys::read_sides(&self.services.repo, old_blob.as_deref(), &new_blob)?;
        let hunks = self.services.repo.diff_texts(&old, &new).ok()?;
        let then = hunk_keys::compute_edit_keys(&old, &new, &hunks);
        let (old, new) = hunk_keys::read_sides(&self.services.repo, newer.old_blob.as_deref(), &newer.new_blob)?;
        let mut left: HashMap<String, usize> = HashMap::new();
        for key in hunk_keys::compute_edit_keys(&old, &new, &newer.hunks) {
            *left.entry(key).or_default() += 1;
        }
        let kept = hunks.into_iter().zip(then).filter(|(_, key)| {
            let left = left.get_mut(key).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        });
        Some(kept.map(|(hunk, _)| hunk).collect())
    }
}

/// Counts of unchanged hunks.
struct UnchangedHunks {
    all: u32,
    /// Unchanged hunks that the run has not sent to its reviewer yet.
    left: u32,
}
