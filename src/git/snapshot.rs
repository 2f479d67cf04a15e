//! Takes snapshots: resolves a scope to two commits and computes the change between them.
//!
//! Invariants:
//! - The index, worktree, HEAD, stash and reflog are not changed.
//! - The same content on the same HEAD gives the same snapshot commit.

use git2::{Oid, Signature, Time, Tree};

use super::changeset::{CommitComparison, UnstoredPath};
use super::index::GitIndex;
use super::index_diff::diff_index_to_head;
use super::scope::ResolvedScope;
use super::worktree_capture::{BlobWriteMode, TreeOverlay, UncommittedChanges};
use super::{FilterRules, FilterSettings, GitError, Repo, Snapshot, regular_file, trees};
use crate::domain::{OmissionReason, OmittedFile, Scope};

/// Author and committer of snapshot commits. The name is fixed so that the same content gives the same commit id for
/// every user.
const SNAPSHOT_NAME: &str = "revdeck";
const SNAPSHOT_EMAIL: &str = "revdeck@localhost";
const SNAPSHOT_MESSAGE: &str = "Snapshot for a review\n";

impl Repo {
    /// Returns the worktree scope when the worktree is dirty or there is no commit yet; otherwise HEAD's commit.
    ///
    /// To take the snapshot as well, call [`Repo::take_default_snapshot`], which scans the worktree only once.
    ///
    /// # Errors
    /// Returns an error when the worktree cannot be scanned.
    pub fn default_scope(&self) -> Result<Scope, GitError> {
        let Some(head) = self.head_id() else { return Ok(Scope::Worktree) };
        if self.inner.workdir().is_some() && self.capture_worktree(BlobWriteMode::HashOnly)?.is_dirty() {
            return Ok(Scope::Worktree);
        }
        Ok(Scope::Commit(self.short_id(head)))
    }

    /// Takes the snapshot of the default scope and scans the worktree only once.
    ///
    /// # Errors
    /// Returns an error when the worktree or the commits cannot be read, or the snapshot objects cannot be written.
    pub fn take_default_snapshot(&self, filter: &dyn FilterRules) -> Result<Snapshot, GitError> {
        if self.inner.workdir().is_none() {
            return self.take_snapshot(&Scope::Commit("HEAD".to_owned()), filter);
        }
        let frozen = self.capture_contents(filter)?;
        match self.head_id() {
            Some(_) if !frozen.is_dirty() => self.take_snapshot(&Scope::Commit("HEAD".to_owned()), filter),
            head => self.snapshot_uncommitted(frozen, head, Scope::Worktree, filter),
        }
    }

    /// Takes a snapshot of `scope` and computes its change.
    ///
    /// # Errors
    /// Returns an error when `scope` cannot be resolved, when the staged scope has unmerged paths, or when git objects
    /// cannot be read or written.
    pub fn take_snapshot(&self, scope: &Scope, filter: &dyn FilterRules) -> Result<Snapshot, GitError> {
        match self.resolve_scope(scope)? {
            ResolvedScope::Commits { base, tip, scope } => {
                let notes = if base.is_none() { self.note_shallow_history(tip) } else { Vec::new() };
                self.build_snapshot(base, tip, scope, filter, (Vec::new(), notes))
            }
            ResolvedScope::Worktree => {
                let frozen = self.capture_contents(filter)?;
                self.snapshot_uncommitted(frozen, self.head_id(), Scope::Worktree, filter)
            }
            ResolvedScope::All if self.inner.workdir().is_none() => {
                self.build_snapshot(None, self.commit_id("HEAD")?, Scope::All, filter, Default::default())
            }
            ResolvedScope::All => {
                let frozen = self.capture_contents(filter)?;
                self.snapshot_uncommitted(frozen, None, Scope::All, filter)
            }
            ResolvedScope::Staged => {
                if self.inner.is_bare() && !self.index.exists() {
                    return Err(GitError::NoIndex { path: self.root() });
                }
                let head = self.head_id();
                let index = GitIndex::read(&self.index, self.inner.path())?;
                let unmerged = index.unmerged_paths();
                if !unmerged.is_empty() {
                    return Err(GitError::Unmerged { paths: unmerged, path: self.root() });
                }
                let overlay = diff_index_to_head(&self.inner, &index, self.head_tree()?.as_ref());
                let overlay = overlay.map_err(self.git_error("compare index and HEAD"))?;
                self.snapshot_uncommitted(
                    UncommittedChanges { overlay, ..UncommittedChanges::default() },
                    head,
                    Scope::Staged,
                    filter,
                )
            }
        }
    }

    /// Captures the worktree and stores the contents of changed files.
    fn capture_contents(&self, filter: &dyn FilterRules) -> Result<UncommittedChanges, GitError> {
        let FilterSettings { max_file_bytes, .. } = self.filter_at_head(filter)?;
        self.capture_worktree(BlobWriteMode::WriteObjects { max_file_bytes })
    }

    /// Writes the snapshot commit for captured changes and builds the snapshot's record.
    fn snapshot_uncommitted(
        &self,
        frozen: UncommittedChanges,
        base: Option<Oid>,
        scope: Scope,
        filter: &dyn FilterRules,
    ) -> Result<Snapshot, GitError> {
        let tip = self.write_snapshot_commit(&frozen.overlay)?;
        self.build_snapshot(base, tip, scope, filter, (frozen.unstored, frozen.notes))
    }

    /// Returns HEAD's commit when the tree is unchanged; otherwise creates a commit with HEAD as its parent.
    fn write_snapshot_commit(&self, overlay: &TreeOverlay) -> Result<Oid, GitError> {
        let failed = self.git_error("write a snapshot");
        let head = self.head_id().map(|id| self.inner.find_commit(id)).transpose().map_err(failed)?;
        let head_tree = self.head_tree()?;
        let changes: Vec<_> = overlay.iter().map(|(path, leaf)| (path.as_slice(), *leaf)).collect();
        let tree = match (&head_tree, changes.is_empty()) {
            (Some(tree), true) => tree.id(),
            _ => match trees::write_tree(&self.inner, head_tree.as_ref(), &changes).map_err(failed)? {
                Some(id) => id,
                None => self.inner.treebuilder(None).and_then(|builder| builder.write()).map_err(failed)?,
            },
        };
        if let (Some(head), Some(head_tree)) = (&head, &head_tree)
            && head_tree.id() == tree
        {
            return Ok(head.id());
        }
        let seconds = head.as_ref().map_or(0, |head| head.time().seconds());
        let who = Signature::new(SNAPSHOT_NAME, SNAPSHOT_EMAIL, &Time::new(seconds, 0)).map_err(failed)?;
        let tree = self.inner.find_tree(tree).map_err(failed)?;
        let parents: Vec<_> = head.iter().collect();
        self.inner.commit(None, &who, &who, SNAPSHOT_MESSAGE, &tree, &parents).map_err(failed)
    }

    pub(super) fn head_tree(&self) -> Result<Option<Tree<'_>>, GitError> {
        let failed = self.git_error("read HEAD");
        self.head_id().map(|id| self.inner.find_commit(id).and_then(|head| head.tree())).transpose().map_err(failed)
    }

    /// Returns a note when `tip` has parents that a shallow clone does not contain.
    fn note_shallow_history(&self, tip: Oid) -> Vec<String> {
        match self.is_history_cut_at(tip) {
            true => vec![format!(
                "the history is cut off at {} (a shallow clone), so that all of it counts as new; \
                 `git fetch --deepen 1` brings what is before it",
                self.short_id(tip)
            )],
            false => Vec::new(),
        }
    }

    /// Returns true when a shallow clone does not contain the parents of `tip`.
    pub(super) fn is_history_cut_at(&self, tip: Oid) -> bool {
        let id = tip.to_string();
        String::from_utf8_lossy(&self.read_shallow_commits()).lines().any(|line| line.trim() == id)
    }

    /// Returns true for a shallow clone.
    pub(super) fn is_shallow(&self) -> bool {
        !self.read_shallow_commits().is_empty()
    }

    /// Reads the list of the commits whose parents a shallow clone does not contain; empty in a whole clone.
    fn read_shallow_commits(&self) -> Vec<u8> {
        regular_file::read_linked(&self.inner.commondir().join("shallow")).unwrap_or_default()
    }

    /// Builds the snapshot's record: the change from `base` to `tip` and its fingerprint.
    fn build_snapshot(
        &self,
        base: Option<Oid>,
        tip: Oid,
        scope: Scope,
        rules: &dyn FilterRules,
        (extra, notes): (Vec<UnstoredPath>, Vec<String>),
    ) -> Result<Snapshot, GitError> {
        let CommitComparison { change, unstored, differences, filter } =
            self.compare_commits(base, tip, rules, &extra)?;
        let diff_fingerprint = self.compute_diff_fingerprint(&differences, &extra, &filter)?;
        Ok(Snapshot {
            base_commit: base.map(|id| id.to_string()).unwrap_or_default(),
            snapshot_commit: tip.to_string(),
            head_commit: self.head(),
            branch: self.branch(),
            worktree: self.root(),
            scope_hash: scope_hash(&scope, &filter, &change.left_out),
            scope,
            diff_fingerprint,
            change,
            unstored,
            notes,
        })
    }
}

/// Returns true for a commit that [`Repo::take_snapshot`] made.
pub(super) fn is_snapshot_commit(commit: &git2::Commit<'_>) -> bool {
    commit.author().email_bytes() == SNAPSHOT_EMAIL.as_bytes() && commit.message_bytes() == SNAPSHOT_MESSAGE.as_bytes()
}

/// Hashes what decides, besides the change itself, what is reviewed: the settings, and the files that they or the
/// attributes of the base leave out. Returns hexadecimal.
fn scope_hash(scope: &Scope, filter: &FilterSettings, left_out: &[OmittedFile]) -> String {
    use OmissionReason as R;
    let mut hash = blake3::Hasher::new();
    hash.update(if *scope == Scope::All { b"tree\0" } else { b"change\0" });
    hash.update(&filter.max_file_bytes.to_le_bytes());
    for glob in &filter.ignored_paths {
        hash.update(glob.as_bytes());
        hash.update(b"\0");
    }
    let by_rules = |file: &&OmittedFile| {
        matches!(file.reason, R::Generated | R::Vendored | R::Binary | R::Ignored | R::Minified | R::Oversized)
    };
    for file in left_out.iter().filter(by_rules) {
        hash.update(format!("{}\0{} {}\0", file.path, file.reason.word(), file.hidden).as_bytes());
    }
    hash.finalize().to_hex().to_string()
}
