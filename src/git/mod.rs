//! Reads git repositories: identity, snapshots, scopes, hunks, and the contents of a snapshot.
//!
//! Invariants:
//! - The user's index, HEAD, stash and reflog are never changed. Only [`Worktree`] writes to the user's files, and only
//!   after a person asked for it.
//! - After a snapshot is taken, everything is read from its immutable git objects.
//!
//! Modules, from the worktree to a [`Snapshot`]:
//! - `index` reads the index file; `scan` lists the files that may differ from the index; `gitignore` holds the
//!   `.gitignore` rules.
//! - `index_diff` compares the index with HEAD; `worktree_capture` hashes and stores the changed files.
//! - `trees` writes the tree; `changeset` compares the tree with the base commit; `partial_clone` has git fetch the
//!   missing objects of a partial clone.
//! - `filter` selects the changed files that a review leaves out; `change_filter` finds those that the change itself puts
//!   out of sight, by the rules of its base.
//! - `snapshot_diff` lists the files that differ between two snapshots.
//!
//! Modules, from a snapshot back to files:
//! - `checkout` writes a temporary checkout for external programs; `collect_changes` reads back the files that a
//!   program changed there.
//! - `patch` applies edits to a snapshot as a commit; `worktree` writes files into the user's worktree.
//!
//! Other modules:
//! - For watchers, `fingerprint` detects movement without reading files, and `watched_folders` lists the folders to
//!   watch.
//! - `listing` lists the paths of a tree; `history` reads the changes of earlier commits; `new_commits` finds commits that
//!   no known commit contains.
//! - `remote_logs` keeps append-only logs in refs of a remote, for teams; `log_signers` reads who has signed them.
//! - `git_command` runs the git program under a time limit, `process_tree` ends what it started, and `blocking_files`
//!   refuses pipes in the places of git's files.
//! - [`hooks`] installs the git hook that requests reviews.

mod attributes;
mod blocking_files;
mod change_filter;
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
mod log_signers;
mod new_commits;
mod objects;
mod partial_clone;
mod patch;
mod path_bytes;
pub(crate) mod process_tree;
mod reachability;
mod regular_file;
mod remote_logs;
mod repo;
mod scan;
mod scope;
mod scope_fingerprint;
mod snapshot;
mod snapshot_diff;
mod trees;
#[cfg(target_os = "linux")]
mod unnamed_file;
mod watched_folders;
mod worktree;
mod worktree_capture;

pub use crate::domain::Hunk;
pub(crate) use change_filter::is_binary_by_type;
pub use checkout::{CheckoutPlan, MaskContent, TemporaryCheckout};
pub(crate) use collect_changes::{CollectError, CollectLimits};
pub use error::GitError;
pub use filter::ReviewFilter;
pub(crate) use filter::{ContentTraits, is_binary};
pub(crate) use fingerprint::{GitState, WorktreeFingerprint};
pub(crate) use git_command::{DEFAULT_GIT_PATIENCE, end_all as end_git_programs};
pub(crate) use history::{CommitAncestor, CommitFileChange, CommitFileChangeKind, ModifiedFileBlobs};
pub use log_signers::LogSigner;
pub(crate) use new_commits::NewCommits;
pub(crate) use patch::FileEdit;
pub use remote_logs::{
    LogSegment, LogSignature, MAX_REMOTE_LOGS, PushOutcome, RemoteLog, RemoteLogList, SigningMode, hide_credentials,
};
pub use snapshot_diff::AlteredFile;
pub(crate) use watched_folders::{WatchExclusions, WatchedFolders};
pub(crate) use worktree::{FilePermissions, Worktree, WorktreeFile};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::{OmittedFile, Scope};

/// A git repository, opened from one working tree.
pub struct Repo {
    inner: git2::Repository,
    /// Path of the index file of this working tree.
    index: PathBuf,
    /// Time that the git program may be silent.
    git_patience: Duration,
    /// Files of the working tree that filter programs have converted.
    converted_files: worktree_capture::ConvertedFiles,
}

/// Where a repository is, to look later whether it is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryPlace {
    git_dir: PathBuf,
    /// `None` for a bare repository.
    worktree: Option<PathBuf>,
}

/// Settings that decide which changed files are reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSettings {
    /// Size limit in bytes; larger files are left out as oversized.
    pub max_file_bytes: u64,
    /// Globs in `.gitignore` syntax; matching files are left out.
    pub ignored_paths: Vec<String>,
}

/// Source of the settings for a change, some of which stand in the repository itself. They are read from the base of the
/// change, so that a change cannot choose what is reviewed of it.
pub trait FilterRules {
    /// Returns the settings for a change. `read_base` returns the content of a file of the base by its path, relative to
    /// the root; `None` if the base is not known or has no such regular file.
    fn settings_at(&self, read_base: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> FilterSettings;
}

impl FilterRules for FilterSettings {
    fn settings_at(&self, _: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> FilterSettings {
        self.clone()
    }
}

/// The reviewed code as an immutable git tree, with its changes against the base commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Id of the commit that the changes are compared with; empty when there is none.
    pub base_commit: String,
    /// Id of a commit with the snapshot's tree; created for the snapshot when no such commit exists.
    pub snapshot_commit: String,
    /// Id of HEAD's commit; empty when HEAD is unborn.
    pub head_commit: String,
    /// Short name of the branch; empty when HEAD is detached.
    pub branch: String,
    /// Root of the working tree as an absolute path; the git dir of a bare repository.
    pub worktree: PathBuf,
    /// The scope with resolved names, for example with the base branch that was guessed.
    pub scope: Scope,
    /// Hash of the kind of scope (whole tree or change) and the filter settings, in hexadecimal.
    pub scope_hash: String,
    /// Hash of the changed content, including files left out, in hexadecimal.
    pub diff_fingerprint: String,
    /// Change from `base_commit` to `snapshot_commit`, with the entries of `unstored`.
    pub change: Changeset,
    /// The entries of `change.left_out` that the snapshot's tree does not contain as in the worktree. A comparison of
    /// the two commits does not find them again.
    pub unstored: Vec<OmittedFile>,
    /// Messages for the person who asked for the review.
    pub notes: Vec<String>,
}

/// Difference between two trees, split into files to review and files left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changeset {
    /// The files to review, sorted by path.
    pub files: Vec<FileChange>,
    /// The changed files that are not reviewed, with the reason, sorted by path.
    pub left_out: Vec<OmittedFile>,
    /// Old path of each renamed file in `left_out`, keyed by its new path.
    pub moved: BTreeMap<String, String>,
    /// New paths of the files in `left_out` that were moved without an edit, and would be reviewed at both places.
    pub unedited_moves: Vec<String>,
}

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The path did not exist before.
    Added,
    /// The path existed before.
    Modified,
    /// The file moved from another path, with or without changes.
    Renamed,
    /// The file is a copy of another file, with or without changes.
    Copied,
}

/// A changed file with its hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the repository root, with `/` as separator; bytes that are not UTF-8 are written as `\xNN`.
    pub path: String,
    /// Source path of a renamed or copied file.
    pub old_path: Option<String>,
    /// Origin of the file: new, changed, moved or copied.
    pub kind: ChangeKind,
    /// Id of the old blob in hexadecimal; `None` when there was no file before, and for an exact copy.
    pub old_blob: Option<String>,
    /// Id of the new blob in hexadecimal.
    pub new_blob: String,
    /// Changed line ranges, in the order of the lines.
    pub hunks: Vec<Hunk>,
}

/// A regular file of a snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Path relative to the repository root, written as [`FileChange::path`].
    pub path: String,
    /// Blob id in hexadecimal.
    pub blob: String,
}

/// Kind of a tree entry that is not a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link; its blob contains the link target.
    Symlink,
    /// A submodule; its id is a commit of another repository.
    Submodule,
}

/// A path of a snapshot's tree that is not a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeListingEntry {
    /// Path relative to the repository root, written as [`FileChange::path`].
    pub path: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Blob or commit id in hexadecimal.
    pub id: String,
    /// True when the `.gitignore` files of the same tree match the path, although the file is tracked.
    pub is_ignored: bool,
}

/// The paths of a snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeListing {
    /// Sorted by path.
    pub entries: Vec<TreeListingEntry>,
    /// False when the listing is partial: more than a million paths, another limit reached, or objects missing in a
    /// partial clone.
    pub complete: bool,
}

/// Kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineOrigin {
    /// A line that both sides have.
    Context,
    /// A line that only the new side has.
    Added,
    /// A line that only the old side has.
    Removed,
    /// A line such as `@@ -1,2 +1,3 @@`.
    HunkHeader,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Sides that have the line; hunk headers have an origin of their own.
    pub origin: LineOrigin,
    /// 1-based line number on the old side; `None` for added lines and hunk headers.
    pub old_line: Option<u32>,
    /// 1-based line number on the new side; `None` for removed lines and hunk headers.
    pub new_line: Option<u32>,
    /// Text as in the file, without the line end; not sanitized for a terminal.
    pub text: String,
}
