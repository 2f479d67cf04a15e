//! Updates findings after a request that starts no new review. Such a request is evidence, too: a result that answers it is about
//! the code as it is now, reported code may be back, and files may be deleted.

use std::collections::HashSet;

use super::FindingSettlement;
use super::earlier_findings::sight_from_run;
use super::held_back_reports::HeldBackReports;
use super::settle_silence::build_outcome;
use crate::domain::{Coverage, FindingId, OmissionReason, ReviewSubject, RunOutput, RunRecord, RunStatus};
use crate::git::Snapshot;
use crate::policy::{self, FindingState, ReviewAction, ReviewExtent, ReviewObservation};
use crate::runner::{FindingLifecycle, RequestOutcome, RunnerError, SettledAnswer};
use crate::store::{LastLines, LatestDispositions};

impl FindingLifecycle<'_> {
    /// Applies the outcome of a request to findings. A failure must not fail the request; the answer names it.
    pub(in crate::runner) fn settle_answered_request(
        &self,
        requested: &RequestOutcome,
        snapshot: &Snapshot,
    ) -> SettledAnswer {
        let run = &requested.run;
        let settled = match requested.decision.action {
            ReviewAction::Reuse { .. } => self.settle_answer(&RunRecord {
                subject: ReviewSubject {
                    branch: snapshot.branch.clone(),
                    worktree: snapshot.worktree.to_string_lossy().into_owned(),
                    base_commit: snapshot.base_commit.clone(),
                    snapshot_commit: snapshot.snapshot_commit.clone(),
                    head_commit: snapshot.head_commit.clone(),
                    scope: snapshot.scope.clone(),
                    ..run.subject.clone()
                },
                ..run.clone()
            }),
            ReviewAction::Skip => self.settle_deletions(requested, snapshot).map(|()| SettledAnswer::default()),
            ReviewAction::Launch | ReviewAction::Adopt { .. } | ReviewAction::Resume { .. } => {
                Ok(SettledAnswer::default())
            }
        };
        settled.unwrap_or_else(|error| {
            tracing::warn!(run = %run.run_id, %error, "the findings of a request are not settled");
            SettledAnswer::failed(&error)
        })
    }

    /// Applies the result of a run of another machine, `adopted`, that answers a run of this machine, `own`; a second time changes
    /// nothing. A failure must not fail the run; the answer names it.
    pub fn settle_adopted_result(&self, own: &RunRecord, adopted: &RunRecord) -> SettledAnswer {
        let answer = RunRecord { subject: own.subject.clone(), ..adopted.clone() };
        self.settle_answer(&answer).unwrap_or_else(|error| {
            tracing::warn!(run = %adopted.run_id, %error, "the findings of an adopted result are not settled");
            SettledAnswer::failed(&error)
        })
    }

    /// Applies the result of a run that answers a request. The subject of `run` is the code of the request: that code is what the
    /// run has read, whatever a review of other code saw in between.
    fn settle_answer(&self, run: &RunRecord) -> Result<SettledAnswer, RunnerError> {
        let scope = run.subject.scope.to_string();
        // A review of old code is no evidence.
        if sight_from_run(run, &scope).layer() == policy::SnapshotLayer::Past {
            return Ok(SettledAnswer::default());
        }
        let Some(output) = self.services.store.output(&run.run_id)? else { return Ok(SettledAnswer::default()) };
        let held_back = self.services.list_held_back(run, &output)?;
        self.restore_reported(run, &output, &held_back)?;
        let whole = run.status == RunStatus::Completed
            && run.ending.error_class.is_none()
            && output.damage.is_none()
            && !output.coverage.is_incomplete();
        let extent = if whole { ReviewExtent::Whole } else { ReviewExtent::Partial };
        let settlement = FindingSettlement::for_answer(self.services, run, extent)?;
        let unproven = settlement.settle_silence(output, &held_back)?;
        Ok(SettledAnswer { unproven, view: Some(settlement.view), failure: None })
    }

    /// Restores the findings that the review has reported, also those whose reports were held back because they were dismissed.
    /// Claims made since then are not judged, because no review has checked them. A report whose problem a panel lists under another
    /// id is one of that finding.
    fn restore_reported(
        &self,
        run: &RunRecord,
        output: &RunOutput,
        held_back: &HeldBackReports,
    ) -> Result<(), RunnerError> {
        let store = &self.services.store;
        let mut dismissed = held_back.dismissed_ids();
        let about = super::finding_ids(&output.findings).chain(dismissed.iter().map(|id| id.as_str()));
        let mut said = store.latest_dispositions(&about.collect())?;
        let is_merged = |said: &LatestDispositions, id: &FindingId| {
            said.get(id).is_some_and(|(_, last)| last.merged_into.is_some())
        };
        // A problem that a panel lists under another id stays there.
        dismissed.retain(|id| !is_merged(&said, id));
        let mut reported: Vec<FindingId> = output.findings.iter().map(|finding| finding.finding_id.clone()).collect();
        if reported.iter().any(|id| is_merged(&said, id)) {
            let log = store.triage_log()?;
            let last = LastLines::new(&log);
            reported = reported.iter().map(|id| last.follow_merges(id).clone()).collect();
            let about = reported.iter().chain(dismissed.iter().copied()).map(|id| id.as_str());
            said = store.latest_dispositions(&about.collect())?;
        }
        let mut judged: HashSet<&FindingId> = HashSet::new();
        let mut dispositions = Vec::new();
        for id in reported.iter().chain(dismissed).filter(|id| judged.insert(*id)) {
            let present = FindingState::from_last_disposition(said.get(id).map(|(_, last)| last));
            if matches!(present, FindingState::Confirmed | FindingState::Obsolete) {
                let seen = ReviewObservation::Raised;
                dispositions.extend(super::judge_finding(self.services, run, id, present, seen, &said));
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
        let coverage = Coverage { left_out: left_out.clone(), ..Coverage::default() };
        let mut nothing = build_outcome(Vec::new(), Vec::new(), coverage);
        FindingSettlement::new(self.services, run, RunStatus::Completed, ReviewExtent::Whole)?.settle(&mut nothing)?;
        Ok(())
    }
}
