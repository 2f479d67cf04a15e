//! Prune: less on disk, nothing forgotten.
//!
//! Invariants: outputs, findings and dispositions stay; a journal goes only when the run has ended and its output can be
//! read; lines that cannot be read or that a newer revdeck wrote stay. A pulse that a killed worker left goes with its run's end.

use std::collections::HashMap;

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, StoreView, parse};
use crate::domain::{RunId, RunRecord, Time};

const DAY_MS: i64 = 86_400_000;

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Journals of old runs that have an output.
    pub journals: usize,
    /// Lines of `runs.ndjson` that later ones had replaced.
    pub lines: usize,
    pub bytes: u64,
    /// Old runs: the references that keep their snapshots may go; the caller releases them.
    pub runs: Vec<RunId>,
    /// Nothing was removed.
    pub dry_run: bool,
}

impl Store {
    /// Removes the journals of old runs and compacts `runs.ndjson` to one line per run. A run is old when it has ended
    /// and is neither among the newest `keep_runs` nor younger than `keep_days` (a limit that is `None` keeps no run;
    /// with both `None` no run is old).
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
        for (path, bytes) in self.stale_heartbeats(&view)? {
            if !dry_run {
                std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            }
            pruned.bytes += bytes;
        }
        self.prune_old(&view, keep_days, keep_runs, now, &mut pruned)?;
        Ok(pruned)
    }

    /// As [`Store::prune`], and leaves `runs.ndjson` as it is, so that nobody has to read it anew.
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

    /// Whether it is a day since somebody kept house, and it is up to the caller now.
    pub fn claim_housekeeping(&self, now: Time) -> Result<bool, StoreError> {
        let path = self.root.join("housekeeping");
        let is_due = || -> Result<bool, StoreError> {
            let last = files::read(&path)?.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse::<i64>().ok());
            // A clock that went backwards puts nothing off for ever.
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

    /// Bytes of all files of the store.
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
        for index in keep_runs.unwrap_or(0)..view.run_count() {
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
                        std::fs::remove_file(&journal).map_err(StoreError::io("remove", &journal))?;
                    }
                    pruned.journals += 1;
                    pruned.bytes += metadata.len();
                }
            }
            pruned.runs.push(id);
        }
        Ok(())
    }

    /// Keeps the last line of each run in the place of its first, so that the order of runs stays. Under the store's
    /// lock, but for a dry run.
    fn compact_runs(&self, pruned: &mut PruneReport) -> Result<(), StoreError> {
        #[derive(serde::Deserialize)]
        struct RunIdField {
            run_id: RunId,
        }
        let path = self.runs_path();
        let Some(bytes) = files::read(&path)? else { return Ok(()) };
        let mut kept: Vec<&[u8]> = Vec::new();
        // Per run the place of its last readable line, and of the last line of a newer version that came after it.
        let mut places: HashMap<RunId, (Option<usize>, Option<usize>)> = HashMap::new();
        let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines() {
            let Ok(RunIdField { run_id }) = serde_json::from_slice(line) else {
                // Torn or corrupt: repair sets it aside.
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
            files::write_atomically(&path, &compact, ExistingPolicy::Replace)?;
        }
        Ok(())
    }
}
