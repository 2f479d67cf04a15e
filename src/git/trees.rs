//! Compares two trees, and writes a tree with changes.
//!
//! Folders that are equal on both sides are never read; libgit2's own comparison reads all of them.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid, Repository, Tree};

use super::index::MODE_TREE;

pub const MODE_FILE: u32 = 0o100644;
pub const MODE_EXECUTABLE: u32 = 0o100755;
pub const MODE_SYMLINK: u32 = 0o120000;

/// Tree entry that is not a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLeaf {
    pub mode: u32,
    pub id: Oid,
}

impl TreeLeaf {
    /// Returns true for a regular file, and false for a symbolic link or submodule.
    pub fn is_file(self) -> bool {
        self.mode & 0o170000 == 0o100000
    }
}

/// A path that differs between two trees; at least one side is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeDelta {
    pub path: Vec<u8>,
    pub old: Option<TreeLeaf>,
    pub new: Option<TreeLeaf>,
}

/// Lists every path that differs, sorted.
///
/// # Errors
/// Returns an error when a tree cannot be read.
pub fn diff_trees(repo: &Repository, old: Option<&Tree>, new: Option<&Tree>) -> Result<Vec<TreeDelta>, git2::Error> {
    let mut found = Vec::new();
    collect_deltas(repo, old, new, &mut Vec::new(), &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Adds the differing paths below `path` to `found`, in no particular order. `path` is empty or ends with a slash.
///
/// # Errors
/// Returns an error when a tree cannot be read.
pub fn collect_deltas(
    repo: &Repository,
    old: Option<&Tree>,
    new: Option<&Tree>,
    path: &mut Vec<u8>,
    found: &mut Vec<TreeDelta>,
) -> Result<(), git2::Error> {
    // A folder on one side and a file with the same name on the other side are unrelated.
    let split = |entry: Option<git2::TreeEntry>| -> (Option<Oid>, Option<TreeLeaf>) {
        match entry {
            None => (None, None),
            Some(entry) if entry.kind() == Some(ObjectType::Tree) => (Some(entry.id()), None),
            Some(entry) => (None, Some(leaf_from_entry(&entry))),
        }
    };
    let mut pair = |name: &[u8], old, new| -> Result<(), git2::Error> {
        let ((old_tree, old_leaf), (new_tree, new_leaf)) = (split(old), split(new));
        let length = path.len();
        path.extend_from_slice(name);
        if old_leaf != new_leaf {
            found.push(TreeDelta { path: path.clone(), old: old_leaf, new: new_leaf });
        }
        if old_tree != new_tree {
            path.push(b'/');
            let tree = |id: Option<Oid>| id.map(|id| repo.find_tree(id)).transpose();
            collect_deltas(repo, tree(old_tree)?.as_ref(), tree(new_tree)?.as_ref(), path, found)?;
        }
        path.truncate(length);
        Ok(())
    };
    for entry in new.into_iter().flat_map(Tree::iter) {
        let before = old.and_then(|old| old.get_name_bytes(entry.name_bytes()));
        let same = before.as_ref().is_some_and(|old| old.id() == entry.id() && old.filemode() == entry.filemode());
        if !same {
            pair(entry.name_bytes(), before, Some(entry.to_owned()))?;
        }
    }
    for entry in old.into_iter().flat_map(Tree::iter) {
        if new.and_then(|new| new.get_name_bytes(entry.name_bytes())).is_none() {
            pair(entry.name_bytes(), Some(entry.to_owned()), None)?;
        }
    }
    Ok(())
}

pub fn leaf_from_entry(entry: &git2::TreeEntry) -> TreeLeaf {
    TreeLeaf { mode: u32::try_from(entry.filemode()).unwrap_or(MODE_FILE), id: entry.id() }
}

/// Returns the id of the folder `name` directly inside `tree`.
pub fn subtree_id(tree: Option<&Tree>, name: &[u8]) -> Option<Oid> {
    let entry = tree?.get_name_bytes(name)?;
    (entry.kind() == Some(ObjectType::Tree)).then(|| entry.id())
}

/// Returns the entry at a path of a tree; `None` for folders and missing paths.
pub fn leaf_at(repo: &Repository, tree: &Tree, path: &[u8]) -> Option<TreeLeaf> {
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    let mut tree = tree.clone();
    loop {
        let entry = tree.get_name_bytes(parts.next()?)?.to_owned();
        match (parts.peek().is_some(), entry.kind() == Some(ObjectType::Tree)) {
            (true, true) => tree = repo.find_tree(entry.id()).ok()?,
            (false, false) => return Some(leaf_from_entry(&entry)),
            _ => return None,
        }
    }
}

/// Writes `base` with the changes applied, where `None` deletes a path, and returns the id of the new tree. Returns
/// `None` when the new tree is empty.
///
/// # Errors
/// Returns an error when a tree cannot be read or written.
pub fn write_tree(
    repo: &Repository,
    base: Option<&Tree>,
    changes: &[(&[u8], Option<TreeLeaf>)],
) -> Result<Option<Oid>, git2::Error> {
    #[derive(Default)]
    struct SubtreeChanges<'a> {
        itself: Option<Option<TreeLeaf>>,
        below: Vec<(&'a [u8], Option<TreeLeaf>)>,
    }
    let mut names: BTreeMap<&[u8], SubtreeChanges> = BTreeMap::new();
    for (path, leaf) in changes {
        match memchr::memchr(b'/', path) {
            Some(at) => {
                let (name, rest) = path.split_at(at);
                names.entry(name).or_default().below.push((rest.get(1..).unwrap_or_default(), *leaf));
            }
            None => names.entry(path).or_default().itself = Some(*leaf),
        }
    }
    let mut builder = repo.treebuilder(base)?;
    for (name, changes) in names {
        let was_there = base.is_some_and(|base| base.get_name_bytes(name).is_some());
        let after = match (changes.itself, changes.below.is_empty()) {
            (Some(Some(leaf)), _) => Some(leaf),
            (_, false) => {
                let before = subtree_id(base, name).map(|id| repo.find_tree(id)).transpose()?;
                write_tree(repo, before.as_ref(), &changes.below)?.map(|id| TreeLeaf { mode: MODE_TREE, id })
            }
            (_, true) => None,
        };
        match after {
            Some(leaf) => drop(builder.insert(name, leaf.id, i32::try_from(leaf.mode).unwrap_or(0))?),
            None if was_there => builder.remove(name)?,
            None => {}
        }
    }
    match builder.is_empty() {
        true => Ok(None),
        false => builder.write().map(Some),
    }
}
