//! Prunes the store: frees disk space without losing results.
//!
//! Invariants:
//! - Outputs, findings and dispositions stay.
//! - A journal is removed only when the run has ended and its output is readable.
//! - Unreadable lines and lines of a newer revdeck stay.
//! - The heartbeat left by a killed worker is removed when its run has ended.

use std::collections::HashMap;

use super::extents::TrackedFile;
use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, StoreView, parse};
use crate::domain::{RunId, RunRecord, Time};

const DAY_MS: i64 = 86_400_000;

/// Data that was removed, or that a dry run would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Number of removed journals of old runs with an output.
    pub journals: usize,
    /// Number of removed lines of `runs.ndjson` that later lines had replaced.
    pub lines: usize,
    /// Total size in bytes of the removed files and lines.
    pub bytes: u64,
    /// Old runs; the caller releases the refs that keep their snapshots.
    pub runs: Vec<RunId>,
    /// True when nothing was removed.
    pub dry_run: bool,
}

impl Store {
    /// Removes the journals of old runs and compacts `runs.ndjson` to a line per run. A run is old when it has ended
    /// and is neither among the newest `keep_runs` nor younger than `keep_days` days. A limit of `None` keeps no run;
    /// when both limits are `None`, no run is old.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, or a file cannot be read, written or removed.
    pub fn prune(
        &self,
        keep_days: Option<u32>,
        keep_runs: Option<usize>,
        now: Time,
        dry_run: bool,
    ) -> Result<PruneReport, StoreError> {
        let mut pruned = PruneReport { dry_run, ..PruneReport::default() };
        if !self.root.is_dir() {
            return Ok(pruned);
        }
        if dry_run {
            self.compact_runs(&mut pruned)?;
        } else {
            self.with_lock(|_| self.compact_runs(&mut pruned))?;
        }
        let view = self.runs_view()?;
        for (path, bytes) in self.stale_side_files(&view)? {
            if !dry_run {
                std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            }
            pruned.bytes += bytes;
        }
        self.prune_old(&view, keep_days, keep_runs, now, &mut pruned)?;
        Ok(pruned)
    }

    /// Does the same as [`Store::prune`] without compacting `runs.ndjson`, so that readers need not read the file
    /// again.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read or removed.
    pub fn prune_runs(
        &self,
        keep_days: Option<u32>,
        keep_runs: Option<usize>,
        now: Time,
    ) -> Result<PruneReport, StoreError> {
        let mut pruned = PruneReport::default();
        self.prune_old(&*self.runs_view()?, keep_days, keep_runs, now, &mut pruned)?;
        Ok(pruned)
    }

    /// Returns true when the last housekeeping was at least a day ago; the caller must then do the next housekeeping.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn claim_housekeeping(&self, now: Time) -> Result<bool, StoreError> {
        let path = self.root.join("housekeeping");
        let is_due = || -> Result<bool, StoreError> {
            let last = files::read(&path)?.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse::<i64>().ok());
            // A clock that went backwards must not delay the housekeeping forever.
            Ok(last.is_none_or(|last| !(0..DAY_MS).contains(&now.as_millisecond().saturating_sub(last))))
        };
        if !is_due()? {
            return Ok(false);
        }
        self.with_lock(|_| {
            let due = is_due()?;
            if due {
                let text = format!("{}\n", now.as_millisecond());
                files::write_beside(&path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
                    std::io::Write::write_all(file, text.as_bytes())
                })?;
            }
            Ok(due)
        })
    }

    /// Returns the total size of the store's files in bytes.
    pub fn total_bytes(&self) -> u64 {
        let folders = super::STORE_FOLDERS.map(|name| self.root.join(name));
        let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
    }

    fn prune_old(
        &self,
        view: &StoreView,
        keep_days: Option<u32>,
        keep_runs: Option<usize>,
        now: Time,
        pruned: &mut PruneReport,
    ) -> Result<(), StoreError> {
        if keep_days.is_none() && keep_runs.is_none() {
            return Ok(());
        }
        let since = keep_days
            .map_or(i64::MAX, |days| now.as_millisecond().saturating_sub(i64::from(days).saturating_mul(DAY_MS)));
        // Runs of other machines have neither a journal nor a snapshot here, so they take no place among those that are kept.
        let is_own =
            |index: &usize| !view.run_worktree(*index).is_empty() || self.journal_path(view.run(*index).id).exists();
        let own = (0..view.run_count()).filter(is_own);
        for index in own.skip(keep_runs.unwrap_or(0)) {
            let run = view.run(index);
            let Ok(id) = run.id.parse::<RunId>() else { continue };
            if !run.status.is_terminal() || run.updated_ms >= since || self.is_live(&id)? {
                continue;
            }
            let journal = self.journal_path(run.id);
            if let Ok(metadata) = std::fs::metadata(&journal) {
                let output = files::read(&self.output_path(run.id))?;
                if output.is_some_and(|bytes| parse::parse_output_lines(&bytes).is_some()) {
                    if !pruned.dry_run {
                        self.remove_journal(run.id)?;
                    }
                    pruned.journals += 1;
                    pruned.bytes += metadata.len();
                }
            }
            pruned.runs.push(id);
        }
        Ok(())
    }

    /// Keeps the last line of each run at the position of its first line, so that the order of runs stays. The caller
    /// must hold the store's lock, except for a dry run.
    fn compact_runs(&self, pruned: &mut PruneReport) -> Result<(), StoreError> {
        #[derive(serde::Deserialize)]
        struct RunIdField {
            run_id: RunId,
        }
        let path = self.runs_path();
        let Some(bytes) = files::read(&path)? else { return Ok(()) };
        let mut kept: Vec<&[u8]> = Vec::new();
        // Per run: the position of its last readable line, and of the last later line that only a newer version can
        // read.
        let mut places: HashMap<RunId, (Option<usize>, Option<usize>)> = HashMap::new();
        let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines() {
            let Ok(RunIdField { run_id }) = serde_json::from_slice(line) else {
                // A torn or corrupt line stays; a repair sets it aside.
                kept.push(line);
                continue;
            };
            let (known, newer) = places.entry(run_id).or_default();
            if let Some(replaced) = newer.take() {
                kept[replaced] = b"";
            }
            if serde_json::from_slice::<RunRecord>(line).is_err() {
                *newer = Some(kept.len());
                kept.push(line);
            } else if let Some(place) = *known {
                kept[place] = line;
            } else {
                *known = Some(kept.len());
                kept.push(line);
            }
        }
        kept.retain(|line| !line.is_empty());
        let after: u64 = kept.iter().map(|line| line.len() as u64 + 1).sum();
        pruned.lines = lines().count() - kept.len();
        if pruned.lines == 0 {
            return Ok(());
        }
        pruned.bytes += (bytes.len() as u64).saturating_sub(after);
        if !pruned.dry_run {
            let mut compact = Vec::with_capacity(usize::try_from(after).unwrap_or(0));
            for line in kept {
                compact.extend_from_slice(line);
                compact.push(b'\n');
            }
            self.rewrite_tracked(TrackedFile::Runs, &compact)?;
        }
        Ok(())
    }
}
