//! Reviews as a panel: merges what its members found.

use crate::domain::{Finding, JournalEntry, Panel, RunEvent, RunStatus};
use crate::review::{self, ReviewOutcome};
use crate::runner::RunnerError;
use crate::runner::worker::RunWorker;

impl RunWorker<'_> {
    /// Merges what the members of a panel found, and asks for second opinions. The members have ended.
    pub(super) fn review_panel(
        &mut self,
        panel: &Panel,
        entries: &[JournalEntry],
    ) -> Result<ReviewOutcome, RunnerError> {
        let now = self.now();
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            record.status = RunStatus::Reviewing;
        })?;
        if let Some(reason) = self.claim_review(None)? {
            return Ok(self.cancelled_outcome(reason, entries));
        }
        if let Some(reason) = self.take_answer_to_members(panel)? {
            return Ok(self.cancelled_outcome(reason, entries));
        }
        let mut outcome = self.services.merge_members(&self.record, panel)?;
        self.failure.clone_from(&outcome.failure);
        // An earlier attempt has merged the same.
        let is_recorded = entries.iter().any(|entry| matches!(entry.event, RunEvent::Planned { .. }));
        if !is_recorded {
            let coverage = &outcome.coverage;
            self.buffer.push(RunEvent::Phase { status: RunStatus::Reviewing });
            let (files, hunks) = (coverage.files_total, coverage.hunks_total);
            self.buffer.push(RunEvent::Planned { files, hunks, left_out: coverage.left_out.clone() });
            let findings = outcome.findings.iter().map(|finding| Box::new(finding.clone()));
            self.buffer.extend(findings.map(|finding| RunEvent::Finding { finding }));
            self.buffer.extend(coverage.files.iter().map(|file| RunEvent::Covered { file: file.clone() }));
            let carried = coverage.carried.iter().cloned().map(Box::new);
            self.buffer.extend(carried.map(|carried| RunEvent::Carried { carried }));
            self.buffer.extend(outcome.notes.iter().map(|text| RunEvent::Note { text: text.clone() }));
            self.flush()?;
        }
        let merged = outcome.findings.clone();
        self.ask_for_opinions(panel, &mut outcome, entries)?;
        let changed = outcome.findings.iter().zip(&merged).filter(|(after, before)| after != before);
        let changed: Vec<Box<Finding>> = changed.map(|(after, _)| Box::new(after.clone())).collect();
        let turn = outcome.spent.turns;
        self.buffer.extend(changed.into_iter().map(|finding| RunEvent::Restated { turn, finding }));
        self.flush()?;
        review::sort_by_urgency(&mut outcome.findings);
        review::summarize_panel(&mut outcome);
        Ok(outcome)
    }
}
