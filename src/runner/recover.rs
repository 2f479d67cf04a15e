//! Runs whose worker is gone: completed, ended as asked, resumed or lost; never forgotten, and no finding with them.

use super::{Recovered, Runner, RunnerError, known, settle};
use crate::domain::{ErrorClass, RunEvent, RunId, RunOutput, RunRecord, RunStatus, text};
use crate::policy::MAX_ATTEMPTS;
use crate::review::Replayed;

impl Runner {
    /// Settles runs whose record says in flight while nobody holds their lock: completed from their output, ended as
    /// was asked, resumed (at most 3 attempts) or lost. Then starts what is pending, whoever left it so. A run that cannot
    /// be settled is named with the reason, and tried again the next time.
    pub fn recover(&self) -> Result<Vec<Recovered>, RunnerError> {
        if let Err(error) = self.reconcile_fixes() {
            tracing::warn!(%error, "fixes whose worker is gone cannot be settled");
        }
        let view = self.store.runs_view()?;
        let mut recovered = Vec::new();
        for row in known::rows(&view).filter(|row| row.status.is_working()) {
            let Ok(id) = row.id.parse() else { continue };
            match self.recover_one(&id) {
                Ok(what) => recovered.extend(what),
                // One run that cannot be settled must not keep anybody from the others.
                Err(error) => {
                    tracing::warn!(run = %id, %error, "a run whose worker is gone cannot be settled");
                    let text = format!("cannot be settled: {error}");
                    recovered.push(Recovered { run_id: id, resumed: false, text });
                }
            }
        }
        let started = match recovered.is_empty() {
            true => self.start_next(&view, None, &[]),
            false => self.start_pending(),
        };
        if let Err(error) = started {
            tracing::warn!(%error, "no worker was started");
        }
        Ok(recovered)
    }

    /// Settles one run; `None` when it needs none, or when somebody else is at it.
    pub(super) fn recover_one(&self, run: &RunId) -> Result<Option<Recovered>, RunnerError> {
        if self.store.is_live(run)? {
            return Ok(None);
        }
        let Some(_lock) = self.store.lock_run(run)? else { return Ok(None) };
        // Only now is it certain that nobody changes it under us.
        let Some(record) = self.store.run(run)? else { return Ok(None) };
        if !record.status.is_working() {
            return Ok(None);
        }
        let entries = self.store.read_journal(run)?;
        let replayed = Replayed::of(entries.iter().map(|entry| &entry.event));
        let kept = format!("{} kept", text::count(replayed.finding_count(), "finding"));
        let attempt = record.attempt;
        let recovered = |resumed, text| Ok(Some(Recovered { run_id: run.clone(), resumed, text }));

        if let Some(output) = self.written_output(run) {
            let settled = self.close(run, |record| {
                let RunRecord { status, phase_timings, coverage, finding_counts, finding_digests, summary, .. } =
                    output.run;
                (record.status, record.phase_timings) = (status, phase_timings);
                (record.coverage, record.finding_counts) = (coverage, finding_counts);
                (record.finding_digests, record.summary) = (finding_digests, summary);
                (record.error_class, record.error_summary) = (output.run.error_class, output.run.error_summary);
                record.cancel_reason = record.cancel_reason.or(output.run.cancel_reason);
            })?;
            self.note_the_end(run, &replayed, settled.status)?;
            let text = format!("{}: worker died after it had written its result, {kept}", settled.status);
            return recovered(false, text);
        }
        if record.cancel_reason.or(replayed.cancel_asked).is_some() {
            let status = settle::ended_as(&RunRecord {
                cancel_reason: record.cancel_reason.or(replayed.cancel_asked),
                ..record.clone()
            });
            let outcome = replayed.outcome(status, "its worker did not answer");
            self.conclude(run, outcome, record.phase_timings)?;
            self.note_the_end(run, &replayed, status)?;
            return recovered(false, format!("{status}: its worker did not answer, {kept}"));
        }
        let snapshot = self.can_go_on(&record);
        if attempt < MAX_ATTEMPTS && snapshot {
            self.store.locked_as(|locked| {
                locked.update_run(run, self.ambient.now(), |record| record.status = RunStatus::Pending)
            })?;
            return recovered(true, format!("resumed: worker died in attempt {attempt} of {MAX_ATTEMPTS}, {kept}"));
        }
        let reason = match snapshot {
            true => format!("worker died in attempt {attempt}"),
            false => format!("worker died in attempt {attempt} and the snapshot is gone"),
        };
        let mut outcome = replayed.outcome(RunStatus::Lost, &reason);
        outcome.failure = Some((ErrorClass::WorkerDied, reason.clone()));
        self.conclude(run, outcome, record.phase_timings)?;
        self.note_the_end(run, &replayed, RunStatus::Lost)?;
        recovered(false, format!("lost: {reason}, {kept}"))
    }

    /// The output, when its worker came as far as writing it.
    fn written_output(&self, run: &RunId) -> Option<RunOutput> {
        let path = self.store.root().join("outputs").join(format!("{run}.json"));
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// The last line of the journal, if its worker did not write it.
    fn note_the_end(&self, run: &RunId, replayed: &Replayed, status: RunStatus) -> Result<(), RunnerError> {
        if replayed.finished.is_none() {
            self.store.journal(run)?.append(self.ambient.now(), RunEvent::Finished { status })?;
        }
        Ok(())
    }
}
