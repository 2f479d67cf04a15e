//! Requests that no new review answers are evidence, too: code that is back is back, and files that are gone are gone.

use std::collections::HashSet;

use super::Settling;
use crate::domain::{Coverage, FindingCounts, LeftOutReason, RunStatus};
use crate::git::Snapshot;
use crate::policy::{self, Action, Extent, Present, Seen};
use crate::review::Outcome;
use crate::runner::{Requested, Runner, RunnerError};

impl Runner {
    /// What the answer to a request says about findings; it is not worth failing the request.
    pub(in crate::runner) fn settle_answer(&self, requested: &Requested, snapshot: &Snapshot) {
        let settled = match requested.decision.action {
            Action::Reuse { .. } => self.reported_then(requested, snapshot),
            Action::Skip => self.deleted_only(requested, snapshot),
            Action::Launch | Action::Adopt { .. } | Action::Resume { .. } => Ok(()),
        };
        if let Err(error) = settled {
            tracing::warn!(run = %requested.run.run_id, %error, "the findings of a request are not settled");
        }
    }

    /// The code is what an earlier run reviewed: what it reported is there again, whatever a review of other code saw in
    /// between. What somebody claimed since then nobody has looked at.
    fn reported_then(&self, requested: &Requested, snapshot: &Snapshot) -> Result<(), RunnerError> {
        let run = &requested.run;
        let scope = snapshot.scope.to_string();
        let sight = policy::Sight {
            scope: &scope,
            branch: &snapshot.branch,
            worktree: &run.worktree,
            head: &snapshot.head_commit,
            snapshot: &snapshot.snapshot_commit,
        };
        let Some(output) = self.store.output(&run.run_id)?.filter(|_| sight.layer() > policy::Layer::Past) else {
            return Ok(());
        };
        let about: HashSet<&str> = super::ids(&output.findings).collect();
        let said = self.store.last_said(&about)?;
        let mut dispositions = Vec::new();
        for finding in &output.findings {
            let present = Present::of(said.about(&finding.finding_id).map(|(_, last)| last));
            if matches!(present, Present::Confirmed | Present::Obsolete) {
                dispositions.extend(super::judge(self, run, &finding.finding_id, present, Seen::Raised, &said));
            }
        }
        self.store_of_run(run).append_unless_said(dispositions, &said)?;
        Ok(())
    }

    /// There is nothing to review in a change that takes files away and does nothing else.
    fn deleted_only(&self, requested: &Requested, snapshot: &Snapshot) -> Result<(), RunnerError> {
        let left_out = &snapshot.change.left_out;
        let run = &requested.run;
        let deletes = left_out.iter().any(|file| file.reason == LeftOutReason::Deleted);
        if !deletes || run.snapshot_commit != snapshot.snapshot_commit {
            return Ok(());
        }
        let mut nothing = Outcome {
            status: RunStatus::Completed,
            findings: Vec::new(),
            counts: FindingCounts::default(),
            coverage: Coverage { left_out: left_out.clone(), ..Coverage::default() },
            summary: String::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            failure: None,
            cancel: None,
            spent: Default::default(),
        };
        Settling::new(self, run, RunStatus::Completed, Extent::Whole)?.settle(&mut nothing)?;
        Ok(())
    }
}
