//! Updates findings after a request that starts no new review. Such a request is evidence, too: reported code may be
//! back, and files may be deleted.

use std::collections::{BTreeMap, HashSet};

use super::FindingSettlement;
use super::earlier_findings::sight_from_run;
use crate::domain::{Coverage, FindingCounts, OmissionReason, RunRecord, RunStatus};
use crate::git::Snapshot;
use crate::policy::{self, FindingState, ReviewAction, ReviewExtent, ReviewObservation, SnapshotView};
use crate::review::ReviewOutcome;
use crate::runner::{FindingLifecycle, RequestOutcome, RunnerError};

impl FindingLifecycle<'_> {
    /// Applies the outcome of a request to findings. A failure is only logged, because it must not fail the request.
    pub(in crate::runner) fn settle_answered_request(&self, requested: &RequestOutcome, snapshot: &Snapshot) {
        let run = &requested.run;
        let settled = match requested.decision.action {
            ReviewAction::Reuse { .. } => {
                let scope = snapshot.scope.to_string();
                let sight = SnapshotView {
                    scope: &scope,
                    branch: &snapshot.branch,
                    worktree: &run.subject.worktree,
                    head: &snapshot.head_commit,
                    snapshot: &snapshot.snapshot_commit,
                };
                self.restore_reported(run, &sight)
            }
            ReviewAction::Skip => self.settle_deletions(requested, snapshot),
            ReviewAction::Launch | ReviewAction::Adopt { .. } | ReviewAction::Resume { .. } => Ok(()),
        };
        if let Err(error) = settled {
            tracing::warn!(run = %run.run_id, %error, "the findings of a request are not settled");
        }
    }

    /// Applies the result of a run of another machine, `adopted`, that answers a run of this machine, `own`. A failure is only
    /// logged, because it must not fail the run.
    pub(in crate::runner) fn settle_adopted_result(&self, own: &RunRecord, adopted: &RunRecord) {
        let scope = own.subject.scope.to_string();
        if let Err(error) = self.restore_reported(adopted, &sight_from_run(own, &scope)) {
            tracing::warn!(run = %adopted.run_id, %error, "the findings of an adopted result are not settled");
        }
    }

    /// Restores the findings of a run whose result answers a request about the code of `sight`: the code is what that run
    /// reviewed, so its reports apply again, whatever a review of other code saw in between. Claims made since then are not
    /// judged, because no review has checked them.
    fn restore_reported(&self, run: &RunRecord, sight: &SnapshotView<'_>) -> Result<(), RunnerError> {
        let Some(output) =
            self.services.store.output(&run.run_id)?.filter(|_| sight.layer() > policy::SnapshotLayer::Past)
        else {
            return Ok(());
        };
        let about: HashSet<&str> = super::finding_ids(&output.findings).collect();
        let said = self.services.store.latest_dispositions(&about)?;
        let mut dispositions = Vec::new();
        for finding in &output.findings {
            let present = FindingState::from_last_disposition(said.get(&finding.finding_id).map(|(_, last)| last));
            if matches!(present, FindingState::Confirmed | FindingState::Obsolete) {
                dispositions.extend(super::judge_finding(
                    self.services,
                    run,
                    &finding.finding_id,
                    present,
                    ReviewObservation::Raised,
                    &said,
                ));
            }
        }
        self.store_for_run(run).append_unless_newer(dispositions, &said)?;
        Ok(())
    }

    /// Settles findings in deleted files, if the change deletes files and contains nothing to review.
    fn settle_deletions(&self, requested: &RequestOutcome, snapshot: &Snapshot) -> Result<(), RunnerError> {
        let left_out = &snapshot.change.left_out;
        let run = &requested.run;
        let deletes = left_out.iter().any(|file| file.reason == OmissionReason::Deleted);
        if !deletes || run.subject.snapshot_commit != snapshot.snapshot_commit {
            return Ok(());
        }
        let mut nothing = ReviewOutcome {
            status: RunStatus::Completed,
            findings: Vec::new(),
            unraised: Vec::new(),
            moved_ids: BTreeMap::new(),
            counts: FindingCounts::default(),
            coverage: Coverage { left_out: left_out.clone(), ..Coverage::default() },
            summary: String::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            failure: None,
            cancel: None,
            budget_stop: None,
            spent: Default::default(),
        };
        FindingSettlement::new(self.services, run, RunStatus::Completed, ReviewExtent::Whole)?.settle(&mut nothing)?;
        Ok(())
    }
}
