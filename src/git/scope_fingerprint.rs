//! Computes the fingerprint of a scope as it is now, without taking a snapshot: nothing is written.

use std::collections::BTreeMap;

use super::index::GitIndex;
use super::index_diff::diff_index_to_head;
use super::trees::{TreeDelta, diff_trees, leaf_at};
use super::worktree_capture::{BlobWriteMode, UncommittedChanges};
use super::{FilterRules, FilterSettings, GitError, Repo};
use crate::domain::Scope;

impl Repo {
    /// Computes what [`super::Snapshot::diff_fingerprint`] would be for a scope that changes with the worktree or the
    /// index. Returns `None` for a scope of commits, which change only with HEAD. Reads the contents of changed files.
    ///
    /// # Errors
    /// Returns an error when the worktree, the index or an object cannot be read.
    pub fn compute_scope_fingerprint(
        &self,
        scope: &Scope,
        rules: &dyn FilterRules,
    ) -> Result<Option<String>, GitError> {
        let filter = self.filter_at_head(rules)?;
        let FilterSettings { max_file_bytes, .. } = filter;
        let changes = match scope {
            Scope::Worktree | Scope::All => self.capture_worktree(BlobWriteMode::HashContents { max_file_bytes })?,
            Scope::Staged => {
                let index = GitIndex::read(&self.index, self.inner.path())?;
                let overlay = diff_index_to_head(&self.inner, &index, self.head_tree()?.as_ref())
                    .map_err(self.git_error("compare index and HEAD"))?;
                UncommittedChanges { overlay, ..UncommittedChanges::default() }
            }
            Scope::Commit(_) | Scope::Range { .. } | Scope::Since { .. } | Scope::Branch(_) => return Ok(None),
        };
        let deltas = match scope {
            Scope::All => self.list_whole_tree(&changes)?,
            _ => self.list_uncommitted(&changes)?,
        };
        self.compute_diff_fingerprint(&deltas, &changes.unstored, &filter).map(Some)
    }

    /// Lists the differences from HEAD's tree.
    fn list_uncommitted(&self, changes: &UncommittedChanges) -> Result<Vec<TreeDelta>, GitError> {
        let head = self.head_tree()?;
        let old = |path: &[u8]| head.as_ref().and_then(|head| leaf_at(&self.inner, head, path));
        let deltas =
            changes.overlay.iter().map(|(path, new)| TreeDelta { path: path.clone(), old: old(path), new: *new });
        Ok(deltas.filter(|delta| delta.old != delta.new).collect())
    }

    /// Lists every file of HEAD's tree with the changes laid over it.
    fn list_whole_tree(&self, changes: &UncommittedChanges) -> Result<Vec<TreeDelta>, GitError> {
        let head = self.head_tree()?;
        let files = diff_trees(&self.inner, None, head.as_ref()).map_err(self.git_error("read the tree of HEAD"))?;
        let mut leaves: BTreeMap<Vec<u8>, _> =
            files.into_iter().filter_map(|file| Some((file.path, file.new?))).collect();
        for (path, leaf) in &changes.overlay {
            match leaf {
                Some(leaf) => leaves.insert(path.clone(), *leaf),
                None => leaves.remove(path),
            };
        }
        Ok(leaves.into_iter().map(|(path, leaf)| TreeDelta { path, old: None, new: Some(leaf) }).collect())
    }
}
