//! Retention: what old runs keep on the disk goes, what they found stays.
//!
//! Invariants: findings, results and dispositions are never removed; nor is the snapshot that a finding stands in which
//! is still of interest, so that its code can be shown and followed. With the journal of a run goes what was asked and answered.

use std::collections::HashSet;

use super::{Runner, RunnerError, caches};
use crate::config::RetentionSettings;
use crate::domain::{FindingId, FindingStatus, RunId};
use crate::policy::Present;
use crate::store::{Leftover, News, Pruned};

/// Which runs are old: those that are beyond every limit that is set, and have ended. `None` is no limit; without any no run is old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Runs that changed within this many days stay.
    pub days: Option<u32>,
    /// This many of the newest runs stay.
    pub runs: Option<usize>,
}

impl From<RetentionSettings> for Keep {
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
pub struct Cleared {
    pub pruned: Pruned,
    /// Old runs whose snapshots git may have.
    pub snapshots: Vec<RunId>,
    /// Old runs whose snapshots stay, because findings stand in them.
    pub held: usize,
    /// Checkouts that dead workers left; not counted in a dry run.
    pub worktrees: usize,
}

impl Runner {
    /// Clears away what old runs keep, and lets `runs.ndjson` forget what later lines replaced.
    pub fn prune(&self, keep: Keep, dry_run: bool) -> Result<Cleared, RunnerError> {
        let pruned = self.store.prune(keep.days, keep.runs, self.ambient.now(), dry_run)?;
        let mut cleared = self.let_go(pruned)?;
        if !dry_run {
            cleared.worktrees = self.sweep_checkouts()?;
        }
        Ok(cleared)
    }

    /// Once a day, by the settings, after a run has ended; nobody waits for it. Leaves `runs.ndjson` as it is: everybody
    /// would have to read it anew.
    pub(super) fn keep_house(&self) {
        let kept = || -> Result<(), RunnerError> {
            let now = self.ambient.now();
            if !self.store.begin_housekeeping(now)? {
                return Ok(());
            }
            let keep = Keep::from(self.settings.retention);
            let cleared = self.let_go(self.store.prune_runs(keep.days, keep.runs, now)?)?;
            let files = self.store.remove_half_written()?;
            let count = u32::try_from(files).unwrap_or(u32::MAX);
            let news = (files > 0).then_some(News::Removed { leftover: Leftover::File, count });
            self.store.tell_later(news.as_slice())?;
            let caches = caches::sweep(&self.paths, now);
            tracing::info!(journals = cleared.pruned.journals, snapshots = cleared.snapshots.len(), caches, "pruned");
            Ok(())
        };
        if let Err(error) = kept() {
            tracing::warn!(%error, "old runs keep what they have");
        }
    }

    /// Releases the snapshots of old runs, but for those that are in use.
    fn let_go(&self, pruned: Pruned) -> Result<Cleared, RunnerError> {
        let kept: HashSet<RunId> = self.repo.kept()?.into_iter().collect();
        let old: Vec<&RunId> = pruned.runs.iter().filter(|run| kept.contains(run)).collect();
        let used = if old.is_empty() { HashSet::new() } else { self.snapshots_in_use()? };
        let snapshots: Vec<RunId> = old.iter().filter(|run| !used.contains(**run)).map(|run| (*run).clone()).collect();
        if !pruned.dry_run {
            for run in &snapshots {
                self.repo.release(run)?;
            }
        }
        Ok(Cleared { held: old.len() - snapshots.len(), snapshots, worktrees: 0, pruned })
    }

    /// The runs in whose snapshots findings stand that are not settled for good: open, unresolved, dismissed (it holds
    /// as long as the code stays), or said to be addressed and not confirmed.
    fn snapshots_in_use(&self) -> Result<HashSet<RunId>, RunnerError> {
        let view = self.store.view()?;
        let rows = || (0..view.finding_count()).map(|index| (index, view.finding(index)));
        let addressed = rows().filter(|(_, row)| row.status == FindingStatus::Addressed).map(|(_, row)| row.id);
        let said = self.store.last_said(&addressed.collect())?;
        let is_settled = |id: &str, status| match status {
            FindingStatus::Obsolete => true,
            FindingStatus::Addressed => {
                let last = id.parse::<FindingId>().ok().and_then(|id| said.about(&id).map(|(_, last)| last.clone()));
                Present::of(last.as_ref()) == Present::Confirmed
            }
            _ => false,
        };
        let standing = rows().filter(|(_, row)| !is_settled(row.id, row.status));
        let runs = standing.filter_map(|(index, _)| view.run(view.placed_by(index)?).id.parse().ok());
        Ok(runs.collect())
    }
}
