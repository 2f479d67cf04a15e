//! Recovers runs without a worker: each run is completed, ended as requested, resumed or marked as lost. No finding is
//! lost.

use crate::domain::{ErrorClass, RunEvent, RunId, RunOutput, RunRecord, RunStatus, text};
use crate::policy::MAX_ATTEMPTS;
use crate::review::JournalState;
use crate::runner::{RecoveredRun, Recovery, RecoveryOutcome, RunnerError, conclude, known_runs};
use crate::store::RecoveryNotice;

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
        let started = match recovered.is_empty() {
            true => self.services.launcher().start_next(&view, None, &[]),
            false => self.services.launcher().start_pending(),
        };
        if let Err(error) = started {
            tracing::warn!(%error, "no worker was started");
        }
        Ok(recovered)
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
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        let findings = u32::try_from(replayed.finding_count()).unwrap_or(u32::MAX);
        let attempt = record.attempt;
        let recovered = |status, cause: &str| {
            let became = RecoveryOutcome::Settled { status, cause: cause.to_owned(), findings };
            Ok(Some(RecoveredRun { run_id: run.clone(), outcome: became }))
        };
        // The position of the dead worker, as far as it is known.
        let turn = entries.iter().rev().find_map(|entry| event_turn(&entry.event));
        let place = match turn {
            Some(turn) => format!("turn {turn}"),
            None => format!("attempt {attempt}"),
        };

        if let Some(output) = self.read_written_output(run) {
            let settled = self.services.closer().close_run(run, |record| {
                let RunRecord { status, phase_timings, coverage, finding_counts, finding_digests, summary, .. } =
                    output.run;
                (record.status, record.phase_timings) = (status, phase_timings);
                (record.coverage, record.finding_counts) = (coverage, finding_counts);
                (record.finding_digests, record.summary) = (finding_digests, summary);
                record.answered_by = output.run.answered_by;
                (record.error_class, record.error_summary) = (output.run.error_class, output.run.error_summary);
                record.cancel_reason = record.cancel_reason.or(output.run.cancel_reason);
            })?;
            let cause = "worker died after it had written its result";
            self.record_end(run, &replayed, settled.status, cause)?;
            return recovered(settled.status, cause);
        }
        let asked = record.cancel_reason.or(replayed.cancel_asked);
        if asked.is_some() {
            let status = conclude::end_status(asked);
            let cause = "its worker did not answer";
            self.services.closer().conclude_run(run, &mut replayed.to_outcome(status, cause), record.phase_timings)?;
            self.record_end(run, &replayed, status, cause)?;
            return recovered(status, cause);
        }
        let snapshot = self.services.launcher().can_resume(&record);
        if attempt < MAX_ATTEMPTS && snapshot {
            let cause = match turn {
                Some(_) => format!("worker died in {place}, attempt {attempt} of {MAX_ATTEMPTS}"),
                None => format!("worker died in {place} of {MAX_ATTEMPTS}"),
            };
            let text = format!("{cause}; resumed");
            self.services.store.open_journal(run)?.append(self.services.ambient.now(), RunEvent::Note { text })?;
            self.services.store.with_lock_as(|locked| {
                locked.update_run(run, self.services.ambient.now(), |record| record.status = RunStatus::Pending)
            })?;
            return recovered(RunStatus::Pending, &cause);
        }
        let reason = match snapshot {
            true => format!("worker died in {place}"),
            false => format!("worker died in {place} and the snapshot is gone"),
        };
        let mut outcome = replayed.to_outcome(RunStatus::Lost, &reason);
        outcome.failure = Some((ErrorClass::WorkerDied, reason.clone()));
        self.services.closer().conclude_run(run, &mut outcome, record.phase_timings)?;
        self.record_end(run, &replayed, RunStatus::Lost, &reason)?;
        recovered(RunStatus::Lost, &reason)
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
            let note = RunEvent::Note { text: cause.to_owned() };
            self.services
                .store
                .open_journal(run)?
                .append_all(self.services.ambient.now(), &[note, RunEvent::Finished { status }])?;
        }
        Ok(())
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
