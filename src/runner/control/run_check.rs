//! Checks a run that a process waits for: its worker may have died, or may never come.
//!
//! Invariants:
//! - A wait ends with a reason when nothing that this process can do lets the run go on. The run itself stays in the
//!   store, and the next process tries again.
//! - A check costs a look at the runs and their locks; it opens no working tree and reads no history.

use crate::domain::{RunId, RunRecord, RunStatus};
use crate::runner::{RecoveryOutcome, RunControl, RunnerError};

/// Maximum number of checks in a row that cannot settle or start a run. A store that cannot be written for five
/// seconds, because its disk is full for instance, stays so until somebody does something.
const MAX_STUCK_CHECKS: u32 = 10;
/// Maximum number of checks in a row that find a started worker which has not claimed its run: two minutes. A worker
/// claims its run within a second, or ends; on an overloaded machine it may take longer.
const MAX_UNCLAIMED_CHECKS: u32 = 240;

/// Result of a check of a run, and of the runs that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) enum RunCheck {
    /// It works, has ended, or waits for its turn.
    Fine,
    /// A worker was started for this run and has not claimed it yet.
    Unclaimed(RunId),
    /// A run cannot be settled or started, for this reason.
    Stuck(String),
}

/// Counts the checks in a row that found no way for a run to go on.
#[derive(Debug, Default)]
pub(in crate::runner) struct WaitPatience {
    stuck: u32,
    unclaimed: u32,
}

impl WaitPatience {
    /// Counts a check. Returns the reason if it is time to give up.
    pub(in crate::runner) fn count(&mut self, check: RunCheck) -> Option<String> {
        match check {
            RunCheck::Fine => {
                *self = Self::default();
                None
            }
            RunCheck::Unclaimed(run) => {
                (self.stuck, self.unclaimed) = (0, self.unclaimed + 1);
                let reason =
                    format!("a worker was started for {run} and has not begun; `revdeck cancel {run}` ends it");
                (self.unclaimed >= MAX_UNCLAIMED_CHECKS).then_some(reason)
            }
            RunCheck::Stuck(reason) => {
                (self.stuck, self.unclaimed) = (self.stuck + 1, 0);
                (self.stuck >= MAX_STUCK_CHECKS).then_some(reason)
            }
        }
    }
}

impl RunControl<'_> {
    /// Settles a run whose worker is gone, and starts a pending run that nobody starts. Does the same for the runs that
    /// it waits for.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(in crate::runner) fn check_run(&self, run: &RunId) -> Result<RunCheck, RunnerError> {
        let Some(record) = self.services.store.run(run)? else { return Ok(RunCheck::Fine) };
        let is_dead = record.status.is_working() && !self.services.store.is_live(run)?;
        if !is_dead && record.status != RunStatus::Pending {
            return Ok(RunCheck::Fine);
        }
        let concerned = self.collect_awaited(record)?;
        let (view, recovered) = self.services.recovery().settle_dead_runs()?;
        let view = if recovered.is_empty() { view } else { self.services.store.runs_view()? };
        let starts = self.services.launcher().start_waiting(&view, None, &[]);
        let stuck = recovered.into_iter().find_map(|recovered| match recovered.outcome {
            RecoveryOutcome::Stuck(reason) if concerned.contains(&recovered.run_id) => Some(reason),
            _ => None,
        });
        let failed = || starts.failed.iter().find(|(id, _)| concerned.contains(id)).map(|(_, error)| error.to_string());
        if let Some(reason) = stuck.or_else(failed) {
            return Ok(RunCheck::Stuck(reason));
        }
        let unclaimed = starts.unclaimed.into_iter().find(|id| concerned.contains(id));
        Ok(unclaimed.map_or(RunCheck::Fine, RunCheck::Unclaimed))
    }

    /// Returns the run, the older runs that it waits for, directly or through others, and the same of a panel's members.
    fn collect_awaited(&self, run: RunRecord) -> Result<Vec<RunId>, RunnerError> {
        let mut awaited = vec![run.run_id.clone()];
        for member in run.links.panel.iter().flat_map(|panel| &panel.members) {
            // A member is no panel.
            let member = self.services.store.run(&member.run_id)?.filter(|member| member.links.panel.is_none());
            if let Some(member) = member.filter(|member| !member.status.is_terminal()) {
                awaited.extend(self.collect_awaited(member)?);
            }
        }
        let mut next = Some(run);
        while let Some(run) = next {
            // Only older runs are awaited, so that the chain ends.
            let older = run.links.waits_for.filter(|older| *older < run.run_id && run.status == RunStatus::Pending);
            let Some(older) = older else { break };
            next = self.services.store.run(&older)?;
            awaited.push(older);
        }
        Ok(awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id")
    }

    /// Returns the number of equal checks after which the wait ends, and its reason.
    fn give_up(check: &RunCheck) -> (usize, String) {
        let mut patience = WaitPatience::default();
        let found = (1..1_000).find_map(|count| patience.count(check.clone()).map(|reason| (count, reason)));
        found.expect("an end")
    }

    #[test]
    fn a_wait_ends_when_nothing_helps_and_later_for_a_worker_that_may_still_come() {
        assert_eq!(give_up(&RunCheck::Stuck("no space".to_owned())), (10, "no space".to_owned()));
        let (checks, reason) = give_up(&RunCheck::Unclaimed(run()));
        assert_eq!(checks, 240);
        assert!(reason.starts_with(&format!("a worker was started for {} and has not begun", run())), "{reason}");
    }

    #[test]
    fn only_checks_in_a_row_count() {
        let mut patience = WaitPatience::default();
        for _ in 0..100 {
            for _ in 0..9 {
                assert_eq!(patience.count(RunCheck::Stuck("no space".to_owned())), None);
            }
            assert_eq!(patience.count(RunCheck::Fine), None);
        }
    }
}
