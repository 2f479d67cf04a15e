//! Finds the run of a panel that a request completes. `max_cost` of the panel holds for both together.
//!
//! - A request for a panel is answered by an earlier run if that is whole. So the newest run of the same panel about the
//!   same change, if there is one, is incomplete, and the request completes it: what its members have finished is reused.
//! - What that run has spent counts, with the runs that it completed itself: members, their fallbacks, the judge and the
//!   escalation.
//! - A forced request begins anew, and so does one for a panel with other members, models or prompts: it is another
//!   question.

use std::collections::BTreeSet;

use crate::domain::RunId;
use crate::policy::LaunchRequest;
use crate::runner::{Launcher, RunnerError, known_runs};
use crate::store::StoreView;

/// Run of a panel that a request completes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ContinuedPanel {
    pub run: RunId,
    /// Cost of the run and of those that it completed, in US dollars.
    pub spent: f64,
}

impl Launcher<'_> {
    /// Returns the run that a request for a panel completes; `None` for a request that begins anew.
    pub(super) fn find_continued_panel(
        &self,
        view: &StoreView,
        request: &LaunchRequest,
    ) -> Result<Option<ContinuedPanel>, RunnerError> {
        if request.force {
            return Ok(None);
        }
        let same = known_runs::run_rows(view).filter(|row| {
            row.reviewer == request.reviewer
                && row.scope_hash == request.scope_hash
                && row.diff_fingerprint == request.diff_fingerprint
                && row.policy_version == request.prompt_policy_version
                && row.status.is_terminal()
        });
        // Other machines may have sent any number of runs of such a panel, without its members: the file is read once.
        let same: BTreeSet<&str> = same.map(|row| row.id).collect();
        let records = self.services.store.latest_records_of(&same)?;
        let Some((record, panel)) =
            records.values().rev().find_map(|record| Some((record, record.links.panel.as_ref()?)))
        else {
            return Ok(None);
        };
        let run = record.run_id.clone();
        let spent = panel.spent_before + self.services.spent_by_members(panel, &run)? + record.usage.cost;
        Ok(Some(ContinuedPanel { run, spent }))
    }
}
