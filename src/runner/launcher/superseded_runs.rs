//! Tells older runs that a newer one takes their place.

use crate::domain::{CancelReason, RunId, RunStatus};
use crate::policy::supersede::SupersedeVerdict;
use crate::policy::{self, Decision, KnownRun};
use crate::runner::{Launcher, RunnerError, known_runs};
use crate::store::{LockedStore, StoreError};

impl Launcher<'_> {
    /// Asks active runs about older code to end in favour of `newer`, or notes that they may finish. A failure to do so
    /// does not affect the new run.
    pub(super) fn notify_older_runs(&self, locked: &LockedStore<'_>, decision: &Decision, newer: &RunId) {
        for (older, verdict) in &decision.older {
            let told = match verdict {
                SupersedeVerdict::Cancel(why) => self.supersede_run(locked, older, newer, why),
                SupersedeVerdict::Finish(why) => {
                    let note = format!("may finish although {newer} asks about newer code: {why}");
                    locked.annotate_run(older, |run| run.ending.finish_note = note).map(drop).map_err(RunnerError::from)
                }
            };
            if let Err(error) = told {
                tracing::warn!(run = %older, %newer, %error, "a run cannot be told that newer code was asked about");
            }
        }
    }

    /// Asks an active run to end in favour of `newer`. A run that has not begun ends at once.
    fn supersede_run(&self, locked: &LockedStore<'_>, id: &RunId, newer: &RunId, why: &str) -> Result<(), RunnerError> {
        let asked = locked.update_run(id, self.services.ambient.now(), |run| {
            if run.status.is_terminal() {
                return;
            }
            if run.ending.cancel_reason.is_none() {
                run.ending.cancel_reason = Some(CancelReason::Superseded);
                run.ending.cancel_note = format!("{newer} asks about newer code; {why}");
                run.ending.finish_note.clear();
            }
            run.links.superseded_by = Some(newer.clone());
        })?;
        // A panel ends when its members have ended, with what they have found.
        if asked.status == RunStatus::Pending && asked.links.panel.is_none() {
            self.services.closer().end_pending_run(locked, &asked)?;
        }
        Ok(())
    }

    /// Marks the ended runs that `standing` replaces, so that a list can fold them under it.
    pub(in crate::runner) fn mark_replaced_runs(
        &self,
        locked: &LockedStore<'_>,
        standing: &RunId,
    ) -> Result<(), StoreError> {
        let view = locked.runs_view()?;
        let Some(target) = known_runs::run_rows(&view).find(|row| row.id == standing.as_str()) else { return Ok(()) };
        // The run of the panel replaces its members when it ends.
        let held = self.runs_held_by_panels(&view, None);
        let known: Vec<KnownRun<'_>> = known_runs::run_rows(&view)
            .filter(|row| row.scope == target.scope && row.superseded_by.is_empty() && !held.contains(row.id))
            .map(|row| known_runs::known_run_from_row(&row))
            .collect();
        for older in policy::find_replaced_runs(&known_runs::known_run_from_row(&target), &known) {
            locked.update_run(&older, self.services.ambient.now(), |run| {
                run.links.superseded_by = Some(standing.clone())
            })?;
        }
        Ok(())
    }
}
