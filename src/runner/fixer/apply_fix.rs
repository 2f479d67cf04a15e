//! Applies a fix to the user's files and reverts it.
//!
//! - All files are checked before the first file is written.
//! - The old contents are in the store, and the list of files is in the fix's record, before the first file is written.
//!   After a crash, the fix can be completed (apply again) or reverted (undo).
//! - A file with unexpected content is not written.
//! - HEAD, index and stash are not read.

use std::time::{Duration, Instant};

use super::{FixError, apply_patch};
use crate::domain::patch::{FilePatch, FilePatchKind, parse_patch};
use crate::domain::{
    Actor, AppliedFile, Disposition, FindingId, FindingStatus, Fix, FixId, FixStatus, TeamPerson, TriageAction,
    content_hash,
};
use crate::git::{FilePermissions, Hunk, Worktree, WorktreeFile};
use crate::policy;
use crate::runner::team::{find_standing, read_person};
use crate::runner::{DecidedFinding, Fixer, RunnerError, find_decided};
use crate::store::triage::{UndoDirection, fix_group, undo_or_redo_fix};
use crate::store::{ListedReports, RunLock, StoreError};

/// Time that the process which made or applied a fix may take to release the lock after its last record, because a disk
/// may be slow to sync.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
/// Interval between two attempts to take the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A file with its current and its future content.
struct FileChangeStep {
    path: String,
    before: Option<WorktreeFile>,
    after: Option<Vec<u8>>,
    /// For a file that the patch adds.
    executable: bool,
    folders: Vec<String>,
}

fn hash_content(content: &[u8]) -> String {
    content_hash([content])
}

impl Fixer<'_> {
    /// Applies the patch of a fix to the files of this worktree, completely or not at all, and marks its findings as
    /// addressed; for an assistant, that is a claim.
    ///
    /// # Errors
    ///
    /// If the fix is no offer, or a file differs from the code for which the patch was made; no file is changed then.
    pub fn apply_fix(&self, id: &FixId, actor: Actor) -> Result<Fix, RunnerError> {
        let _lock = self.acquire_fix_lock(id)?;
        let fix = self.fix_record(id)?;
        if !fix.status.is_applicable() {
            return Err(FixError::WrongStatus {
                id: id.clone(),
                status: fix.status,
                wanted: "only an offer can be applied",
            }
            .into());
        }
        let files = self.services.repo.worktree_files()?;
        if fix.is_half_applied() {
            self.check_worktree(&fix, &files)?;
            self.finish_applying(&fix, &files)?;
        } else {
            let steps = self.plan_file_steps(&fix, &files)?;
            let fix = self.record_touched(&fix, &steps, &files)?;
            for (step, touched) in steps.iter().zip(&fix.touched) {
                if let Err(error) = self.write_step(&fix, step, touched, &files) {
                    // Reverts the written files. If that fails, the record keeps the list, and `undo` tries again.
                    if self.revert_files(&fix, &files).is_ok() {
                        self.change_fix(id, |fix| fix.touched.clear())?;
                    }
                    return Err(error);
                }
            }
        }
        let fix = self.change_fix(id, |fix| fix.status = FixStatus::Applied)?;
        self.record_decisions(&fix, FindingStatus::Addressed, actor)?;
        Ok(fix)
    }

    /// Reverts a fix and opens its findings again. An unmodified file gets its old content, byte for byte; in a
    /// modified file only the lines of the fix are reverted.
    ///
    /// # Errors
    ///
    /// If the lines of the fix were changed since; no file is written then.
    pub fn undo_fix(&self, id: &FixId, actor: Actor) -> Result<Fix, RunnerError> {
        let _lock = self.acquire_fix_lock(id)?;
        let fix = self.fix_record(id)?;
        if fix.status != FixStatus::Applied && !fix.is_half_applied() {
            return Err(FixError::WrongStatus {
                id: id.clone(),
                status: fix.status,
                wanted: "only what was applied can be undone",
            }
            .into());
        }
        let files = self.services.repo.worktree_files()?;
        self.check_worktree(&fix, &files)?;
        self.revert_files(&fix, &files)?;
        let fix = self.change_fix(id, |fix| {
            fix.status = FixStatus::Undone;
            fix.touched.clear();
            // A decision that is made while learning is off is never learned from.
            fix.private |= !self.services.settings.learning.enabled;
        })?;
        self.record_decisions(&fix, FindingStatus::Open, actor)?;
        Ok(fix)
    }

    /// Drops an offer, or a fix in progress; its worker sees that and ends.
    ///
    /// # Errors
    ///
    /// If the fix is unknown, half applied, applied or over.
    pub fn drop_fix(&self, id: &FixId) -> Result<Fix, RunnerError> {
        let mut refused = None;
        let fix = self.change_fix(id, |fix| match fix.status {
            status if fix.is_half_applied() => refused = Some((status, "it is half applied: apply or undo it first")),
            FixStatus::Working | FixStatus::Reviewing | FixStatus::Offered | FixStatus::Undone => {
                fix.status = FixStatus::Dropped;
                fix.private |= !self.services.settings.learning.enabled;
            }
            FixStatus::Dropped => {}
            status => refused = Some((status, "there is nothing to drop")),
        })?;
        match refused {
            Some((status, wanted)) => Err(FixError::WrongStatus { id: id.clone(), status, wanted }.into()),
            None => Ok(fix),
        }
    }

    /// Takes a fix's lock. A worker records the end of its work shortly before it releases the lock.
    fn acquire_fix_lock(&self, id: &FixId) -> Result<RunLock, RunnerError> {
        let give_up = Instant::now() + MAX_LOCK_WAIT;
        loop {
            let fix = self.fix_record(id)?;
            if let Some(lock) = self.services.store.lock_fix(id)? {
                return Ok(lock);
            }
            if fix.status.is_working() || Instant::now() > give_up {
                return Err(FixError::Busy { id: id.clone() }.into());
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
    }

    fn fix_record(&self, id: &FixId) -> Result<Fix, RunnerError> {
        Ok(self.services.store.fix(id)?.ok_or_else(|| FixError::Unknown { id: id.clone() })?)
    }

    fn change_fix(&self, id: &FixId, change: impl FnOnce(&mut Fix)) -> Result<Fix, RunnerError> {
        let changed = self.services.store.update_fix(id, self.services.ambient.now(), change)?;
        Ok(changed.ok_or_else(|| FixError::Unknown { id: id.clone() })?)
    }

    fn check_worktree(&self, fix: &Fix, files: &Worktree) -> Result<(), FixError> {
        match files.root().to_string_lossy() == fix.worktree {
            true => Ok(()),
            false => Err(FixError::AppliedElsewhere { id: fix.fix_id.clone(), worktree: fix.worktree.clone() }),
        }
    }

    /// Plans the current and the future content of each file of the patch.
    fn plan_file_steps(&self, fix: &Fix, files: &Worktree) -> Result<Vec<FileChangeStep>, RunnerError> {
        let patches = self.load_patches(fix)?;
        let mut steps = Vec::with_capacity(patches.len());
        for (file, patch) in fix.files.iter().zip(&patches) {
            steps.push(self.plan_file_step(&file.path, patch, files)?);
        }
        Ok(steps)
    }

    /// Loads the patch, file by file. Its hash must be that of the record.
    fn load_patches(&self, fix: &Fix) -> Result<Vec<FilePatch>, RunnerError> {
        let text = self.services.store.patch(&fix.fix_id)?.filter(|text| hash_content(text) == fix.patch_hash);
        let patches = text.and_then(|text| parse_patch(&text).ok()).filter(|patches| patches.len() == fix.files.len());
        Ok(patches.ok_or_else(|| FixError::NoPatch { id: fix.fix_id.clone() })?)
    }

    fn plan_file_step(&self, path: &str, patch: &FilePatch, files: &Worktree) -> Result<FileChangeStep, RunnerError> {
        let before = files.read(path)?;
        let missing = |what| FixError::Missing { path: path.to_owned(), what };
        let differs = |why| FixError::Differs { path: path.to_owned(), why };
        let mut step =
            FileChangeStep { path: path.to_owned(), before: None, after: None, executable: false, folders: Vec::new() };
        match (patch.kind, &before) {
            (FilePatchKind::Modify, Some(present)) => {
                let edits = self.diff_since(patch, &present.content)?;
                step.after =
                    Some(apply_patch::apply_patch(&present.content, patch, edits.as_deref()).map_err(differs)?);
            }
            (FilePatchKind::Delete, Some(present)) => {
                apply_patch::check_deletion(&present.content, patch).map_err(differs)?
            }
            (FilePatchKind::Add { executable }, None) => {
                step.after = Some(apply_patch::added_content(patch));
                step.executable = executable;
                step.folders = files.missing_folders(path)?;
            }
            (FilePatchKind::Add { .. }, Some(_)) => return Err(missing("is there already").into()),
            (FilePatchKind::Modify | FilePatchKind::Delete, None) => {
                return Err(missing("is not there any more").into());
            }
        }
        step.before = before;
        Ok(step)
    }

    /// Returns the differences between the file for which a patch was made and the current file; `None` if the old file
    /// is gone.
    fn diff_since(&self, patch: &FilePatch, present: &[u8]) -> Result<Option<Vec<Hunk>>, RunnerError> {
        let Ok(old) = self.services.repo.blob(&patch.old_blob) else { return Ok(None) };
        Ok(Some(
            self.services
                .repo
                .diff_texts(&apply_patch::normalize_line_ends(&old), &apply_patch::normalize_line_ends(present))?,
        ))
    }

    /// Stores the old contents, and then records the files that are about to be written.
    fn record_touched(&self, fix: &Fix, steps: &[FileChangeStep], files: &Worktree) -> Result<Fix, RunnerError> {
        let mut touched = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            if let Some(before) = &step.before {
                self.services.store.save_original(&fix.fix_id, index, &before.content)?;
            }
            touched.push(AppliedFile {
                path: step.path.clone(),
                before: step.before.as_ref().map(|before| hash_content(&before.content)),
                after: step.after.as_deref().map(hash_content),
                mode: step.before.as_ref().map_or(0, |before| before.mode),
                folders: step.folders.clone(),
            });
        }
        let worktree = files.root().to_string_lossy().into_owned();
        self.change_fix(&fix.fix_id, |fix| (fix.touched, fix.worktree) = (touched, worktree))
    }

    fn write_step(
        &self,
        fix: &Fix,
        step: &FileChangeStep,
        touched: &AppliedFile,
        files: &Worktree,
    ) -> Result<(), RunnerError> {
        // The user may have saved the file since it was checked.
        if read_state(files, touched)? != TouchedFileState::Before {
            return Err(FixError::Missing { path: step.path.clone(), what: "has changed in just this moment" }.into());
        }
        match &step.after {
            Some(content) => {
                let new = FilePermissions::New { executable: step.executable };
                let permit = step.before.as_ref().map_or(new, |before| FilePermissions::Exactly(before.mode));
                files.write(&step.path, content, permit, fix.fix_id.as_str())?;
            }
            None => files.remove(&step.path, &[])?,
        }
        Ok(())
    }

    /// Completes an interrupted application. Files that were already written stay.
    fn finish_applying(&self, fix: &Fix, files: &Worktree) -> Result<(), RunnerError> {
        let states = read_states(fix, files)?;
        let patches = self.load_patches(fix)?;
        let mut steps = Vec::new();
        for ((touched, patch), state) in fix.touched.iter().zip(&patches).zip(states) {
            if state == TouchedFileState::Before {
                steps.push((self.plan_file_step(&touched.path, patch, files)?, touched));
            }
        }
        for (step, touched) in steps {
            self.write_step(fix, &step, touched, files)?;
        }
        Ok(())
    }

    /// Reverts the patch. Skips files that were already reverted or never written.
    fn revert_files(&self, fix: &Fix, files: &Worktree) -> Result<(), RunnerError> {
        let mut ways = Vec::with_capacity(fix.touched.len());
        for index in 0..fix.touched.len() {
            ways.push(self.plan_revert(fix, index, files)?);
        }
        for (touched, way) in fix.touched.iter().zip(ways) {
            match way {
                RevertAction::There => {}
                RevertAction::Write { content, mode } => {
                    files.write(&touched.path, &content, FilePermissions::Exactly(mode), fix.fix_id.as_str())?;
                }
                RevertAction::Remove => files.remove(&touched.path, &touched.folders)?,
            }
        }
        Ok(())
    }

    fn plan_revert(&self, fix: &Fix, index: usize, files: &Worktree) -> Result<RevertAction, RunnerError> {
        let gone = || FixError::NoPatch { id: fix.fix_id.clone() };
        let touched = fix.touched.get(index).ok_or_else(gone)?;
        let present = files.read(&touched.path)?;
        let now = present.as_ref().map(|present| hash_content(&present.content));
        if now == touched.before {
            return Ok(RevertAction::There);
        }
        let before = self
            .services
            .store
            .original(&fix.fix_id, index)?
            .filter(|content| Some(hash_content(content)) == touched.before);
        if now == touched.after {
            return Ok(match touched.before {
                Some(_) => RevertAction::Write { content: before.ok_or_else(gone)?, mode: touched.mode },
                None => RevertAction::Remove,
            });
        }
        // The user edited the file after the fix: only the fix's own lines are reverted.
        let changed = || FixError::ChangedSince { path: touched.path.clone() };
        let (Some(present), Some(before)) = (present, before) else { return Err(changed().into()) };
        let patches = self.load_patches(fix)?;
        let patch = patches.get(index).filter(|patch| patch.kind == FilePatchKind::Modify).ok_or_else(changed)?;
        let after = apply_patch::apply_patch(&before, patch, self.diff_since(patch, &before)?.as_deref())
            .map_err(|_| changed())?;
        if Some(hash_content(&after)) != touched.after {
            return Err(changed().into());
        }
        let content = self.services.repo.merge_texts(&after, &present.content, &before)?.ok_or_else(changed)?;
        Ok(RevertAction::Write { content, mode: present.mode })
    }

    /// Returns true if the user decided that the findings of a fix are addressed by it.
    ///
    /// # Errors
    ///
    /// If the fix is unknown, or the store cannot be read.
    pub fn was_applied_by_user(&self, id: &FixId) -> Result<bool, RunnerError> {
        let (fix, log) = (self.fix_record(id)?, self.services.store.triage_log()?);
        let mut reports = ListedReports::new(&self.services.store, &log);
        let reason = format!("fix {id} applied");
        for finding in fix.fixed_findings() {
            let listed = reports.follow(finding)?;
            let is_about = |id: &FindingId| *id == *finding || *id == listed;
            let of_fix = |line: &&Disposition| line.reason == reason && is_about(&line.finding_id);
            if log.iter().rev().find(of_fix).is_some_and(|line| line.actor == Actor::User) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records the actor's decision about the findings of a fix, as one step for `undo`. Skips findings that got another
    /// decision meanwhile.
    fn record_decisions(&self, fix: &Fix, status: FindingStatus, actor: Actor) -> Result<(), RunnerError> {
        let (at, step) =
            (self.services.ambient.now(), self.services.ambient.new_run_id().as_str().replacen("ar_", "t_", 1));
        let (direction, word, group) = match status {
            FindingStatus::Addressed => (UndoDirection::Redo, "applied", fix_group(&fix.fix_id, &step)),
            _ => (UndoDirection::Undo, "undone", step.clone()),
        };
        let (repo, store) = (Some(&self.services.repo), &self.services.store);
        let person = read_person(&self.services.repo);
        store.decide(|log| {
            let mut again = undo_or_redo_fix(log, &fix.fix_id, actor, direction, at);
            if !again.is_empty() {
                again.extend(store.merge_undone_reports(log, &again)?);
                again.extend(find_standing((repo, store), (log, &again), at)?);
                return Ok(again);
            }
            // A panel may have listed a finding under another id since the fix was made. The undo of a fix is about that finding, too:
            // nobody takes the report out of it.
            let about = (FindingStatus::Addressed, at);
            let mut reports = ListedReports::new(store, log);
            let mut decided: Vec<FindingId> = Vec::new();
            let mut merges: Vec<(FindingId, Disposition)> = Vec::new();
            for id in fix.fixed_findings() {
                let DecidedFinding { finding_id, merge } = find_decided(&mut reports, id, about)?;
                // Two findings of the fix may stand for one report.
                let is_new = |merge: &Disposition| merges.iter().all(|(_, known)| known.finding_id != merge.finding_id);
                let merge = merge.filter(is_new);
                merges.extend(merge.map(|merge| (finding_id.clone(), merge)));
                if !decided.contains(&finding_id) {
                    decided.push(finding_id);
                }
            }
            let lines = decided.iter().filter_map(|id| {
                let previous = reports.last_lines().status_of(id);
                // Only findings that the fix addressed are opened again.
                let wanted = match status {
                    FindingStatus::Addressed => previous.is_undecided(),
                    _ => previous == FindingStatus::Addressed,
                };
                let allowed = wanted && policy::may_set(actor, previous, status).is_ok();
                // Where another person has decided, whoever undoes the fix takes back what was decided here, and nothing else.
                let (action, group) = match status {
                    FindingStatus::Open if is_decided_by_other(log, id, &person) => {
                        (TriageAction::Undo, fix_group(&fix.fix_id, &step))
                    }
                    _ => (TriageAction::Set, group.clone()),
                };
                allowed.then(|| Disposition {
                    finding_id: id.clone(),
                    status,
                    previous,
                    actor,
                    reason: format!("fix {} {word}", fix.fix_id),
                    at,
                    action,
                    group,
                    run_id: None,
                    merged_into: None,
                    team: None,
                    ci: false,
                })
            });
            let lines: Vec<Disposition> = lines.collect();
            // A report stays as it is where nothing is decided.
            let is_changed = |id: &FindingId| lines.iter().any(|line| line.finding_id == *id);
            merges.retain(|(into, _)| is_changed(into));
            let mut lines: Vec<Disposition> = merges.into_iter().map(|(_, merge)| merge).chain(lines).collect();
            lines.extend(find_standing((repo, store), (log, &lines), at)?);
            Ok::<_, StoreError>(lines)
        })?;
        Ok(())
    }
}

/// Returns true if the decision that stands about a finding is that of another person of the team.
fn is_decided_by_other(log: &[Disposition], finding: &FindingId, person: &TeamPerson) -> bool {
    let decision = log.iter().rev().find(|line| line.finding_id == *finding && line.is_decision());
    let decided = decision.filter(|line| line.actor == Actor::User).and_then(|line| line.team.as_ref());
    decided.is_some_and(|origin| !origin.person.is_same(person))
}

/// The action that reverts a touched file.
enum RevertAction {
    /// The file has its old content.
    There,
    Write {
        content: Vec<u8>,
        mode: u32,
    },
    Remove,
}

/// The current state of a touched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TouchedFileState {
    Before,
    After,
}

fn read_states(fix: &Fix, files: &Worktree) -> Result<Vec<TouchedFileState>, RunnerError> {
    fix.touched.iter().map(|touched| read_state(files, touched)).collect()
}

fn read_state(files: &Worktree, touched: &AppliedFile) -> Result<TouchedFileState, RunnerError> {
    let present = files.read(&touched.path)?.map(|present| hash_content(&present.content));
    match present {
        present if present == touched.before => Ok(TouchedFileState::Before),
        present if present == touched.after => Ok(TouchedFileState::After),
        _ => {
            let what = "is neither as it was before the fix nor as the fix leaves it";
            Err(FixError::Missing { path: touched.path.clone(), what }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RunId;
    use crate::runner::fixture::RunnerFixture;

    /// Returns a fix of findings that a run has reported.
    fn applied_fix(findings: &[&FindingId], run: &RunId) -> Fix {
        let fix = serde_json::json!({
            "fix_id": format!("fx_{:026}", 1), "status": "applied", "created_at": "2026-03-04T05:06:07Z",
            "updated_at": "2026-03-04T05:06:07Z", "source": "cockpit", "findings": findings, "run_id": run,
            "snapshot_commit": "3fa2c1d09b7e4851aa", "reviewer": "m", "model": "m",
        });
        serde_json::from_value(fix).expect("a fix")
    }

    #[test]
    fn a_report_whose_fix_is_undone_gives_way_to_the_finding_of_the_list() {
        let fixture = RunnerFixture::new();
        let (store, fixer) = (&fixture.services.store, fixture.services.fixer());
        let [report, listed] = ["report", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let run = fixture.write_list(&[(&listed, &[&report])]);
        let fix = applied_fix(&[&report], &run);
        fixer.record_decisions(&fix, FindingStatus::Addressed, Actor::User).expect("stored");
        let take_over = |log: &[Disposition]| {
            let (finding_id, run_id) = (listed.clone(), Some(run.clone()));
            Ok::<_, StoreError>(vec![Disposition { finding_id, run_id, ..log[0].clone() }])
        };
        store.decide(take_over).expect("stored");
        let statuses = || [&report, &listed].map(|id| store.status(id).expect("readable"));
        assert_eq!(statuses(), [FindingStatus::Addressed; 2]);
        fixer.record_decisions(&fix, FindingStatus::Open, Actor::User).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Open], "not both are open");
        fixer.record_decisions(&fix, FindingStatus::Addressed, Actor::User).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Addressed]);
    }

    #[test]
    fn a_decision_of_another_person_stands_when_the_fix_is_undone() {
        // A person may also undo what an assistant has applied.
        for applied_by in [Actor::User, Actor::Assistant] {
            let fixture = RunnerFixture::new();
            let (store, fixer) = (&fixture.services.store, fixture.services.fixer());
            for setting in [["user.name", "Ada"], ["user.email", "ada@example.org"]] {
                let root = fixture.folder.path().join("repo");
                let git = std::process::Command::new("git").arg("config").args(setting).current_dir(root).status();
                assert!(git.expect("git runs").success());
            }
            let team = serde_json::json!({
                "machine": "ada-1", "log": "ada-1", "place": "origin", "joined_at": "2026-03-04T05:06:07Z",
            });
            store.write_team_membership(&serde_json::from_value(team).expect("a membership")).expect("written");
            let [one, other] = ["one", "other"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
            let fix = applied_fix(&[&one, &other], &format!("ar_{:026}", 1).parse().expect("an id"));
            fixer.record_decisions(&fix, FindingStatus::Addressed, applied_by).expect("stored");
            // Bob has addressed one of them, too, without knowing of it.
            let at = fixture.services.ambient.now();
            let mut record = serde_json::json!({
                "type": "decision", "clock": [at.as_millisecond(), 0], "machine": "bob-1",
                "person": {"name": "Bob", "email": "bob@example.org"}, "actor": "user", "finding_id": one,
                "status": "addressed", "at": at, "action": "set",
            });
            let bob = "bob-1".parse().expect("a name");
            store.append_received_team_lines(&bob, format!("{record}\n").as_bytes()).expect("written");
            let origin = serde_json::json!({
                "clock": record["clock"].take(), "machine": "bob-1", "person": record["person"].take(),
            });
            let received = |log: &[Disposition]| {
                let team = Some(serde_json::from_value(origin).expect("an origin"));
                let (group, previous) = ("team_bob-1_t_9".to_owned(), FindingStatus::Addressed);
                let (actor, reason) = (Actor::User, String::new());
                Ok::<_, StoreError>(vec![Disposition { team, group, previous, actor, reason, at, ..log[0].clone() }])
            };
            store.decide(received).expect("stored");
            fixer.record_decisions(&fix, FindingStatus::Open, Actor::User).expect("stored");
            let statuses = [&one, &other].map(|id| store.status(id).expect("readable"));
            assert_eq!(statuses, [FindingStatus::Addressed, FindingStatus::Open], "{applied_by:?}");
            let log = store.triage_log().expect("readable");
            let about: Vec<&Disposition> = log.iter().filter(|line| line.finding_id == one).collect();
            assert!(about.last().is_some_and(|line| line.team.is_some()), "{applied_by:?}: {about:#?}");
            let is_taken_back = about.iter().any(|line| line.team.is_none() && line.is_withdrawal());
            assert!(is_taken_back, "{applied_by:?}: once Bob takes his back, nobody has decided: {about:#?}");
        }
    }

    #[test]
    fn a_fix_of_a_report_that_a_panel_has_merged_since_addresses_the_finding_of_the_list() {
        let fixture = RunnerFixture::new();
        let (store, fixer) = (&fixture.services.store, fixture.services.fixer());
        let [report, listed] = ["report", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let run = fixture.write_list(&[(&listed, &[&report])]);
        let fix = applied_fix(&[&report, &listed], &run);
        let now = fixture.services.ambient.now();
        let merge = Disposition::from_merge(&report, FindingStatus::Open, &listed, &run, now);
        store.decide(|_| Ok::<_, StoreError>(vec![merge])).expect("stored");
        let statuses = || [&report, &listed].map(|id| store.status(id).expect("readable"));
        fixer.record_decisions(&fix, FindingStatus::Addressed, Actor::User).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Addressed]);
        assert_eq!(store.triage_log().expect("readable").len(), 2, "the finding is decided once");
        fixer.record_decisions(&fix, FindingStatus::Open, Actor::User).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Open]);
        // A person may also undo what an assistant has applied, and the fix may know only the report.
        let fix = Fix { findings: vec![report.clone()], ..fix };
        fixer.record_decisions(&fix, FindingStatus::Addressed, Actor::Assistant).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Addressed]);
        fixer.record_decisions(&fix, FindingStatus::Open, Actor::User).expect("stored");
        assert_eq!(statuses(), [FindingStatus::Obsolete, FindingStatus::Open]);
    }
}
