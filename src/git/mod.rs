//! Repository identity, snapshots, scopes, hunks, and reading from a snapshot.
//!
//! Invariants: the user's index, worktree, HEAD, stash and reflog are never touched; after a snapshot is taken,
//! everything is read from its immutable objects.

mod error;

pub use error::GitError;

use std::path::{Path, PathBuf};

use crate::domain::{LeftOut, LeftOutReason, LineRange, RunId, Scope};

/// A repository as seen from one working tree.
pub struct Repo {
    inner: git2::Repository,
}

/// What the settings say about which changed files are reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Files above this many bytes are left out as oversized.
    pub max_file_bytes: u64,
    /// Globs in the syntax of .gitignore.
    pub ignored_paths: Vec<String>,
}

/// The reviewed code, frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit the changes are held against; empty when there is none.
    pub base_commit: String,
    /// A commit that holds the snapshot's tree (made for the purpose when there is none).
    pub snapshot_commit: String,
    pub head_commit: String,
    /// Short name of the branch; empty when detached.
    pub branch: String,
    pub worktree: PathBuf,
    /// The scope with its names resolved, for instance the base that was guessed.
    pub scope: Scope,
    pub scope_hash: String,
    pub diff_fingerprint: String,
    pub change: Change,
}

/// What differs between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The files to review, by path.
    pub files: Vec<FileChange>,
    pub left_out: Vec<LeftOut>,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Renamed,
    Copied,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the repository, `/` between parts; bytes that are not UTF-8 as `\xNN`.
    pub path: String,
    pub old_path: Option<String>,
    pub kind: ChangeKind,
    /// Blob ids as hexadecimal; `old_blob` is `None` for an added file.
    pub old_blob: Option<String>,
    pub new_blob: String,
    pub hunks: Vec<Hunk>,
}

/// Changed lines on both sides, counted from 1, without context. A side with `lines == 0` names the line before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk {
    pub old_start: u32,
    pub old_lines: u32,
    pub new_start: u32,
    pub new_lines: u32,
}

impl Hunk {
    /// The added or changed lines on the new side; for a pure deletion the line before it.
    pub fn new_range(&self) -> LineRange {
        LineRange::new(self.new_start.max(1), (self.new_start + self.new_lines).saturating_sub(1).max(1))
    }
}

/// A file of a snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    pub path: String,
    pub blob: String,
}

impl Repo {
    /// The repository around `folder`.
    pub fn discover(_folder: &Path) -> Result<Self, GitError> {
        unimplemented!()
    }

    /// 16 hexadecimal digits from the common git dir, so that linked worktrees share one store.
    pub fn key(&self) -> String {
        unimplemented!()
    }

    /// The folder's name, for people.
    pub fn name(&self) -> String {
        unimplemented!()
    }

    pub fn common_dir(&self) -> PathBuf {
        self.inner.commondir().to_path_buf()
    }

    /// The working tree; the git dir for a bare repository.
    pub fn root(&self) -> PathBuf {
        unimplemented!()
    }

    /// Short name of the branch; empty when detached; the future branch's name when unborn.
    pub fn branch(&self) -> String {
        unimplemented!()
    }

    /// HEAD's commit; empty when unborn.
    pub fn head(&self) -> String {
        unimplemented!()
    }

    /// The worktree when it is dirty, else HEAD's commit.
    pub fn default_scope(&self) -> Result<Scope, GitError> {
        unimplemented!()
    }

    /// Freezes what `scope` names and computes what changed.
    pub fn snapshot(&self, _scope: &Scope, _filter: &Filter) -> Result<Snapshot, GitError> {
        unimplemented!()
    }

    /// The change between two commits again, as the worker needs it: from immutable objects only.
    /// An empty `base` means that all of the snapshot is new.
    pub fn change(&self, _base: &str, _snapshot: &str, _filter: &Filter) -> Result<Change, GitError> {
        unimplemented!()
    }

    /// Keeps a snapshot from gc: `refs/revdeck/snapshots/<run_id>`.
    pub fn keep(&self, _run: &RunId, _snapshot_commit: &str) -> Result<(), GitError> {
        unimplemented!()
    }

    /// Lets gc have a snapshot.
    pub fn release(&self, _run: &RunId) -> Result<(), GitError> {
        unimplemented!()
    }

    /// The runs whose snapshots are kept.
    pub fn kept(&self) -> Result<Vec<RunId>, GitError> {
        unimplemented!()
    }

    /// A blob's bytes.
    pub fn blob(&self, _id: &str) -> Result<Vec<u8>, GitError> {
        unimplemented!()
    }

    /// A file of a commit's tree; `None` when it is not there.
    pub fn file_at(&self, _commit: &str, _path: &str) -> Result<Option<Vec<u8>>, GitError> {
        unimplemented!()
    }

    /// Every ordinary file of a commit's tree, by path, and whether the filter would leave it out.
    pub fn tree_files(&self, _commit: &str) -> Result<Vec<TreeFile>, GitError> {
        unimplemented!()
    }

    /// Why a file's name, attributes or content take it out of a review.
    pub fn left_out_reason(&self, _path: &str, _content: &[u8]) -> Option<LeftOutReason> {
        unimplemented!()
    }
}
