//! Turns a request for a fix into a record and a worker, and settles fixes whose worker died.

use std::fs::File;
use std::path::Path;

use super::{FixError, FixRequest, exact_suggestions};
use crate::domain::{Finding, FindingId, Fix, FixId, FixStatus, RunId, Source};
use crate::git::Repo;
use crate::runner::{BUILTIN_REVIEWER, Fixer, RunnerError, process};

/// Reviewers that work on a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixMakers {
    /// Name of the reviewer that makes the patch.
    pub maker: String,
    /// Name of the reviewer that reviews the patch.
    pub patch_reviewer: String,
}

/// Reviewer that makes a fix, and who asked for it.
pub(super) struct FixMaker {
    pub(super) reviewer: String,
    pub(super) model: String,
    pub(super) source: Source,
}

impl Fixer<'_> {
    /// Records the request and starts its worker; does not wait for the fix. If a fix of the same findings is in
    /// progress, returns that fix.
    ///
    /// # Errors
    ///
    /// If nothing can be fixed, no reviewer can fix it, its key is missing, or the daily budget is used up.
    pub fn request_fix(&self, request: &FixRequest) -> Result<Fix, RunnerError> {
        self.reconcile_fixes()?;
        let (findings, run) = self.load_findings_to_fix(&request.findings)?;
        let known = self.services.store.fixes()?;
        if let Some(fix) = known.into_iter().find(|fix| fix.status.is_working() && fix.findings == request.findings) {
            return Ok(fix);
        }
        let reviewer = self.resolve_fixer(request.reviewer.as_deref(), &findings)?;
        let identity = self.services.reviewers().resolve_identity(Some(&reviewer))?;
        self.services.reviewers().check_key(&identity.reviewer)?;
        if identity.reviewer != BUILTIN_REVIEWER
            && let Some(spent) = self.services.reviewers().check_daily_budget()?
        {
            return Err(FixError::BudgetSpent(spent.note).into());
        }
        let maker = FixMaker { reviewer: identity.reviewer, model: identity.model, source: request.source };
        let (fix, lock) = self.record_fix(&request.findings, &run, maker)?;
        if let Err(error) = self.start_fixer(&fix.fix_id, lock) {
            let reason = error.to_string();
            self.services.store.update_fix(&fix.fix_id, self.services.ambient.now(), |fix| {
                (fix.status, fix.reason) = (FixStatus::Failed, reason);
            })?;
            return Err(error);
        }
        Ok(fix)
    }

    /// Records a fix in progress and returns it with its lock, which is held until the file is closed.
    pub(super) fn record_fix(
        &self,
        findings: &[FindingId],
        run: &RunId,
        maker: FixMaker,
    ) -> Result<(Fix, File), RunnerError> {
        let Some(run) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
        let (now, id) = (self.services.ambient.now(), self.services.ambient.new_fix_id());
        let fix = Fix {
            private: !self.services.settings.learning.enabled,
            findings: findings.to_vec(),
            snapshot_commit: run.subject.snapshot_commit,
            base_commit: run.subject.base_commit,
            model: maker.model,
            ..Fix::new(id, run.run_id, maker.source, maker.reviewer, now)
        };
        // Locked before the record is visible, so that no process takes it for a fix with a dead worker.
        let Some(lock) = self.services.store.lock_fix_for_worker(&fix.fix_id)? else {
            return Err(FixError::Busy { id: fix.fix_id }.into());
        };
        self.services.store.create_fix(&fix)?;
        Ok((fix, lock))
    }

    /// Returns the names of the reviewers that would fix these findings and review the patch.
    ///
    /// # Errors
    ///
    /// If nothing can be fixed, no reviewer can fix it, or its key is missing.
    pub fn choose_fixer(&self, findings: &[FindingId]) -> Result<FixMakers, RunnerError> {
        let (findings, _) = self.load_findings_to_fix(findings)?;
        let who = self.resolve_fixer(None, &findings)?;
        let maker = self.services.reviewers().resolve_identity(Some(&who))?.reviewer;
        self.services.reviewers().check_key(&maker)?;
        Ok(FixMakers { patch_reviewer: self.choose_patch_reviewer(&maker)?, maker })
    }

    /// Returns the reviewer of a patch. A patch that costs nothing is not reviewed for money: its review is by the
    /// built-in reviewer then.
    pub(super) fn choose_patch_reviewer(&self, maker: &str) -> Result<String, RunnerError> {
        let default = &self.services.settings.default_reviewer;
        let is_unasked = maker == BUILTIN_REVIEWER && !self.services.reviewers().is_free(default)?;
        Ok(if is_unasked { BUILTIN_REVIEWER.to_owned() } else { default.clone() })
    }

    /// Loads the findings, and the newest run whose snapshot contains one of them.
    pub(super) fn load_findings_to_fix(&self, ids: &[FindingId]) -> Result<(Vec<Finding>, RunId), RunnerError> {
        if ids.len() > Fix::MAX_FINDINGS {
            return Err(FixError::TooMany(ids.len()).into());
        }
        let view = self.services.store.view()?;
        let mut findings = Vec::with_capacity(ids.len());
        let mut newest: Option<usize> = None;
        for id in ids {
            let no_details = || FixError::NoDetails(id.clone());
            let finding = self.services.store.finding_in(&view, id)?.ok_or_else(no_details)?;
            if !finding.status.is_undecided() {
                return Err(FixError::Decided { id: id.clone(), status: finding.status }.into());
            }
            let index = view.finding_index(id.as_str()).ok_or_else(no_details)?;
            let placed = view.locating_run(index).ok_or_else(no_details)?;
            // Checked for each finding, because its code is read from its own snapshot.
            if self.services.repo.file_at(view.run(placed).snapshot_commit, &finding.repo_relative_path).is_err() {
                return Err(FixError::NoSnapshot(id.clone()).into());
            }
            newest = Some(newest.map_or(placed, |newest| newest.min(placed)));
            findings.push(finding);
        }
        let run = newest.and_then(|newest| view.run(newest).id.parse().ok()).ok_or(FixError::NoFinding)?;
        Ok((findings, run))
    }

    /// Returns the reviewer that makes the fix: the one the user named, the one of the settings, or the built-in one if
    /// all suggestions are exact.
    fn resolve_fixer(&self, named: Option<&str>, findings: &[Finding]) -> Result<String, RunnerError> {
        let exact = findings.iter().filter(|finding| exact_suggestions::exact_suggestion(finding).is_some()).count();
        let configured = self.services.settings.resolve.reviewer.as_deref();
        let who = match (named, configured) {
            (Some(name), _) => name,
            (None, Some(name)) if exact < findings.len() => name,
            (None, _) => BUILTIN_REVIEWER,
        };
        if self.services.reviewers().resolve_identity(Some(who))?.reviewer == BUILTIN_REVIEWER && exact == 0 {
            return Err(FixError::NothingExact(findings.len()).into());
        }
        Ok(who.to_owned())
    }

    fn start_fixer(&self, fix: &FixId, lock: File) -> Result<(), RunnerError> {
        let arguments = ["fixer", fix.as_str()];
        let root = self.services.repo.root();
        process::reap(process::spawn_detached(
            &self.services.repo,
            &self.services.paths,
            &root,
            &arguments,
            lock,
            crate::runner::launcher::start_workers::WORKER_LOG,
        )?);
        Ok(())
    }

    /// Ends fixes whose worker is gone, removes their checkouts, and returns their number. An existing patch is offered
    /// without a review, because it may have been paid for.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    pub fn reconcile_fixes(&self) -> Result<usize, RunnerError> {
        let mut ended = 0;
        for fix in self.services.store.fixes()?.iter().filter(|fix| fix.status.is_working()) {
            let Some(_lock) = self.services.store.lock_fix(&fix.fix_id)? else { continue };
            self.services.store.update_fix(&fix.fix_id, self.services.ambient.now(), |fix| {
                match fix.status {
                    status if status.is_working() && !fix.files.is_empty() => {
                        fix.status = FixStatus::Offered;
                        fix.verdict = "not reviewed: worker died".to_owned();
                    }
                    FixStatus::Working | FixStatus::Reviewing => {
                        fix.status = FixStatus::Failed;
                        fix.reason = "worker died".to_owned();
                    }
                    _ => return,
                }
                ended += 1;
            })?;
        }
        if ended > 0 {
            self.sweep_fix_checkouts(&self.fix_checkouts());
        }
        Ok(ended)
    }

    /// Removes the temporary files of processes that were killed while they wrote files of this worktree. Returns their
    /// number.
    ///
    /// # Errors
    ///
    /// If the fixes cannot be read.
    pub fn sweep_leftovers(&self) -> Result<usize, RunnerError> {
        let Ok(files) = self.services.repo.worktree_files() else { return Ok(0) };
        let here = files.root().to_string_lossy();
        let mut removed = 0;
        for fix in self.services.store.fixes()?.iter().filter(|fix| !fix.touched.is_empty() && fix.worktree == here) {
            if self.services.store.is_fix_live(&fix.fix_id)? {
                continue;
            }
            let is_left = |path: &str| files.remove_leftover(path, fix.fix_id.as_str()).unwrap_or(false);
            removed += fix.touched.iter().filter(|touched| is_left(&touched.path)).count();
        }
        Ok(removed)
    }

    /// Returns the folder of the checkouts in which agents make fixes, one for each fix id.
    pub(super) fn fix_checkouts(&self) -> std::path::PathBuf {
        self.services.paths.cache.join("fixes").join(self.services.repo.key())
    }

    /// Removes the checkouts of dead workers.
    pub(super) fn sweep_fix_checkouts(&self, folder: &Path) {
        let is_alive =
            |name: &str| name.parse::<FixId>().is_ok_and(|fix| self.services.store.is_fix_live(&fix).unwrap_or(true));
        if let Err(error) = Repo::remove_stale_checkouts(folder, &is_alive) {
            tracing::warn!(%error, "checkouts of dead workers stay");
        }
    }
}
