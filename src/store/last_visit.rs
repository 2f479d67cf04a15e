//! Remembers when the user last left the cockpit, so that it can mark what is new. Nothing else depends on the file: it
//! may be missing or damaged, and deleting it is harmless.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, StoreView};
use crate::domain::Time;

/// Moment at which the user last left the cockpit, and what was unfinished then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastVisit {
    /// Time of the visit's end.
    pub left_at: Time,
    /// Findings known then of each run that had not ended, by run id.
    #[serde(default)]
    pub unfinished: BTreeMap<String, Vec<String>>,
}

impl LastVisit {
    /// Describes a visit that ends at `now` with the state of `view`.
    pub fn ending(now: Time, view: &StoreView) -> Self {
        let mut unfinished: BTreeMap<String, Vec<String>> = (0..view.run_count())
            .map(|index| view.run(index))
            .filter(|run| !run.status.is_terminal())
            .map(|run| (run.id.to_owned(), Vec::new()))
            .collect();
        if !unfinished.is_empty() {
            for finding in (0..view.finding_count()).map(|index| view.finding(index)) {
                if let Some(known) = unfinished.get_mut(finding.first_run) {
                    known.push(finding.id.to_owned());
                }
            }
        }
        Self { left_at: now, unfinished }
    }

    /// Returns true if a finding was first reported after the visit. `first_run` is the run that reported it, requested
    /// `created_ms` after 1970.
    pub fn is_later(&self, finding: &str, first_run: &str, created_ms: i64) -> bool {
        created_ms > self.left_at.as_millisecond()
            || self.unfinished.get(first_run).is_some_and(|known| known.iter().all(|id| id != finding))
    }
}

impl Store {
    fn last_visit_path(&self) -> PathBuf {
        self.root().join("cockpit.json")
    }

    /// Reads the last visit; `None` before the first one, and when the file cannot be used.
    pub fn last_visit(&self) -> Option<LastVisit> {
        let json = files::read(&self.last_visit_path()).ok()??;
        serde_json::from_slice(&json).ok()
    }

    /// Records the end of a visit.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn record_visit(&self, visit: &LastVisit) -> Result<(), StoreError> {
        let path = self.last_visit_path();
        files::write_beside(&path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
            serde_json::to_writer(file, visit).map_err(Into::into)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreViewBuilder;

    #[test]
    fn findings_of_later_runs_and_later_findings_of_unfinished_runs_are_later() {
        let visit = LastVisit {
            left_at: Time::from_millisecond(1_000).expect("a time"),
            unfinished: BTreeMap::from([("ar_1".to_owned(), vec!["f_1".to_owned()])]),
        };
        for (finding, run, created, expected) in [
            ("f_1", "ar_1", 500, false),
            ("f_2", "ar_1", 500, true),
            ("f_3", "ar_0", 400, false),
            ("f_3", "ar_0", 1_000, false),
            ("f_4", "ar_2", 1_001, true),
        ] {
            assert_eq!(visit.is_later(finding, run, created), expected, "{finding} of {run} at {created}");
        }
    }

    #[test]
    fn an_empty_store_leaves_nothing_unfinished() {
        let now = Time::from_millisecond(5).expect("a time");
        let visit = LastVisit::ending(now, &StoreViewBuilder::default().build());
        assert_eq!(visit, LastVisit { left_at: now, unfinished: BTreeMap::new() });
        let json = serde_json::to_string(&visit).expect("JSON");
        assert_eq!(serde_json::from_str::<LastVisit>(&json).expect("a visit"), visit);
    }
}
