//! Finds the findings of uncommitted code of other machines, which count nowhere. [`policy::is_uncommitted_elsewhere`] is the rule.

use crate::policy;
use crate::store::StoreView;

/// Reviews of uncommitted code of other machines.
#[derive(Debug, Default)]
pub struct UncommittedElsewhere {
    /// For each run of the view, whether it is such a review; empty if none is.
    runs: Vec<bool>,
}

impl UncommittedElsewhere {
    /// Looks for these reviews among the runs of a view.
    pub fn read(view: &StoreView) -> Self {
        let is_elsewhere = |index: usize| {
            // Nearly all runs have a worktree, so their rows are not read.
            view.run_worktree(index).is_empty() && {
                let row = view.run(index);
                // The review of a fix belongs to no worktree either.
                !row.is_fix_review() && policy::is_uncommitted_elsewhere(row.scope, row.worktree)
            }
        };
        let runs: Vec<bool> = (0..view.run_count()).map(is_elsewhere).collect();
        Self { runs: if runs.contains(&true) { runs } else { Vec::new() } }
    }

    /// Returns true for such a run, given by its index in the view.
    pub fn has_run(&self, index: usize) -> bool {
        self.runs.get(index).copied().unwrap_or(false)
    }

    /// Returns true for a finding that such a run has reported last, given by its index in the view.
    pub fn has_finding(&self, view: &StoreView, index: usize) -> bool {
        !self.runs.is_empty() && view.last_reporting_run(index).is_some_and(|run| self.has_run(run))
    }
}
