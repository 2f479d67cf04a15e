//! Turns a request into a decision, and perhaps a run, in one step under the store's lock.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::text::sanitize_line;
use crate::domain::{
    CancelReason, Coverage, Fix, Kind, OmissionReason, Panel, ReviewSubject, RunEnding, RunEvent, RunId, RunLinks,
    RunOutcome, RunRecord, RunReuse, RunReviewer, RunStatus, RunUsage, Source,
};
use crate::git::Snapshot;
use crate::policy::supersede::{FinishRule, SupersedeVerdict};
use crate::policy::{self, Decision, KnownRun, Liveness, Resumable, ReviewAction, ReviewExtent};
use crate::runner::launcher::start_workers::PendingRun;
use crate::runner::reviewer_access::reviewer_identity::ReviewerIdentity;
use crate::runner::worker::rewritten_code::mark_moved_code;
use crate::runner::worker::secret_scan::{MAX_FOREGROUND_BYTES, SecretScan};
use crate::runner::{
    BUILTIN_REVIEWER, Launcher, RequestOutcome, ReviewDemand, ReviewRequest, RunnerError, known_runs, process,
};
use crate::store::{LockedStore, StoreError, StoreView};

/// Maximum number of equivalent runs whose files are read. The newest runs decide.
const MAX_INSPECTED_RUNS: usize = 8;
/// Period of `assistants.reviews_per_hour` in milliseconds.
const QUOTA_PERIOD_MS: i64 = 3_600_000;

/// A request with the facts it was resolved to.
#[derive(Clone, Copy)]
pub(super) struct RequestInput<'a> {
    pub request: &'a ReviewRequest,
    pub policy_request: &'a policy::LaunchRequest,
    pub snapshot: &'a Snapshot,
    pub triage_bytes: u64,
    /// The fix whose patch is reviewed.
    pub follow_up_of: Option<&'a Fix>,
    pub role: PanelRole<'a>,
}

/// The part of a requested run in a panel.
#[derive(Clone, Copy, Default)]
pub(super) enum PanelRole<'a> {
    /// None: a run of a single reviewer.
    #[default]
    Alone,
    /// Member of a panel.
    Member {
        /// Run of the panel.
        run: &'a RunId,
        /// Reviewer's name of the panel's run.
        panel: &'a str,
        /// Kinds that it is asked for; empty for all.
        focus: &'a [Kind],
    },
    /// Run of the panel, with its id and members.
    Panel(&'a RunId, &'a Panel),
}

impl PanelRole<'_> {
    /// Returns the reviewer's name of the panel that asks for a member.
    fn panel_name(&self) -> Option<&str> {
        match self {
            Self::Member { panel, .. } => Some(panel),
            Self::Alone | Self::Panel(..) => None,
        }
    }
}

/// The decision about a request, which nothing in the store shows yet.
pub(super) struct JudgedRequest {
    pub decision: Decision,
    /// Records of the newest equivalent runs.
    equivalent: Vec<RunRecord>,
}

/// The result of judging a request under the store's lock.
pub(super) enum RequestJudgement {
    Decided(Box<JudgedRequest>),
    /// A working run has no worker and must be settled first.
    DeadWorker,
    /// Nobody has checked yet whether these runs can be resumed.
    UncheckedRuns(Vec<RunRecord>),
}

/// The result of one try under the store's lock.
pub(super) enum LockedAttempt {
    /// The outcome, with the view on which the decision is based.
    Requested(Box<RequestOutcome>, Arc<StoreView>),
    /// A working run has no worker and must be settled first.
    DeadWorker,
    /// Nobody has checked yet whether these runs can be resumed. The check may take git minutes, so it is made without
    /// the lock.
    UncheckedRuns(Vec<RunRecord>),
}

/// Facts about earlier runs that were found out before the lock was taken.
pub(super) struct EarlierRunFacts {
    pub dead: DeadWorkerPolicy,
    /// Whether a run that ended early can be resumed.
    pub resumable: HashMap<RunId, Resumable>,
}

/// The runs that may answer a request.
#[derive(Default)]
pub(super) struct RequestCandidates<'a> {
    pub known: Vec<KnownRun<'a>>,
    /// Records of the newest equivalent runs, because a row does not say what can be taken over from a run.
    equivalent: Vec<RunRecord>,
    /// Equivalent runs that ended early and of which nobody knows whether they can be resumed.
    pub unchecked: Vec<RunRecord>,
}

/// The handling of a run with a dead worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadWorkerPolicy {
    SettleFirst,
    /// Settling was tried and failed: decide without it.
    LeaveIt,
}

impl Launcher<'_> {
    /// Takes a snapshot, decides, records the run, and starts a worker if a slot is free. Does not wait for the review.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer or revision, if a new run is needed and the reviewer's key is missing, or if git or
    /// the store fails. A worker that cannot be started is no error: the run is recorded and starts with the next
    /// command.
    pub fn request_review(&self, request: &ReviewRequest) -> Result<RequestOutcome, RunnerError> {
        // Read before the snapshot, because a decision made meanwhile may be about newer code.
        let triage_bytes = self.services.store.triage_bytes()?;
        let (snapshot, identity) = self.take_snapshot(request)?;
        let launch_request = policy::LaunchRequest {
            has_secret_files: self.has_secret_files(&snapshot),
            ..self.build_policy_request(request, &identity, &snapshot)
        };
        let input = RequestInput {
            request,
            policy_request: &launch_request,
            snapshot: &snapshot,
            triage_bytes,
            follow_up_of: None,
            role: PanelRole::Alone,
        };
        if let Some(panel) = self.services.reviewers().find_panel(&identity.reviewer)? {
            return self.request_panel(&input, &panel);
        }
        let (requested, view) =
            self.try_until_requested(|locked, earlier| self.decide_under_lock(locked, &input, earlier))?;
        self.services.findings().settle_answered_request(&requested, &snapshot);
        // After the decision, because a review of a rewritten commit may have been adopted by the request.
        self.settle_needless_of_view(&view);
        // Also if this request needs no worker, because an earlier run may still need one.
        if let Err(error) = self.start_requested(&requested, &view) {
            tracing::warn!(run = %requested.run.run_id, %error, "no worker was started");
        }
        Ok(requested)
    }

    /// Tries to decide and record under the store's lock, and does between two tries what takes long.
    pub(super) fn try_until_requested(
        &self,
        attempt: impl Fn(&LockedStore<'_>, &EarlierRunFacts) -> Result<LockedAttempt, RunnerError>,
    ) -> Result<(RequestOutcome, Arc<StoreView>), RunnerError> {
        let mut earlier = EarlierRunFacts { dead: DeadWorkerPolicy::SettleFirst, resumable: HashMap::new() };
        loop {
            match self.services.store.with_lock_as(|locked| attempt(locked, &earlier))? {
                LockedAttempt::Requested(requested, view) => return Ok((*requested, view)),
                LockedAttempt::DeadWorker => {
                    self.services.recovery().recover()?;
                    earlier.dead = DeadWorkerPolicy::LeaveIt;
                }
                LockedAttempt::UncheckedRuns(records) => self.check_resumable(records, &mut earlier),
            }
        }
    }

    /// Finds out which of the runs can be resumed.
    pub(super) fn check_resumable(&self, records: Vec<RunRecord>, earlier: &mut EarlierRunFacts) {
        for record in records {
            let resumable = if self.can_resume(&record) { Resumable::Yes } else { Resumable::No };
            earlier.resumable.insert(record.run_id, resumable);
        }
    }

    /// Records a run that reviews the patch of a fix; does not start it. The run answers no other request and replaces
    /// no other run: it belongs to no working tree, and its scope hash is unique.
    pub(in crate::runner) fn create_follow_up(
        &self,
        request: &ReviewRequest,
        fix: &Fix,
    ) -> Result<RunRecord, RunnerError> {
        let triage_bytes = self.services.store.triage_bytes()?;
        let (snapshot, identity) = self.take_snapshot(request)?;
        let launch_request = self.build_policy_request(request, &identity, &snapshot);
        let launch_request = policy::LaunchRequest {
            scope_hash: format!("{}{}", RunRecord::FIX_SCOPE_PREFIX, launch_request.scope_hash),
            branch: String::new(),
            worktree: String::new(),
            ..launch_request
        };
        let input = RequestInput {
            request,
            policy_request: &launch_request,
            snapshot: &snapshot,
            triage_bytes,
            follow_up_of: Some(fix),
            role: PanelRole::Alone,
        };
        let decision = Decision {
            action: ReviewAction::Launch,
            reason: format!("reviews the patch of {}", fix.fix_id),
            saved_token_estimate: 0,
            older: Vec::new(),
            duplicate_of: None,
        };
        self.services.store.with_lock_as(|locked| self.record_new_run(locked, &input, &decision))
    }

    pub(super) fn build_policy_request(
        &self,
        request: &ReviewRequest,
        identity: &ReviewerIdentity,
        snapshot: &Snapshot,
    ) -> policy::LaunchRequest {
        let reviewers = self.services.reviewers();
        policy::LaunchRequest {
            scope: snapshot.scope.clone(),
            scope_hash: snapshot.scope_hash.clone(),
            diff_fingerprint: snapshot.diff_fingerprint.clone(),
            prompt_policy_version: identity.policy_version.clone(),
            reviewer: identity.reviewer.clone(),
            model: identity.model.clone(),
            reasoning_effort: identity.effort.clone(),
            branch: snapshot.branch.clone(),
            worktree: snapshot.worktree.to_string_lossy().into_owned(),
            files: snapshot.change.files.len(),
            left_out: snapshot.change.left_out.len(),
            has_secret_files: false,
            force: request.demand == ReviewDemand::Anew,
            asker: request.source.into(),
            quota: policy::AssistantQuota::default(),
            rule: FinishRule { finish_from: self.services.settings.policy.finish_from },
            // The names were resolved before.
            prompt_estimate: reviewers.estimate_panel_tokens(identity, count_changed_lines(snapshot)).unwrap_or(0),
        }
    }

    /// Returns true if a review of a change of which all files are left out would report a secret.
    pub(super) fn has_secret_files(&self, snapshot: &Snapshot) -> bool {
        let commits = (snapshot.base_commit.as_str(), snapshot.snapshot_commit.as_str());
        snapshot.change.files.is_empty()
            && SecretScan::new(self.services, &snapshot.change, commits, MAX_FOREGROUND_BYTES).has_secret_files()
    }

    /// Takes the snapshot of a request. Returns it with the identity of the reviewer, which must exist.
    pub(super) fn take_snapshot(&self, request: &ReviewRequest) -> Result<(Snapshot, ReviewerIdentity), RunnerError> {
        let panel = match request.source {
            Source::Cockpit | Source::Cli => self.services.reviewers().default_panel(),
            _ => None,
        };
        let reviewer = request.reviewer.as_deref().or(panel.as_deref());
        let reviewers = self.services.reviewers().with_prompt_set(request.prompt_set.as_deref());
        reviewers.resolve_identity(reviewer)?;
        let filter = self.services.filter();
        let mut snapshot = match &request.scope {
            Some(scope) => self.services.repo.take_snapshot(scope, &filter)?,
            None => self.services.repo.take_default_snapshot(&filter)?,
        };
        let (base, commit) = (&snapshot.base_commit, &snapshot.snapshot_commit);
        let identity = reviewers.resolve_identity_for(reviewer, base, commit)?;
        // A model knows all languages.
        if identity.reviewer == BUILTIN_REVIEWER {
            let read = |path: &str| self.services.repo.file_at(&snapshot.snapshot_commit, path).ok().flatten();
            mark_moved_code(&mut snapshot.change, read);
        }
        Ok((snapshot, identity))
    }

    /// Collects the runs that may answer a request. Returns `None` if a run with a dead worker must be settled first.
    pub(super) fn collect_candidates<'v>(
        &self,
        view: &'v StoreView,
        input: &RequestInput<'_>,
        earlier: &EarlierRunFacts,
    ) -> Result<Option<RequestCandidates<'v>>, RunnerError> {
        let RequestInput { policy_request: launch_request, .. } = input;
        let scope = launch_request.scope.to_string();
        let held = LazyCell::new(|| self.runs_held_by_panels(view, input.role.panel_name()));
        let mut candidates = RequestCandidates::default();
        for row in known_runs::run_rows(view) {
            let same =
                row.scope_hash == launch_request.scope_hash && row.diff_fingerprint == launch_request.diff_fingerprint;
            if !same && row.status.is_terminal() {
                continue;
            }
            let mut run = known_runs::known_run_from_row(&row);
            run.liveness = self.services.check_liveness(&row);
            // A process that settles the run in this moment holds its lock, so the run does not look dead.
            if run.liveness == Liveness::Dead && earlier.dead == DeadWorkerPolicy::SettleFirst {
                return Ok(None);
            }
            if run.is_older_sibling(launch_request, &scope) {
                run.underway = self.measure_progress(&row, run.liveness, input.snapshot)?;
                // The newer run may wait for it, but does not end it.
                if held.contains(row.id) && !run.may_finish(launch_request.rule) {
                    continue;
                }
            }
            if same
                && candidates.equivalent.len() < MAX_INSPECTED_RUNS
                && let Ok(id) = row.id.parse::<RunId>()
                && let Some(record) = self.services.store.run(&id)?
            {
                let early = match record.status {
                    RunStatus::Lost | RunStatus::Failed => true,
                    RunStatus::Completed => {
                        run.extent = self.services.compute_extent(&record)?;
                        run.extent == ReviewExtent::Partial
                    }
                    RunStatus::Cancelled if record.ending.cancel_reason == Some(CancelReason::BudgetExhausted) => {
                        run.extent = self.services.compute_extent(&record)?;
                        false
                    }
                    _ => false,
                };
                match earlier.resumable.get(&id) {
                    Some(resumable) if early => run.resumable = *resumable,
                    None if early => candidates.unchecked.push(record.clone()),
                    _ => {}
                }
                candidates.equivalent.push(record);
            }
            candidates.known.push(run);
        }
        Ok(Some(candidates))
    }

    fn decide_under_lock(
        &self,
        locked: &LockedStore<'_>,
        input: &RequestInput<'_>,
        earlier: &EarlierRunFacts,
    ) -> Result<LockedAttempt, RunnerError> {
        let view = locked.runs_view()?;
        Ok(match self.judge_request(&view, input, earlier)? {
            RequestJudgement::DeadWorker => LockedAttempt::DeadWorker,
            RequestJudgement::UncheckedRuns(records) => LockedAttempt::UncheckedRuns(records),
            RequestJudgement::Decided(judged) => {
                LockedAttempt::Requested(Box::new(self.record_decision(locked, input, *judged)?), view)
            }
        })
    }

    /// Decides about a request. The caller holds the store's lock until the decision is recorded.
    pub(super) fn judge_request(
        &self,
        view: &StoreView,
        input: &RequestInput<'_>,
        earlier: &EarlierRunFacts,
    ) -> Result<RequestJudgement, RunnerError> {
        let RequestInput { policy_request: launch_request, .. } = input;
        let Some(candidates) = self.collect_candidates(view, input, earlier)? else {
            return Ok(RequestJudgement::DeadWorker);
        };
        if !candidates.unchecked.is_empty() {
            return Ok(RequestJudgement::UncheckedRuns(candidates.unchecked));
        }
        let limited;
        // A panel counts as one review.
        let launch_request =
            if input.request.source == Source::Assistant && !matches!(input.role, PanelRole::Member { .. }) {
                let quota = self.measure_quota(view, input.request)?;
                limited = policy::LaunchRequest { quota, ..(*launch_request).clone() };
                &limited
            } else {
                *launch_request
            };
        let decision = policy::decide(launch_request, &candidates.known);
        tracing::debug!(?decision, "decided");
        let is_answered = matches!(decision.action, ReviewAction::Reuse { .. } | ReviewAction::Skip);
        if input.request.demand == ReviewDemand::OnlyExisting && !is_answered {
            let scope = sanitize_line(&launch_request.scope.to_string()).into_owned();
            return Err(RunnerError::NotReviewed { scope });
        }
        Ok(RequestJudgement::Decided(Box::new(JudgedRequest { decision, equivalent: candidates.equivalent })))
    }

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
                // Only a new run needs the key.
                self.services.reviewers().check_key(&launch_request.reviewer)?;
                self.record_new_run(locked, input, &decision)?
            }
        };
        self.notify_older_runs(locked, &decision, &run.run_id);
        if matches!(decision.action, ReviewAction::Reuse { .. }) {
            self.mark_replaced_runs(locked, &run.run_id)?;
        }
        Ok(RequestOutcome { decision, run })
    }

    /// Counts the reviews that assistants have started, as far as a limit needs it.
    fn measure_quota(&self, view: &StoreView, request: &ReviewRequest) -> Result<policy::AssistantQuota, RunnerError> {
        let limits = self.services.settings.assistants;
        let mut quota = policy::AssistantQuota {
            in_session: request.started_in_session,
            per_session: limits.reviews_per_session,
            in_hour: 0,
            per_hour: limits.reviews_per_hour,
        };
        let Some(per_hour) = limits.reviews_per_hour else { return Ok(quota) };
        let since = self.services.ambient.now().as_millisecond() - QUOTA_PERIOD_MS;
        for row in known_runs::run_rows(view) {
            if quota.in_hour >= per_hour || row.created_ms < since || row.status == RunStatus::Skipped {
                continue;
            }
            // A row does not say who requested the run.
            let record = row.id.parse::<RunId>().ok().map(|id| self.services.store.run(&id)).transpose()?.flatten();
            let is_asked = |record: RunRecord| record.source == Source::Assistant && record.links.member_of.is_none();
            quota.in_hour += u32::from(record.is_some_and(is_asked));
        }
        Ok(quota)
    }

    /// Starts a worker for the run if a slot is free, on the basis of the given view.
    fn start_requested(&self, requested: &RequestOutcome, view: &StoreView) -> Result<(), RunnerError> {
        let run = &requested.run;
        let added = match &requested.decision.action {
            // A waiting run is started by the process that ends the awaited run.
            ReviewAction::Launch | ReviewAction::Resume { .. } if self.must_wait(run) => None,
            ReviewAction::Launch | ReviewAction::Resume { .. } => {
                Some(PendingRun { run: run.run_id.clone(), worktree: PathBuf::from(&run.subject.worktree) })
            }
            ReviewAction::Adopt { .. } | ReviewAction::Reuse { .. } | ReviewAction::Skip => None,
        };
        self.start_next(view, added, &requested.decision.supersedes())?;
        Ok(())
    }

    /// Returns `true` if an unfinished run has everything that a new attempt needs.
    pub(in crate::runner) fn can_resume(&self, record: &RunRecord) -> bool {
        self.services
            .repo
            .compute_changeset(&record.subject.base_commit, &record.subject.snapshot_commit, &self.services.filter())
            .is_ok()
            && self.services.store.read_journal(&record.run_id).is_ok()
    }

    /// Appends the new run's record. Keeps the snapshot first, so that no reader finds a run without a snapshot.
    fn record_new_run(
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

    /// Takes the snapshot of a request and builds a run record that is never stored.
    pub(in crate::runner) fn draft_unrecorded_run(
        &self,
        request: &ReviewRequest,
    ) -> Result<(Snapshot, RunRecord), RunnerError> {
        let (snapshot, identity) = self.take_snapshot(request)?;
        let launch_request = self.build_policy_request(request, &identity, &snapshot);
        let input = RequestInput {
            request,
            policy_request: &launch_request,
            snapshot: &snapshot,
            triage_bytes: 0,
            follow_up_of: None,
            role: PanelRole::Alone,
        };
        let record = self.draft_record(&input);
        Ok((snapshot, record))
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
            run.reuse.count = run.reuse.count.saturating_add(1);
            let adopted = matches!(decision.action, ReviewAction::Adopt { .. });
            run.reuse.adopted_count = run.reuse.adopted_count.saturating_add(u32::from(adopted));
            // From now on, the run also works for the new requester.
            run.private |= adopted && !self.services.settings.learning.enabled;
            run.reuse.last_at = Some(self.services.ambient.now());
            run.reuse.last_reason.clone_from(&decision.reason);
            run.reuse.last_head.clone_from(&input.snapshot.head_commit);
        })?)
    }

    /// Asks active runs about older code to end in favour of `newer`, or notes that they may finish. A failure to do so
    /// does not affect the new run.
    fn notify_older_runs(&self, locked: &LockedStore<'_>, decision: &Decision, newer: &RunId) {
        for (older, verdict) in &decision.older {
            let told = match verdict {
                SupersedeVerdict::Cancel(why) => self.supersede_run(locked, older, newer, why),
                SupersedeVerdict::Finish(why) => {
                    let note = format!("may finish although {newer} asks about newer code: {why}");
                    locked.annotate_run(older, |run| run.ending.finish_note = note).map(drop).map_err(RunnerError::from)
                }
            };
            if let Err(error) = told {
                tracing::warn!(run = %older, %newer, %error, "a run cannot be told that newer code was asked about");
            }
        }
    }

    /// Asks an active run to end in favour of `newer`. A run that has not begun ends at once.
    fn supersede_run(&self, locked: &LockedStore<'_>, id: &RunId, newer: &RunId, why: &str) -> Result<(), RunnerError> {
        let asked = locked.update_run(id, self.services.ambient.now(), |run| {
            if run.status.is_terminal() {
                return;
            }
            if run.ending.cancel_reason.is_none() {
                run.ending.cancel_reason = Some(CancelReason::Superseded);
                run.ending.cancel_note = format!("{newer} asks about newer code; {why}");
                run.ending.finish_note.clear();
            }
            run.links.superseded_by = Some(newer.clone());
        })?;
        // A panel ends when its members have ended, with what they have found.
        if asked.status == RunStatus::Pending && asked.links.panel.is_none() {
            self.services.closer().end_pending_run(locked, &asked)?;
        }
        Ok(())
    }

    /// Marks the ended runs that `standing` replaces, so that a list can fold them under it.
    pub(in crate::runner) fn mark_replaced_runs(
        &self,
        locked: &LockedStore<'_>,
        standing: &RunId,
    ) -> Result<(), StoreError> {
        let view = locked.runs_view()?;
        let Some(target) = known_runs::run_rows(&view).find(|row| row.id == standing.as_str()) else { return Ok(()) };
        // The run of the panel replaces its members when it ends.
        let held = self.runs_held_by_panels(&view, None);
        let known: Vec<KnownRun<'_>> = known_runs::run_rows(&view)
            .filter(|row| row.scope == target.scope && row.superseded_by.is_empty() && !held.contains(row.id))
            .map(|row| known_runs::known_run_from_row(&row))
            .collect();
        for older in policy::find_replaced_runs(&known_runs::known_run_from_row(&target), &known) {
            locked.update_run(&older, self.services.ambient.now(), |run| {
                run.links.superseded_by = Some(standing.clone())
            })?;
        }
        Ok(())
    }
}

/// Counts the lines that the change adds or removes.
pub(in crate::runner) fn count_changed_lines(snapshot: &Snapshot) -> u64 {
    let hunks = snapshot.change.files.iter().flat_map(|file| &file.hunks);
    hunks.map(|hunk| u64::from(hunk.old_lines) + u64::from(hunk.new_lines)).sum()
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
