//! One worktree under watch: what is known of it, what moved, and what waits for a verdict.
//!
//! Invariants: what moved is found out by comparing, never taken from an event's word; while git is in the middle of
//! something, HEAD counts as standing where it stood before.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::fs_events::FsEventSource;
use super::queue::PathEventKind;
use crate::config::Settings;
use crate::domain::{GitOperation, WatchTrigger};
use crate::git::{GitError, GitState, Repo, WatchExclusions, WatchedFolders, WorktreeFingerprint};
use crate::policy::{MIN_SETTLE_MS, NoReviewReason};

const SETTLE_TIME: Duration = Duration::from_millis(MIN_SETTLE_MS);
/// While something goes on moving it is looked at this often, so that the epoch does not wait for its end.
const MAX_SETTLE_WAIT: Duration = Duration::from_secs(2);

/// Something stirred; whether it moved is not known yet.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    since: Instant,
    last: Instant,
}

impl Disturbance {
    fn extend(this: &mut Option<Self>, now: Instant) {
        this.get_or_insert(Self { since: now, last: now }).last = now;
    }

    fn due(self, settle: Duration) -> Instant {
        (self.last + settle).min(self.since + MAX_SETTLE_WAIT)
    }
}

/// A movement that waits for a verdict.
#[derive(Debug)]
pub(super) struct PendingMovement {
    pub movement: WatchTrigger,
    /// The commits that were made, where some were: HEAD may have gone on when it is decided.
    pub span: Option<CommitSpan>,
    /// When it moved last.
    pub moved: Instant,
    /// When to decide; `None` for when something moves.
    pub due: Option<Instant>,
    /// What it waits for, as was said.
    pub announced: Option<NoReviewReason>,
    /// How often it could not be decided because something failed.
    pub failures: u32,
}

/// Commits that were made on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitSpan {
    pub branch: String,
    /// Where the branch stood before; empty for nowhere.
    pub from: String,
    pub to: String,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookResult {
    Nothing,
    /// Something is other than it was at the look before.
    Moved,
}

pub(super) struct WatchedWorktree {
    pub root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// Device and inode of the worktree and its git dir: others in their place are others.
    identity: [[u64; 2]; 2],
    folders: WatchedFolders,
    quiet: WatchExclusions,

    /// Where git stood when it was last decided about.
    handled: GitState,
    /// Where git stood at the last look.
    pub stance: GitState,
    /// A rebase was seen since `handled`.
    rebased: bool,
    /// When git moved last, if that is not handled.
    git_moved: Option<Instant>,
    git_stir: Option<Disturbance>,

    glance: WorktreeFingerprint,
    files_stir: Option<Disturbance>,

    pub pending: Vec<PendingMovement>,
    /// When a review of the worktree was asked for last.
    pub asked: Option<Instant>,
}

impl WatchedWorktree {
    pub fn new(root: &Path, settings: &Settings) -> Result<Self, GitError> {
        let repo = Repo::open_worktree(root)?;
        let root = repo.root();
        let quiet = quiet_paths(settings);
        let (git_dir, common_dir) = (repo.git_dir(), repo.common_dir());
        let stance = repo.read_git_state(None)?;
        Ok(Self {
            identity: [path_identity(&root), path_identity(&git_dir)],
            folders: repo.watched_folders(quiet.clone()),
            handled: stance.clone(),
            rebased: stance.operation == Some(GitOperation::Rebase),
            stance,
            git_moved: None,
            git_stir: None,
            glance: repo.compute_worktree_fingerprint(&quiet)?,
            files_stir: None,
            quiet,
            root,
            git_dir,
            common_dir,
            pending: Vec::new(),
            asked: None,
        })
    }

    /// Has the eye watch everything that can tell of a movement. The error says why it cannot.
    pub fn watch(&mut self, eye: &mut FsEventSource) -> Result<(), String> {
        for folder in [&self.git_dir, &self.common_dir] {
            eye.watch_folder(folder)?;
        }
        // Where they are there; the settings about ignored files, and other worktrees.
        for name in ["info", "worktrees"] {
            eye.watch_folder(&self.common_dir.join(name))?;
        }
        eye.watch_tree(&self.common_dir.join("refs").join("heads"))?;
        let root = self.root.clone();
        eye.watch_worktree_folder(&mut self.folders, &root, &root)
    }

    /// Goes through the worktree anew: the rules about ignored files may be others.
    pub fn watch_again(&mut self, eye: &mut FsEventSource) -> Result<(), String> {
        self.unwatch(eye);
        if let Ok(repo) = Repo::open_worktree(&self.root) {
            self.folders = repo.watched_folders(self.quiet.clone());
        }
        self.watch(eye)
    }

    pub fn unwatch(&mut self, eye: &mut FsEventSource) {
        eye.unwatch(&self.folders.leave(&self.root));
    }

    /// Whether the folders are gone, or others are in their place.
    pub fn is_gone(&self) -> bool {
        [path_identity(&self.root), path_identity(&self.git_dir)] != self.identity
    }

    /// Takes what the system told of a path, when it is one of this worktree or its git dir.
    pub fn handle_path_event(
        &mut self,
        path: &Path,
        happened: PathEventKind,
        now: Instant,
        eye: &mut FsEventSource,
    ) -> Result<(), String> {
        if path.starts_with(&self.git_dir) || path.starts_with(&self.common_dir) {
            if path.ends_with("info/exclude") {
                return self.reload_ignore_rules(now, eye);
            }
            // Git's own way of writing: only the name that it gets in the end counts.
            if path.extension().is_none_or(|extension| extension != "lock") {
                Disturbance::extend(&mut self.git_stir, now);
            }
            return Ok(());
        }
        if !path.starts_with(&self.root) || path == self.root {
            return Ok(());
        }
        let is_folder = match happened {
            PathEventKind::Gone => {
                let known = self.folders.leave(path);
                eye.unwatch(&known);
                !known.is_empty()
            }
            PathEventKind::Made | PathEventKind::Changed => {
                path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
            }
        };
        if self.folders.is_ignored(path, is_folder) {
            return Ok(());
        }
        Disturbance::extend(&mut self.files_stir, now);
        if path.ends_with(".gitignore") {
            return self.reload_ignore_rules(now, eye);
        }
        if is_folder && happened == PathEventKind::Made {
            let root = self.root.clone();
            eye.watch_worktree_folder(&mut self.folders, path, &root)?;
        }
        Ok(())
    }

    fn reload_ignore_rules(&mut self, now: Instant, eye: &mut FsEventSource) -> Result<(), String> {
        Disturbance::extend(&mut self.files_stir, now);
        self.watch_again(eye)
    }

    /// Anything may have moved.
    pub fn mark_disturbed(&mut self, now: Instant) {
        Disturbance::extend(&mut self.git_stir, now);
        Disturbance::extend(&mut self.files_stir, now);
    }

    /// As [`Ground::stir`], when nobody tells whether it is over: the look is due at once.
    pub fn mark_due(&mut self, now: Instant) {
        let stir = Disturbance { since: now.checked_sub(MAX_SETTLE_WAIT).unwrap_or(now), last: now };
        self.git_stir.get_or_insert(stir);
        self.files_stir.get_or_insert(stir);
    }

    /// Looks at what is due to be looked at.
    pub fn check_for_movement(&mut self, now: Instant) -> Result<LookResult, GitError> {
        let git = self.git_stir.filter(|stir| stir.due(SETTLE_TIME / 3) <= now);
        let files = self.files_stir.filter(|stir| stir.due(SETTLE_TIME) <= now);
        if git.is_none() && files.is_none() {
            return Ok(LookResult::Nothing);
        }
        let repo = Repo::open_worktree(&self.root)?;
        let mut found = LookResult::Nothing;
        if let Some(stir) = git {
            let stance = repo.read_git_state(Some(&self.stance))?;
            self.git_stir = None;
            if stance.differs_from(&self.stance) {
                found = LookResult::Moved;
                self.git_moved = Some(stir.last);
                self.rebased |= stance.operation == Some(GitOperation::Rebase);
            }
            self.stance = stance;
        }
        if let Some(stir) = files {
            let glance = repo.compute_worktree_fingerprint(&self.quiet)?;
            self.files_stir = None;
            if glance != self.glance {
                found = LookResult::Moved;
                self.glance = glance;
                self.queue_movement(WatchTrigger::Worktree, None, stir.last);
            }
        }
        if found == LookResult::Moved {
            // What waited for something to move.
            self.pending.iter_mut().filter(|pending| pending.due.is_none()).for_each(|pending| pending.due = Some(now));
        }
        Ok(found)
    }

    /// What git did becomes a movement, once it has done with it.
    pub fn settle_git_movement(&mut self, now: Instant) -> Result<(), GitError> {
        let Some(moved) = self.git_moved.filter(|moved| *moved + SETTLE_TIME <= now) else { return Ok(()) };
        if self.git_stir.is_some() {
            return Ok(());
        }
        if self.stance.operation.is_some() {
            self.git_moved = None;
            return Ok(());
        }
        let repo = Repo::open_worktree(&self.root)?;
        let movement = repo.detect_movement(&self.handled, &self.stance);
        self.git_moved = None;
        let movement = movement.map(|movement| if self.rebased { WatchTrigger::Rebase } else { movement });
        self.rebased = false;
        let before = std::mem::replace(&mut self.handled, self.stance.clone());
        if let Some(movement) = movement {
            let span = |branch: &str, to: &str| CommitSpan {
                branch: branch.to_owned(),
                from: before.head.clone(),
                to: to.to_owned(),
            };
            match movement {
                WatchTrigger::Commit | WatchTrigger::Amend => {
                    self.queue_movement(movement, Some(span(&self.stance.branch, &self.stance.head)), moved);
                }
                WatchTrigger::Rebase | WatchTrigger::Checkout | WatchTrigger::Worktree => {
                    // What was made and taken back on the same branch is no longer there.
                    let stays = before.branch == self.stance.branch;
                    self.pending
                        .retain(|known| !stays || known.span.as_ref().is_none_or(|span| span.branch != before.branch));
                    // Who commits and goes elsewhere in one breath has committed nevertheless.
                    let left = Some(&before.branch).filter(|branch| **branch != self.stance.branch);
                    let tip = left.and_then(|branch| repo.local_branch_tip(branch)).filter(|tip| *tip != before.head);
                    if let (Some(branch), Some(tip)) = (left, tip) {
                        self.queue_movement(WatchTrigger::Commit, Some(span(branch, &tip)), moved);
                    }
                    self.queue_movement(movement, None, moved);
                }
            }
            // The same files are other changes now that HEAD is another.
            Disturbance::extend(&mut self.files_stir, now);
        }
        Ok(())
    }

    /// What waits already goes on to wait as one with what came after it.
    fn queue_movement(&mut self, movement: WatchTrigger, span: Option<CommitSpan>, at: Instant) {
        let continues = |known: &PendingMovement| match (&known.span, &span) {
            (Some(earlier), Some(span)) => earlier.branch == span.branch && earlier.to == span.from,
            (None, None) => known.movement == movement,
            _ => false,
        };
        match self.pending.iter_mut().find(|known| continues(known)) {
            Some(known) => {
                if let (Some(earlier), Some(span)) = (&mut known.span, span) {
                    earlier.to = span.to;
                    // A commit that is amended before anybody looked is still one.
                    known.movement = known.movement.min(movement);
                }
                (known.moved, known.due, known.failures) = (at, Some(at), 0);
            }
            None => {
                self.pending.push(PendingMovement {
                    movement,
                    span,
                    moved: at,
                    due: Some(at),
                    announced: None,
                    failures: 0,
                });
            }
        }
    }

    /// When there is something to do next.
    pub fn due(&self) -> Option<Instant> {
        let looks =
            [self.git_stir.map(|stir| stir.due(SETTLE_TIME / 3)), self.files_stir.map(|stir| stir.due(SETTLE_TIME))];
        // With a stir the look comes first.
        let settles = self.git_moved.filter(|_| self.git_stir.is_none()).map(|moved| moved + SETTLE_TIME);
        let pending = self.pending.iter().filter_map(|pending| pending.due);
        looks.into_iter().flatten().chain(settles).chain(pending).min()
    }

    /// A look failed: again in a while.
    pub fn retry_later(&mut self, now: Instant) {
        let stir = Disturbance { since: now + MAX_SETTLE_WAIT, last: now + MAX_SETTLE_WAIT };
        (self.git_stir, self.files_stir) = (Some(stir), Some(stir));
    }

    pub fn folder_count(&self) -> usize {
        self.folders.len()
    }
}

/// The files whose movement is none: the ones that no review looks at, and those of the watcher alone.
fn quiet_paths(settings: &Settings) -> WatchExclusions {
    WatchExclusions::new(&[settings.ignored_paths.as_slice(), &settings.watch.ignored_paths].concat())
}

fn path_identity(path: &Path) -> [u64; 2] {
    path.symlink_metadata().map_or([0, 0], |metadata| [metadata.dev(), metadata.ino()])
}
