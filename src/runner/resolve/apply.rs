//! A fix goes into the user's files, and out again.
//!
//! Invariants: every file is looked at before the first is written; what was there before is in the store, and the list of
//! files in the fix's record, before the first is written, so that whoever dies in between leaves nothing that cannot be
//! finished (apply again) or taken back (undo); a file that is not as expected is not written. HEAD, index and stash are
//! not looked at.

use std::time::{Duration, Instant};

use super::{FixError, lay};
use crate::domain::patch::{FileDeed, FilePatch, parse};
use crate::domain::{Actor, Disposition, FindingStatus, Fix, FixId, FixStatus, Touched, TriageAction, content_hash};
use crate::git::{Hunk, Permit, Present, Worktree};
use crate::policy;
use crate::runner::{Runner, RunnerError};
use crate::store::triage::{group_of_fix, status_after, step_of_fix};
use crate::store::{RunLock, StoreError};

/// How long whoever made or applied a fix may take to give its lock up after its last word: a disk may be slow to sync.
const LAST_STEPS: Duration = Duration::from_secs(10);
/// How often the lock is asked for meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// A file as it is and as it is to be.
struct Step {
    path: String,
    before: Option<Present>,
    after: Option<Vec<u8>>,
    /// Of a file that the patch adds.
    executable: bool,
    folders: Vec<String>,
}

fn hash(content: &[u8]) -> String {
    content_hash([content])
}

impl Runner {
    /// Puts the patch of a fix into the files of this worktree, all of it or nothing, and sets its findings addressed.
    ///
    /// # Errors
    /// When it is no offer, or a file differs from what the patch was made for; then nothing is written.
    pub fn apply_fix(&self, id: &FixId) -> Result<Fix, RunnerError> {
        let _lock = self.hold(id)?;
        let fix = self.fix_record(id)?;
        if !fix.status.is_offer() {
            return Err(
                FixError::Not { id: id.clone(), status: fix.status, wanted: "only an offer can be applied" }.into()
            );
        }
        let files = self.repo.files()?;
        if fix.is_half_applied() {
            self.same_worktree(&fix, &files)?;
            self.finish_applying(&fix, &files)?;
        } else {
            let steps = self.steps(&fix, &files)?;
            let fix = self.record_touched(&fix, &steps, &files)?;
            for (step, touched) in steps.iter().zip(&fix.touched) {
                if let Err(error) = self.write(&fix, step, touched, &files) {
                    // What was written goes back; what cannot stays on record, and `undo` tries again.
                    if self.take_back(&fix, &files).is_ok() {
                        self.change(id, |fix| fix.touched.clear())?;
                    }
                    return Err(error);
                }
            }
        }
        let fix = self.change(id, |fix| fix.status = FixStatus::Applied)?;
        self.decide_findings(&fix, FindingStatus::Addressed)?;
        Ok(fix)
    }

    /// Takes a fix out of the files that it was put into, and opens its findings again. A file that nobody changed since is
    /// what it was before, byte for byte; in others the lines of the fix are.
    ///
    /// # Errors
    /// When somebody changed the lines of the fix since; then no file is written.
    pub fn undo_fix(&self, id: &FixId) -> Result<Fix, RunnerError> {
        let _lock = self.hold(id)?;
        let fix = self.fix_record(id)?;
        if fix.status != FixStatus::Applied && !fix.is_half_applied() {
            return Err(FixError::Not {
                id: id.clone(),
                status: fix.status,
                wanted: "only what was applied can be undone",
            }
            .into());
        }
        let files = self.repo.files()?;
        self.same_worktree(&fix, &files)?;
        self.take_back(&fix, &files)?;
        let fix = self.change(id, |fix| {
            fix.status = FixStatus::Undone;
            fix.touched.clear();
        })?;
        self.decide_findings(&fix, FindingStatus::Open)?;
        Ok(fix)
    }

    /// Lets go of an offer, or of a fix that is still being made: its worker sees it and ends.
    pub fn drop_fix(&self, id: &FixId) -> Result<Fix, RunnerError> {
        let mut refused = None;
        let fix = self.change(id, |fix| match fix.status {
            status if fix.is_half_applied() => refused = Some((status, "it is half applied: apply or undo it first")),
            FixStatus::Working | FixStatus::Reviewing | FixStatus::Offered | FixStatus::Undone => {
                fix.status = FixStatus::Dropped;
            }
            FixStatus::Dropped => {}
            status => refused = Some((status, "there is nothing to drop")),
        })?;
        match refused {
            Some((status, wanted)) => Err(FixError::Not { id: id.clone(), status, wanted }.into()),
            None => Ok(fix),
        }
    }

    /// Takes a fix's lock. Its worker has said that it is done a moment before it gives the lock up.
    fn hold(&self, id: &FixId) -> Result<RunLock, RunnerError> {
        let give_up = Instant::now() + LAST_STEPS;
        loop {
            let fix = self.fix_record(id)?;
            if let Some(lock) = self.store.lock_fix(id)? {
                return Ok(lock);
            }
            if fix.status.is_working() || Instant::now() > give_up {
                return Err(FixError::Busy { id: id.clone() }.into());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn fix_record(&self, id: &FixId) -> Result<Fix, RunnerError> {
        Ok(self.store.fix(id)?.ok_or_else(|| FixError::Unknown { id: id.clone() })?)
    }

    fn change(&self, id: &FixId, change: impl FnOnce(&mut Fix)) -> Result<Fix, RunnerError> {
        let changed = self.store.update_fix(id, self.ambient.now(), change)?;
        Ok(changed.ok_or_else(|| FixError::Unknown { id: id.clone() })?)
    }

    fn same_worktree(&self, fix: &Fix, files: &Worktree) -> Result<(), FixError> {
        match files.root().to_string_lossy() == fix.worktree {
            true => Ok(()),
            false => Err(FixError::Elsewhere { id: fix.fix_id.clone(), worktree: fix.worktree.clone() }),
        }
    }

    /// What every file of the patch is and becomes.
    fn steps(&self, fix: &Fix, files: &Worktree) -> Result<Vec<Step>, RunnerError> {
        let patches = self.patches(fix)?;
        let mut steps = Vec::with_capacity(patches.len());
        for (file, patch) in fix.files.iter().zip(&patches) {
            steps.push(self.step(&file.path, patch, files)?);
        }
        Ok(steps)
    }

    /// The patch, file by file; it has to be the one that the record speaks of.
    fn patches(&self, fix: &Fix) -> Result<Vec<FilePatch>, RunnerError> {
        let text = self.store.patch(&fix.fix_id)?.filter(|text| hash(text) == fix.patch_hash);
        let patches = text.and_then(|text| parse(&text)).filter(|patches| patches.len() == fix.files.len());
        Ok(patches.ok_or_else(|| FixError::NoPatch { id: fix.fix_id.clone() })?)
    }

    fn step(&self, path: &str, patch: &FilePatch, files: &Worktree) -> Result<Step, RunnerError> {
        let before = files.read(path)?;
        let missing = |what| FixError::Missing { path: path.to_owned(), what };
        let differs = |why| FixError::Differs { path: path.to_owned(), why };
        let mut step =
            Step { path: path.to_owned(), before: None, after: None, executable: false, folders: Vec::new() };
        match (patch.deed, &before) {
            (FileDeed::Modify, Some(present)) => {
                let edits = self.edits_since(patch, &present.content)?;
                step.after = Some(lay::lay(&present.content, patch, edits.as_deref()).map_err(differs)?);
            }
            (FileDeed::Delete, Some(present)) => lay::is_all_of(&present.content, patch).map_err(differs)?,
            (FileDeed::Add { executable }, None) => {
                step.after = Some(lay::content(patch));
                step.executable = executable;
                step.folders = files.missing_folders(path)?;
            }
            (FileDeed::Add { .. }, Some(_)) => return Err(missing("is there already").into()),
            (FileDeed::Modify | FileDeed::Delete, None) => return Err(missing("is not there any more").into()),
        }
        step.before = before;
        Ok(step)
    }

    /// What differs between the file that a patch was made for and the present one; `None` when that file is gone.
    fn edits_since(&self, patch: &FilePatch, present: &[u8]) -> Result<Option<Vec<Hunk>>, RunnerError> {
        let Ok(old) = self.repo.blob(&patch.old_blob) else { return Ok(None) };
        Ok(Some(self.repo.edits(&lay::without_returns(&old), &lay::without_returns(present))?))
    }

    /// Keeps what is there, and then says what is going to be written.
    fn record_touched(&self, fix: &Fix, steps: &[Step], files: &Worktree) -> Result<Fix, RunnerError> {
        let mut touched = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            if let Some(before) = &step.before {
                self.store.keep_before(&fix.fix_id, index, &before.content)?;
            }
            touched.push(Touched {
                path: step.path.clone(),
                before: step.before.as_ref().map(|before| hash(&before.content)),
                after: step.after.as_deref().map(hash),
                mode: step.before.as_ref().map_or(0, |before| before.mode),
                folders: step.folders.clone(),
            });
        }
        let worktree = files.root().to_string_lossy().into_owned();
        self.change(&fix.fix_id, |fix| (fix.touched, fix.worktree) = (touched, worktree))
    }

    fn write(&self, fix: &Fix, step: &Step, touched: &Touched, files: &Worktree) -> Result<(), RunnerError> {
        // Somebody may have saved it since it was looked at.
        if state(files, touched)? != State::Before {
            return Err(FixError::Missing { path: step.path.clone(), what: "has changed in just this moment" }.into());
        }
        match &step.after {
            Some(content) => {
                let new = Permit::New { executable: step.executable };
                let permit = step.before.as_ref().map_or(new, |before| Permit::Exactly(before.mode));
                files.write(&step.path, content, permit, fix.fix_id.as_str())?;
            }
            None => files.remove(&step.path, &[])?,
        }
        Ok(())
    }

    /// Goes on where an earlier call died: what it wrote stands.
    fn finish_applying(&self, fix: &Fix, files: &Worktree) -> Result<(), RunnerError> {
        let states = states(fix, files)?;
        let patches = self.patches(fix)?;
        let mut steps = Vec::new();
        for ((touched, patch), state) in fix.touched.iter().zip(&patches).zip(states) {
            if state == State::Before {
                steps.push((self.step(&touched.path, patch, files)?, touched));
            }
        }
        for (step, touched) in steps {
            self.write(fix, &step, touched, files)?;
        }
        Ok(())
    }

    /// Takes the patch out again. A file that was written back already, or not yet written, is right as it is.
    fn take_back(&self, fix: &Fix, files: &Worktree) -> Result<(), RunnerError> {
        let mut ways = Vec::with_capacity(fix.touched.len());
        for index in 0..fix.touched.len() {
            ways.push(self.way_back(fix, index, files)?);
        }
        for (touched, way) in fix.touched.iter().zip(ways) {
            match way {
                Back::There => {}
                Back::Write { content, mode } => {
                    files.write(&touched.path, &content, Permit::Exactly(mode), fix.fix_id.as_str())?;
                }
                Back::Remove => files.remove(&touched.path, &touched.folders)?,
            }
        }
        Ok(())
    }

    fn way_back(&self, fix: &Fix, index: usize, files: &Worktree) -> Result<Back, RunnerError> {
        let gone = || FixError::NoPatch { id: fix.fix_id.clone() };
        let touched = fix.touched.get(index).ok_or_else(gone)?;
        let present = files.read(&touched.path)?;
        let now = present.as_ref().map(|present| hash(&present.content));
        if now == touched.before {
            return Ok(Back::There);
        }
        let before = self.store.before(&fix.fix_id, index)?.filter(|content| Some(hash(content)) == touched.before);
        if now == touched.after {
            return Ok(match touched.before {
                Some(_) => Back::Write { content: before.ok_or_else(gone)?, mode: touched.mode },
                None => Back::Remove,
            });
        }
        // Somebody went on from what the fix left: only its own lines are taken back.
        let changed = || FixError::ChangedSince { path: touched.path.clone() };
        let (Some(present), Some(before)) = (present, before) else { return Err(changed().into()) };
        let patches = self.patches(fix)?;
        let patch = patches.get(index).filter(|patch| patch.deed == FileDeed::Modify).ok_or_else(changed)?;
        let after = lay::lay(&before, patch, self.edits_since(patch, &before)?.as_deref()).map_err(|_| changed())?;
        if Some(hash(&after)) != touched.after {
            return Err(changed().into());
        }
        let content = self.repo.merged(&after, &present.content, &before)?.ok_or_else(changed)?;
        Ok(Back::Write { content, mode: present.mode })
    }

    /// The user's word about the findings of a fix: one step for `undo`. Findings about which something else was decided
    /// meanwhile are left alone.
    fn decide_findings(&self, fix: &Fix, status: FindingStatus) -> Result<(), RunnerError> {
        let (at, step) = (self.ambient.now(), self.ambient.run_id().as_str().replacen("ar_", "t_", 1));
        let (action, word, group) = match status {
            FindingStatus::Addressed => (TriageAction::Redo, "applied", group_of_fix(&fix.fix_id, &step)),
            _ => (TriageAction::Undo, "undone", step),
        };
        self.store.decide(|log| {
            let again = step_of_fix(log, &fix.fix_id, action, at);
            if !again.is_empty() {
                return Ok(again);
            }
            let lines = fix.fixed().filter_map(|id| {
                let previous = status_after(log, id);
                // Taken back is only what the fix claimed.
                let wanted = match status {
                    FindingStatus::Addressed => previous.is_undecided(),
                    _ => previous == FindingStatus::Addressed,
                };
                let allowed = wanted && policy::may_set(Actor::User, previous, status).is_ok();
                allowed.then(|| Disposition {
                    finding_id: id.clone(),
                    status,
                    previous,
                    actor: Actor::User,
                    reason: format!("fix {} {word}", fix.fix_id),
                    at,
                    action: TriageAction::Set,
                    group: group.clone(),
                    run_id: None,
                })
            });
            Ok::<_, StoreError>(lines.collect())
        })?;
        Ok(())
    }
}

/// How a touched file becomes what it was.
enum Back {
    /// It is.
    There,
    Write {
        content: Vec<u8>,
        mode: u32,
    },
    Remove,
}

/// What a touched file is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    After,
}

fn states(fix: &Fix, files: &Worktree) -> Result<Vec<State>, RunnerError> {
    fix.touched.iter().map(|touched| state(files, touched)).collect()
}

fn state(files: &Worktree, touched: &Touched) -> Result<State, RunnerError> {
    let present = files.read(&touched.path)?.map(|present| hash(&present.content));
    match present {
        present if present == touched.before => Ok(State::Before),
        present if present == touched.after => Ok(State::After),
        _ => {
            let what = "is neither as it was before the fix nor as the fix leaves it";
            Err(FixError::Missing { path: touched.path.clone(), what }.into())
        }
    }
}
