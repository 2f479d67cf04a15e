//! Repairs the leftovers of killed processes at start, and reports the repairs once.
//!
//! - The amount of work is bounded by the number of unfinished runs, not by the number of all runs.
//! - A run with a held lock is not touched, nor is anything that another store keeps in the same repository.
//! - A process without a user leaves its report in the store's notices for the next process with a user.

use crate::domain::text::format_count;
use crate::domain::{RunId, RunStatus};
use crate::git::Repo;
use crate::runner::{CostLimit, Recovery, RunnerError};
use crate::store::{Leftover, LockedStore, RecoveryNotice};

/// Maximum number of causes, and of resumed runs, that are named.
const MAX_NAMED_CAUSES: usize = 2;

/// The repairs since the last report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconcileReport {
    pub news: Vec<RecoveryNotice>,
    /// Problems that could not be repaired. The next start tries again.
    pub trouble: Vec<String>,
}

impl Recovery<'_> {
    /// Settles runs without a worker, removes leftovers of dead processes, and takes the notices of other processes.
    /// Must be called at start, before or while the first output is shown.
    pub fn reconcile(&self) -> ReconcileReport {
        let mut reconciled = ReconcileReport::default();
        match self.recover() {
            Ok(recovered) => {
                let stuck = recovered.iter().filter(|run| run.news().is_none());
                reconciled.trouble.extend(stuck.map(|run| format!("run {} {}", run.run_id, run.text())));
            }
            Err(error) => reconciled.trouble.push(format!("cannot settle runs whose worker is gone: {error}")),
        }
        if let Err(error) = self.remove_leftovers() {
            reconciled.trouble.push(format!("what dead processes left stays: {error}"));
        }
        reconciled.news = self.take_news().news;
        reconciled
    }

    /// Names the resumed runs whose reviewer may cost money, with the most that each may cost: they go on because
    /// somebody requested them. Returns `None` if there are none.
    pub fn describe_paid_resumes(&self, report: &ReconcileReport) -> Option<String> {
        let resumed = report.news.iter().filter_map(|news| match news {
            RecoveryNotice::Run { run_id, status: RunStatus::Pending, .. } => {
                self.services.store.run(run_id).ok().flatten()
            }
            _ => None,
        });
        let paid = resumed.filter_map(|run| {
            let name = &run.reviewed_by.name;
            let limit = self.services.reviewers().cost_limit(name).ok().filter(|limit| *limit != CostLimit::Nothing)?;
            Some(format!("{name} goes on with {}, as requested ({limit})", run.subject.name()))
        });
        let paid: Vec<String> = paid.take(MAX_NAMED_CAUSES).collect();
        (!paid.is_empty()).then(|| paid.join("; "))
    }

    /// Takes the notices that other processes left, without any repair.
    pub fn take_news(&self) -> ReconcileReport {
        let news = self.services.store.take_notices().unwrap_or_else(|error| {
            tracing::warn!(%error, "the news cannot be read");
            Vec::new()
        });
        ReconcileReport { news, trouble: Vec::new() }
    }

    /// Removes the leftovers of dead processes and stores a notice.
    pub(in crate::runner) fn remove_leftovers(&self) -> Result<(), RunnerError> {
        let mut news = Vec::new();
        let mut removed = |leftover, count: usize| {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            news.extend((count > 0).then_some(RecoveryNotice::Removed { leftover, count }));
        };
        removed(Leftover::Worktree, self.sweep_checkouts()?);
        removed(Leftover::File, self.services.fixer().sweep_leftovers()?);
        if self.services.store.newer_schema().is_none() && self.services.store.has_pending_run() {
            removed(
                Leftover::Snapshot,
                usize::from(self.services.store.with_lock_as(|locked| self.release_half_made(locked))?),
            );
        }
        Ok(self.services.store.append_notices(&news)?)
    }

    /// Deletes the checkouts of runs without a worker and returns their number.
    pub(in crate::runner) fn sweep_checkouts(&self) -> Result<usize, RunnerError> {
        let is_alive =
            |name: &str| name.parse::<RunId>().is_ok_and(|run| self.services.store.is_live(&run).unwrap_or(true));
        Ok(Repo::remove_stale_checkouts(&self.services.reviewers().checkouts(), &is_alive)?)
    }

    /// Releases the snapshot of a run that was never recorded. Returns `true` if there was one.
    fn release_half_made(&self, locked: &LockedStore<'_>) -> Result<bool, RunnerError> {
        let half_made = locked.abandoned_run()?;
        if let Some(run) = &half_made {
            self.services.repo.release_snapshot(run)?;
            locked.remove_abandoned_journal(run)?;
        }
        locked.clear_pending_marker()?;
        Ok(half_made.is_some())
    }

    /// Begins a run. First releases a snapshot that was never recorded, because its marker is about to be replaced.
    pub(in crate::runner) fn begin_run(&self, locked: &LockedStore<'_>, run: &RunId) -> Result<(), RunnerError> {
        if self.services.store.has_pending_run() && self.release_half_made(locked)? {
            self.services
                .store
                .append_notices(&[RecoveryNotice::Removed { leftover: Leftover::Snapshot, count: 1 }])?;
        }
        Ok(locked.write_pending_marker(run)?)
    }
}

impl ReconcileReport {
    /// Returns everything in one line, for example "2 runs resumed, 1 lost: worker died in turn 7, 4 findings kept; 1
    /// leftover worktree removed". Returns `None` if there is nothing to report.
    pub fn summary(&self) -> Option<String> {
        let mut runs: Vec<(&RunId, RunStatus, String)> = Vec::new();
        let (mut worktrees, mut snapshots, mut files) = (0_u32, 0_u32, 0_u32);
        let mut repaired: Vec<&str> = Vec::new();
        for news in &self.news {
            match news {
                RecoveryNotice::Run { run_id, status, cause, findings } => {
                    // The last notice about a run counts.
                    runs.retain(|(run, ..)| run != &run_id);
                    let cause = format!("{cause}, {} kept", format_count(*findings as usize, "finding"));
                    runs.push((run_id, *status, cause));
                }
                RecoveryNotice::Removed { leftover, count } => {
                    let sum = match leftover {
                        Leftover::Worktree => &mut worktrees,
                        Leftover::Snapshot => &mut snapshots,
                        Leftover::File => &mut files,
                    };
                    *sum = sum.saturating_add(*count);
                }
                RecoveryNotice::Repaired { said } if !repaired.contains(&said.as_str()) => repaired.push(said),
                RecoveryNotice::Repaired { .. } => {}
            }
        }
        let mut groups = Vec::new();
        let mut others: Vec<RunStatus> = Vec::new();
        for (_, status, _) in &runs {
            if !matches!(status, RunStatus::Pending | RunStatus::Lost) && !others.contains(status) {
                others.push(*status);
            }
        }
        for status in [RunStatus::Pending].into_iter().chain(others).chain([RunStatus::Lost]) {
            let causes: Vec<&str> = runs.iter().filter(|run| run.1 == status).map(|run| run.2.as_str()).collect();
            if causes.is_empty() {
                continue;
            }
            let n = if groups.is_empty() { format_count(causes.len(), "run") } else { causes.len().to_string() };
            groups.push(match status {
                RunStatus::Pending => format!("{n} resumed"),
                RunStatus::Lost => format!("{n} lost: {}", join_causes(&causes)),
                status => format!("{n} {status}"),
            });
        }
        let mut parts = vec![groups.join(", ")];
        for (n, what, done) in [
            (worktrees, "leftover worktree", "removed"),
            (snapshots, "leftover snapshot", "released"),
            (files, "half-written file", "removed"),
        ] {
            if n > 0 {
                parts.push(format!("{} {done}", format_count(n as usize, what)));
            }
        }
        parts.extend(repaired.into_iter().map(str::to_owned));
        parts.extend(self.trouble.iter().cloned());
        parts.retain(|part| !part.is_empty());
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Returns the first causes without repetitions, and the number of further causes.
fn join_causes(causes: &[&str]) -> String {
    let mut named: Vec<&str> = Vec::new();
    for cause in causes {
        if !named.contains(cause) {
            named.push(cause);
        }
    }
    let more = match named.len().saturating_sub(MAX_NAMED_CAUSES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    named.truncate(MAX_NAMED_CAUSES);
    format!("{}{more}", named.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize, status: RunStatus, cause: &str, findings: u32) -> RecoveryNotice {
        let run_id = format!("ar_01JAAAAAAAAAAAAAAAAAAAAA{number:02}").parse().expect("an id");
        RecoveryNotice::Run { run_id, status, cause: cause.to_owned(), findings }
    }

    #[test]
    fn the_summary_is_a_line() {
        let resumed = |number| run(number, RunStatus::Pending, "worker died in attempt 1 of 3", 1);
        let lost = |number: usize, turn| run(number, RunStatus::Lost, &format!("worker died in turn {turn}"), 4);
        let worktree = RecoveryNotice::Removed { leftover: Leftover::Worktree, count: 1 };
        let repaired = || RecoveryNotice::Repaired { said: "the index is rebuilt".to_owned() };
        for (news, expected) in [
            (vec![], None),
            (
                vec![resumed(1), lost(2, 7), worktree.clone(), resumed(3)],
                Some("2 runs resumed, 1 lost: worker died in turn 7, 4 findings kept; 1 leftover worktree removed"),
            ),
            (vec![resumed(1), lost(1, 2)], Some("1 run lost: worker died in turn 2, 4 findings kept")),
            (
                vec![lost(1, 1), lost(2, 2), lost(3, 1), lost(4, 3)],
                Some(
                    "4 runs lost: worker died in turn 1, 4 findings kept; worker died in turn 2, 4 findings kept; and 1 more",
                ),
            ),
            (
                vec![run(1, RunStatus::Completed, "", 0), resumed(2), run(3, RunStatus::Cancelled, "", 1)],
                Some("1 run resumed, 1 completed, 1 cancelled"),
            ),
            (
                vec![worktree.clone(), worktree, RecoveryNotice::Removed { leftover: Leftover::Snapshot, count: 1 }],
                Some("2 leftover worktrees removed; 1 leftover snapshot released"),
            ),
            (vec![repaired(), resumed(1), repaired()], Some("1 run resumed; the index is rebuilt")),
        ] {
            let reconciled = ReconcileReport { news, trouble: Vec::new() };
            assert_eq!(reconciled.summary().as_deref(), expected);
        }
        let trouble = ReconcileReport { news: Vec::new(), trouble: vec!["run x cannot be settled".to_owned()] };
        assert_eq!(trouble.summary().as_deref(), Some("run x cannot be settled"));
    }
}
