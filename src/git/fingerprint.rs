//! Whether anything moved, without reading what: where git stands, and what the worktree looks like from outside.
//!
//! Invariants: nothing is written; of files only the index and the end of HEAD's log are read, everything else is `stat`.
//! Two equal glances are of the same files unless somebody changed one and set its time and inode back.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, RepositoryState};

use super::index::GitIndex;
use super::scan::{StatusEntry, scan_worktree};
use super::watched_folders::WatchExclusions;
use super::{GitError, Repo, path_bytes};
use crate::domain::{GitOperation, Scope, WatchTrigger};

/// Where git stands in one working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitState {
    /// As [`Repo::branch`].
    pub branch: String,
    /// As [`Repo::head`].
    pub head: String,
    pub operation: Option<GitOperation>,
    /// What the index holds, and the file as it was when that was read.
    index: [u8; 32],
    index_file: Option<[u64; 4]>,
}

impl GitState {
    /// Whether something moved between the two: an index that was written anew and holds the same does not count.
    pub fn differs_from(&self, other: &Self) -> bool {
        (&self.branch, &self.head, self.operation, self.index)
            != (&other.branch, &other.head, other.operation, other.index)
    }
}

/// The files of a worktree that may differ from its index, by name, size and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorktreeFingerprint([u8; 32]);

/// How far back the former HEAD is looked for below the new one, in commits.
const MAX_FIRST_PARENTS: usize = 1000;
/// A line of HEAD's log is hardly longer: two hashes, a name and what was done.
const REFLOG_TAIL_BYTES: u64 = 4096;

/// The repository that the environment names, if this is its worktree.
fn open_from_environment(worktree: &Path) -> Option<Repository> {
    std::env::var_os("GIT_DIR").filter(|value| !value.is_empty())?;
    let named = Repository::open_from_env().ok()?;
    let is_its = named.workdir()?.canonicalize().ok()? == worktree.canonicalize().ok()?;
    is_its.then_some(named)
}

impl Repo {
    /// The repository of this very worktree, whatever the environment says; but for a worktree in which nothing says where
    /// its repository is, the one that `GIT_DIR` names for it.
    pub fn open_worktree(worktree: &Path) -> Result<Self, GitError> {
        let failed = |error| GitError::from_git2("open the repository", worktree, error);
        let inner =
            Repository::open(worktree).or_else(|error| open_from_environment(worktree).ok_or_else(|| failed(error)))?;
        let index = inner.path().join("index");
        Ok(Self { inner, index })
    }

    /// The git dir of this working tree alone, without symbolic links in it.
    pub fn git_dir(&self) -> PathBuf {
        let dir = self.inner.path();
        dir.canonicalize().unwrap_or_else(|_| dir.to_owned())
    }

    /// The working trees that share the repository and are there: the main one first, unless it is bare.
    pub fn worktrees(&self) -> Vec<PathBuf> {
        let main = match self.inner.path() == self.inner.commondir() {
            // Its worktree may be where `GIT_WORK_TREE` says.
            true => self.inner.workdir().map(Path::to_owned),
            false => Repository::open(self.common_dir()).ok().and_then(|main| main.workdir().map(Path::to_owned)),
        };
        let linked = self.inner.worktrees().ok();
        let names = linked.iter().flat_map(|names| names.iter()).filter_map(|name| name.ok().flatten());
        let linked = names.filter_map(|name| Some(self.inner.find_worktree(name).ok()?.path().to_owned()));
        main.into_iter().chain(linked).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// Where git stands; `before` spares reading an index that is the same file as then.
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

    /// What git is in the middle of.
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

    /// What brought HEAD from one place to the other; `None` when it stands where it stood. The word that git wrote into
    /// HEAD's log counts, and where there is none, how the commits lie to each other.
    pub fn detect_movement(&self, before: &GitState, now: &GitState) -> Option<WatchTrigger> {
        if (&before.head, &before.branch) == (&now.head, &now.branch) {
            return None;
        }
        let told = self.last_reflog_action(&now.head).and_then(|action| movement_from_action(&action));
        Some(told.unwrap_or_else(|| self.movement_from_history(before, now)))
    }

    /// The commits that a branch got on its way from one commit to another, as a scope: the last one alone, unless others
    /// lie between it and what both have in common. A commit that was amended on the way is among them.
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

    /// The commit at the tip of a local branch.
    pub fn local_branch_tip(&self, branch: &str) -> Option<String> {
        let branch = self.inner.find_branch(branch, git2::BranchType::Local).ok()?;
        branch.get().peel_to_commit().ok().map(|commit| commit.id().to_string())
    }

    /// What the last line of HEAD's log says, when it is about this commit.
    fn last_reflog_action(&self, head: &str) -> Option<String> {
        let mut file = std::fs::File::open(self.inner.path().join("logs").join("HEAD")).ok()?;
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
            // The first commit; or the branch is unborn again.
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

    /// What the worktree looks like now: one `stat` for each tracked file and each file that git does not ignore.
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
            // That a file went missing is said already; its folder's time would only speak of its neighbours.
            for part in stat_identity(&path_bytes::join_path(&root, path)).unwrap_or_default() {
                hash.update(&part.to_be_bytes());
            }
        }
        Ok(WorktreeFingerprint(*hash.finalize().as_bytes()))
    }
}

/// Whether a commit is among the first parents of another.
fn is_first_parent_ancestor(old: &git2::Commit<'_>, new: &git2::Commit<'_>) -> bool {
    let firsts = std::iter::successors(new.parent(0).ok(), |commit| commit.parent(0).ok());
    firsts.take(MAX_FIRST_PARENTS).any(|commit| commit.id() == old.id())
}

fn entry_path(index: &GitIndex, at: usize) -> Vec<u8> {
    index.entries.get(at).map(|entry| index.path(entry).to_vec()).unwrap_or_default()
}

/// Inode, size and time: what tells one content of a file from the next without reading it.
fn stat_identity(path: &Path) -> Option<[u64; 4]> {
    let metadata = path.symlink_metadata().ok()?;
    let time = (metadata.mtime() as u64, metadata.mtime_nsec() as u64);
    Some([metadata.ino(), metadata.size() ^ (u64::from(metadata.mode()) << 40), time.0, time.1])
}

/// The sort of movement that git's word in HEAD's log stands for; `None` for a word that is not git's own.
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
