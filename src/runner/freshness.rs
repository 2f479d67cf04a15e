//! Loads the facts from which [`crate::policy::derive_freshness`] derives the freshness of runs: one look at git, the
//! epoch and the locks for a whole list of runs. Deriving needs no further IO, so a screen can do it while it draws.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{CancelReason, RunId, RunRecord, RunStatus, Time};
use crate::git::Repo;
use crate::policy::{Activity, CurrentCode, Freshness, FreshnessSubject, Liveness, derive_freshness};
use crate::runner::known_runs::run_rows;
use crate::runner::scope_comparison::ScopeFingerprints;
use crate::store::{Heartbeat, RunRow, Store, StoreError, StoreView};

/// State of the repository and of its workers at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreshnessFacts {
    /// Counter of the repository's movements.
    epoch: u64,
    /// Short name of the branch of the own worktree, empty when HEAD is detached; `None` if it is not known.
    branch: Option<String>,
    /// Branch and HEAD by worktree; a worktree that is gone or cannot be read is missing.
    worktrees: BTreeMap<String, WorktreeHead>,
    /// Fingerprint of each scope that a run of the current epoch has compared.
    compared: HashMap<ComparedScope, String>,
    /// Fingerprint of each scope that was compared without a run, at the current epoch.
    observed: HashMap<ComparedScope, String>,
    /// State of the lock of each working run, by run id.
    locks: BTreeMap<String, LockState>,
}

/// Branch and HEAD of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WorktreeHead {
    /// Short name; empty when HEAD is detached.
    branch: String,
    /// Id of the commit; empty when HEAD is unborn.
    commit: String,
}

/// Scope of a worktree at one HEAD; with another HEAD, the scope shows another change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ComparedScope {
    scope: String,
    branch: String,
    worktree: String,
    head: String,
}

impl ComparedScope {
    fn from_row(row: &RunRow<'_>, head: &str) -> Self {
        Self {
            scope: row.scope.to_owned(),
            branch: row.branch.to_owned(),
            worktree: row.worktree.to_owned(),
            head: head.to_owned(),
        }
    }
}

/// State of a run's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockState {
    Held,
    Free,
    Unknown,
}

impl FreshnessFacts {
    /// Reads the facts for the runs of a view. A part that cannot be read makes the affected runs `unknown`.
    pub fn read(repo: &Repo, store: &Store, view: &StoreView) -> Self {
        // The rows have the greatest epoch of the runs already; without the file, the store would read all of them.
        let epoch = match store.recorded_epoch() {
            Some(epoch) => epoch,
            None => run_rows(view).map(|row| row.epoch).max().unwrap_or(0),
        };
        let root = repo.root().to_string_lossy().into_owned();
        let mut facts = Self { epoch, ..Self::default() };
        let head = WorktreeHead { branch: repo.branch(), commit: repo.head() };
        facts.branch = (!repo.is_gone()).then(|| head.branch.clone());
        facts.worktrees.insert(root.clone(), head);
        let mut others = Vec::new();
        for row in run_rows(view) {
            if row.worktree != root && !row.worktree.is_empty() && !others.contains(&row.worktree) {
                others.push(row.worktree);
            }
            if row.epoch == epoch && !row.diff_fingerprint.is_empty() {
                // The rows come newest first, and the newest one knows best.
                let scope = ComparedScope::from_row(&row, row.matching_head);
                facts.compared.entry(scope).or_insert_with(|| row.diff_fingerprint.to_owned());
            }
            if row.status.is_working() {
                facts.locks.insert(row.id.to_owned(), LockState::read(store, row.id));
            }
        }
        facts.read_other_worktrees(repo, &others);
        facts
    }

    /// Reads the locks of the working runs again, because a worker that is killed writes nothing. Returns true if one
    /// has changed.
    pub fn refresh_locks(&mut self, store: &Store) -> bool {
        let mut changed = false;
        for (run, known) in &mut self.locks {
            let now = LockState::read(store, run);
            changed |= now != *known;
            *known = now;
        }
        changed
    }

    /// Returns the ids of the working runs whose locks nobody holds.
    pub fn runs_without_worker(&self) -> impl Iterator<Item = &str> {
        self.locks.iter().filter(|(_, lock)| **lock == LockState::Free).map(|(run, _)| run.as_str())
    }

    /// Returns the short name of the branch of the own worktree, empty when HEAD is detached; `None` if it is not known.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Returns the counter of the repository's movements.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes in what scopes show now, unless the repository has moved since they were looked at.
    pub fn observe(&mut self, comparison: &ScopeFingerprints) {
        let ScopeFingerprints { epoch, worktree, branch, head, fingerprints } = comparison;
        if *epoch != self.epoch {
            return;
        }
        let scope = |scope: &String| ComparedScope {
            scope: scope.clone(),
            branch: branch.clone(),
            worktree: worktree.clone(),
            head: head.clone(),
        };
        self.observed = fingerprints.iter().map(|(text, print)| (scope(text), print.clone())).collect();
    }

    /// Takes over what `before` knows from [`FreshnessFacts::observe`], unless the repository has moved since.
    pub fn keep_observed(&mut self, before: &Self) {
        if before.epoch == self.epoch {
            self.observed.clone_from(&before.observed);
        }
    }

    /// Builds facts of one worktree whose workers all live, for tests of what shows a run.
    #[cfg(test)]
    pub fn for_worktree(epoch: u64, worktree: &str, branch: &str, commit: &str, working: &[&str]) -> Self {
        let head = WorktreeHead { branch: branch.to_owned(), commit: commit.to_owned() };
        Self {
            epoch,
            branch: None,
            worktrees: BTreeMap::from([(worktree.to_owned(), head)]),
            compared: HashMap::new(),
            observed: HashMap::new(),
            locks: working.iter().map(|run| ((*run).to_owned(), LockState::Held)).collect(),
        }
    }

    /// Sets the branch of the own worktree, for tests.
    #[cfg(test)]
    pub fn with_branch(self, branch: &str) -> Self {
        Self { branch: Some(branch.to_owned()), ..self }
    }

    /// Reads the heads of those other worktrees of runs that still belong to the repository.
    fn read_other_worktrees(&mut self, repo: &Repo, wanted: &[&str]) {
        if wanted.is_empty() {
            return;
        }
        for root in repo.worktrees() {
            let name = root.to_string_lossy();
            if wanted.contains(&name.as_ref())
                && let Ok(other) = repo.open_other_worktree(&root)
            {
                let head = WorktreeHead { branch: other.branch(), commit: other.head() };
                self.worktrees.insert(name.into_owned(), head);
            }
        }
    }

    /// Derives the freshness of a run at `now`. `heartbeat` is the last heartbeat of its worker; without it, only the
    /// run's records are signs of life.
    pub fn derive(&self, run: &RunRow<'_>, heartbeat: Option<&Heartbeat>, now: Time) -> Freshness {
        let subject = FreshnessSubject {
            status: run.status,
            scope: run.scope,
            branch: run.branch,
            head_commit: run.matching_head,
            epoch: run.epoch,
            diff_fingerprint: run.diff_fingerprint,
            superseded_by: run.replaced_by(),
            is_obsolete: run.cancel_reason == CancelReason::Obsolete.word(),
        };
        let head = self.worktrees.get(run.worktree);
        let fingerprint = |head: &str| {
            let scope = ComparedScope::from_row(run, head);
            self.observed.get(&scope).or_else(|| self.compared.get(&scope)).map(String::as_str)
        };
        let now_there = head.map(|head| CurrentCode {
            epoch: self.epoch,
            branch: &head.branch,
            head_commit: &head.commit,
            // On another branch the same scope means other code.
            fingerprint: if head.branch == run.branch { fingerprint(&head.commit) } else { None },
        });
        derive_freshness(&subject, self.liveness(run, heartbeat, now), now_there.as_ref())
    }

    /// Derives the freshness of a run like [`FreshnessFacts::derive`], with the heartbeat that the store has now.
    pub fn derive_from_store(&self, store: &Store, run: &RunRow<'_>, now: Time) -> Freshness {
        let beats = run.status.is_working().then(|| run.id.parse::<RunId>().ok()).flatten();
        self.derive(run, beats.and_then(|id| store.heartbeat(&id)).as_ref(), now)
    }

    fn liveness(&self, run: &RunRow<'_>, heartbeat: Option<&Heartbeat>, now: Time) -> Liveness {
        match self.locks.get(run.id) {
            _ if run.status == RunStatus::Pending => Liveness::Waiting,
            _ if run.status.is_terminal() => Liveness::Ended,
            Some(LockState::Free) => Liveness::Dead,
            None | Some(LockState::Unknown) => Liveness::Unknown,
            // A person paused it: its silence is wanted.
            Some(LockState::Held) if run.is_paused() => Liveness::Working(Activity::Recent),
            Some(LockState::Held) => {
                let ago = |ms: i64| now.as_millisecond().saturating_sub(ms) / 1000;
                let beat = heartbeat.map(|beat| ago(beat.last_sign_of_life(now).as_millisecond()));
                Liveness::Working(Activity::classify(ago(run.updated_ms), beat))
            }
        }
    }
}

impl LockState {
    fn read(store: &Store, run: &str) -> Self {
        let Ok(id) = run.parse::<RunId>() else { return Self::Unknown };
        match store.is_live(&id) {
            Ok(true) => Self::Held,
            Ok(false) => Self::Free,
            Err(error) => {
                tracing::warn!(run, %error, "the lock of a run cannot be asked");
                Self::Unknown
            }
        }
    }
}

/// Reads the freshness of one run.
///
/// # Errors
///
/// If the store cannot be read.
pub fn read_run_freshness(repo: &Repo, store: &Store, run: &RunRecord, now: Time) -> Result<Freshness, StoreError> {
    // Only the complete view contains the last lines of the journals of working runs.
    let view = if run.status.is_working() { store.view()? } else { store.runs_view()? };
    let Some(index) = view.run_index(run.run_id.as_str()) else { return Ok(Freshness::Unknown) };
    Ok(FreshnessFacts::read(repo, store, &view).derive_from_store(store, &view.run(index), now))
}
