//! Converts stored run records into [`KnownRun`] for the policy.

use std::collections::BTreeSet;

use crate::domain::{CancelReason, RunId, RunOutput, RunRecord, RunStatus};
use crate::policy::{Activity, CancelRequest, KnownRun, Liveness, Resumable, ReviewExtent, RunAdvance};
use crate::runner::{RunnerError, Services};
use crate::store::{RunRow, StoreError, StoreView};

/// Maximum number of stored runs, the newest first, among which an earlier one is looked for: the last report of a finding,
/// a review whose hunks are carried over, a panel with opinions. Not from the literature: what older runs say is about other
/// code, and a long history must not cost each run more.
pub(super) const MAX_SEARCHED_RUNS: usize = 200;

/// Converts a row. Leaves out fields that need a look at files: the liveness of the worker and whether the run can be
/// resumed.
pub(super) fn known_run_from_row<'a>(row: &RunRow<'a>) -> KnownRun<'a> {
    KnownRun {
        id: row.id,
        status: row.status,
        liveness: Liveness::Unknown,
        scope: row.scope,
        scope_hash: row.scope_hash,
        diff_fingerprint: row.diff_fingerprint,
        policy_version: row.policy_version,
        reviewer: row.reviewer,
        model: row.model,
        reasoning_effort: row.reasoning_effort,
        branch: row.branch,
        worktree: row.worktree,
        attempt: row.attempt,
        epoch: row.epoch,
        ending: run_ending(row.cancel_reason),
        extent: match row.error_class.is_empty() && !row.incomplete {
            true => ReviewExtent::Whole,
            false => ReviewExtent::Partial,
        },
        findings: row.counts.iter().sum(),
        tokens: row.tokens,
        superseded_by: row.superseded_by,
        resumable: Resumable::No,
        underway: None,
    }
}

fn run_ending(reason: &str) -> CancelRequest {
    match reason {
        "" => CancelRequest::NotRequested,
        reason if reason == CancelReason::UserStop.word() => CancelRequest::StoppedByPerson,
        _ => CancelRequest::Requested,
    }
}

/// Returns the rows of a view, newest first.
pub(super) fn run_rows(view: &StoreView) -> impl Iterator<Item = RunRow<'_>> {
    (0..view.run_count()).map(|index| view.run(index))
}

impl Services {
    /// Checks whether a worker holds the lock of a run that should have one.
    pub(super) fn check_liveness(&self, row: &RunRow<'_>) -> Liveness {
        match (row.status, row.id.parse::<RunId>()) {
            (RunStatus::Pending, _) => Liveness::Waiting,
            (status, Ok(id)) if status.is_working() => match self.store.is_live(&id) {
                Ok(true) => Liveness::Working(Activity::Recent),
                Ok(false) => Liveness::Dead,
                Err(error) => {
                    tracing::warn!(run = %id, %error, "the lock of a run cannot be asked");
                    Liveness::Unknown
                }
            },
            (status, Err(_)) if status.is_working() => Liveness::Unknown,
            _ => Liveness::Ended,
        }
    }

    /// Computes how much of its task a run has done that completed or that its budget ended, compared with the attempt
    /// that it resumed, and whether its result can still be read.
    pub(super) fn compute_extent(&self, record: &RunRecord) -> Result<ReviewExtent, RunnerError> {
        let damage = self.store.output_damage(&record.run_id)?;
        if let Some(damage) = damage.filter(|damage| damage.lost > 0) {
            return Ok(ReviewExtent::ResultLost { findings: damage.lost });
        }
        let coverage = &record.outcome.coverage;
        if coverage.has_early_end() && record.ending.error_class.is_none() {
            return Ok(ReviewExtent::Unfinished {
                reviewed: coverage.hunks_covered.saturating_add(coverage.hunks_carried),
                hunks: coverage.hunks_total,
                progress: if coverage.hunks_covered > 0 { RunAdvance::Some } else { RunAdvance::None },
            });
        }
        if record.ending.error_class.is_none() {
            let files = coverage.hidden_file_count();
            return Ok(if files > 0 { ReviewExtent::OutOfSight { files } } else { ReviewExtent::Whole });
        }
        let Some(from) = &record.links.resumed_from else { return Ok(ReviewExtent::Partial) };
        let (Some(before), Some(now)) = (self.store.output(from)?, self.store.output(&record.run_id)?) else {
            return Ok(ReviewExtent::Partial);
        };
        let files = now.coverage.unreadable_paths().count();
        let same =
            files > 0 && before.run.status == RunStatus::Completed && partial_causes(&before) == partial_causes(&now);
        Ok(if same {
            ReviewExtent::StaysUnread { files: u32::try_from(files).unwrap_or(u32::MAX) }
        } else {
            ReviewExtent::Partial
        })
    }

    /// Returns the run whose result stands for a run: the run itself, or the one that reviews, or has reviewed, exactly the same.
    pub(crate) fn answering_run(&self, mut run: RunRecord) -> Result<RunRecord, StoreError> {
        while let (Some(CancelReason::Duplicate), Some(answer)) = (run.ending.cancel_reason, &run.links.reused_from) {
            match self.store.run(answer)? {
                // Ids sort by time, but clocks of machines differ: a circle must not be walked for ever.
                Some(answer) if answer.links.reused_from.as_ref() != Some(&run.run_id) => run = answer,
                _ => break,
            }
        }
        Ok(run)
    }

    /// Returns `true` if a worker has the run. Used to count slots: a lock that cannot be checked takes no slot.
    pub(super) fn has_worker(&self, run: &RunId) -> bool {
        self.store.is_live(run).unwrap_or_else(|error| {
            tracing::warn!(%run, %error, "the lock of a run cannot be asked");
            false
        })
    }
}

/// Returns the reasons why a run reviewed only a part: its error, the unreadable files, and the notes about these
/// files.
fn partial_causes(output: &RunOutput) -> (&str, BTreeSet<&str>, BTreeSet<&str>) {
    let files: BTreeSet<&str> = output.coverage.unreadable_paths().collect();
    let about_them = |note: &&str| note.split_once(": ").is_some_and(|(path, _)| files.contains(path));
    let notes = output.notes.iter().map(String::as_str).filter(about_them).collect();
    (&output.run.ending.error_summary, files, notes)
}
