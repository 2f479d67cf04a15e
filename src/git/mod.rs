//! Repository identity, snapshots, scopes, hunks, and reading from a snapshot.
//!
//! Invariants: the user's index, HEAD, stash and reflog are never touched, nor is the worktree but by [`Worktree`], for
//! whoever was told to by a person; after a snapshot is taken, everything is read from its immutable objects.
//!
//! From the worktree to a [`Snapshot`]: `index` reads the index, `scan` says which files may differ from it (`ignored`
//! knows the rules of `.gitignore`), `staged` what the index has that HEAD has not, `freeze` reads the contents, `trees`
//! writes the tree, `change` compares it with the base (`promised` has git fetch what a partial clone lacks), `filter`
//! leaves out what is not worth a review. `follow` tells what became of the files of one snapshot in another. And back
//! into files: `checkout`, for programs that look around by themselves, and `harvest` what one of them changed there.
//! `patch` lays changes over a snapshot, `worktree` puts them into the user's files. For watchers: `glance` tells cheaply
//! whether anything moved, `roam` names the folders worth watching. `listing` names the files of a
//! tree, `past` what commits did to them. [`hooks`] puts the hook in that asks for reviews.

mod attributes;
mod changeset;
mod checkout;
mod collect_changes;
mod error;
mod filter;
mod fingerprint;
mod git_command;
mod gitignore;
mod history;
pub mod hooks;
mod index;
mod index_diff;
mod listing;
mod objects;
mod partial_clone;
mod patch;
mod path_bytes;
mod regular_file;
mod repo;
mod scan;
mod scope;
mod snapshot;
mod snapshot_diff;
mod trees;
mod watched_folders;
mod worktree;
mod worktree_capture;

pub use checkout::TemporaryCheckout;
pub use collect_changes::{CheckoutBaseline, CollectError, CollectLimits, CollectedChanges};
pub use error::GitError;
pub use filter::{ContentTraits, ReviewFilter};
pub use fingerprint::{GitState, WorktreeFingerprint};
pub use history::{
    CommitAncestor, CommitChanges, CommitFileChange, CommitFileChangeKind, CommitHunk, ModifiedFileBlobs,
};
pub use patch::{FileEdit, PatchText};
pub use snapshot_diff::AlteredFile;
pub use watched_folders::{WatchExclusions, WatchedFolders};
pub use worktree::{FilePermissions, Worktree, WorktreeFile};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::{LineRange, OmittedFile, Scope};

/// A repository as seen from one working tree.
pub struct Repo {
    inner: git2::Repository,
    /// The index file of this working tree.
    index: PathBuf,
}

/// What the settings say about which changed files are reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSettings {
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
    pub change: Changeset,
    /// Those of `change.left_out` that are not in the snapshot's tree as they are in the worktree: whoever computes the
    /// change again from the commits does not see them.
    pub unstored: Vec<OmittedFile>,
    /// What the person who asked should know.
    pub notes: Vec<String>,
}

/// What differs between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changeset {
    /// The files to review, by path.
    pub files: Vec<FileChange>,
    pub left_out: Vec<OmittedFile>,
    /// Of those that are left out, where they were before they moved, by their path.
    pub moved: BTreeMap<String, String>,
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
    /// Blob ids as hexadecimal; `old_blob` is `None` when there was no file before, and for a file copied whole.
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
        let first = self.new_start.max(1);
        LineRange::new(first, first + self.new_lines.saturating_sub(1))
    }
}

/// A file of a snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    pub path: String,
    pub blob: String,
}

/// What stands at a path of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    /// Its blob is the text of the link.
    Symlink,
    /// Its id is a commit of another repository.
    Submodule,
}

/// A path of a snapshot's tree that is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeListingEntry {
    pub path: String,
    pub kind: EntryKind,
    pub id: String,
    /// The `.gitignore` files of the same tree ignore it: somebody added it nevertheless.
    pub is_ignored: bool,
}

/// A snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeListing {
    /// By path.
    pub entries: Vec<TreeListingEntry>,
    /// Whether it is all of the tree: not for trees of more than a million files, and partial clones.
    pub complete: bool,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOrigin {
    Context,
    Added,
    Removed,
    /// `@@ -1,2 +1,3 @@`.
    HunkHeader,
}

/// One line of a diff. The text is as it is in the file, without the line end: not yet safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub origin: LineOrigin,
    pub old_line: Option<u32>,
    pub new_line: Option<u32>,
    pub text: String,
}
