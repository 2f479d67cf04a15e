//! Lists the files, symbolic links and submodules of a commit's tree, and marks the paths that its own `.gitignore`
//! files match.
//!
//! Invariants:
//! - Only git objects are read, so the same commit gives the same list everywhere.
//! - A tree crafted to expand without bound has a bounded cost.

use std::rc::Rc;

use git2::{ErrorCode, ObjectType, Tree};
use ignore::gitignore::Gitignore;

use super::gitignore::{match_rules, parse_rules};
use super::trees::{MODE_SYMLINK, TreeLeaf, leaf_at, leaf_from_entry};
use super::{EntryKind, GitError, Repo, TreeListing, TreeListingEntry, path_bytes};
use crate::domain::text::path_from_bytes;

/// Maximum number of entries, including folders; ten times the size of the largest repositories that people review.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum total length of the paths, in bytes.
const MAX_TOTAL_PATH_BYTES: usize = 128 << 20;
/// Maximum length in bytes of a folder's path; deeper folders are skipped, because no system could check them out.
const MAX_PATH_BYTES: usize = 4096;
/// Size limit in bytes of a `.gitignore`; a larger file is ignored.
const MAX_RULES_BYTES: usize = 1 << 20;

/// Rules of a `.gitignore`, linked to the rules of the parent folders.
struct TreeIgnoreRules {
    above: Option<Rc<TreeIgnoreRules>>,
    /// Length in bytes of the path prefix that names the folder of these rules.
    skip: usize,
    own: Gitignore,
}

impl TreeIgnoreRules {
    /// Returns true when the nearest rule that matches the path ignores it.
    fn is_ignored(mut rules: Option<&TreeIgnoreRules>, path: &[u8], is_folder: bool) -> bool {
        while let Some(here) = rules {
            if let Some(answer) = match_rules(&here.own, path.get(here.skip..).unwrap_or(path), is_folder) {
                return answer;
            }
            rules = here.above.as_deref();
        }
        false
    }
}

/// A folder that is still to be listed.
struct PendingTreeFolder<'repo> {
    tree: Tree<'repo>,
    /// Path with a trailing slash; empty for the root.
    path: Vec<u8>,
    rules: Option<Rc<TreeIgnoreRules>>,
    is_ignored: bool,
}

impl Repo {
    /// Lists every file, symbolic link and submodule of a commit's tree, sorted by path. Folders missing in a partial
    /// clone are skipped.
    ///
    /// # Errors
    /// Returns an error when the commit or a folder cannot be read.
    pub fn list_tree(&self, commit: &str) -> Result<TreeListing, GitError> {
        self.list_tree_with(commit, true)
    }

    /// Does the same as [`Repo::list_tree`]; `is_ignored` is set only when `with_rules` is true.
    pub(super) fn list_tree_with(&self, commit: &str, with_rules: bool) -> Result<TreeListing, GitError> {
        let failed = self.git_error("list the files of a commit");
        let tree = self.find_commit(commit)?.tree().map_err(failed)?;
        let mut listing = TreeListing { entries: Vec::new(), complete: true };
        let mut open = vec![PendingTreeFolder { tree, path: Vec::new(), rules: None, is_ignored: false }];
        let (mut seen, mut path_bytes) = (0, 0);
        while let Some(folder) = open.pop() {
            let rules = if with_rules { self.folder_ignore_rules(&folder) } else { None };
            for entry in folder.tree.iter().filter(|entry| is_valid_entry_name(entry.name_bytes())) {
                let mut path = [folder.path.as_slice(), entry.name_bytes()].concat();
                seen += 1;
                path_bytes += path.len();
                if seen > MAX_ENTRIES || path_bytes > MAX_TOTAL_PATH_BYTES {
                    listing.complete = false;
                    open.clear();
                    break;
                }
                let is_folder = entry.kind() == Some(ObjectType::Tree);
                let is_ignored = folder.is_ignored || TreeIgnoreRules::is_ignored(rules.as_deref(), &path, is_folder);
                if !is_folder {
                    listing.entries.push(to_listing_entry(&path, leaf_from_entry(&entry), is_ignored));
                    continue;
                }
                path.push(b'/');
                match self.inner.find_tree(entry.id()) {
                    Ok(tree) if path.len() <= MAX_PATH_BYTES => {
                        open.push(PendingTreeFolder { tree, path, rules: rules.clone(), is_ignored });
                    }
                    Ok(_) => listing.complete = false,
                    Err(error) if error.code() == ErrorCode::NotFound && self.promisor_remote().is_some() => {
                        listing.complete = false;
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        listing.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// Returns the kind and id, in hexadecimal, of the entry at a path of a commit; `None` for a folder or a missing
    /// path.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn entry_at(&self, commit: &str, path: &str) -> Result<Option<(EntryKind, String)>, GitError> {
        let tree = self.find_commit(commit)?.tree().map_err(self.git_error("read a commit"))?;
        let found = path_bytes::from_text(path).iter().find_map(|path| leaf_at(&self.inner, &tree, path));
        Ok(found.map(|leaf| (entry_kind(leaf), leaf.id.to_string())))
    }

    /// Returns the size of a blob in bytes, without reading its content.
    ///
    /// # Errors
    /// Returns an error when the id is invalid or the blob is missing.
    pub fn blob_size(&self, id: &str) -> Result<u64, GitError> {
        let failed = self.git_error("read a blob");
        let id = git2::Oid::from_str(id).map_err(failed)?;
        let odb = self.inner.odb().map_err(failed)?;
        odb.read_header(id).map(|(size, _)| size as u64).map_err(failed)
    }

    fn folder_ignore_rules(&self, folder: &PendingTreeFolder) -> Option<Rc<TreeIgnoreRules>> {
        let above = folder.rules.clone();
        let file = leaf_at(&self.inner, &folder.tree, b".gitignore").filter(|leaf| leaf.is_file());
        let Some(blob) = file.and_then(|leaf| self.inner.find_blob(leaf.id).ok()) else { return above };
        match blob.size() <= MAX_RULES_BYTES {
            true => Some(Rc::new(TreeIgnoreRules {
                above,
                skip: folder.path.len(),
                own: parse_rules(blob.content(), false),
            })),
            false => above,
        }
    }
}

/// Returns true for a valid name of a tree entry. git writes only valid names, but a crafted object can contain others.
fn is_valid_entry_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git") && memchr::memchr(b'/', name).is_none()
}

fn entry_kind(leaf: TreeLeaf) -> EntryKind {
    match leaf.mode {
        MODE_SYMLINK => EntryKind::Symlink,
        _ if leaf.is_file() => EntryKind::File,
        _ => EntryKind::Submodule,
    }
}

fn to_listing_entry(path: &[u8], leaf: TreeLeaf, is_ignored: bool) -> TreeListingEntry {
    TreeListingEntry { path: path_from_bytes(path), kind: entry_kind(leaf), id: leaf.id.to_string(), is_ignored }
}
