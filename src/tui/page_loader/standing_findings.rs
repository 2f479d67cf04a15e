//! Finds the findings of other runs that stand in a snapshot: those of other reviewers, of imports and of the user.

use std::collections::{HashMap, HashSet};

use super::PageLoader;
use crate::domain::Finding;
use crate::runner::{LocatedFinding, OWN_REVIEWER, locate_findings};
use crate::store::{FindingRow, StoreView};

/// Most other runs whose findings are located in a snapshot; each costs a comparison of two trees.
const MAX_RUNS: usize = 100;

/// Findings that were located in a snapshot, by id and the run that reported them last; `None` for one whose code is not
/// there. Kept for one snapshot: the page is read again with each decision.
#[derive(Debug, Default)]
pub struct StandingFindings {
    commit: String,
    located: HashMap<(String, String), Option<Finding>>,
}

impl PageLoader {
    /// Returns the findings that runs other than `run` reported and whose code is in the snapshot `commit` of `run`, with
    /// their lines there. Decided ones are among them only if a reviewer reported them in this very snapshot.
    pub(in crate::tui) fn find_standing_findings(
        &mut self,
        view: &StoreView,
        (run, commit): (&str, &str),
        is_wanted: impl Fn(&FindingRow<'_>) -> bool,
    ) -> Vec<Finding> {
        let Some(repo) = self.repo.as_ref().filter(|_| !commit.is_empty()) else { return Vec::new() };
        if self.standing.commit != commit {
            self.standing = StandingFindings { commit: commit.to_owned(), located: HashMap::new() };
        }
        let is_chosen = |row: &FindingRow<'_>| {
            // A comment that its author has withdrawn is gone.
            let is_of_this_snapshot = || {
                let reported = view.run_index(row.last_run).map(|at| view.run(at));
                reported.is_some_and(|run| run.snapshot_commit == commit && run.reviewer != OWN_REVIEWER)
            };
            row.last_run != run && is_wanted(row) && (row.status.is_undecided() || is_of_this_snapshot())
        };
        let mut chosen: Vec<usize> =
            (0..view.finding_count()).filter(|index| is_chosen(&view.finding(*index))).collect();
        // What the user has written comes first; then the newest runs, as the view is sorted.
        let reviewer = |index: usize| view.run_index(view.finding(index).last_run).map(|at| view.run(at).reviewer);
        chosen.sort_by_key(|index| reviewer(*index) != Some(OWN_REVIEWER));
        let mut runs: HashSet<&str> = HashSet::new();
        chosen.retain(|index| {
            let run = view.finding(*index).last_run;
            runs.contains(run) || (runs.len() < MAX_RUNS && runs.insert(run))
        });
        let key = |index: usize| {
            let row = view.finding(index);
            (row.id.to_owned(), row.last_run.to_owned())
        };
        let unknown: Vec<usize> =
            chosen.iter().copied().filter(|index| !self.standing.located.contains_key(&key(*index))).collect();
        let found = locate_findings(repo, &self.store, view, &unknown, commit).unwrap_or_default();
        let mut by_id: HashMap<String, Finding> = HashMap::new();
        for located in found {
            if let LocatedFinding::Stands(finding) = located {
                by_id.insert(finding.finding_id.to_string(), *finding);
            }
        }
        for index in unknown {
            let key = key(index);
            let finding = by_id.remove(&key.0);
            self.standing.located.insert(key, finding);
        }
        chosen
            .into_iter()
            .filter_map(|index| {
                let mut finding = self.standing.located.get(&key(index))?.clone()?;
                finding.status = view.finding(index).status;
                view.rate_finding(&mut finding);
                Some(finding)
            })
            .collect()
    }
}
