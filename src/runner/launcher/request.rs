//! Turns a request into a decision, and perhaps a run, in one step under the store's lock.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{Fix, Kind, Panel, RunId, RunRecord, Source};
use crate::git::Snapshot;
use crate::policy::supersede::FinishRule;
use crate::policy::{self, Decision, ReviewAction};
use crate::runner::launcher::request_decision::{DeadWorkerPolicy, EarlierRunFacts, RequestJudgement};
use crate::runner::launcher::start_workers::PendingRun;
use crate::runner::reviewer_access::reviewer_identity::ReviewerIdentity;
use crate::runner::worker::rewritten_code::mark_moved_code;
use crate::runner::worker::secret_scan::{MAX_FOREGROUND_BYTES, SecretScan};
use crate::runner::{
    BUILTIN_REVIEWER, Launcher, RequestOutcome, RequestPreview, ReviewDemand, ReviewRequest, RunnerError,
};
use crate::store::{LockedStore, StoreView};

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

impl<'a> RequestInput<'a> {
    /// Returns the input for a request of a single reviewer of which nothing is recorded.
    pub(super) fn unrecorded(
        request: &'a ReviewRequest,
        policy_request: &'a policy::LaunchRequest,
        snapshot: &'a Snapshot,
    ) -> Self {
        Self { request, policy_request, snapshot, triage_bytes: 0, follow_up_of: None, role: PanelRole::Alone }
    }
}

impl PanelRole<'_> {
    /// Returns the reviewer's name of the panel that asks for a member.
    pub(super) fn panel_name(&self) -> Option<&str> {
        match self {
            Self::Member { panel, .. } => Some(panel),
            Self::Alone | Self::Panel(..) => None,
        }
    }
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
    /// Nobody has checked yet which second opinions this run of a panel lacks. The check reads journals.
    UncheckedOpinions {
        run: RunId,
        /// Limit of the panel in US dollars.
        max_cost: Option<f64>,
    },
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
        self.request_and_announce(request, None)
    }

    /// Does the same as [`Launcher::request_review`]. Before anything is recorded, it hands the forecast of a review that may
    /// cost money to `announce`. No forecast is no reason not to review.
    ///
    /// # Errors
    ///
    /// As [`Launcher::request_review`].
    pub fn request_announced_review(
        &self,
        request: &ReviewRequest,
        announce: &mut dyn FnMut(RequestPreview),
    ) -> Result<RequestOutcome, RunnerError> {
        self.request_and_announce(request, Some(announce))
    }

    fn request_and_announce(
        &self,
        request: &ReviewRequest,
        announce: Option<&mut dyn FnMut(RequestPreview)>,
    ) -> Result<RequestOutcome, RunnerError> {
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
        if let Some(announce) = announce {
            match self.forecast_paid_request(&input) {
                Ok(forecast) => forecast.into_iter().for_each(announce),
                Err(error) => tracing::warn!(%error, "the cost of the review cannot be forecast"),
            }
        }
        let requested = match self.services.reviewers().find_panel(&identity.reviewer)? {
            Some(panel) => self.request_panel(&input, &panel)?,
            None => self.request_run(&input)?,
        };
        self.services.team().start_publishing_left_result(&requested.run);
        Ok(requested)
    }

    /// Requests the review of one reviewer, and starts it if a slot is free.
    fn request_run(&self, input: &RequestInput<'_>) -> Result<RequestOutcome, RunnerError> {
        let (mut requested, view) =
            self.try_until_requested(|locked, earlier| self.decide_under_lock(locked, input, earlier))?;
        requested.settled = self.services.findings().settle_answered_request(&requested, input.snapshot);
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
        let mut earlier = EarlierRunFacts::new(DeadWorkerPolicy::SettleFirst);
        loop {
            match self.services.store.with_lock_as(|locked| attempt(locked, &earlier))? {
                LockedAttempt::Requested(requested, view) => return Ok((*requested, view)),
                LockedAttempt::DeadWorker => {
                    self.services.recovery().recover()?;
                    earlier.dead = DeadWorkerPolicy::LeaveIt;
                }
                LockedAttempt::UncheckedRuns(records) => self.check_resumable(records, &mut earlier),
                LockedAttempt::UncheckedOpinions { run, max_cost } => {
                    let missing = self.find_missing_opinions(&run, max_cost)?;
                    earlier.opinions.insert(run, missing);
                }
            }
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

    /// Takes the snapshot of a request and builds a run record that is never stored.
    pub(in crate::runner) fn draft_unrecorded_run(
        &self,
        request: &ReviewRequest,
    ) -> Result<(Snapshot, RunRecord), RunnerError> {
        let (snapshot, identity) = self.take_snapshot(request)?;
        let launch_request = self.build_policy_request(request, &identity, &snapshot);
        let input = RequestInput::unrecorded(request, &launch_request, &snapshot);
        let record = self.draft_record(&input);
        Ok((snapshot, record))
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
}

/// Counts the lines that the change adds or removes.
pub(in crate::runner) fn count_changed_lines(snapshot: &Snapshot) -> u64 {
    let hunks = snapshot.change.files.iter().flat_map(|file| &file.hunks);
    hunks.map(|hunk| u64::from(hunk.old_lines) + u64::from(hunk.new_lines)).sum()
}
