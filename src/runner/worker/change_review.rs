//! Reviews a change with one reviewer: the built-in one in units, a model in a conversation.

use std::collections::HashSet;

use crate::domain::{CancelReason, JournalEntry, RunEvent, RunReviewer, RunStatus};
use crate::git::{Changeset, FileChange};
use crate::review::{
    JournalState, PlannedFile, ReviewOutcome, ReviewPlan, ReviewUnit, UnitEffect, UnitEngine, UnitEvent,
};
use crate::reviewers::{Reviewer, ReviewerError};
use crate::runner::steering::recorded_steering;
use crate::runner::worker::{RunWorker, rewritten_code};
use crate::runner::{BUILTIN_REVIEWER, RunnerError};
use crate::store::HeartbeatState;

impl RunWorker<'_> {
    /// Reviews the change. `replayed` is the state of `entries`, the journal so far.
    pub(super) fn review(
        &mut self,
        change: &Changeset,
        replayed: JournalState,
        entries: &[JournalEntry],
    ) -> Result<ReviewOutcome, RunnerError> {
        self.decide_steering(entries)?;
        let subject = &self.record.subject;
        let prompt_set = self.record.reviewed_by.prompt_set.as_deref();
        let identity = self.services.reviewers().with_prompt_set(prompt_set).resolve_identity_for(
            Some(&self.record.reviewed_by.name),
            &subject.base_commit,
            &subject.snapshot_commit,
        )?;
        self.buffer.push(RunEvent::Phase { status: RunStatus::Reviewing });
        let now = self.now();
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            record.status = RunStatus::Reviewing;
            // The settings may have changed since the request.
            record.subject.prompt_policy_version =
                RunReviewer::focused_version(&identity.policy_version, &record.reviewed_by.focus);
        })?;
        if identity.reviewer != BUILTIN_REVIEWER {
            // From here on, the run has an activity: it gathers its context, or waits for another machine.
            let mut pulse = self.services.store.start_heartbeat(&self.record.run_id, self.now());
            // Before the plan: what others have reviewed is carried over.
            if let Some(reason) = self.claim_review(Some(&mut pulse))? {
                return Ok(self.cancelled_outcome(reason, entries));
            }
            pulse.set_state(self.now(), HeartbeatState::Preparing);
            // This attempt tries again where an earlier attempt failed.
            let mut plan = self.build_plan(change, None);
            let known = self.carry_over(change, &mut plan, entries)?;
            return self.run_conversation(change, plan, known, pulse);
        }
        self.failure.clone_from(&replayed.failure);
        let mut reviewer = self.services.reviewers().open_builtin(&self.record)?;
        let mut plan = self.build_plan(change, Some(reviewer.as_ref()));
        self.carry_over(change, &mut plan, entries)?;
        let replayed = self.services.replay_journal(&self.record.run_id)?;
        let mut engine = UnitEngine::new();
        let mut effects = engine.handle(UnitEvent::Started(plan, Box::new(replayed)));
        loop {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    UnitEffect::Append(event) => self.buffer.push(event),
                    UnitEffect::CallReviewer(unit) => {
                        self.flush()?;
                        let event = self.call_reviewer(reviewer.as_mut(), &unit, change)?;
                        next = engine.handle(event);
                    }
                    UnitEffect::Finish(outcome) => return Ok(*outcome),
                }
            }
            effects = next;
        }
    }

    /// Decides which kinds are lowered in this run, and records the decision; a later attempt takes it from the journal.
    fn decide_steering(&mut self, entries: &[JournalEntry]) -> Result<(), RunnerError> {
        if let Some(recorded) = recorded_steering(entries) {
            self.steered = recorded;
            return Ok(());
        }
        self.steered = self.services.steered_kinds(&self.record.reviewed_by.name)?;
        if !self.steered.is_empty() {
            self.buffer.push(RunEvent::Steered { kinds: self.steered.clone() });
        }
        Ok(())
    }

    /// Builds the plan. `reviewer` is `None` for a model, which does not review in units.
    fn build_plan(&self, change: &Changeset, reviewer: Option<&dyn Reviewer>) -> ReviewPlan {
        let keys = self.services.worker().hunk_keys(&self.record.reviewed_by.name, change);
        let files = change.files.iter().zip(keys).map(|(file, keys)| PlannedFile {
            path: file.path.clone(),
            hunks: file.hunks.iter().map(|hunk| hunk.new_range()).collect(),
            keys,
            added_lines: file.hunks.iter().fold(0, |sum: u32, hunk| sum.saturating_add(hunk.new_lines)),
        });
        let mut left_out = change.left_out.clone();
        // Files that were too large for the snapshot or unreadable. Only the request knows them.
        let known: HashSet<&str> = left_out.iter().map(|file| file.path.as_str()).collect();
        let unseen = self.record.outcome.coverage.left_out.iter().filter(|file| !known.contains(file.path.as_str()));
        let unseen: Vec<_> = unseen.cloned().collect();
        left_out.extend(unseen);
        ReviewPlan {
            files: files.collect(),
            left_out,
            unit_files: reviewer.map_or(1, Reviewer::files_per_unit),
            has_whole_unit: reviewer.is_some_and(Reviewer::has_cross_file_unit),
            carried: Vec::new(),
        }
    }

    fn call_reviewer(
        &mut self,
        reviewer: &mut dyn Reviewer,
        unit: &ReviewUnit,
        change: &Changeset,
    ) -> Result<UnitEvent, RunnerError> {
        if let Some(reason) = self.cancel_watch.check() {
            return Ok(UnitEvent::CancelAsked(reason));
        }
        let files: Vec<FileChange> = unit.files.iter().filter_map(|&index| change.files.get(index)).cloned().collect();
        let asked = &self.cancel_watch;
        let mut report = match reviewer.review(unit.kind, &files, &|| asked.check().is_some()) {
            Ok(report) => report,
            Err(ReviewerError::Cancelled) => {
                return Ok(UnitEvent::CancelAsked(self.cancel_watch.check().unwrap_or(CancelReason::UserStop)));
            }
            Err(ReviewerError::Failed { class, summary }) => {
                self.failure = Some((class, summary.clone()));
                return Ok(UnitEvent::Failed { class, summary });
            }
        };
        rewritten_code::mark_rewritten_code(&mut report.left_out, change);
        self.unknown_bytes += report.unindexed_bytes;
        for finding in &mut report.findings {
            self.leave_foreign_id(finding)?;
            self.stamp(finding)?;
            self.lower_misjudged(finding);
        }
        Ok(UnitEvent::Reported(report))
    }
}
