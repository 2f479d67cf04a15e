//! Completes a reported finding before it is recorded: its id, its runs, its priority.

use std::sync::Arc;

use crate::domain::{Finding, FindingId, RunId, Source};
use crate::runner::RunnerError;
use crate::runner::worker::RunWorker;
use crate::runner::worker::standing_code::StandingGround;
use crate::runner::worker::visible_findings::VisibleFindings;

impl RunWorker<'_> {
    /// Lowers the priority of a finding if its reviewer is almost always wrong about its kind.
    pub(in crate::runner) fn lower_misjudged(&self, finding: &mut Finding) {
        if let Some(steered) = self.steered.iter().find(|steered| steered.kind == finding.kind) {
            steered.lower(finding, &self.record.reviewed_by.name);
        }
    }

    /// Gives a finding another id of its code if its own one belongs to another problem: one whose code stands elsewhere,
    /// or a defect of an imported report with other words, which keeps its words, its priority and its decision.
    pub(in crate::runner) fn leave_foreign_id(&mut self, finding: &mut Finding) -> Result<(), RunnerError> {
        let known = Arc::clone(self.known_findings()?);
        let services = self.services;
        let is_import =
            |run: RunId| services.store.run(&run).ok().flatten().is_some_and(|run| run.source == Source::Import);
        let is_foreign = |id: &FindingId| {
            let Some(index) = known.index(id) else { return false };
            let is_other = !finding.kind.is_smell() && known.view().finding(index).title != finding.title;
            is_other && known.last_run(index).parse().is_ok_and(is_import)
        };
        let snapshot = &self.record.subject.snapshot_commit;
        let ground = StandingGround { repo: &services.repo, known: &known, snapshot };
        finding.finding_id = self.standing_code.choose_id(ground, finding, is_foreign);
        Ok(())
    }

    /// Returns the findings that this run knows.
    fn known_findings(&mut self) -> Result<&Arc<VisibleFindings>, RunnerError> {
        Ok(match &mut self.earlier {
            Some(known) => known,
            none => none.insert(Arc::new(VisibleFindings::load(self.services, &self.record)?)),
        })
    }

    /// Sets the runs that reported a finding, its detail reference and its time.
    pub(in crate::runner) fn stamp(&mut self, finding: &mut Finding) -> Result<(), RunnerError> {
        let known = Arc::clone(self.known_findings()?);
        let run = &self.record.run_id;
        finding.first_run_id = known
            .index(&finding.finding_id)
            .and_then(|index| known.view().finding(index).first_run.parse().ok())
            .unwrap_or_else(|| run.clone());
        finding.last_run_id = run.clone();
        finding.detail_ref = format!("outputs/{run}.json#{}", finding.finding_id);
        finding.reported_at = self.services.ambient.now();
        Ok(())
    }
}
