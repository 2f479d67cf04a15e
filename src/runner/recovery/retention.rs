//! Deletes the disk space of old runs and keeps their findings.
//!
//! - Findings, results and dispositions are never removed.
//! - A snapshot stays if it contains a finding that is not settled, so that the finding's code can be shown and
//!   followed.
//! - The journal contains the requests and answers of a run; they are deleted with it.

use std::collections::HashSet;

use crate::config::RetentionSettings;
use crate::domain::{FindingId, FindingStatus, RunId};
use crate::policy::FindingState;
use crate::runner::recovery::cache_sweep;
use crate::runner::{Recovery, RunnerError};
use crate::store::{Leftover, PruneReport, RecoveryNotice};

/// The limits that define an old run: it has ended and is beyond every limit that is set. `None` is no limit; without
/// any limit no run is old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Runs that changed within this many days stay.
    pub days: Option<u32>,
    /// This number of the newest runs stays.
    pub runs: Option<usize>,
}

impl From<RetentionSettings> for RetentionLimits {
    /// Converts the settings. If one setting keeps runs forever, all runs stay, whatever the other setting says.
    fn from(settings: RetentionSettings) -> Self {
        match (settings.keep_days, settings.keep_runs) {
            (Some(days), Some(runs)) => Self { days: Some(days), runs: Some(runs) },
            _ => Self::default(),
        }
    }
}

/// The result of a cleanup or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionReport {
    pub pruned: PruneReport,
    /// Old runs whose snapshots git may delete.
    pub snapshots: Vec<RunId>,
    /// Number of old runs whose snapshots stay because of unsettled findings.
    pub held: usize,
    /// Number of deleted checkouts of dead workers; not counted in a dry run.
    pub worktrees: usize,
}

impl Recovery<'_> {
    /// Deletes journals and snapshots of old runs, and removes replaced lines from `runs.ndjson`.
    ///
    /// # Errors
    ///
    /// If the store or git fails.
    pub fn prune(&self, keep: RetentionLimits, dry_run: bool) -> Result<RetentionReport, RunnerError> {
        let pruned = self.services.store.prune(keep.days, keep.runs, self.services.ambient.now(), dry_run)?;
        let mut cleared = self.release_snapshots(pruned)?;
        if !dry_run {
            cleared.worktrees = self.sweep_checkouts()?;
        }
        Ok(cleared)
    }

    /// Runs the daily cleanup after a run has ended, by the settings. Nobody waits for it. Leaves `runs.ndjson`
    /// unchanged, because all readers would have to read it again.
    pub(in crate::runner) fn run_housekeeping(&self) {
        let kept = || -> Result<(), RunnerError> {
            let now = self.services.ambient.now();
            if !self.services.store.claim_housekeeping(now)? {
                return Ok(());
            }
            let keep = RetentionLimits::from(self.services.settings.retention);
            let cleared = self.release_snapshots(self.services.store.prune_runs(keep.days, keep.runs, now)?)?;
            let files = self.services.store.remove_stale_temporaries()?;
            let count = u32::try_from(files).unwrap_or(u32::MAX);
            let news = (files > 0).then_some(RecoveryNotice::Removed { leftover: Leftover::File, count });
            self.services.store.append_notices(news.as_slice())?;
            let caches = cache_sweep::sweep_caches(&self.services.paths, now);
            tracing::info!(journals = cleared.pruned.journals, snapshots = cleared.snapshots.len(), caches, "pruned");
            Ok(())
        };
        if let Err(error) = kept() {
            tracing::warn!(%error, "old runs keep what they have");
        }
    }

    /// Releases the snapshots of old runs, except for those in use.
    fn release_snapshots(&self, pruned: PruneReport) -> Result<RetentionReport, RunnerError> {
        let kept: HashSet<RunId> = self.services.repo.kept_snapshot_runs()?.into_iter().collect();
        let old: Vec<&RunId> = pruned.runs.iter().filter(|run| kept.contains(run)).collect();
        let used = if old.is_empty() { HashSet::new() } else { self.snapshots_in_use()? };
        let snapshots: Vec<RunId> = old.iter().filter(|run| !used.contains(**run)).map(|run| (*run).clone()).collect();
        if !pruned.dry_run {
            for run in &snapshots {
                self.services.repo.release_snapshot(run)?;
            }
        }
        Ok(RetentionReport { held: old.len() - snapshots.len(), snapshots, worktrees: 0, pruned })
    }

    /// Returns the runs whose snapshots contain unsettled findings: open, unresolved, dismissed (valid as long as the
    /// code stays), or addressed without confirmation.
    fn snapshots_in_use(&self) -> Result<HashSet<RunId>, RunnerError> {
        let view = self.services.store.view()?;
        let rows = || (0..view.finding_count()).map(|index| (index, view.finding(index)));
        let addressed = rows().filter(|(_, row)| row.status == FindingStatus::Addressed).map(|(_, row)| row.id);
        let said = self.services.store.latest_dispositions(&addressed.collect())?;
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
