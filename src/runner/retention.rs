//! Retention: what old runs keep on the disk goes, what they found stays.
//!
//! Invariants: findings, results and dispositions are never removed; nor is the snapshot that a finding stands in which
//! is still of interest, so that its code can be shown and followed. With the journal of a run goes what was asked and answered.

use std::collections::HashSet;

use super::{Runner, RunnerError, cache_sweep};
use crate::config::RetentionSettings;
use crate::domain::{FindingId, FindingStatus, RunId};
use crate::policy::FindingState;
use crate::store::{Leftover, PruneReport, RecoveryNotice};

/// Which runs are old: those that are beyond every limit that is set, and have ended. `None` is no limit; without any no run is old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Runs that changed within this many days stay.
    pub days: Option<u32>,
    /// This many of the newest runs stay.
    pub runs: Option<usize>,
}

impl From<RetentionSettings> for RetentionLimits {
    /// A setting that is for ever keeps all runs, whatever the other says.
    fn from(settings: RetentionSettings) -> Self {
        match (settings.keep_days, settings.keep_runs) {
            (Some(days), Some(runs)) => Self { days: Some(days), runs: Some(runs) },
            _ => Self::default(),
        }
    }
}

/// What was cleared away, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionReport {
    pub pruned: PruneReport,
    /// Old runs whose snapshots git may have.
    pub snapshots: Vec<RunId>,
    /// Old runs whose snapshots stay, because findings stand in them.
    pub held: usize,
    /// Checkouts that dead workers left; not counted in a dry run.
    pub worktrees: usize,
}

impl Runner {
    /// Clears away what old runs keep, and lets `runs.ndjson` forget what later lines replaced.
    pub fn prune(&self, keep: RetentionLimits, dry_run: bool) -> Result<RetentionReport, RunnerError> {
        let pruned = self.store.prune(keep.days, keep.runs, self.ambient.now(), dry_run)?;
        let mut cleared = self.release_snapshots(pruned)?;
        if !dry_run {
            cleared.worktrees = self.sweep_checkouts()?;
        }
        Ok(cleared)
    }

    /// Once a day, by the settings, after a run has ended; nobody waits for it. Leaves `runs.ndjson` as it is: everybody
    /// would have to read it anew.
    pub(super) fn run_housekeeping(&self) {
        let kept = || -> Result<(), RunnerError> {
            let now = self.ambient.now();
            if !self.store.claim_housekeeping(now)? {
                return Ok(());
            }
            let keep = RetentionLimits::from(self.settings.retention);
            let cleared = self.release_snapshots(self.store.prune_runs(keep.days, keep.runs, now)?)?;
            let files = self.store.remove_stale_temporaries()?;
            let count = u32::try_from(files).unwrap_or(u32::MAX);
            let news = (files > 0).then_some(RecoveryNotice::Removed { leftover: Leftover::File, count });
            self.store.append_notices(news.as_slice())?;
            let caches = cache_sweep::sweep_caches(&self.paths, now);
            tracing::info!(journals = cleared.pruned.journals, snapshots = cleared.snapshots.len(), caches, "pruned");
            Ok(())
        };
        if let Err(error) = kept() {
            tracing::warn!(%error, "old runs keep what they have");
        }
    }

    /// Releases the snapshots of old runs, but for those that are in use.
    fn release_snapshots(&self, pruned: PruneReport) -> Result<RetentionReport, RunnerError> {
        let kept: HashSet<RunId> = self.repo.kept_snapshot_runs()?.into_iter().collect();
        let old: Vec<&RunId> = pruned.runs.iter().filter(|run| kept.contains(run)).collect();
        let used = if old.is_empty() { HashSet::new() } else { self.snapshots_in_use()? };
        let snapshots: Vec<RunId> = old.iter().filter(|run| !used.contains(**run)).map(|run| (*run).clone()).collect();
        if !pruned.dry_run {
            for run in &snapshots {
                self.repo.release_snapshot(run)?;
            }
        }
        Ok(RetentionReport { held: old.len() - snapshots.len(), snapshots, worktrees: 0, pruned })
    }

    /// The runs in whose snapshots findings stand that are not settled for good: open, unresolved, dismissed (it holds
    /// as long as the code stays), or said to be addressed and not confirmed.
    fn snapshots_in_use(&self) -> Result<HashSet<RunId>, RunnerError> {
        let view = self.store.view()?;
        let rows = || (0..view.finding_count()).map(|index| (index, view.finding(index)));
        let addressed = rows().filter(|(_, row)| row.status == FindingStatus::Addressed).map(|(_, row)| row.id);
        let said = self.store.latest_dispositions(&addressed.collect())?;
        let is_settled = |id: &str, status| match status {
            FindingStatus::Obsolete => true,
            FindingStatus::Addressed => {
                let last = id.parse::<FindingId>().ok().and_then(|id| said.get(&id).map(|(_, last)| last.clone()));
                FindingState::from_last_disposition(last.as_ref()) == FindingState::Confirmed
            }
            _ => false,
        };
        let standing = rows().filter(|(_, row)| !is_settled(row.id, row.status));
        let runs = standing.filter_map(|(index, _)| view.run(view.locating_run(index)?).id.parse().ok());
        Ok(runs.collect())
    }
}
