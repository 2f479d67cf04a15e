//! Finds out which second opinions the run of a panel lacks, and why, for the policy.

use std::collections::HashMap;

use crate::domain::{BudgetKind, FindingId, FindingStep, JournalEntry, RunEvent, RunId};
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
        let find_completed = |id: &RunId| -> Result<Option<RunId>, RunnerError> {
            Ok(store.run(id)?.and_then(|record| record.links.panel?.continues))
        };
        let mut missing = MissingOpinions::default();
        let mut entries = store.read_journal(run).unwrap_or_default();
        for entry in &entries {
            if let RunEvent::BudgetReached { stop } = &entry.event {
                let present = self.find_present_limit(stop.kind, max_cost)?;
                missing.stops.push(OpinionStop { stop: *stop, present });
            }
        }
        if !missing.stops.is_empty() {
            let before = find_completed(run)?.map(|before| store.read_journal(&before).unwrap_or_default());
            missing.has_new_verdicts = count_verdicts(&entries) > count_verdicts(&before.unwrap_or_default());
        }
        let mut run = run.clone();
        while entries.iter().any(|entry| matches!(entry.event, RunEvent::Unanswered { .. })) {
            missing.failed_runs += 1;
            if missing.failed_runs == policy::MAX_ATTEMPTS {
                break;
            }
            let Some(before) = find_completed(&run)? else { break };
            entries = store.read_journal(&before).unwrap_or_default();
            run = before;
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

/// Returns the number of verdicts that a run of a panel ended with, those of earlier runs that it took over included.
fn count_verdicts(entries: &[JournalEntry]) -> usize {
    // A worker that goes on after another one records them again.
    let mut verdicts: HashMap<&FindingId, usize> = HashMap::new();
    for entry in entries {
        if let RunEvent::Restated { finding, .. } = &entry.event {
            let ruled = finding.steps.iter().filter(|step| matches!(step, FindingStep::Ruled { .. }));
            verdicts.insert(&finding.finding_id, ruled.count());
        }
    }
    verdicts.into_values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BudgetStop, Finding, Opinion, Panel, Priority};
    use crate::runner::fixture::RunnerFixture;

    /// Returns the event of a finding that got a verdict.
    fn rule(number: u32) -> RunEvent {
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E";
        let value = serde_json::json!({
            "finding_id": format!("f_{number:016x}"), "first_run_id": run, "last_run_id": run, "priority": 1,
            "severity": "high", "confidence": "high", "kind": "CORRECTNESS", "title": "", "explanation": "",
            "repo_relative_path": "a.py", "line_start": 1, "line_end": 1, "quoted_code": "", "status": "open",
            "detail_ref": "", "reported_at": "2026-11-01T00:00:00Z",
        });
        let mut finding: Finding = serde_json::from_value(value).expect("a finding");
        let (from, to) = (Priority::P1, Priority::P1);
        let (by, reason) = ("dear".to_owned(), String::new());
        finding.steps.push(FindingStep::Ruled { by, opinion: Opinion::Real, reason, from, to });
        RunEvent::Restated { turn: 1, finding: Box::new(finding) }
    }

    #[test]
    fn a_run_has_new_verdicts_if_it_has_more_than_the_run_that_it_completes() {
        let fixture = RunnerFixture::new();
        let (store, ambient) = (&fixture.services.store, &fixture.services.ambient);
        let stop = BudgetStop { kind: BudgetKind::RunCost, reached: 0.9, limit: 1.0 };
        let mut continues = None;
        let mut found = Vec::new();
        for verdicts in [0_u32, 2, 2, 3] {
            let run = fixture.record_working_run(|record| {
                record.links.panel = Some(Panel { continues: continues.take(), ..Panel::default() });
            });
            // A worker that went on after another one has recorded the first verdict again.
            let mut events: Vec<RunEvent> = (0..verdicts).chain(0..verdicts.min(1)).map(rule).collect();
            events.push(RunEvent::BudgetReached { stop });
            let mut journal = store.open_journal(&run).expect("opened");
            journal.append_all(ambient.now(), &events).expect("written");
            drop(journal);
            let missing = fixture.services.launcher().find_missing_opinions(&run, None).expect("readable");
            assert_eq!((missing.stops.len(), missing.failed_runs), (1, 0));
            found.push(missing.has_new_verdicts);
            continues = Some(run);
        }
        assert_eq!(found, [false, true, false, true]);
    }
}
