//! Detects cheaply that a repository or its worktree moved: git state, and a fingerprint of the worktree from `stat`
//! data.
//!
//! Invariants:
//! - Nothing is written. The only files read are git's own (index, settings, end of HEAD's reflog) and ignore rules;
//!   everything else is `stat` data and folder listings.
//! - Two equal fingerprints mean equal files, unless a program changed a file and restored its time and inode.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, RepositoryState};

use super::blocking_files::{check_git_dir, open_repository};
use super::index::GitIndex;
use super::scan::{StatusEntry, scan_worktree};
use super::watched_folders::WatchExclusions;
use super::{DEFAULT_GIT_PATIENCE, GitError, Repo, path_bytes, regular_file};
use crate::domain::{GitOperation, Scope, WatchTrigger};

/// State of git in a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitState {
    /// Same value as [`Repo::branch`].
    pub branch: String,
    /// Same value as [`Repo::head`].
    pub head: String,
    pub operation: Option<GitOperation>,
    /// Hash of the index entries.
    index: [u8; 32],
    /// `stat` identity of the index file at the time of the hash.
    index_file: Option<[u64; 4]>,
}

impl GitState {
    /// Returns true when the two states differ. An index file that was rewritten with the same entries counts as equal.
    pub fn differs_from(&self, other: &Self) -> bool {
        (&self.branch, &self.head, self.operation, self.index)
            != (&other.branch, &other.head, other.operation, other.index)
    }
}

/// Hash of the files that may differ from the index, with their inode, size, mode and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorktreeFingerprint([u8; 32]);

/// Maximum number of commits searched for the former HEAD among the first parents of the new HEAD.
const MAX_FIRST_PARENTS: usize = 1000;
/// Number of bytes read from the end of HEAD's reflog; enough for the last line, which has two hashes, a name and the
/// action.
const REFLOG_TAIL_BYTES: u64 = 4096;

/// Opens the repository that `GIT_DIR` names, if `worktree` is its worktree.
fn open_from_environment(worktree: &Path) -> Option<Repository> {
    let git_dir = std::env::var_os("GIT_DIR").filter(|value| !value.is_empty())?;
    check_git_dir(Path::new(&git_dir)).ok()?;
    let named = Repository::open_from_env().ok()?;
    let is_its = named.workdir()?.canonicalize().ok()? == worktree.canonicalize().ok()?;
    is_its.then_some(named)
}

impl Repo {
    /// Opens the repository of this worktree, regardless of the environment. When the worktree does not name its
    /// repository, the repository of `GIT_DIR` is used, if it belongs to the worktree.
    ///
    /// # Errors
    /// Returns an error when no repository can be opened.
    pub fn open_worktree(worktree: &Path) -> Result<Self, GitError> {
        let inner = match open_repository(worktree) {
            Err(failed @ GitError::Git { .. }) => open_from_environment(worktree).ok_or(failed)?,
            other => other?,
        };
        let index = inner.path().join("index");
        Ok(Self { inner, index, git_patience: DEFAULT_GIT_PATIENCE, converted_files: Default::default() })
    }

    /// Opens the repository of a worktree like [`Repo::open_worktree`], with the limit that this one has for the time in
    /// which the git program writes nothing.
    ///
    /// # Errors
    /// Returns an error when no repository can be opened.
    pub fn open_other_worktree(&self, worktree: &Path) -> Result<Self, GitError> {
        Ok(Self::open_worktree(worktree)?.with_git_patience(self.git_patience))
    }

    /// Returns the git dir of this working tree alone, with symbolic links resolved.
    pub fn git_dir(&self) -> PathBuf {
        let dir = self.inner.path();
        dir.canonicalize().unwrap_or_else(|_| dir.to_owned())
    }

    /// Lists the existing working trees of the repository; the main working tree is first, unless the repository is
    /// bare.
    pub fn worktrees(&self) -> Vec<PathBuf> {
        let main = match self.inner.path() == self.inner.commondir() {
            // `GIT_WORK_TREE` may set another worktree.
            true => self.inner.workdir().map(Path::to_owned),
            false => open_repository(&self.common_dir()).ok().and_then(|main| main.workdir().map(Path::to_owned)),
        };
        let linked = self.inner.worktrees().ok();
        let names = linked.iter().flat_map(|names| names.iter()).filter_map(|name| name.ok().flatten());
        let linked = names.filter_map(|name| Some(self.inner.find_worktree(name).ok()?.path().to_owned()));
        main.into_iter().chain(linked).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// Reads the git state. If the index file is the same as in `before`, the index is not read again.
    ///
    /// # Errors
    /// Returns an error when the index cannot be read.
    pub fn read_git_state(&self, before: Option<&GitState>) -> Result<GitState, GitError> {
        let index_file = stat_identity(&self.index);
        let index = match before.filter(|before| before.index_file == index_file && index_file.is_some()) {
            Some(before) => before.index,
            None => self.hash_index()?,
        };
        Ok(GitState { branch: self.branch(), head: self.head(), operation: self.operation(), index, index_file })
    }

    fn hash_index(&self) -> Result<[u8; 32], GitError> {
        let index = GitIndex::read(&self.index, self.inner.path())?;
        let mut hash = blake3::Hasher::new();
        for entry in &index.entries {
            hash.update(index.path(entry)).update(&[0]).update(entry.id.as_bytes()).update(&entry.mode.to_be_bytes());
        }
        Ok(*hash.finalize().as_bytes())
    }

    /// Returns the git operation in progress, such as a merge or a rebase.
    pub fn operation(&self) -> Option<GitOperation> {
        Some(match self.inner.state() {
            RepositoryState::Clean => return None,
            RepositoryState::Merge => GitOperation::Merge,
            RepositoryState::Revert | RepositoryState::RevertSequence => GitOperation::Revert,
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => GitOperation::CherryPick,
            RepositoryState::Bisect => GitOperation::Bisect,
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailbox
            | RepositoryState::ApplyMailboxOrRebase => GitOperation::Rebase,
        })
    }

    /// Returns the action that moved HEAD from `before` to `now`; `None` when HEAD did not move. The action comes from
    /// HEAD's reflog, or from the commit graph when the reflog does not help.
    pub fn detect_movement(&self, before: &GitState, now: &GitState) -> Option<WatchTrigger> {
        if (&before.head, &before.branch) == (&now.head, &now.branch) {
            return None;
        }
        let told = self.last_reflog_action(&now.head).and_then(|action| movement_from_action(&action));
        Some(told.unwrap_or_else(|| self.movement_from_history(before, now)))
    }

    /// Returns the commits between two tips of a branch as a scope. It is the single commit `to` when its parent is the
    /// merge base of `from` and `to`; otherwise it is the range from the merge base to `to`. An amended commit is
    /// included.
    pub fn scope_between(&self, from: &str, to: &str) -> Scope {
        let id = |text: &str| Oid::from_str(text).ok();
        let base = id(from).zip(id(to)).and_then(|(old, new)| self.inner.merge_base(old, new).ok());
        let parent = id(to).and_then(|new| self.inner.find_commit(new).ok()?.parent_id(0).ok());
        let short = |text: &str| id(text).map_or_else(|| text.to_owned(), |id| self.short_id(id));
        match base {
            Some(base) if parent.is_some_and(|parent| parent != base) => {
                Scope::Range { from: self.short_id(base), to: short(to) }
            }
            _ => Scope::Commit(short(to)),
        }
    }

    /// Returns the id of the commit at the tip of a local branch.
    pub fn local_branch_tip(&self, branch: &str) -> Option<String> {
        self.check_revision(branch).ok()?;
        let branch = self.inner.find_branch(branch, git2::BranchType::Local).ok()?;
        branch.get().peel_to_commit().ok().map(|commit| commit.id().to_string())
    }

    /// Returns the action in the last line of HEAD's reflog, if the line belongs to the commit `head`.
    fn last_reflog_action(&self, head: &str) -> Option<String> {
        let mut file = regular_file::open_linked(&self.inner.path().join("logs").join("HEAD")).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(REFLOG_TAIL_BYTES))).ok()?;
        let mut tail = Vec::new();
        file.take(REFLOG_TAIL_BYTES).read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        let (ids, action) = tail.trim_end_matches('\n').rsplit('\n').next()?.split_once('\t')?;
        (ids.split(' ').nth(1) == Some(head)).then(|| action.to_owned())
    }

    fn movement_from_history(&self, before: &GitState, now: &GitState) -> WatchTrigger {
        if before.branch != now.branch {
            return WatchTrigger::Checkout;
        }
        let commit = |id: &str| Oid::from_str(id).and_then(|id| self.inner.find_commit(id)).ok();
        let (old, new) = match (commit(&before.head), commit(&now.head)) {
            (Some(old), Some(new)) => (old, new),
            // HEAD has its first commit, or the branch is unborn again.
            (_, new) => return if new.is_some() { WatchTrigger::Commit } else { WatchTrigger::Checkout },
        };
        if is_first_parent_ancestor(&old, &new) {
            WatchTrigger::Commit
        } else if old.parent_ids().eq(new.parent_ids()) {
            WatchTrigger::Amend
        } else if is_first_parent_ancestor(&new, &old) {
            WatchTrigger::Checkout
        } else {
            WatchTrigger::Rebase
        }
    }

    /// Computes the fingerprint of the worktree, with a `stat` call for each tracked file and each untracked file that
    /// is not ignored.
    ///
    /// # Errors
    /// Returns an error when there is no worktree or the index cannot be read.
    pub fn compute_worktree_fingerprint(&self, quiet: &WatchExclusions) -> Result<WorktreeFingerprint, GitError> {
        let root = self.worktree_root()?;
        let index = GitIndex::read(&self.index, self.inner.path())?;
        let config = self.worktree_config();
        let shared = self.shared_ignore_rules(&config);
        let mut seen: Vec<(Vec<u8>, u8)> = scan_worktree(&root, &index, config.compare, &shared)?
            .into_iter()
            .map(|seen| match seen {
                StatusEntry::MaybeModified(at, _) => (entry_path(&index, at), b'd'),
                StatusEntry::Missing(at) => (entry_path(&index, at), b'm'),
                StatusEntry::Untracked(path, _) => (path, b'u'),
                StatusEntry::Unreadable(path) | StatusEntry::UnreadableUntracked(path) => (path, b'c'),
            })
            .filter(|(path, _)| !quiet.is_excluded(path))
            .collect();
        seen.sort_unstable();
        let mut hash = blake3::Hasher::new();
        for (path, sort) in &seen {
            hash.update(path).update(&[0, *sort]);
            // A missing file has no identity and is already marked by its kind; the time of its folder would only
            // reflect other files.
            for part in stat_identity(&path_bytes::join_path(&root, path)).unwrap_or_default() {
                hash.update(&part.to_be_bytes());
            }
        }
        Ok(WorktreeFingerprint(*hash.finalize().as_bytes()))
    }
}

/// Returns true when `old` is among the first-parent ancestors of `new`.
fn is_first_parent_ancestor(old: &git2::Commit<'_>, new: &git2::Commit<'_>) -> bool {
    let firsts = std::iter::successors(new.parent(0).ok(), |commit| commit.parent(0).ok());
    firsts.take(MAX_FIRST_PARENTS).any(|commit| commit.id() == old.id())
}

fn entry_path(index: &GitIndex, at: usize) -> Vec<u8> {
    index.entries.get(at).map(|entry| index.path(entry).to_vec()).unwrap_or_default()
}

/// Returns inode, size, mode and modification time, which distinguish two contents of a file without reading them.
fn stat_identity(path: &Path) -> Option<[u64; 4]> {
    let metadata = path.symlink_metadata().ok()?;
    let time = (metadata.mtime() as u64, metadata.mtime_nsec() as u64);
    Some([metadata.ino(), metadata.size() ^ (u64::from(metadata.mode()) << 40), time.0, time.1])
}

/// Parses the action in a reflog line; `None` for an action that git does not write.
fn movement_from_action(action: &str) -> Option<WatchTrigger> {
    let (what, _) = action.split_once(':')?;
    let word = what.split([' ', '(']).next().unwrap_or_default();
    Some(match word {
        _ if what.contains("(finish)") => WatchTrigger::Rebase,
        "commit" if what.contains("(amend)") => WatchTrigger::Amend,
        "commit" | "cherry-pick" | "revert" | "am" => WatchTrigger::Commit,
        "rebase" => WatchTrigger::Rebase,
        "checkout" | "reset" | "pull" | "merge" | "clone" | "switch" => WatchTrigger::Checkout,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn another_worktree_has_the_same_limit_for_git() {
        let folder = tempfile::tempdir().expect("a folder");
        Repository::init(folder.path()).expect("a repository");
        let patience = std::time::Duration::from_secs(7);
        let repo = Repo::discover(folder.path()).expect("a repository").with_git_patience(patience);
        let other = repo.open_other_worktree(folder.path()).expect("a repository");
        assert_eq!(other.git_patience, patience);
        assert_eq!(repo.discover_again().expect("a repository").git_patience, patience);
    }

    #[rstest]
    #[case("commit: Fix: it", Some(WatchTrigger::Commit))]
    #[case("commit (initial): Begin", Some(WatchTrigger::Commit))]
    #[case("commit (merge): Merge branch 'a'", Some(WatchTrigger::Commit))]
    #[case("commit (cherry-pick): Pick", Some(WatchTrigger::Commit))]
    #[case("commit (amend): Fix", Some(WatchTrigger::Amend))]
    #[case("cherry-pick: Pick", Some(WatchTrigger::Commit))]
    #[case("revert: Revert \"x\"", Some(WatchTrigger::Commit))]
    #[case("rebase (finish): returning to refs/heads/topic", Some(WatchTrigger::Rebase))]
    #[case("rebase -i (finish): returning to refs/heads/topic", Some(WatchTrigger::Rebase))]
    #[case("pull --rebase (finish): returning to refs/heads/main", Some(WatchTrigger::Rebase))]
    #[case("pull: Fast-forward", Some(WatchTrigger::Checkout))]
    #[case("merge topic: Fast-forward", Some(WatchTrigger::Checkout))]
    #[case("reset: moving to HEAD~1", Some(WatchTrigger::Checkout))]
    #[case("checkout: moving from main to topic", Some(WatchTrigger::Checkout))]
    #[case("stack restack: topic", None)]
    #[case("", None)]
    fn actions_of_the_log(#[case] action: &str, #[case] expected: Option<WatchTrigger>) {
        assert_eq!(movement_from_action(action), expected);
    }
}
