//! Finds the places that a run must review because a finding there needs a verdict.

use std::collections::HashSet;

use super::FindingSettlement;
use crate::domain::{FindingId, FindingStatus, LineRange, RunRecord, RunStatus};
use crate::policy::anchor::AnchorLocation;
use crate::policy::{FindingState, ReviewExtent};
use crate::runner::{FindingLifecycle, RunnerError};

impl FindingLifecycle<'_> {
    /// Returns the places of findings of the run's reviewer in these files whose code has changed since the report,
    /// while nobody has decided about them: id, path and lines in the run's snapshot.
    pub(in crate::runner) fn find_places_to_judge(
        &self,
        run: &RunRecord,
        paths: &HashSet<&str>,
    ) -> Result<Vec<(FindingId, String, LineRange)>, RunnerError> {
        let settling = FindingSettlement::new(self.services, run, RunStatus::Completed, ReviewExtent::Whole)?;
        let Some(mut ground) = settling.open_snapshot_files() else { return Ok(Vec::new()) };
        let settled = |status| matches!(status, FindingStatus::Obsolete | FindingStatus::Dismissed);
        let candidates = settling.find_related(|row, _| paths.contains(row.path) && !settled(row.status));
        let about: HashSet<&str> = candidates.iter().map(|candidate| settling.candidate_id(candidate)).collect();
        let said = self.services.store.latest_dispositions(&about)?;
        let mut reports = settling.read_reports(&candidates);
        let known =
            candidates.iter().filter_map(|candidate| settling.look_up(candidate, &said, &mut ground, &mut reports));
        let places = known.filter_map(|known| match known.stand {
            AnchorLocation::Changed { path, lines }
                if known.reviewers.contains(&run.reviewed_by.name) && known.present != FindingState::Dismissed =>
            {
                Some((known.id, path, lines))
            }
            _ => None,
        });
        Ok(places.collect())
    }
}
