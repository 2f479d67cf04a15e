//! Finds out which second opinions the run of a panel lacks, and why, for the policy.

use crate::domain::{BudgetKind, RunEvent, RunId};
use crate::policy::{self, Decision, MissingOpinions, OpinionStop, PresentLimit, ReviewAction};
use crate::runner::{Launcher, ReviewDemand, ReviewRequest, RunnerError};

/// Returns the run whose list answers a request for a panel. `None` if no list does, and for who asks for no new review.
pub(super) fn find_reused_list(request: &ReviewRequest, decision: &Decision) -> Option<RunId> {
    match &decision.action {
        ReviewAction::Reuse { run } if request.demand != ReviewDemand::OnlyExisting => Some(run.clone()),
        _ => None,
    }
}

impl Launcher<'_> {
    /// Finds out which second opinions a run of a panel lacks. `max_cost` is the limit of the panel now, in US dollars. Reads
    /// the journals of the run and of those that it completes, so the caller does not hold the store's lock. The journals of
    /// other machines are not here: nothing is known to be missing in their runs.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(super) fn find_missing_opinions(
        &self,
        run: &RunId,
        max_cost: Option<f64>,
    ) -> Result<MissingOpinions, RunnerError> {
        let store = &self.services.store;
        let mut missing = MissingOpinions::default();
        let mut next = Some(run.clone());
        while let Some(id) = next.take() {
            let entries = store.read_journal(&id).unwrap_or_default();
            if id == *run {
                for entry in &entries {
                    if let RunEvent::BudgetReached { stop } = &entry.event {
                        let present = self.find_present_limit(stop.kind, max_cost)?;
                        missing.stops.push(OpinionStop { stop: *stop, present });
                    }
                }
            }
            if !entries.iter().any(|entry| matches!(entry.event, RunEvent::Unanswered { .. })) {
                break;
            }
            missing.failed_runs += 1;
            if missing.failed_runs < policy::MAX_ATTEMPTS {
                next = store.run(&id)?.and_then(|record| record.links.panel?.continues);
            }
        }
        Ok(missing)
    }

    /// Returns a limit of second opinions as it is now.
    fn find_present_limit(&self, kind: BudgetKind, max_cost: Option<f64>) -> Result<PresentLimit, RunnerError> {
        let budget = &self.services.settings.budget;
        let limit = match kind {
            BudgetKind::RunCost => budget.run_cost.map(|cost| cost.as_f64()),
            BudgetKind::RunTokens => budget.run_tokens.map(|tokens| tokens as f64),
            BudgetKind::PanelCost => max_cost,
            BudgetKind::DayCost | BudgetKind::DayTokens => {
                return Ok(match self.services.reviewers().check_daily_budget()? {
                    Some(_) => PresentLimit::UsedUp,
                    None => PresentLimit::Open,
                });
            }
            // No second opinion stops at them.
            BudgetKind::Turns | BudgetKind::TeamCost | BudgetKind::TeamTokens => return Ok(PresentLimit::UsedUp),
        };
        Ok(limit.map_or(PresentLimit::Open, PresentLimit::AtMost))
    }
}
