//! Whether anything moved, without reading what: where git stands, and what the worktree looks like from outside.
//!
//! Invariants: nothing is written; of files only the index and the end of HEAD's log are read, everything else is `stat`.
//! Two equal glances are of the same files unless somebody changed one and set its time and inode back.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, RepositoryState};

use super::index::Index;
use super::roam::Quiet;
use super::scan::{Seen, scan};
use super::{GitError, Repo, bytes};
use crate::domain::{Movement, Operation, Scope};

/// Where git stands in one working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stance {
    /// As [`Repo::branch`].
    pub branch: String,
    /// As [`Repo::head`].
    pub head: String,
    pub operation: Option<Operation>,
    /// What the index holds, and the file as it was when that was read.
    index: [u8; 32],
    index_file: Option<[u64; 4]>,
}

impl Stance {
    /// Whether something moved between the two: an index that was written anew and holds the same does not count.
    pub fn differs(&self, other: &Self) -> bool {
        (&self.branch, &self.head, self.operation, self.index)
            != (&other.branch, &other.head, other.operation, other.index)
    }
}

/// The files of a worktree that may differ from its index, by name, size and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance([u8; 32]);

/// How far back the former HEAD is looked for below the new one, in commits.
const WAY_BACK: usize = 1000;
/// A line of HEAD's log is hardly longer: two hashes, a name and what was done.
const LOG_TAIL: u64 = 4096;

/// The repository that the environment names, if this is its worktree.
fn named_for(worktree: &Path) -> Option<Repository> {
    std::env::var_os("GIT_DIR").filter(|value| !value.is_empty())?;
    let named = Repository::open_from_env().ok()?;
    let is_its = named.workdir()?.canonicalize().ok()? == worktree.canonicalize().ok()?;
    is_its.then_some(named)
}

impl Repo {
    /// The repository of this very worktree, whatever the environment says; but for a worktree in which nothing says where
    /// its repository is, the one that `GIT_DIR` names for it.
    pub fn at(worktree: &Path) -> Result<Self, GitError> {
        let failed = |error| GitError::git("open the repository", worktree, error);
        let inner = Repository::open(worktree).or_else(|error| named_for(worktree).ok_or_else(|| failed(error)))?;
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
    pub fn stance(&self, before: Option<&Stance>) -> Result<Stance, GitError> {
        let index_file = identity(&self.index);
        let index = match before.filter(|before| before.index_file == index_file && index_file.is_some()) {
            Some(before) => before.index,
            None => self.index_digest()?,
        };
        Ok(Stance { branch: self.branch(), head: self.head(), operation: self.operation(), index, index_file })
    }

    fn index_digest(&self) -> Result<[u8; 32], GitError> {
        let index = Index::read(&self.index, self.inner.path())?;
        let mut hash = blake3::Hasher::new();
        for entry in &index.entries {
            hash.update(index.path(entry)).update(&[0]).update(entry.id.as_bytes()).update(&entry.mode.to_be_bytes());
        }
        Ok(*hash.finalize().as_bytes())
    }

    /// What git is in the middle of.
    pub fn operation(&self) -> Option<Operation> {
        Some(match self.inner.state() {
            RepositoryState::Clean => return None,
            RepositoryState::Merge => Operation::Merge,
            RepositoryState::Revert | RepositoryState::RevertSequence => Operation::Revert,
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Operation::CherryPick,
            RepositoryState::Bisect => Operation::Bisect,
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailbox
            | RepositoryState::ApplyMailboxOrRebase => Operation::Rebase,
        })
    }

    /// What brought HEAD from one place to the other; `None` when it stands where it stood. The word that git wrote into
    /// HEAD's log counts, and where there is none, how the commits lie to each other.
    pub fn movement(&self, before: &Stance, now: &Stance) -> Option<Movement> {
        if (&before.head, &before.branch) == (&now.head, &now.branch) {
            return None;
        }
        let told = self.last_action(&now.head).and_then(|action| of_action(&action));
        Some(told.unwrap_or_else(|| self.by_history(before, now)))
    }

    /// The commits that a branch got on its way from one commit to another, as a scope: the last one alone, unless others
    /// lie between it and what both have in common. A commit that was amended on the way is among them.
    pub fn made(&self, from: &str, to: &str) -> Scope {
        let id = |text: &str| Oid::from_str(text).ok();
        let base = id(from).zip(id(to)).and_then(|(old, new)| self.inner.merge_base(old, new).ok());
        let parent = id(to).and_then(|new| self.inner.find_commit(new).ok()?.parent_id(0).ok());
        let short = |text: &str| id(text).map_or_else(|| text.to_owned(), |id| self.short(id));
        match base {
            Some(base) if parent.is_some_and(|parent| parent != base) => {
                Scope::Range { from: self.short(base), to: short(to) }
            }
            _ => Scope::Commit(short(to)),
        }
    }

    /// The commit at the tip of a local branch.
    pub fn tip(&self, branch: &str) -> Option<String> {
        let branch = self.inner.find_branch(branch, git2::BranchType::Local).ok()?;
        branch.get().peel_to_commit().ok().map(|commit| commit.id().to_string())
    }

    /// What the last line of HEAD's log says, when it is about this commit.
    fn last_action(&self, head: &str) -> Option<String> {
        let mut file = std::fs::File::open(self.inner.path().join("logs").join("HEAD")).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL))).ok()?;
        let mut tail = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        let (ids, action) = tail.trim_end_matches('\n').rsplit('\n').next()?.split_once('\t')?;
        (ids.split(' ').nth(1) == Some(head)).then(|| action.to_owned())
    }

    fn by_history(&self, before: &Stance, now: &Stance) -> Movement {
        if before.branch != now.branch {
            return Movement::Checkout;
        }
        let commit = |id: &str| Oid::from_str(id).and_then(|id| self.inner.find_commit(id)).ok();
        let (old, new) = match (commit(&before.head), commit(&now.head)) {
            (Some(old), Some(new)) => (old, new),
            // The first commit; or the branch is unborn again.
            (_, new) => return if new.is_some() { Movement::Commit } else { Movement::Checkout },
        };
        if is_below(&old, &new) {
            Movement::Commit
        } else if old.parent_ids().eq(new.parent_ids()) {
            Movement::Amend
        } else if is_below(&new, &old) {
            Movement::Checkout
        } else {
            Movement::Rebase
        }
    }

    /// What the worktree looks like now: one `stat` for each tracked file and each file that git does not ignore.
    pub fn glance(&self, quiet: &Quiet) -> Result<Glance, GitError> {
        let root = self.worktree()?;
        let index = Index::read(&self.index, self.inner.path())?;
        let config = self.comparing();
        let shared = self.excludes(&config);
        let mut seen: Vec<(Vec<u8>, u8)> = scan(&root, &index, config.compare, &shared)?
            .into_iter()
            .map(|seen| match seen {
                Seen::Suspect(at, _) => (path_at(&index, at), b'd'),
                Seen::Missing(at) => (path_at(&index, at), b'm'),
                Seen::Untracked(path, _) => (path, b'u'),
                Seen::Unreadable(path) | Seen::Closed(path) => (path, b'c'),
            })
            .filter(|(path, _)| !quiet.holds(path))
            .collect();
        seen.sort_unstable();
        let mut hash = blake3::Hasher::new();
        for (path, sort) in &seen {
            hash.update(path).update(&[0, *sort]);
            // That a file went missing is said already; its folder's time would only speak of its neighbours.
            for part in identity(&bytes::below(&root, path)).unwrap_or_default() {
                hash.update(&part.to_be_bytes());
            }
        }
        Ok(Glance(*hash.finalize().as_bytes()))
    }
}

/// Whether a commit is among the first parents of another.
fn is_below(old: &git2::Commit<'_>, new: &git2::Commit<'_>) -> bool {
    let firsts = std::iter::successors(new.parent(0).ok(), |commit| commit.parent(0).ok());
    firsts.take(WAY_BACK).any(|commit| commit.id() == old.id())
}

fn path_at(index: &Index, at: usize) -> Vec<u8> {
    index.entries.get(at).map(|entry| index.path(entry).to_vec()).unwrap_or_default()
}

/// Inode, size and time: what tells one content of a file from the next without reading it.
fn identity(path: &Path) -> Option<[u64; 4]> {
    let metadata = path.symlink_metadata().ok()?;
    let time = (metadata.mtime() as u64, metadata.mtime_nsec() as u64);
    Some([metadata.ino(), metadata.size() ^ (u64::from(metadata.mode()) << 40), time.0, time.1])
}

/// The sort of movement that git's word in HEAD's log stands for; `None` for a word that is not git's own.
fn of_action(action: &str) -> Option<Movement> {
    let (what, _) = action.split_once(':')?;
    let word = what.split([' ', '(']).next().unwrap_or_default();
    Some(match word {
        _ if what.contains("(finish)") => Movement::Rebase,
        "commit" if what.contains("(amend)") => Movement::Amend,
        "commit" | "cherry-pick" | "revert" | "am" => Movement::Commit,
        "rebase" => Movement::Rebase,
        "checkout" | "reset" | "pull" | "merge" | "clone" | "switch" => Movement::Checkout,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("commit: Fix: it", Some(Movement::Commit))]
    #[case("commit (initial): Begin", Some(Movement::Commit))]
    #[case("commit (merge): Merge branch 'a'", Some(Movement::Commit))]
    #[case("commit (cherry-pick): Pick", Some(Movement::Commit))]
    #[case("commit (amend): Fix", Some(Movement::Amend))]
    #[case("cherry-pick: Pick", Some(Movement::Commit))]
    #[case("revert: Revert \"x\"", Some(Movement::Commit))]
    #[case("rebase (finish): returning to refs/heads/topic", Some(Movement::Rebase))]
    #[case("rebase -i (finish): returning to refs/heads/topic", Some(Movement::Rebase))]
    #[case("pull --rebase (finish): returning to refs/heads/main", Some(Movement::Rebase))]
    #[case("pull: Fast-forward", Some(Movement::Checkout))]
    #[case("merge topic: Fast-forward", Some(Movement::Checkout))]
    #[case("reset: moving to HEAD~1", Some(Movement::Checkout))]
    #[case("checkout: moving from main to topic", Some(Movement::Checkout))]
    #[case("stack restack: topic", None)]
    #[case("", None)]
    fn actions_of_the_log(#[case] action: &str, #[case] expected: Option<Movement>) {
        assert_eq!(of_action(action), expected);
    }
}
