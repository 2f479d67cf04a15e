//! Completes a reported finding before it is recorded: its id, its runs, its priority.

use std::sync::Arc;

use crate::domain::{Finding, FindingId, RunId, Source};
use crate::runner::worker::RunWorker;
use crate::runner::worker::standing_code::StandingGround;
use crate::store::{StoreError, StoreView};

impl RunWorker<'_> {
    /// Lowers the priority of a finding if its reviewer is almost always wrong about its kind.
    pub(in crate::runner) fn lower_misjudged(&self, finding: &mut Finding) {
        if let Some(steered) = self.steered.iter().find(|steered| steered.kind == finding.kind) {
            steered.lower(finding, &self.record.reviewed_by.name);
        }
    }

    /// Gives a finding another id of its code if its own one belongs to another problem: one whose code stands elsewhere,
    /// or a defect of an imported report with other words, which keeps its words, its priority and its decision.
    pub(in crate::runner) fn leave_foreign_id(&mut self, finding: &mut Finding) -> Result<(), StoreError> {
        let view = Arc::clone(self.earlier_view()?);
        let services = self.services;
        let is_import =
            |run: RunId| services.store.run(&run).ok().flatten().is_some_and(|run| run.source == Source::Import);
        let is_foreign = |id: &FindingId| {
            let Some(row) = view.finding_index(id.as_str()).map(|index| view.finding(index)) else { return false };
            !finding.kind.is_smell() && row.title != finding.title && row.last_run.parse().is_ok_and(is_import)
        };
        let snapshot = &self.record.subject.snapshot_commit;
        let ground = StandingGround { repo: &services.repo, view: &view, snapshot };
        finding.finding_id = self.standing_code.choose_id(ground, finding, is_foreign);
        Ok(())
    }

    /// Returns the findings before this run.
    fn earlier_view(&mut self) -> Result<&Arc<StoreView>, StoreError> {
        Ok(match &mut self.earlier {
            Some(view) => view,
            none => none.insert(self.services.store.view()?),
        })
    }

    /// Sets the runs that reported a finding, its detail reference and its time.
    pub(in crate::runner) fn stamp(&mut self, finding: &mut Finding) -> Result<(), StoreError> {
        let view = Arc::clone(self.earlier_view()?);
        let run = &self.record.run_id;
        finding.first_run_id = view
            .finding_index(finding.finding_id.as_str())
            .and_then(|index| view.finding(index).first_run.parse().ok())
            .unwrap_or_else(|| run.clone());
        finding.last_run_id = run.clone();
        finding.detail_ref = format!("outputs/{run}.json#{}", finding.finding_id);
        finding.reported_at = self.services.ambient.now();
        Ok(())
    }
}
