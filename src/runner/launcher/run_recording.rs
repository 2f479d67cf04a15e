//! Records what was decided about a request: a new run, or what an earlier run answers.

use crate::domain::{
    Coverage, OmissionReason, ReviewSubject, RunEnding, RunEvent, RunId, RunLinks, RunOutcome, RunRecord, RunReuse,
    RunReviewer, RunStatus, RunUsage,
};
use crate::git::Snapshot;
use crate::policy::{Decision, ReviewAction};
use crate::runner::launcher::request::{PanelRole, RequestInput};
use crate::runner::launcher::request_decision::JudgedRequest;
use crate::runner::{Launcher, RequestOutcome, RunnerError, SettledAnswer, process};
use crate::store::LockedStore;

impl Launcher<'_> {
    /// Records a decision: a new run, or what an earlier run now answers.
    pub(super) fn record_decision(
        &self,
        locked: &LockedStore<'_>,
        input: &RequestInput<'_>,
        judged: JudgedRequest,
    ) -> Result<RequestOutcome, RunnerError> {
        let RequestInput { policy_request: launch_request, .. } = input;
        let JudgedRequest { decision, equivalent } = judged;
        let run = match &decision.action {
            ReviewAction::Skip => {
                let earlier = equivalent.into_iter().find(|record| {
                    record.status == RunStatus::Skipped
                        && record.subject.scope == launch_request.scope
                        && record.subject.branch == launch_request.branch
                        && record.subject.worktree == launch_request.worktree
                        && record.links.reused_from == decision.duplicate_of
                });
                match earlier {
                    Some(record) => record,
                    None => self.record_new_run(locked, input, &decision)?,
                }
            }
            ReviewAction::Adopt { run } | ReviewAction::Reuse { run } => {
                self.record_reuse(locked, run, input, &decision)?
            }
            ReviewAction::Launch | ReviewAction::Resume { .. } => {
                // Only a new run needs the key. That of a panel needs none for members whose reviews are there.
                if !matches!(input.role, PanelRole::Panel(..)) {
                    self.services.reviewers().check_key(&launch_request.reviewer)?;
                }
                self.record_new_run(locked, input, &decision)?
            }
        };
        self.notify_older_runs(locked, &decision, &run.run_id);
        if matches!(decision.action, ReviewAction::Reuse { .. }) {
            self.mark_replaced_runs(locked, &run.run_id)?;
        }
        Ok(RequestOutcome { decision, run, settled: SettledAnswer::default() })
    }

    /// Appends the new run's record. Keeps the snapshot first, so that no reader finds a run without a snapshot.
    pub(super) fn record_new_run(
        &self,
        locked: &LockedStore<'_>,
        input: &RequestInput<'_>,
        decision: &Decision,
    ) -> Result<RunRecord, RunnerError> {
        let snapshot = input.snapshot;
        let status = if decision.action == ReviewAction::Skip { RunStatus::Skipped } else { RunStatus::Pending };
        let mut record = RunRecord { status, decision: decision.reason.clone(), ..self.draft_record(input) };
        record.subject.epoch = self.services.store.advance_epoch()?;
        record.usage.saved_token_estimate = decision.saved_token_estimate;
        record.outcome.coverage = expected_coverage(snapshot, status);
        record.links.waits_for = decision.waits_for().cloned();
        let now = record.created_at;
        match &decision.action {
            ReviewAction::Skip => {
                record.outcome.summary = decision.reason.clone();
                record.links.reused_from.clone_from(&decision.duplicate_of);
            }
            ReviewAction::Resume { from } => {
                record.links.resumed_from = Some(from.clone());
                record.links.carried_over_from = Some(from.clone());
                record.attempt = self.services.store.run(from)?.map_or(0, |earlier| earlier.attempt);
            }
            _ => {}
        }
        self.services.recovery().begin_run(locked, &record.run_id)?;
        if status == RunStatus::Pending {
            self.services.repo.keep_snapshot(&record.run_id, &record.subject.snapshot_commit)?;
        }
        if !snapshot.notes.is_empty() {
            let notes: Vec<RunEvent> =
                snapshot.notes.iter().map(|text| RunEvent::Note { text: text.clone() }).collect();
            self.services.store.open_journal(&record.run_id)?.append_all(now, &notes)?;
        }
        locked.create_run(&record)?;
        Ok(record)
    }

    /// Builds the record of a new run without storing it.
    pub(super) fn draft_record(&self, input: &RequestInput<'_>) -> RunRecord {
        let RequestInput { request, policy_request: launch_request, snapshot, triage_bytes, follow_up_of, role } =
            *input;
        let now = self.services.ambient.now();
        let (run_id, links) = match role {
            PanelRole::Alone => (self.services.ambient.new_run_id(), RunLinks::default()),
            PanelRole::Member { run, .. } => {
                (self.services.ambient.new_run_id(), RunLinks { member_of: Some(run.clone()), ..RunLinks::default() })
            }
            PanelRole::Panel(id, panel) => (id.clone(), RunLinks { panel: Some(panel.clone()), ..RunLinks::default() }),
        };
        RunRecord {
            run_id,
            status: RunStatus::Pending,
            created_at: now,
            updated_at: now,
            source: request.source,
            owner: process::owner(),
            subject: ReviewSubject {
                branch: launch_request.branch.clone(),
                worktree: launch_request.worktree.clone(),
                base_commit: snapshot.base_commit.clone(),
                snapshot_commit: snapshot.snapshot_commit.clone(),
                head_commit: snapshot.head_commit.clone(),
                epoch: 0,
                triage_bytes: Some(triage_bytes),
                scope: launch_request.scope.clone(),
                scope_hash: launch_request.scope_hash.clone(),
                diff_fingerprint: launch_request.diff_fingerprint.clone(),
                prompt_policy_version: launch_request.prompt_policy_version.clone(),
                changed_paths: changed_paths(snapshot),
            },
            reviewed_by: RunReviewer {
                name: launch_request.reviewer.clone(),
                model: launch_request.model.clone(),
                reasoning_effort: launch_request.reasoning_effort.clone(),
                focus: match role {
                    PanelRole::Member { focus, .. } => focus.to_vec(),
                    PanelRole::Alone | PanelRole::Panel(..) => Vec::new(),
                },
                // A reviewer without prompts has no set, whatever was asked for.
                prompt_set: RunReviewer::set_of_version(&launch_request.prompt_policy_version).map(str::to_owned),
            },
            attempt: 0,
            follow_up_count: 0,
            follow_up_of: follow_up_of.map(|fix| fix.fix_id.clone()),
            team: None,
            ci: self.services.store.acts_for_ci(),
            usage: RunUsage { prompt_estimate: launch_request.prompt_estimate, ..RunUsage::default() },
            outcome: RunOutcome { coverage: expected_coverage(snapshot, RunStatus::Pending), ..RunOutcome::default() },
            decision: String::new(),
            reuse: RunReuse::default(),
            links,
            full: launch_request.force,
            private: !self.services.settings.learning.enabled || follow_up_of.is_some_and(|fix| fix.private),
            paused: false,
            ending: RunEnding::default(),
        }
    }

    /// Records that an earlier run answers the request: the run is current again, at this HEAD and epoch. Its original
    /// request, its reason and its last activity stay unchanged.
    fn record_reuse(
        &self,
        locked: &LockedStore<'_>,
        id: &RunId,
        input: &RequestInput<'_>,
        decision: &Decision,
    ) -> Result<RunRecord, RunnerError> {
        let epoch = self.services.store.advance_epoch()?;
        Ok(locked.annotate_run(id, |run| {
            run.subject.epoch = epoch;
            run.subject.triage_bytes = Some(input.triage_bytes);
            if run.team.is_some() && run.subject.worktree.is_empty() {
                // From now on, it is a review of this worktree, and assistants here hear of it.
                run.subject.worktree.clone_from(&input.policy_request.worktree);
                run.subject.branch.clone_from(&input.policy_request.branch);
            }
            run.links.superseded_by = None;
            run.usage.saved_token_estimate =
                run.usage.saved_token_estimate.saturating_add(decision.saved_token_estimate);
            let adopted = matches!(decision.action, ReviewAction::Adopt { .. });
            // A request because the worker died adopts nothing. A panel must hear of everybody who needs its member.
            let goes_on = run.status == RunStatus::Pending && run.is_later_attempt() && run.links.member_of.is_none();
            if !(adopted && goes_on) {
                run.reuse.count = run.reuse.count.saturating_add(1);
                run.reuse.adopted_count = run.reuse.adopted_count.saturating_add(u32::from(adopted));
            }
            // From now on, the run also works for the new requester.
            run.private |= adopted && !self.services.settings.learning.enabled;
            run.reuse.last_at = Some(self.services.ambient.now());
            run.reuse.last_reason.clone_from(&decision.reason);
            run.reuse.last_head.clone_from(&input.snapshot.head_commit);
        })?)
    }
}

fn changed_paths(snapshot: &Snapshot) -> Vec<String> {
    let files = snapshot.change.files.iter().map(|file| &file.path);
    let left_out = snapshot.change.left_out.iter().map(|file| &file.path);
    files.chain(left_out).take(RunRecord::MAX_PATHS).cloned().collect()
}

/// Returns the expected coverage. Lists only the files that the snapshot does not contain; for a skipped run, which
/// ends here, lists every left-out file.
fn expected_coverage(snapshot: &Snapshot, status: RunStatus) -> Coverage {
    let change = &snapshot.change;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let listed = if status == RunStatus::Skipped { &change.left_out } else { &snapshot.unstored };
    let mut coverage = Coverage {
        files_total: count(change.files.len() + change.left_out.len()),
        hunks_total: count(change.files.iter().map(|file| file.hunks.len()).sum()),
        left_out: listed.clone(),
        ..Coverage::default()
    };
    if status == RunStatus::Skipped {
        coverage.set_gaps([], OmissionReason::NotReached);
        // The files that are named come first.
        coverage.left_out.sort_by_key(|file| !file.is_gap());
    }
    coverage.left_out.truncate(RunRecord::MAX_PATHS);
    coverage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn who_asks_again_for_a_run_whose_worker_died_adopts_nothing() {
        let fixture = RunnerFixture::new();
        fixture.commit_files(&[("a.py", &b"def f(a):\n    return a\n"[..])]);
        let services = &fixture.services;
        let launcher = services.launcher();
        let request = RunnerFixture::request_head();
        let (snapshot, identity) = launcher.take_snapshot(&request).expect("a snapshot");
        let asked = launcher.build_policy_request(&request, &identity, &snapshot);
        let input = RequestInput::unrecorded(&request, &asked, &snapshot);
        for (status, attempt, adopted) in [
            (RunStatus::Pending, 0, 1),
            (RunStatus::Reviewing, 1, 1),
            (RunStatus::Pending, 1, 0),
            (RunStatus::Reviewing, 2, 1),
        ] {
            let record = RunRecord { status, attempt, ..launcher.draft_record(&input) };
            services.store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
            let decision = Decision {
                action: ReviewAction::Adopt { run: record.run_id.clone() },
                reason: "it is under way".to_owned(),
                saved_token_estimate: 0,
                older: Vec::new(),
                duplicate_of: None,
            };
            let answer = services
                .store
                .with_lock_as(|locked| launcher.record_reuse(locked, &record.run_id, &input, &decision))
                .expect("recorded");
            let counts = (answer.reuse.count, answer.reuse.adopted_count);
            assert_eq!(counts, (adopted, adopted), "{status}, attempt {attempt}");
        }
    }
}
