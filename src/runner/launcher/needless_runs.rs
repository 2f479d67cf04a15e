//! Ends live runs that nobody needs any more, or lets them go on as the review of a rewritten commit.
//!
//! - An amended or rebased commit ends its review, unless a new commit shows exactly the same change: then the review
//!   goes on as the review of that commit.
//! - Two live runs with equal content can only arise from a race, for example when a run whose worker seemed dead goes
//!   on. The one with less progress ends.
//! - What a run has found until then is kept, as at every end.

use std::collections::HashMap;
use std::path::Path;

use crate::domain::{CancelReason, RunId, RunRecord, RunStatus, Scope};
use crate::git::Repo;
use crate::policy::{self, EquivalenceKey, KnownRun, LiveRun, NeedlessVerdict, ReviewedCommit};
use crate::runner::{Launcher, RunnerError, known_runs};
use crate::store::{LockedStore, RunRow, StoreView};

/// Maximum number of new commits that are searched for the one with the same change. Not from the literature: each
/// costs a comparison of two trees, and a longer rebase is worth a new review.
const MAX_COMPARED_COMMITS: usize = 50;

/// A live run that was found needless, in one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedlessRun {
    /// Id of the run.
    pub run: RunId,
    /// Sentence without the id, for example `ends: its commit 1a2b3c4 was rewritten`.
    pub text: String,
}

/// Facts of a run on which the comparison of its commit with the history depends.
#[derive(PartialEq, Eq, Hash)]
struct CommitKey<'a> {
    worktree: &'a str,
    scope: &'a str,
    snapshot_commit: &'a str,
    head_commit: &'a str,
    matching_head: &'a str,
    scope_hash: &'a str,
    diff_fingerprint: &'a str,
}

impl<'a> CommitKey<'a> {
    fn from_row(row: &RunRow<'a>) -> Self {
        Self {
            worktree: row.worktree,
            scope: row.scope,
            snapshot_commit: row.snapshot_commit,
            head_commit: row.head_commit,
            matching_head: row.matching_head,
            scope_hash: row.scope_hash,
            diff_fingerprint: row.diff_fingerprint,
        }
    }
}

impl Launcher<'_> {
    /// Looks at the live runs of a view, and ends or adopts those that are not needed as they are. A view that is
    /// slightly old does no harm: each run is looked at again before it is changed.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    fn settle_needless_runs(&self, view: &StoreView) -> Result<Vec<NeedlessRun>, RunnerError> {
        let mut settled = Vec::new();
        let live = self.collect_live_runs(view)?;
        for (run, verdict) in policy::find_needless_runs(&live) {
            let changed = self.services.store.with_lock_as(|locked| self.carry_out(locked, &run, &verdict))?;
            settled.extend(changed.map(|text| NeedlessRun { run, text }));
        }
        Ok(settled)
    }

    /// Ends or adopts the live runs that are not needed as they are. Returns what was done. Only logs a failure: the
    /// next process tries again.
    pub(in crate::runner) fn settle_needless_or_log(&self) -> Vec<NeedlessRun> {
        match self.services.store.runs_view() {
            Ok(view) => self.settle_needless_of_view(&view),
            Err(error) => {
                tracing::warn!(%error, "runs that nobody needs any more go on");
                Vec::new()
            }
        }
    }

    /// Works as [`Launcher::settle_needless_or_log`], with a view that was just read.
    pub(in crate::runner) fn settle_needless_of_view(&self, view: &StoreView) -> Vec<NeedlessRun> {
        self.settle_needless_runs(view).unwrap_or_else(|error| {
            tracing::warn!(%error, "runs that nobody needs any more go on");
            Vec::new()
        })
    }

    fn collect_live_runs<'a>(&self, view: &'a StoreView) -> Result<Vec<LiveRun<'a>>, RunnerError> {
        let rows: Vec<(RunRow<'_>, KnownRun<'_>)> = known_runs::run_rows(view)
            .filter(|row| !row.status.is_terminal() && row.cancel_reason.is_empty() && !row.is_fix_review())
            .map(|row| (row, known_runs::known_run_from_row(&row)))
            .collect();
        let mut copies: HashMap<EquivalenceKey<'_>, usize> = HashMap::new();
        for (_, run) in &rows {
            *copies.entry(run.equivalence_key()).or_default() += 1;
        }
        let mut looked = HashMap::new();
        let mut live = Vec::new();
        for (row, run) in rows {
            let key = CommitKey::from_row(&row);
            let commit = looked.entry(key).or_insert_with(|| self.look_for_commit(&row)).clone();
            let has_twin = copies.get(&run.equivalence_key()).is_some_and(|copies| *copies > 1);
            if commit == ReviewedCommit::Standing && !has_twin {
                continue;
            }
            let run = KnownRun { liveness: self.services.check_liveness(&row), ..run };
            let mut one = LiveRun { run, commit, delivered: 0, is_wanted_twice: false };
            // Only twins are compared by their progress.
            if has_twin
                && let Ok(id) = row.id.parse::<RunId>()
                && let Some(record) = self.services.store.run(&id)?
            {
                one.is_wanted_twice = record.full || record.is_paused();
                if !one.is_wanted_twice {
                    one.delivered = self.count_delivered(&record)?;
                }
            }
            live.push(one);
        }
        Ok(live)
    }

    fn count_delivered(&self, record: &RunRecord) -> Result<u32, RunnerError> {
        if record.attempt == 0 {
            return Ok(0);
        }
        let journal = self.services.replay_journal(&record.run_id)?;
        let hunks: usize = journal.covered().iter().map(|file| file.hunks.len()).sum();
        Ok(u32::try_from(hunks).unwrap_or(u32::MAX))
    }

    /// Compares the commit of a run with the history. What cannot be read proves nothing.
    fn look_for_commit(&self, row: &RunRow<'_>) -> ReviewedCommit {
        if !matches!(row.scope.parse(), Ok(Scope::Commit(_) | Scope::Range { .. } | Scope::Since { .. })) {
            return ReviewedCommit::Standing;
        }
        // Another repository may have taken the place of the working tree; its history says nothing about the commit.
        let own = |repo: &Repo| repo.common_dir() == self.services.repo.common_dir();
        let Some(repo) = self.services.repo.open_other_worktree(Path::new(row.worktree)).ok().filter(own) else {
            return ReviewedCommit::Standing;
        };
        let holds = |commit: &str| repo.is_reachable(commit).unwrap_or(true);
        // In the middle of a rebase, commits are missing that it will bring.
        let moving = repo.operation().is_some();
        if moving || holds(row.snapshot_commit) || (row.matching_head != row.head_commit && holds(row.matching_head)) {
            return ReviewedCommit::Standing;
        }
        // A commit that somebody asked for by its id, without it being in the history, was not rewritten since.
        if !repo.is_in_history(row.snapshot_commit, row.head_commit) {
            return ReviewedCommit::Standing;
        }
        let same = matches!(row.scope.parse(), Ok(Scope::Commit(_))).then(|| self.find_same_change(&repo, row));
        same.flatten().map_or(ReviewedCommit::Rewritten, ReviewedCommit::RewrittenAs)
    }

    /// Finds the commit that came in place of a run's commit and shows exactly the same change.
    fn find_same_change(&self, repo: &Repo, row: &RunRow<'_>) -> Option<String> {
        let filter = self.services.filter();
        let commits = repo.commits_since(row.head_commit, MAX_COMPARED_COMMITS).ok()?;
        commits.into_iter().find(|commit| {
            let snapshot = repo.take_snapshot(&Scope::Commit(commit.clone()), &filter);
            snapshot.is_ok_and(|snapshot| {
                snapshot.diff_fingerprint == row.diff_fingerprint && snapshot.scope_hash == row.scope_hash
            })
        })
    }

    /// Carries out a verdict, unless the run, or the one that stays in its place, has ended or was asked to end
    /// meanwhile. Returns what was done.
    fn carry_out(
        &self,
        locked: &LockedStore<'_>,
        run: &RunId,
        verdict: &NeedlessVerdict,
    ) -> Result<Option<String>, RunnerError> {
        let Some(record) = self.services.store.run(run)?.filter(goes_on) else { return Ok(None) };
        if let NeedlessVerdict::DuplicateOf(other) = verdict
            && !self.services.store.run(other)?.is_some_and(|other| goes_on(&other))
        {
            return Ok(None);
        }
        let old = short_commit(&record.subject.snapshot_commit);
        let (reason, note) = match verdict {
            NeedlessVerdict::Adopt { commit } => {
                let text = format!("{old} was rewritten as {}, which shows the same change", short_commit(commit));
                locked.annotate_run(run, |record| {
                    record.reuse.count = record.reuse.count.saturating_add(1);
                    record.reuse.adopted_count = record.reuse.adopted_count.saturating_add(1);
                    record.reuse.last_at = Some(self.services.ambient.now());
                    record.reuse.last_reason.clone_from(&text);
                    record.reuse.last_head.clone_from(commit);
                })?;
                return Ok(Some(format!("goes on: {text}")));
            }
            NeedlessVerdict::Obsolete => (CancelReason::Obsolete, format!("{old} is in no branch any more")),
            NeedlessVerdict::DuplicateOf(other) => {
                (CancelReason::Duplicate, format!("{other} reviews exactly the same and is further"))
            }
        };
        let asked = locked.update_run(run, self.services.ambient.now(), |record| {
            record.ending.cancel_reason = Some(reason);
            record.ending.cancel_note.clone_from(&note);
            if let NeedlessVerdict::DuplicateOf(other) = verdict {
                record.links.reused_from = Some(other.clone());
            }
        })?;
        // A panel ends when its members have ended, with what they have found.
        if asked.status == RunStatus::Pending && asked.links.panel.is_none() {
            self.services.closer().end_pending_run(locked, &asked)?;
        }
        Ok(Some(format!("ends: {note}")))
    }
}

/// Returns true if a run has not ended and was not asked to end.
fn goes_on(run: &RunRecord) -> bool {
    !run.status.is_terminal() && run.ending.cancel_reason.is_none()
}

fn short_commit(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_twin_goes_on_when_the_one_in_its_place_has_ended_meanwhile() {
        for (reason, has_ended) in [(None, true), (Some(CancelReason::UserStop), false), (None, false)] {
            let fixture = RunnerFixture::new();
            let services = &fixture.services;
            let stays = fixture.record_working_run(|_| {});
            let twin = fixture.record_working_run(|_| {});
            let now = services.ambient.now();
            let change = |record: &mut RunRecord| {
                record.ending.cancel_reason = reason;
                record.status = if has_ended { RunStatus::Failed } else { record.status };
            };
            services.store.update_run(&stays, now, change).expect("a line");
            let verdict = NeedlessVerdict::DuplicateOf(stays.clone());
            let done = services.store.with_lock_as(|locked| services.launcher().carry_out(locked, &twin, &verdict));
            let goes_on = reason.is_some() || has_ended;
            assert_eq!(done.expect("the store").is_none(), goes_on, "{reason:?} {has_ended}");
            let expected = (!goes_on).then_some(CancelReason::Duplicate);
            assert_eq!(fixture.record(&twin).ending.cancel_reason, expected);
        }
    }
}
