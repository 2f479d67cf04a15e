//! Recovers runs without a worker: each run is completed, ended as requested, resumed or marked as lost. No finding is
//! lost.

use std::sync::Arc;

use crate::domain::{
    CancelReason, ErrorClass, PhaseTimings, RunEvent, RunId, RunOutput, RunRecord, RunStatus, Source, text,
};
use crate::policy::MAX_ATTEMPTS;
use crate::review::{JournalMetrics, JournalState};
use crate::runner::{RecoveredRun, Recovery, RecoveryOutcome, RunnerError, conclude, known_runs};
use crate::store::{RecoveryNotice, StoreView};

/// Cause of the end of an import whose process died. No worker can go on with it: its report is not kept, and a tool is
/// no reviewer.
const INTERRUPTED_IMPORT: &str = "the import was interrupted; run it again";

/// Facts about a working run whose lock is free, from which its recovery is decided.
#[derive(Debug, Clone, Copy)]
struct DeadRunFacts {
    /// The worker has written the run's output.
    has_output: bool,
    /// The reason for which the run was asked to end.
    end_asked: Option<CancelReason>,
    /// The attempt in which the worker died, counted from 1.
    attempt: u32,
    /// The last turn of the journal.
    turn: Option<u32>,
    /// The snapshot and the journal can be read.
    can_resume: bool,
    /// The run is the report of another tool.
    is_import: bool,
}

/// Decision about a working run whose lock is free, with its cause in words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RecoveryDecision {
    /// Take status and results from the written output.
    Complete { cause: String },
    /// End the run as it was asked.
    End { status: RunStatus, cause: String },
    /// Make the run pending for its next attempt.
    Resume { cause: String },
    /// Mark the run as lost.
    Lose { cause: String },
}

impl RecoveryDecision {
    fn into_cause(self) -> String {
        match self {
            Self::Complete { cause } | Self::End { cause, .. } | Self::Resume { cause } | Self::Lose { cause } => cause,
        }
    }
}

/// Decides how a working run whose lock is free is settled.
fn decide_recovery(facts: &DeadRunFacts) -> RecoveryDecision {
    let &DeadRunFacts { has_output, end_asked, attempt, turn, can_resume, is_import } = facts;
    if has_output {
        return RecoveryDecision::Complete { cause: "worker died after it had written its result".to_owned() };
    }
    // An earlier recovery that died has called the run lost already.
    let is_called_lost = end_asked == Some(CancelReason::DeadProcess);
    if end_asked.is_some() && !is_called_lost {
        let cause = "its worker did not answer".to_owned();
        return RecoveryDecision::End { status: conclude::end_status(end_asked), cause };
    }
    if is_import {
        return RecoveryDecision::Lose { cause: INTERRUPTED_IMPORT.to_owned() };
    }
    // The position of the dead worker, as far as it is known.
    let place = match turn {
        Some(turn) => format!("turn {turn}"),
        None => format!("attempt {attempt}"),
    };
    if attempt < MAX_ATTEMPTS && can_resume && !is_called_lost {
        let cause = match turn {
            Some(_) => format!("worker died in {place}, attempt {attempt} of {MAX_ATTEMPTS}"),
            None => format!("worker died in {place} of {MAX_ATTEMPTS}"),
        };
        return RecoveryDecision::Resume { cause };
    }
    RecoveryDecision::Lose {
        cause: match can_resume {
            true => format!("worker died in {place}"),
            false => format!("worker died in {place} and the snapshot is gone"),
        },
    }
}

/// Takes over the results of a written output into the run's record.
fn adopt_output(record: &mut RunRecord, written: RunRecord) {
    record.status = written.status;
    record.outcome = written.outcome;
    record.usage.phase_timings = written.usage.phase_timings;
    record.usage.answered_by = written.usage.answered_by;
    record.ending.budget_stop = written.ending.budget_stop;
    (record.ending.error_class, record.ending.error_summary) =
        (written.ending.error_class, written.ending.error_summary);
    record.ending.cancel_reason = record.ending.cancel_reason.or(written.ending.cancel_reason);
}

impl Recovery<'_> {
    /// Settles unfinished runs whose lock is free: completes them from their output, ends them as requested, resumes
    /// them (at most 3 attempts) or marks them as lost. Then starts pending runs. A run that cannot be settled is
    /// reported with the reason, and tried again the next time.
    ///
    /// # Errors
    ///
    /// If the runs cannot be listed.
    pub fn recover(&self) -> Result<Vec<RecoveredRun>, RunnerError> {
        if let Err(error) = self.services.fixer().reconcile_fixes() {
            tracing::warn!(%error, "fixes whose worker is gone cannot be settled");
        }
        if let Err(error) = self.services.asker().reconcile_questions() {
            tracing::warn!(%error, "questions whose worker is gone cannot be settled");
        }
        let (view, recovered) = self.settle_dead_runs()?;
        self.services.launcher().settle_needless_of_view(&view);
        let started = match recovered.is_empty() {
            true => self.services.launcher().start_next(&view, None, &[]),
            false => self.services.launcher().start_pending(),
        };
        if let Err(error) = started {
            tracing::warn!(%error, "no worker was started");
        }
        Ok(recovered)
    }

    /// Settles unfinished runs whose lock is free, as [`Recovery::recover`] does, and nothing else. Returns the view of
    /// the store before it, and the runs that were settled or could not be settled.
    ///
    /// # Errors
    ///
    /// If the runs cannot be listed.
    pub(in crate::runner) fn settle_dead_runs(&self) -> Result<(Arc<StoreView>, Vec<RecoveredRun>), RunnerError> {
        let view = self.services.store.runs_view()?;
        let mut recovered = Vec::new();
        for row in known_runs::run_rows(&view).filter(|row| row.status.is_working()) {
            let Ok(id) = row.id.parse() else { continue };
            match self.recover_one(&id) {
                Ok(what) => recovered.extend(what),
                // A run that cannot be settled must not block the others.
                Err(error) => {
                    tracing::warn!(run = %id, %error, "a run whose worker is gone cannot be settled");
                    recovered.push(RecoveredRun { run_id: id, outcome: RecoveryOutcome::Stuck(error.to_string()) });
                }
            }
        }
        let news: Vec<RecoveryNotice> = recovered.iter().filter_map(RecoveredRun::news).collect();
        if let Err(error) = self.services.store.append_notices(&news) {
            tracing::warn!(%error, "nobody will be told what was settled");
        }
        Ok((view, recovered))
    }

    /// Settles one run. Returns `None` if nothing is to be done, or another process is settling the run.
    pub(in crate::runner) fn recover_one(&self, run: &RunId) -> Result<Option<RecoveredRun>, RunnerError> {
        if self.services.store.is_live(run)? {
            return Ok(None);
        }
        let Some(_lock) = self.services.store.lock_run(run)? else { return Ok(None) };
        // With the lock held, no other process changes the run.
        let Some(record) = self.services.store.run(run)? else { return Ok(None) };
        if !record.status.is_working() {
            return Ok(None);
        }
        let entries = self.services.store.read_journal(run)?;
        let journal = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        let findings = u32::try_from(journal.finding_count()).unwrap_or(u32::MAX);
        let output = self.read_written_output(run);
        let end_asked = record.ending.cancel_reason.or(journal.cancel_asked);
        let is_import = record.source == Source::Import;
        let facts = DeadRunFacts {
            is_import,
            has_output: output.is_some(),
            end_asked,
            attempt: record.attempt,
            turn: entries.iter().rev().find_map(|entry| event_turn(&entry.event)),
            // Expensive, and needed only for a run that is neither written nor asked to end.
            can_resume: !is_import
                && output.is_none()
                && end_asked.is_none_or(|reason| reason == CancelReason::DeadProcess)
                && self.services.launcher().can_resume(&record),
        };
        let decision = decide_recovery(&facts);
        let timings = JournalMetrics::add_unrecorded_attempt(record.usage.phase_timings, &entries);
        let status = self.carry_out(&decision, (record, timings), &journal, output)?;
        let outcome = RecoveryOutcome::Settled { status, cause: decision.into_cause(), findings };
        Ok(Some(RecoveredRun { run_id: run.clone(), outcome }))
    }

    /// Carries out a decision about a run whose lock is held. Returns the new status.
    fn carry_out(
        &self,
        decision: &RecoveryDecision,
        (record, timings): (RunRecord, PhaseTimings),
        journal: &JournalState,
        output: Option<RunOutput>,
    ) -> Result<RunStatus, RunnerError> {
        let run = &record.run_id;
        let (status, cause) = match decision {
            RecoveryDecision::Complete { cause } => {
                let settled = self.services.closer().close_run(run, |record| {
                    if let Some(output) = output {
                        adopt_output(record, output.run);
                    }
                })?;
                (settled.status, cause)
            }
            RecoveryDecision::End { status, cause } => {
                let mut outcome = journal.to_outcome(*status, cause);
                self.services.closer().conclude_run(run, &mut outcome, timings)?;
                (*status, cause)
            }
            RecoveryDecision::Resume { cause } => {
                let now = || self.services.ambient.now();
                let text = format!("{cause}; resumed");
                self.services.store.open_journal(run)?.append(now(), RunEvent::Note { text })?;
                self.services.store.with_lock_as(|locked| {
                    locked.update_run(run, now(), |record| {
                        record.status = RunStatus::Pending;
                        record.usage.phase_timings = timings;
                    })
                })?;
                return Ok(RunStatus::Pending);
            }
            RecoveryDecision::Lose { cause } => {
                let saved = describe_saved(journal);
                // Before the end, so that the output contains it. If this process dies now, the run is lost all the
                // same.
                let lost = self.services.store.with_lock(|locked| {
                    locked.annotate_run(run, |record| {
                        if record.ending.cancel_reason.is_none() {
                            record.ending.cancel_reason = Some(CancelReason::DeadProcess);
                            record.ending.cancel_note = format!("{cause}; {saved}");
                        }
                    })
                })?;
                // Somebody asked for the end after the decision.
                if let asked @ Some(reason) = lost.ending.cancel_reason
                    && reason != CancelReason::DeadProcess
                {
                    let end = RecoveryDecision::End { status: conclude::end_status(asked), cause: cause.clone() };
                    return self.carry_out(&end, (lost, timings), journal, output);
                }
                let mut outcome = journal.to_outcome(RunStatus::Lost, cause);
                outcome.failure = Some((ErrorClass::WorkerDied, cause.clone()));
                self.services.closer().conclude_run(run, &mut outcome, timings)?;
                (RunStatus::Lost, cause)
            }
        };
        self.record_end(run, journal, status, cause)?;
        Ok(status)
    }

    /// Reads the output if the worker has written it.
    fn read_written_output(&self, run: &RunId) -> Option<RunOutput> {
        let path = self.services.store.root().join("outputs").join(format!("{run}.json"));
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Appends the cause and the end to the journal, unless the worker has written the end.
    fn record_end(
        &self,
        run: &RunId,
        replayed: &JournalState,
        status: RunStatus,
        cause: &str,
    ) -> Result<(), RunnerError> {
        if replayed.finished.is_none() {
            let mut events = vec![RunEvent::Note { text: cause.to_owned() }];
            events.extend(replayed.final_summary());
            events.push(RunEvent::Finished { status });
            self.services.store.open_journal(run)?.append_all(self.services.ambient.now(), &events)?;
        }
        Ok(())
    }
}

/// Describes what a dead run leaves: `4 findings and 5 of 9 hunks are kept`.
fn describe_saved(journal: &JournalState) -> String {
    let findings = text::format_count(journal.finding_count(), "finding");
    let covered: usize = journal.covered().iter().map(|file| file.hunks.len()).sum();
    match journal.planned {
        Some(planned) => {
            format!("{findings} and {covered} of {} are kept", text::format_count(planned.hunks as usize, "hunk"))
        }
        None => format!("{findings} kept"),
    }
}

/// Returns the turn of a journal entry.
fn event_turn(event: &RunEvent) -> Option<u32> {
    match event {
        RunEvent::TurnAsked { turn, .. } | RunEvent::TurnAnswered { turn, .. } => Some(*turn),
        _ => None,
    }
}

impl RecoveredRun {
    /// Returns one line for the user, for example "lost: worker died in attempt 3, 4 findings kept".
    pub fn text(&self) -> String {
        match &self.outcome {
            RecoveryOutcome::Settled { status, cause, findings } => {
                let word = if *status == RunStatus::Pending { "resumed" } else { status.word() };
                format!("{word}: {cause}, {} kept", text::format_count(*findings as usize, "finding"))
            }
            RecoveryOutcome::Stuck(error) => format!("cannot be settled: {error}"),
        }
    }

    /// Returns the notice for the user; `None` for an unchanged run.
    pub(in crate::runner) fn news(&self) -> Option<RecoveryNotice> {
        match &self.outcome {
            RecoveryOutcome::Settled { status, cause, findings } => Some(RecoveryNotice::Run {
                run_id: self.run_id.clone(),
                status: *status,
                cause: cause.clone(),
                findings: *findings,
            }),
            RecoveryOutcome::Stuck(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    const DEAD: DeadRunFacts =
        DeadRunFacts { has_output: false, end_asked: None, attempt: 1, turn: None, can_resume: true, is_import: false };

    fn decide(facts: DeadRunFacts) -> RecoveryDecision {
        decide_recovery(&facts)
    }

    #[test]
    fn a_written_output_comes_before_a_request_to_end_and_both_before_the_next_attempt() {
        let asked = DeadRunFacts { end_asked: Some(CancelReason::UserStop), ..DEAD };
        let written = RecoveryDecision::Complete { cause: "worker died after it had written its result".to_owned() };
        assert_eq!(decide(DeadRunFacts { has_output: true, ..asked }), written);
        let ended = RecoveryDecision::End {
            status: CancelReason::UserStop.status(),
            cause: "its worker did not answer".to_owned(),
        };
        assert_eq!(decide(asked), ended);
        // An earlier recovery called it lost, and died before it could say so in the record.
        let lost = RecoveryDecision::Lose { cause: "worker died in attempt 1".to_owned() };
        assert_eq!(decide(DeadRunFacts { end_asked: Some(CancelReason::DeadProcess), ..DEAD }), lost);
    }

    #[test]
    fn a_run_that_its_user_ends_while_it_is_settled_is_cancelled_and_not_lost() {
        let fixture = RunnerFixture::new();
        let services = &fixture.services;
        let run = fixture.record_working_run(|record| record.attempt = MAX_ATTEMPTS);
        let before = fixture.record(&run);
        let asked = |record: &mut RunRecord| {
            record.ending.cancel_reason = Some(CancelReason::UserStop);
            "no longer needed".clone_into(&mut record.ending.cancel_note);
        };
        services.store.update_run(&run, services.ambient.now(), asked).expect("a line");
        let lose = RecoveryDecision::Lose { cause: "worker died in attempt 3".to_owned() };
        let journal = JournalState::default();
        let status = services.recovery().carry_out(&lose, (before, PhaseTimings::default()), &journal, None);
        let record = fixture.record(&run);
        assert_eq!((status.expect("the store"), record.status), (RunStatus::Cancelled, RunStatus::Cancelled));
        assert_eq!(record.ending.cancel_reason, Some(CancelReason::UserStop));
        assert_eq!(record.ending.cancel_note, "no longer needed");
    }

    #[test]
    fn a_run_that_a_dead_recovery_called_lost_is_lost_with_its_error() {
        let fixture = RunnerFixture::new();
        let run = fixture.record_working_run(|record| {
            record.attempt = MAX_ATTEMPTS;
            record.ending.cancel_reason = Some(CancelReason::DeadProcess);
            "worker died in turn 7; 2 findings kept".clone_into(&mut record.ending.cancel_note);
        });
        fixture.services.recovery().recover_one(&run).expect("the store");
        let record = fixture.record(&run);
        assert_eq!((record.status, record.ending.error_class), (RunStatus::Lost, Some(ErrorClass::WorkerDied)));
        assert_eq!(record.ending.cancel_note, "worker died in turn 7; 2 findings kept");
    }

    #[test]
    fn an_interrupted_import_is_lost_at_once() {
        let fixture = RunnerFixture::new();
        let run = fixture.record_working_run(|record| {
            record.source = Source::Import;
            record.status = RunStatus::Resolving;
        });
        let recovered = fixture.services.recovery().recover_one(&run).expect("the store").expect("settled");
        assert_eq!(recovered.text(), "lost: the import was interrupted; run it again, 0 findings kept");
        let record = fixture.record(&run);
        assert_eq!((record.status, record.ending.error_class), (RunStatus::Lost, Some(ErrorClass::WorkerDied)));
    }

    #[test]
    fn a_dead_run_is_resumed_while_it_has_attempts_and_a_snapshot() {
        let resumed = |cause: &str| RecoveryDecision::Resume { cause: cause.to_owned() };
        let lost = |cause: &str| RecoveryDecision::Lose { cause: cause.to_owned() };
        let last = DeadRunFacts { attempt: MAX_ATTEMPTS, ..DEAD };
        let rows = [
            (DEAD, resumed("worker died in attempt 1 of 3")),
            (DeadRunFacts { turn: Some(7), attempt: 2, ..DEAD }, resumed("worker died in turn 7, attempt 2 of 3")),
            (last, lost("worker died in attempt 3")),
            (DeadRunFacts { turn: Some(7), ..last }, lost("worker died in turn 7")),
            (DeadRunFacts { can_resume: false, ..DEAD }, lost("worker died in attempt 1 and the snapshot is gone")),
            (DeadRunFacts { is_import: true, ..DEAD }, lost("the import was interrupted; run it again")),
        ];
        for (facts, expected) in rows {
            assert_eq!(decide(facts), expected, "{facts:?}");
        }
    }
}
