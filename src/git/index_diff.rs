//! Compares the index with HEAD's tree to find the staged changes.

use std::collections::HashSet;
use std::ops::Range;

use git2::{ObjectType, Repository, Tree};

use super::index::{CachedTree, GitIndex, IndexEntryFlag, MODE_TREE};
use super::trees::{self, TreeLeaf, subtree_id};
use super::worktree_capture::TreeOverlay;

/// Returns the paths where the index differs from HEAD's tree. A folder is skipped when its cached tree in the index
/// equals the folder in HEAD.
///
/// # Errors
/// Returns an error when a tree cannot be read.
pub fn diff_index_to_head(
    repo: &Repository,
    index: &GitIndex,
    head: Option<&Tree>,
) -> Result<TreeOverlay, git2::Error> {
    let mut overlay = TreeOverlay::new();
    let same_at_root = match (index.trees.as_ref().and_then(|cached| cached.id), head) {
        (Some(cached), Some(head)) => cached == head.id(),
        _ => false,
    };
    if !same_at_root {
        let walk = IndexDiffWalk { repo, index };
        walk.walk_folder(&[], 0..index.entries.len(), index.trees.as_ref(), head, &mut overlay)?;
    }
    Ok(overlay)
}

/// Parallel walk over the index and HEAD's tree.
struct IndexDiffWalk<'a> {
    repo: &'a Repository,
    index: &'a GitIndex,
}

impl IndexDiffWalk<'_> {
    /// Compares the index entries below `prefix` with `tree` and adds the differences to `overlay`.
    fn walk_folder(
        &self,
        prefix: &[u8],
        entries: Range<usize>,
        cached: Option<&CachedTree>,
        tree: Option<&Tree>,
        overlay: &mut TreeOverlay,
    ) -> Result<(), git2::Error> {
        let mut known: HashSet<&[u8]> = HashSet::new();
        let mut at = entries.start;
        while let Some(entry) = self.index.entries.get(at).filter(|_| at < entries.end) {
            let path = self.index.path(entry);
            let rest = path.get(prefix.len()..).unwrap_or_default();
            if let Some(slash) = memchr::memchr(b'/', rest) {
                let name = rest.get(..slash).unwrap_or_default();
                let folder = path.get(..prefix.len() + slash + 1).unwrap_or(path);
                let to = self.index.prefix_end(folder, at, entries.end).max(at + 1);
                let before = subtree_id(tree, name);
                // A sparse index stores a folder as one entry.
                let folded = (entry.mode == MODE_TREE && folder == path).then_some(entry.id);
                let cached = cached.and_then(|cached| cached.child(name));
                if before.is_none() || before != folded.or(cached.and_then(|cached| cached.id)) {
                    let before = before.map(|id| self.repo.find_tree(id)).transpose()?;
                    match folded {
                        Some(id) => {
                            let now = self.repo.find_tree(id)?;
                            self.diff_subtrees(folder, before.as_ref(), Some(&now), overlay)?;
                        }
                        None => self.walk_folder(folder, at..to, cached, before.as_ref(), overlay)?,
                    }
                }
                if before.is_some() {
                    known.insert(name);
                }
                at = to;
                continue;
            }
            at += 1;
            let before = tree.and_then(|tree| tree.get_name_bytes(rest));
            let before = before.filter(|entry| entry.kind() != Some(ObjectType::Tree));
            match entry.flag {
                IndexEntryFlag::IntentToAdd => continue,
                // An unmerged path keeps HEAD's content until the conflict is resolved.
                IndexEntryFlag::Unmerged => {}
                _ => {
                    let now = TreeLeaf { mode: entry.mode, id: entry.id };
                    if before.as_ref().map(trees::leaf_from_entry) != Some(now) {
                        overlay.insert(path.to_vec(), Some(now));
                    }
                }
            }
            if before.is_some() {
                known.insert(rest);
            }
        }
        for entry in tree.into_iter().flat_map(Tree::iter) {
            let name = entry.name_bytes();
            if known.contains(name) {
                continue;
            }
            let path = [prefix, name].concat();
            if entry.kind() == Some(ObjectType::Tree) {
                let gone = self.repo.find_tree(entry.id())?;
                self.diff_subtrees(&[path.as_slice(), b"/"].concat(), Some(&gone), None, overlay)?;
            } else {
                // An index folder with the same name as this file gives other paths, so this key is still unused.
                overlay.insert(path, None);
            }
        }
        Ok(())
    }

    /// Compares two trees, for folders that the index does not list.
    fn diff_subtrees(
        &self,
        prefix: &[u8],
        old: Option<&Tree>,
        new: Option<&Tree>,
        overlay: &mut TreeOverlay,
    ) -> Result<(), git2::Error> {
        let mut found = Vec::new();
        trees::collect_deltas(self.repo, old, new, &mut prefix.to_vec(), &mut found)?;
        overlay.extend(found.into_iter().map(|difference| (difference.path, difference.new)));
        Ok(())
    }
}
