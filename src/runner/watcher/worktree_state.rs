//! The state of one watched worktree: its last known state, what moved, and the movements that wait for a verdict.
//!
//! - A movement is detected by comparing states, never taken from an event.
//! - While a git operation is in progress, HEAD counts as unchanged.

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
/// Interval of checks while something keeps changing, so that the epoch does not wait for the end of the changes.
const MAX_SETTLE_WAIT: Duration = Duration::from_secs(2);

/// A disturbance by events that may or may not be a movement.
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
    /// The announced reason of the wait.
    pub announced: Option<NoReviewReason>,
    /// Number of failed verdicts.
    pub failures: u32,
}

/// New commits on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitSpan {
    pub branch: String,
    /// The branch's commit before; empty for a new branch.
    pub from: String,
    pub to: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookResult {
    Nothing,
    /// Something differs from the last check.
    Moved,
}

pub(super) struct WatchedWorktree {
    pub root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// Device and inode of the worktree and its git dir. Folders with other numbers are new folders.
    identity: [[u64; 2]; 2],
    folders: WatchedFolders,
    quiet: WatchExclusions,

    /// The state of git at the last verdict.
    handled: GitState,
    /// The state of git at the last check.
    pub stance: GitState,
    /// A rebase was seen since `handled`.
    rebased: bool,
    /// Time of git's last movement that is not handled yet.
    git_moved: Option<Instant>,
    git_stir: Option<Disturbance>,

    glance: WorktreeFingerprint,
    files_stir: Option<Disturbance>,

    pub pending: Vec<PendingMovement>,
    /// Time of the last requested review of the worktree.
    pub asked: Option<Instant>,
}

impl WatchedWorktree {
    /// Reads the state of a worktree.
    ///
    /// # Errors
    ///
    /// If git cannot read it.
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

    /// Watches everything that can reveal a movement.
    ///
    /// # Errors
    ///
    /// The reason, in words, why not everything can be watched.
    pub fn watch(&mut self, eye: &mut FsEventSource) -> Result<(), String> {
        for folder in [&self.git_dir, &self.common_dir] {
            eye.watch_folder(folder)?;
        }
        // If they exist: the settings of ignored files, and other worktrees.
        for name in ["info", "worktrees"] {
            eye.watch_folder(&self.common_dir.join(name))?;
        }
        eye.watch_tree(&self.common_dir.join("refs").join("heads"))?;
        let root = self.root.clone();
        eye.watch_worktree_folder(&mut self.folders, &root, &root)
    }

    /// Watches the worktree from scratch, because the ignore rules may have changed.
    ///
    /// # Errors
    ///
    /// The reason, in words, why not everything can be watched.
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

    /// Returns `true` if the folders are gone or were replaced.
    pub fn is_gone(&self) -> bool {
        [path_identity(&self.root), path_identity(&self.git_dir)] != self.identity
    }

    /// Handles an event for a path of this worktree or its git dir.
    ///
    /// # Errors
    ///
    /// The reason, in words, why not everything can be watched.
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
            // Git writes to a `.lock` file and renames it; only the final name counts.
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

    /// Marks git and files as disturbed.
    pub fn mark_disturbed(&mut self, now: Instant) {
        Disturbance::extend(&mut self.git_stir, now);
        Disturbance::extend(&mut self.files_stir, now);
    }

    /// Marks git and files as disturbed, with the check due at once. For polling, where no event shows the end of the
    /// changes.
    pub fn mark_due(&mut self, now: Instant) {
        let stir = Disturbance { since: now.checked_sub(MAX_SETTLE_WAIT).unwrap_or(now), last: now };
        self.git_stir.get_or_insert(stir);
        self.files_stir.get_or_insert(stir);
    }

    /// Checks what is due.
    ///
    /// # Errors
    ///
    /// If git cannot read the worktree.
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
            // Movements that wait for the next movement are due now.
            self.pending.iter_mut().filter(|pending| pending.due.is_none()).for_each(|pending| pending.due = Some(now));
        }
        Ok(found)
    }

    /// Turns the last movement of git into a pending movement, once git is quiet.
    ///
    /// # Errors
    ///
    /// If git cannot read the worktree.
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
                    // Commits that were made and undone on the same branch no longer exist.
                    let stays = before.branch == self.stance.branch;
                    self.pending
                        .retain(|known| !stays || known.span.as_ref().is_none_or(|span| span.branch != before.branch));
                    // A commit directly before a switch to another branch still counts as a commit.
                    let left = Some(&before.branch).filter(|branch| **branch != self.stance.branch);
                    let tip = left.and_then(|branch| repo.local_branch_tip(branch)).filter(|tip| *tip != before.head);
                    if let (Some(branch), Some(tip)) = (left, tip) {
                        self.queue_movement(WatchTrigger::Commit, Some(span(branch, &tip)), moved);
                    }
                    self.queue_movement(movement, None, moved);
                }
            }
            // With another HEAD, the same files are other changes.
            Disturbance::extend(&mut self.files_stir, now);
        }
        Ok(())
    }

    /// Queues a movement. A pending movement is extended if the new one continues it.
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
                    // A commit that is amended before the verdict is still a new commit.
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

    /// Returns the time of the next action.
    pub fn due(&self) -> Option<Instant> {
        let looks =
            [self.git_stir.map(|stir| stir.due(SETTLE_TIME / 3)), self.files_stir.map(|stir| stir.due(SETTLE_TIME))];
        // During a disturbance the check comes first.
        let settles = self.git_moved.filter(|_| self.git_stir.is_none()).map(|moved| moved + SETTLE_TIME);
        let pending = self.pending.iter().filter_map(|pending| pending.due);
        looks.into_iter().flatten().chain(settles).chain(pending).min()
    }

    /// Schedules another check after a failed one.
    pub fn retry_later(&mut self, now: Instant) {
        let stir = Disturbance { since: now + MAX_SETTLE_WAIT, last: now + MAX_SETTLE_WAIT };
        (self.git_stir, self.files_stir) = (Some(stir), Some(stir));
    }

    pub fn folder_count(&self) -> usize {
        self.folders.len()
    }
}

/// Returns the paths whose changes are no movement: those that no review reads, and those of the watcher's own
/// settings.
fn quiet_paths(settings: &Settings) -> WatchExclusions {
    WatchExclusions::new(&[settings.ignored_paths.as_slice(), &settings.watch.ignored_paths].concat())
}

fn path_identity(path: &Path) -> [u64; 2] {
    path.symlink_metadata().map_or([0, 0], |metadata| [metadata.dev(), metadata.ino()])
}
