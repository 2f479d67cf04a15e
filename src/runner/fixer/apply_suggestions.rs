//! Applies exact suggestions at once, for a user who has seen the patch: no worker, no review of the patch.

use super::FixError;
use super::exact_suggestions::exact_suggestion;
use super::fixer_worker::FixFailure;
use super::request_fix::FixMaker;
use crate::domain::{Actor, FindingId, Fix, FixStatus, Source};
use crate::runner::conclude::elapsed_ms;
use crate::runner::{BUILTIN_REVIEWER, Fixer, RunnerError};

/// Verdict of a fix whose patch nobody but the user has looked at.
const UNREVIEWED_VERDICT: &str = "not reviewed: an exact suggestion";

impl Fixer<'_> {
    /// Makes a patch of the exact suggestions of these findings, applies it to the files of this worktree, and marks the
    /// findings as addressed. Undoing it is [`Fixer::undo_fix`], as for every fix.
    ///
    /// # Errors
    ///
    /// If a finding is decided or has no exact suggestion, its code has changed since the report, or a file differs from
    /// the code for which the patch was made; no file is changed then, and no offer is left behind.
    pub fn apply_suggestions(&self, ids: &[FindingId], source: Source, actor: Actor) -> Result<Fix, RunnerError> {
        let (findings, run) = self.load_findings_to_fix(ids)?;
        let inexact = findings.iter().filter(|finding| exact_suggestion(finding).is_none()).count();
        if inexact > 0 {
            return Err(FixError::NothingExact(inexact).into());
        }
        let maker = FixMaker { reviewer: BUILTIN_REVIEWER.to_owned(), model: String::new(), source };
        let (fix, lock) = self.record_fix(ids, &run, maker)?;
        let id = fix.fix_id.clone();
        let offered = self.offer_suggestions(fix);
        drop(lock);
        match offered {
            Ok(()) => {}
            Err(FixFailure::Dropped) => return Err(FixError::NotMade("it was dropped meanwhile".to_owned()).into()),
            Err(FixFailure::Reason(reason)) => {
                self.fail_fix(&id, &reason)?;
                return Err(FixError::NotMade(reason).into());
            }
            Err(FixFailure::Failed(error)) => {
                self.fail_fix(&id, &error.to_string())?;
                return Err(error);
            }
        }
        let applied = self.apply_fix(&id, actor);
        if applied.is_err() {
            self.drop_fix(&id)?;
        }
        applied
    }

    /// Makes the patch and offers it. A finding whose suggestion does not fit any more fails all of them.
    fn offer_suggestions(&self, fix: Fix) -> Result<(), FixFailure> {
        let (id, began) = (fix.fix_id.clone(), self.services.ambient.now());
        let material = self.load_fix_material(fix)?;
        let made = self.make_from_suggestions(&material)?;
        if let Some(unfixed) = made.left_out.first() {
            return Err(FixFailure::Reason(unfixed.reason.clone()));
        }
        self.record_patch(&material, made, elapsed_ms(began, self.services.ambient.now()))?;
        self.update_working_fix(&id, |fix| {
            fix.status = FixStatus::Offered;
            fix.verdict = UNREVIEWED_VERDICT.to_owned();
        })?;
        Ok(())
    }
}
