//! The findings that a run knows when its review begins.
//!
//! A member of a panel does not know what the other members report meanwhile. So the ids of its reports do not depend on who
//! ends first; [`crate::review::merge_panel`] tells the problems apart when all have ended.

use std::collections::HashSet;
use std::sync::Arc;

use crate::domain::{FindingId, RunRecord};
use crate::runner::known_runs::MAX_SEARCHED_RUNS;
use crate::runner::{RunnerError, Services};
use crate::store::StoreView;

/// The findings that a run knows.
pub(in crate::runner) struct VisibleFindings {
    view: Arc<StoreView>,
    /// Ids of the runs whose reports are not known.
    unseen: HashSet<String>,
}

impl VisibleFindings {
    /// Loads the findings that a run knows.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn load(services: &Services, run: &RunRecord) -> Result<Self, RunnerError> {
        Ok(Self { view: services.store.view()?, unseen: services.list_working_siblings(run) })
    }

    /// Returns the view that has the findings, and others.
    pub fn view(&self) -> &StoreView {
        &self.view
    }

    /// Returns the position of a finding in the view; `None` if it is not known.
    pub fn index(&self, id: &FindingId) -> Option<usize> {
        let index = self.view.finding_index(id.as_str())?;
        (!self.unseen.contains(self.view.finding(index).first_run)).then_some(index)
    }

    /// Returns the id of the last known run that reported a finding of the view.
    pub fn last_run(&self, index: usize) -> &str {
        let row = self.view.finding(index);
        if !self.unseen.contains(row.last_run) {
            return row.last_run;
        }
        let known = (0..self.view.run_count()).filter(|run| !self.unseen.contains(self.view.run_id(*run)));
        let last =
            known.take(MAX_SEARCHED_RUNS).find(|run| self.view.reported_findings(*run).any(|finding| finding == index));
        last.map_or(row.first_run, |run| self.view.run_id(run))
    }
}
