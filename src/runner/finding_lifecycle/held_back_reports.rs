//! Collects the reports that a review has held back. A place with such a report is not a place about which the review is silent.

use std::collections::{BTreeSet, HashSet};

use crate::domain::{FindingId, HeldBackPlace, RunOutput, RunRecord, SuppressedReport, SuppressionReason};
use crate::runner::{FindingLifecycle, Services};
use crate::store::StoreError;

/// Reports that a run and, if it is that of a panel, its members have held back.
#[derive(Debug, Default)]
pub(in crate::runner) struct HeldBackReports {
    /// Reports of this machine.
    pub reports: Vec<SuppressedReport>,
    /// Places of reports of other machines, whose words stayed there.
    elsewhere: Vec<HeldBackPlace>,
    /// Paths of `elsewhere`.
    paths_elsewhere: HashSet<String>,
    /// True if there may be more, because a record does not say so or is damaged.
    is_incomplete: bool,
}

impl HeldBackReports {
    fn add(&mut self, run: &RunRecord, output: &RunOutput) {
        self.is_incomplete |= output.damage.is_some();
        self.reports.extend(output.held_back.iter().cloned());
        match &output.held_back_places {
            Some(places) => {
                self.paths_elsewhere.extend(places.iter().map(|place| place.path.clone()));
                self.elsewhere.extend(places.iter().cloned());
            }
            None => self.is_incomplete |= run.team.is_some(),
        }
    }

    /// Returns true if a report that is not among [`HeldBackReports::reports`] may be about code of this file.
    pub(super) fn may_hide(&self, path: &str) -> bool {
        self.is_incomplete || self.paths_elsewhere.contains(path)
    }

    /// Returns true if there is no report that [`HeldBackReports::reports`] lacks.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_incomplete && self.elsewhere.is_empty()
    }

    /// Returns the findings that were reported, and held back because they were dismissed then or on another machine.
    pub(super) fn dismissed_ids(&self) -> BTreeSet<&FindingId> {
        let dismissed = self.reports.iter().filter(|held| held.because == SuppressionReason::Dismissed);
        let own = dismissed.map(|held| &held.finding.finding_id);
        own.chain(self.elsewhere.iter().map(|place| &place.finding_id)).collect()
    }

    /// Returns the places of all reports; `None` if there may be more.
    pub(in crate::runner) fn into_places(self) -> Option<Vec<HeldBackPlace>> {
        let own = self
            .reports
            .into_iter()
            .map(|held| HeldBackPlace { finding_id: held.finding.finding_id, path: held.finding.repo_relative_path });
        (!self.is_incomplete).then(|| own.chain(self.elsewhere).collect())
    }
}

impl FindingLifecycle<'_> {
    /// Returns the findings that members of a panel have reported, and held back because they were dismissed then or on another
    /// machine: the list of the panel lacks them.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn list_dismissed_by_members(&self, panel: &RunRecord) -> Result<Vec<FindingId>, StoreError> {
        let mut held_back = HeldBackReports::default();
        self.services.add_held_back_of_members(panel, &mut held_back)?;
        Ok(held_back.dismissed_ids().into_iter().cloned().collect())
    }
}

impl Services {
    /// Returns the reports that a run with this output has held back.
    pub(in crate::runner) fn list_held_back(
        &self,
        run: &RunRecord,
        output: &RunOutput,
    ) -> Result<HeldBackReports, StoreError> {
        let mut held_back = HeldBackReports::default();
        held_back.add(run, output);
        self.add_held_back_of_members(run, &mut held_back)?;
        Ok(held_back)
    }

    fn add_held_back_of_members(&self, run: &RunRecord, held_back: &mut HeldBackReports) -> Result<(), StoreError> {
        for member in run.links.panel.iter().flat_map(|panel| &panel.members) {
            // Another machine may have reviewed the same as the member.
            let run = self.store.run(&member.run_id)?.map(|run| self.answering_run(run)).transpose()?;
            let output = run.as_ref().map(|run| self.store.output(&run.run_id)).transpose()?.flatten();
            match run.zip(output) {
                Some((run, output)) => held_back.add(&run, &output),
                None => held_back.is_incomplete = true,
            }
        }
        Ok(())
    }

    /// Returns true if a run is one of another machine that may have held reports back there: it is not silent then.
    pub(super) fn may_hold_back_elsewhere(&self, run: &RunRecord) -> bool {
        let is_whole =
            |output: RunOutput| self.list_held_back(run, &output).is_ok_and(|held_back| held_back.is_whole());
        run.team.is_some() && !self.store.output(&run.run_id).ok().flatten().is_some_and(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MachineName, RunOrigin, TeamPerson};
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_record_that_does_not_say_what_it_holds_back_may_hide_a_report_everywhere() {
        let fixture = RunnerFixture::new();
        let mut run = fixture.record(&fixture.record_working_run(|_| ()));
        let place = |path: &str| HeldBackPlace {
            finding_id: FindingId::from_parts("CORRECTNESS", path, "x", 0),
            path: path.to_owned(),
        };
        let machine: MachineName = "ada-1".parse().expect("a name");
        let ada = RunOrigin { machine, person: TeamPerson::default() };
        for (team, places, hides) in [
            (None, None, [false, false]),
            (Some(ada.clone()), None, [true, true]),
            (Some(ada.clone()), Some(vec![]), [false, false]),
            (Some(ada), Some(vec![place("a.py")]), [true, false]),
        ] {
            run.team = team;
            let output = RunOutput { held_back_places: places.clone(), ..RunOutput::new(run.clone()) };
            let held_back = fixture.services.list_held_back(&run, &output).expect("readable");
            assert_eq!(["a.py", "b.py"].map(|path| held_back.may_hide(path)), hides, "{places:?}");
            assert_eq!(held_back.is_whole(), hides == [false, false], "{places:?}");
        }
    }
}
