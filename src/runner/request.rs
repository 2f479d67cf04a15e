//! A wish becomes a decision, and perhaps a run: one step under the store's lock.

use std::path::PathBuf;
use std::sync::Arc;

use super::start::Waiting;
use super::{Requested, ReviewRequest, Runner, RunnerError, known, process};
use crate::domain::{
    CancelReason, Coverage, FindingCounts, PhaseTimings, RunEvent, RunId, RunRecord, RunStatus, Usage,
};
use crate::git::Snapshot;
use crate::policy::{self, Action, Decision, KnownRun, Liveness, Resumable};
use crate::store::{Locked, StoreError, View};

/// Equivalent runs whose files are looked into; the newest ones decide.
const LOOKED_INTO: usize = 8;

/// What came of one try under the store's lock.
enum Tried {
    /// With the view it was decided from.
    Requested(Box<Requested>, Arc<View>),
    /// A run says working and nobody works on it: it has to be settled first.
    DeadWorker,
}

/// What to do about a run whose worker is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dead {
    SettleFirst,
    /// Somebody else is settling it in just this moment.
    TakeAsLive,
}

impl Runner {
    /// Snapshot, decide, record, start a worker if there is room. Returns at once.
    ///
    /// # Errors
    /// No such reviewer or revision, and whatever keeps git or the store from working. That no worker could be started
    /// is not among them: the run is recorded and starts with the next command.
    pub fn request(&self, request: &ReviewRequest) -> Result<Requested, RunnerError> {
        let reviewer = self.reviewer_name(request.reviewer.as_deref())?;
        let snapshot = self.freeze(request)?;
        let wish = policy::Request {
            scope: snapshot.scope.clone(),
            scope_hash: snapshot.scope_hash.clone(),
            diff_fingerprint: snapshot.diff_fingerprint.clone(),
            prompt_policy_version: self.policy_version(),
            reviewer,
            model: String::new(),
            reasoning_effort: String::new(),
            branch: snapshot.branch.clone(),
            worktree: snapshot.worktree.to_string_lossy().into_owned(),
            files: snapshot.change.files.len(),
            left_out: snapshot.change.left_out.len(),
            force: request.force,
            prompt_estimate: 0,
        };
        let mut dead = Dead::SettleFirst;
        let (requested, view) = loop {
            let tried = self.store.locked_as(|locked| self.under_lock(locked, request, &wish, &snapshot, dead))?;
            match tried {
                Tried::Requested(requested, view) => break (*requested, view),
                Tried::DeadWorker => {
                    self.recover()?;
                    dead = Dead::TakeAsLive;
                }
            }
        };
        if requested.run.status == RunStatus::Pending
            && let Err(error) = self.start_requested(&requested, &view)
        {
            tracing::warn!(run = %requested.run.run_id, %error, "no worker was started");
        }
        Ok(requested)
    }

    fn freeze(&self, request: &ReviewRequest) -> Result<Snapshot, RunnerError> {
        let filter = self.filter();
        Ok(match &request.scope {
            Some(scope) => self.repo.snapshot(scope, &filter)?,
            None => self.repo.snapshot_default(&filter)?,
        })
    }

    fn under_lock(
        &self,
        locked: &Locked<'_>,
        request: &ReviewRequest,
        wish: &policy::Request,
        snapshot: &Snapshot,
        dead: Dead,
    ) -> Result<Tried, RunnerError> {
        let view = locked.view()?;
        // The records of equivalent runs: what a row does not have.
        let mut looked_into: Vec<RunRecord> = Vec::new();
        let mut candidates: Vec<(KnownRun<'_>, Option<usize>)> = Vec::new();
        for row in known::rows(&view) {
            let same = row.scope_hash == wish.scope_hash && row.diff_fingerprint == wish.diff_fingerprint;
            if !same && row.status.is_terminal() {
                continue;
            }
            let mut run = known::of_row(&row);
            run.liveness = self.liveness(&row)?;
            if run.liveness == Liveness::Dead {
                match dead {
                    Dead::SettleFirst => return Ok(Tried::DeadWorker),
                    Dead::TakeAsLive => run.liveness = Liveness::Unknown,
                }
            }
            let mut effort = None;
            if same
                && looked_into.len() < LOOKED_INTO
                && let Ok(id) = row.id.parse::<RunId>()
                && let Some(record) = self.store.run(&id)?
            {
                if matches!(record.status, RunStatus::Lost | RunStatus::Failed) && self.can_go_on(&record) {
                    run.resumable = Resumable::Yes;
                }
                effort = Some(looked_into.len());
                looked_into.push(record);
            }
            candidates.push((run, effort));
        }
        let decision = {
            let runs: Vec<KnownRun<'_>> = candidates
                .into_iter()
                .map(|(run, record)| match record.and_then(|index| looked_into.get(index)) {
                    Some(record) => KnownRun { reasoning_effort: &record.reasoning_effort, ..run },
                    None => run,
                })
                .collect();
            policy::decide(wish, &runs)
        };
        tracing::debug!(?decision, "decided");
        let run = match &decision.action {
            Action::Skip => {
                let earlier = looked_into.into_iter().find(|record| {
                    record.status == RunStatus::Skipped
                        && record.scope == wish.scope
                        && record.branch == wish.branch
                        && record.worktree == wish.worktree
                });
                match earlier {
                    Some(record) => record,
                    None => self.create(locked, request, wish, snapshot, &decision)?,
                }
            }
            Action::Adopt(id) => self.stand_again(locked, id, snapshot, &decision)?,
            Action::Reuse(id) => {
                let run = self.stand_again(locked, id, snapshot, &decision)?;
                self.fold(locked, &run)?;
                run
            }
            Action::Launch { supersedes } | Action::Resume { supersedes, .. } => {
                let run = self.create(locked, request, wish, snapshot, &decision)?;
                for older in supersedes {
                    self.supersede(locked, older, &run.run_id)?;
                }
                run
            }
        };
        Ok(Tried::Requested(Box::new(Requested { decision, run }), view))
    }

    /// Starts a worker for the run if there is a slot for it; looks at the view that is there already.
    fn start_requested(&self, requested: &Requested, view: &View) -> Result<(), RunnerError> {
        let run = &requested.run;
        let (added, ended): (_, &[RunId]) = match &requested.decision.action {
            Action::Launch { supersedes } | Action::Resume { supersedes, .. } => {
                let worktree = PathBuf::from(&run.worktree);
                (Some(Waiting { run: run.run_id.clone(), worktree }), supersedes)
            }
            _ => (None, &[]),
        };
        self.start_next(view, added, ended)?;
        Ok(())
    }

    /// Whether a run that ended early has what a new attempt needs.
    pub(super) fn can_go_on(&self, record: &RunRecord) -> bool {
        self.repo.change(&record.base_commit, &record.snapshot_commit, &self.filter()).is_ok()
            && self.store.read_journal(&record.run_id).is_ok()
    }

    /// Appends the new run's first line; its snapshot is kept before anybody can read about it.
    fn create(
        &self,
        locked: &Locked<'_>,
        request: &ReviewRequest,
        wish: &policy::Request,
        snapshot: &Snapshot,
        decision: &Decision,
    ) -> Result<RunRecord, RunnerError> {
        let now = self.ambient.now();
        let status = if decision.action == Action::Skip { RunStatus::Skipped } else { RunStatus::Pending };
        let epoch = self.store.advance_epoch()?;
        let mut record = RunRecord {
            run_id: self.ambient.run_id(),
            status,
            created_at: now,
            updated_at: now,
            source: request.source,
            owner: process::owner(),
            branch: wish.branch.clone(),
            worktree: wish.worktree.clone(),
            base_commit: snapshot.base_commit.clone(),
            snapshot_commit: snapshot.snapshot_commit.clone(),
            head_commit: snapshot.head_commit.clone(),
            epoch,
            scope: wish.scope.clone(),
            scope_hash: wish.scope_hash.clone(),
            diff_fingerprint: wish.diff_fingerprint.clone(),
            prompt_policy_version: wish.prompt_policy_version.clone(),
            changed_paths: changed_paths(snapshot),
            reviewer: wish.reviewer.clone(),
            model: wish.model.clone(),
            reasoning_effort: wish.reasoning_effort.clone(),
            attempt: 0,
            follow_up_count: 0,
            phase_timings: PhaseTimings::default(),
            prompt_estimate: wish.prompt_estimate,
            tokens: Usage::default(),
            cost: 0.0,
            window_peak: 0,
            saved_token_estimate: decision.saved_token_estimate,
            coverage: expected_coverage(snapshot, status),
            finding_counts: FindingCounts::default(),
            finding_digests: Vec::new(),
            summary: String::new(),
            decision: decision.reason.clone(),
            superseded_by: None,
            reused_from: None,
            carried_over_from: None,
            cancel_reason: None,
            cancel_note: String::new(),
            error_class: None,
            error_summary: String::new(),
        };
        match &decision.action {
            Action::Skip => record.summary = decision.reason.clone(),
            Action::Resume { from, .. } => {
                record.carried_over_from = Some(from.clone());
                record.attempt = self.store.run(from)?.map_or(0, |earlier| earlier.attempt);
            }
            _ => {}
        }
        if status == RunStatus::Pending {
            self.repo.keep(&record.run_id, &record.snapshot_commit)?;
        }
        if !snapshot.notes.is_empty() {
            let notes: Vec<RunEvent> =
                snapshot.notes.iter().map(|text| RunEvent::Note { text: text.clone() }).collect();
            self.store.journal(&record.run_id)?.append_all(now, &notes)?;
        }
        locked.create_run(&record)?;
        Ok(record)
    }

    /// Records that an earlier run answers the request: it is current again, at this HEAD and epoch.
    fn stand_again(
        &self,
        locked: &Locked<'_>,
        id: &RunId,
        snapshot: &Snapshot,
        decision: &Decision,
    ) -> Result<RunRecord, RunnerError> {
        let epoch = self.store.advance_epoch()?;
        Ok(locked.update_run(id, self.ambient.now(), |run| {
            run.epoch = epoch;
            run.head_commit.clone_from(&snapshot.head_commit);
            run.superseded_by = None;
            run.saved_token_estimate = run.saved_token_estimate.saturating_add(decision.saved_token_estimate);
            run.decision.clone_from(&decision.reason);
        })?)
    }

    /// Asks an active run to end in favour of `newer`; one that has not begun ends at once.
    fn supersede(&self, locked: &Locked<'_>, id: &RunId, newer: &RunId) -> Result<(), RunnerError> {
        let asked = locked.update_run(id, self.ambient.now(), |run| {
            if run.status.is_terminal() {
                return;
            }
            run.cancel_reason.get_or_insert(CancelReason::Superseded);
            run.superseded_by = Some(newer.clone());
        })?;
        if asked.status == RunStatus::Pending {
            self.settle_pending(locked, &asked)?;
        }
        Ok(())
    }

    /// Marks the ended runs that `standing` replaces, so that a list can fold them under it.
    pub(super) fn fold(&self, locked: &Locked<'_>, standing: &RunRecord) -> Result<(), StoreError> {
        let view = locked.view()?;
        let scope = standing.scope.to_string();
        let mut target = known::of_record(standing, &scope);
        target.superseded_by = "";
        let known: Vec<KnownRun<'_>> = known::rows(&view)
            .filter(|row| row.scope == scope && row.superseded_by.is_empty())
            .map(|row| known::of_row(&row))
            .collect();
        for older in policy::replaced_by(&target, &known) {
            locked.update_run(&older, self.ambient.now(), |run| run.superseded_by = Some(standing.run_id.clone()))?;
        }
        Ok(())
    }
}

fn changed_paths(snapshot: &Snapshot) -> Vec<String> {
    let files = snapshot.change.files.iter().map(|file| &file.path);
    let left_out = snapshot.change.left_out.iter().map(|file| &file.path);
    files.chain(left_out).take(RunRecord::MAX_PATHS).cloned().collect()
}

/// What there is to cover. Listed is what only the request knows: files that are not in the snapshot's tree and, of a
/// run that ends right here, every file.
fn expected_coverage(snapshot: &Snapshot, status: RunStatus) -> Coverage {
    let change = &snapshot.change;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let listed = if status == RunStatus::Skipped { &change.left_out } else { &snapshot.unseen };
    Coverage {
        files_total: count(change.files.len() + change.left_out.len()),
        hunks_total: count(change.files.iter().map(|file| file.hunks.len()).sum()),
        left_out: listed.iter().take(RunRecord::MAX_PATHS).cloned().collect(),
        ..Coverage::default()
    }
}
