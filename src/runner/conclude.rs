//! Concludes a run: updates its findings, writes its output and its last record.

use crate::domain::{
    CancelReason, ErrorClass, ListedReport, PhaseTimings, RunId, RunOutput, RunRecord, RunStatus, SCHEMA_VERSION, Time,
};
use crate::review::{JournalMetrics, JournalState, ReviewOutcome, RunCost};
use crate::runner::{RunnerError, Services};
use crate::store::LockedStore;

/// Returns the milliseconds between two times; 0 if the clock went backwards.
pub(super) fn elapsed_ms(from: Time, to: Time) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

/// Maximum number of unreadable files that are named.
const MAX_NAMED_FILES: usize = 3;

/// Marks a completed run as incomplete, in its record, if a part of it failed. An incomplete run does not
/// answer the same request again. `failure` is the error that the reviewer met.
pub(super) fn mark_incomplete(outcome: &mut ReviewOutcome, failure: Option<(ErrorClass, String)>) {
    if outcome.status != RunStatus::Completed {
        return;
    }
    let unreadable: Vec<&str> = outcome.coverage.unreadable_paths().collect();
    let unread = (!unreadable.is_empty()).then(|| {
        let more = unreadable.len().saturating_sub(MAX_NAMED_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = unreadable.iter().take(MAX_NAMED_FILES).copied().collect::<Vec<_>>().join(", ");
        let files = crate::domain::text::format_count(unreadable.len(), "file");
        (ErrorClass::Unreadable, format!("{files} could not be read: {named}{more}"))
    });
    if let Some(failure) = failure.or(unread) {
        outcome.failure = Some(failure);
    }
}

/// Writes the cost of a run into its record.
pub(super) fn record_cost(spent: &RunCost, record: &mut RunRecord) {
    (record.usage.tokens, record.usage.cost) = (spent.usage, spent.cost);
    record.usage.reserved_cost = None;
    (record.usage.window_peak, record.usage.window_limit) = (spent.window_peak, spent.window_limit);
}

/// Writes an outcome into a record.
pub(super) fn apply_outcome(outcome: &ReviewOutcome, timings: PhaseTimings, record: &mut RunRecord) {
    record.status = outcome.status;
    record.usage.phase_timings = timings;
    record.outcome.coverage = outcome.coverage.without_lists();
    record.outcome.finding_counts = outcome.counts;
    record.outcome.finding_digests =
        outcome.findings.iter().take(RunRecord::MAX_DIGESTS).map(|finding| finding.finding_id.clone()).collect();
    let scanned = outcome.findings.iter().filter(|finding| finding.is_from_secret_scan());
    record.outcome.scanned_findings =
        scanned.take(RunRecord::MAX_DIGESTS).map(|finding| finding.finding_id.clone()).collect();
    record.usage.reserved_cost = None;
    if outcome.spent.turns > 0 {
        record_cost(&outcome.spent, record);
    }
    record.outcome.summary.clone_from(&outcome.summary);
    if let Some((class, text)) = &outcome.failure {
        record.ending.error_class = Some(*class);
        record.ending.error_summary.clone_from(text);
    }
    record.ending.budget_stop = outcome.budget_stop;
    if let Some(reason) = outcome.cancel {
        record.ending.cancel_reason.get_or_insert(reason);
    }
}

/// Service that ends runs: writes output and record, and settles the findings.
#[derive(Clone, Copy)]
pub struct RunCloser<'a> {
    pub(in crate::runner) services: &'a Services,
}

impl RunCloser<'_> {
    /// Writes the result of a run: first dispositions, then the output, then the record. If the process dies between
    /// two of them, another process can finish the run. The caller holds the run's lock, or the store's lock while the
    /// run is pending. On return, the findings in the outcome are those that were written.
    pub(super) fn conclude_run(
        &self,
        run: &RunId,
        outcome: &mut ReviewOutcome,
        timings: PhaseTimings,
    ) -> Result<RunRecord, RunnerError> {
        let Some(mut last) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
        let measured = self.read_metrics(&last);
        let timings = measured.apply_to_timings(timings);
        let began = self.services.ambient.now();
        let life = self.services.findings().settle_findings(&last, outcome)?;
        let held_back = life.held_back.iter().map(|held| &held.finding);
        let mut listed_as = ListedReport::from_list(outcome.findings.iter().chain(held_back));
        listed_as.truncate(RunRecord::MAX_DIGESTS);
        let mut merged_reports = life.merged_reports;
        merged_reports.iter_mut().for_each(|reports| reports.truncate(RunRecord::MAX_DIGESTS));
        let resolve_ms = timings.resolve_ms.saturating_add(elapsed_ms(began, self.services.ambient.now()));
        let timings = PhaseTimings { resolve_ms, ..timings };
        let apply = |record: &mut RunRecord| {
            apply_outcome(outcome, timings, record);
            record.usage.answered_by.clone_from(&measured.answered_by);
            record.outcome.listed_as.clone_from(&listed_as);
            record.outcome.merged_reports.clone_from(&merged_reports);
        };
        apply(&mut last);
        last.updated_at = self.services.ambient.now();
        if !outcome.findings.is_empty() || last.attempt > 0 {
            self.services.store.write_output(&RunOutput {
                version: SCHEMA_VERSION,
                run: last.clone(),
                findings: outcome.findings.clone(),
                coverage: outcome.coverage.clone(),
                notes: outcome.notes.clone(),
                rejected: outcome.rejected.clone(),
                held_back: life.held_back,
                held_back_places: None,
                moved: life.moved,
                flip_flops: life.flip_flops,
                recognised: life.recognised,
                damage: None,
            })?;
        }
        self.close_run(run, apply)
    }

    /// Reads timings and reviewers from the run's journal. An unreadable journal does not keep a run from ending.
    fn read_metrics(&self, record: &RunRecord) -> JournalMetrics {
        if record.attempt == 0 {
            return JournalMetrics::default();
        }
        let entries = self.services.store.read_journal(&record.run_id).unwrap_or_else(|error| {
            tracing::warn!(run = %record.run_id, %error, "the pace of the run is not known");
            Vec::new()
        });
        JournalMetrics::from_journal(record, &entries)
    }

    /// Writes the terminal record and marks the runs it replaces, and the members of a panel that are on its list.
    pub(super) fn close_run(&self, run: &RunId, change: impl FnOnce(&mut RunRecord)) -> Result<RunRecord, RunnerError> {
        self.services.store.with_lock_as(|locked| {
            let record = locked.update_run(run, self.services.ambient.now(), change)?;
            if record.status == RunStatus::Completed {
                self.services.launcher().mark_replaced_runs(locked, run)?;
            }
            // A panel that could not merge does not stand for its members.
            if let Some(panel) = record.links.panel.as_ref().filter(|_| record.status != RunStatus::Failed) {
                self.services.fold_members(locked, &record, panel)?;
            }
            Ok(record)
        })
    }
}

impl Services {
    pub(super) fn no_run_error(&self, run: &RunId) -> RunnerError {
        let path = self.store.runs_path();
        RunnerError::Store(crate::store::StoreError::NoRun { id: run.to_string(), path })
    }
}

impl RunCloser<'_> {
    /// Ends a pending run, or a run that waits for its next attempt, with the reason in its record.
    pub(super) fn end_pending_run(
        &self,
        _locked: &LockedStore<'_>,
        record: &RunRecord,
    ) -> Result<RunRecord, RunnerError> {
        // A run without a worker has no journal, even if a file of that name exists.
        let replayed = match record.attempt {
            0 => JournalState::default(),
            _ => self.services.replay_journal(&record.run_id)?,
        };
        let status = end_status(record.ending.cancel_reason);
        let reason = if record.attempt == 0 { "it had not begun" } else { "it waited for its next attempt" };
        let mut outcome = match &record.links.panel {
            Some(panel) => self.services.merge_members(record, panel)?,
            None => replayed.to_outcome(status, reason),
        };
        if record.attempt == 0 && record.links.panel.is_none() {
            outcome.coverage = record.outcome.coverage.clone();
            outcome.summary = format!("{status}: {reason}");
        }
        self.conclude_run(&record.run_id, &mut outcome, record.usage.phase_timings)
    }
}

/// Returns the final status of a run that was asked to end for this reason.
pub(super) fn end_status(reason: Option<CancelReason>) -> RunStatus {
    reason.map_or(RunStatus::Cancelled, CancelReason::status)
}

/// Returns the outcome of a run that failed.
pub(super) fn failed_outcome(replayed: &JournalState, class: ErrorClass, text: String) -> ReviewOutcome {
    let kept = crate::domain::text::format_count(replayed.finding_count(), "finding");
    ReviewOutcome {
        summary: format!("failed: {text}; {kept} kept"),
        failure: Some((class, text)),
        ..replayed.to_outcome(RunStatus::Failed, "")
    }
}
