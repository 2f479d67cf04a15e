//! Reads findings as runs reported them, each run at most once.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{Finding, FindingId, RunId};
use crate::store::{Store, StoreView};

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

    /// Returns a wanted finding as a run reported it, without later changes; `None` also if the run cannot be read.
    pub fn find_in_run(&mut self, run: &RunId, id: &FindingId) -> Option<&Finding> {
        if !self.by_run.contains_key(run) {
            let mut reported: HashMap<FindingId, Finding> = HashMap::new();
            for finding in self.store.findings_in_run(run, &self.wanted).unwrap_or_default() {
                reported.entry(finding.finding_id.clone()).or_insert(finding);
            }
            self.by_run.insert(run.clone(), reported);
        }
        self.by_run.get(run)?.get(id)
    }

    /// Returns a wanted finding as its last run reported it, without later changes; `None` also if the view lacks it.
    pub fn find_last(&mut self, view: &StoreView, id: &FindingId) -> Option<&Finding> {
        let row = view.finding(view.finding_index(id.as_str())?);
        let last: RunId = row.last_run.parse().ok()?;
        self.find_in_run(&last, id)
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
        assert_eq!(reader.find_in_run(&run, &one).map(|found| &found.finding_id), Some(&one));
        // Only the first question reads the store.
        std::fs::remove_dir_all(fixture.folder.path().join("home")).expect("removed");
        assert_eq!(reader.find_in_run(&run, &two).map(|found| &found.finding_id), Some(&two));
        assert_eq!(reader.find_in_run(&run, &unwanted), None);
        let unread = fixture.services.ambient.new_run_id();
        assert_eq!(reader.find_in_run(&unread, &one), None, "a run that cannot be read reports nothing");
    }
}
