//! Reads findings as runs reported them, each run at most once.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{Finding, FindingId, RunId};
use crate::store::{Store, StoreError, StoreView};

/// Reader of some findings in the results of runs. A run is read at the first question about it, and kept.
pub(super) struct ReportReader<'a> {
    store: &'a Store,
    /// Ids of the findings that are kept.
    wanted: BTreeSet<String>,
    by_run: HashMap<RunId, HashMap<FindingId, Finding>>,
}

impl<'a> ReportReader<'a> {
    /// Creates a reader of the findings with these ids.
    pub fn new(store: &'a Store, wanted: BTreeSet<String>) -> Self {
        Self { store, wanted, by_run: HashMap::new() }
    }

    /// Returns a wanted finding as a run reported it, without later changes.
    ///
    /// # Errors
    ///
    /// If the run cannot be read.
    pub fn find_in_run(&mut self, run: &RunId, id: &FindingId) -> Result<Option<&Finding>, StoreError> {
        if !self.by_run.contains_key(run) {
            let mut reported: HashMap<FindingId, Finding> = HashMap::new();
            for finding in self.store.findings_in_run(run, &self.wanted)? {
                reported.entry(finding.finding_id.clone()).or_insert(finding);
            }
            self.by_run.insert(run.clone(), reported);
        }
        Ok(self.by_run.get(run).and_then(|reported| reported.get(id)))
    }

    /// Returns a wanted finding as its last run reported it, without later changes; `None` also if the view lacks it.
    ///
    /// # Errors
    ///
    /// If the run cannot be read.
    pub fn find_last(&mut self, view: &StoreView, id: &FindingId) -> Result<Option<&Finding>, StoreError> {
        let last = view.finding_index(id.as_str()).map(|index| view.finding(index).last_run.parse::<RunId>());
        match last {
            Some(Ok(last)) => self.find_in_run(&last, id),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_run_is_read_once_for_all_of_its_findings() {
        let fixture = RunnerFixture::new();
        let store = &fixture.services.store;
        let [one, two, unwanted] = ["one", "two", "unwanted"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let run = fixture.write_list(&[(&one, &[&one]), (&two, &[&two]), (&unwanted, &[&unwanted])]);
        let mut reader = ReportReader::new(store, BTreeSet::from([one.to_string(), two.to_string()]));
        let mut find = |id: &FindingId| {
            let found = reader.find_in_run(&run, id).expect("readable");
            found.map(|found| found.finding_id.clone())
        };
        assert_eq!(find(&one), Some(one));
        // Only the first question reads the store.
        std::fs::remove_dir_all(fixture.folder.path().join("home")).expect("removed");
        assert_eq!(find(&two), Some(two));
        assert_eq!(find(&unwanted), None);
    }
}
