//! Compares two snapshots file by file, so that findings can be followed from run to run.
//!
//! No file is left out: code can move into a file that no review reads.

use std::collections::{HashMap, HashSet};

use git2::ErrorCode;

use super::changeset::{RenameDetection, diff_texts, find_rename_sources};
use super::trees::{TreeLeaf, diff_trees, leaf_at};
use super::{ChangeKind, GitError, Hunk, Repo, TreeFile, path_bytes};
use crate::domain::text::path_from_bytes;

/// A regular file that differs between two commits. At least one side is present; the paths differ after a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredFile {
    /// File in the old commit; `None` when there was no regular file.
    pub old: Option<TreeFile>,
    /// File in the new commit; `None` when there is no regular file any more.
    pub new: Option<TreeFile>,
}

impl Repo {
    /// Lists every regular file that differs between two commits, sorted by the old path, or the new path of an added
    /// file. A renamed file is one entry; a copied file counts as added. An empty `from` stands for an empty tree.
    ///
    /// # Errors
    /// Returns an error when a commit or tree cannot be read.
    pub fn diff_snapshots(&self, from: &str, to: &str) -> Result<Vec<AlteredFile>, GitError> {
        let failed = self.git_error("compare two snapshots");
        let old = if from.is_empty() { None } else { Some(self.find_commit(from)?.tree().map_err(failed)?) };
        let new = self.find_commit(to)?.tree().map_err(failed)?;
        let differences = diff_trees(&self.inner, old.as_ref(), Some(&new)).map_err(failed)?;
        let objects = self.objects_only_repository().map_err(failed)?;
        let sources = match find_rename_sources(
            &objects,
            old.as_ref().map(git2::Tree::id),
            new.id(),
            &differences,
            RenameDetection::Renames,
        ) {
            // A missing blob must not stop the comparison; renames are then unknown.
            Err(error) if error.code() == ErrorCode::NotFound => HashMap::new(),
            sources => sources.map_err(failed)?,
        };
        let by_path: HashMap<&[u8], Option<TreeLeaf>> =
            differences.iter().map(|difference| (difference.path.as_slice(), difference.new)).collect();
        let there = |path: &[u8]| by_path.get(path).copied().flatten();
        let renamed: HashMap<Vec<u8>, Vec<u8>> = sources
            .into_iter()
            .filter(|(_, source)| source.kind == ChangeKind::Renamed && there(&source.path).is_none())
            .map(|(path, source)| (source.path, path))
            .collect();
        let targets: HashSet<&[u8]> = renamed.values().map(Vec::as_slice).collect();
        let file = |path: &[u8], leaf: Option<TreeLeaf>| {
            let leaf = leaf.filter(|leaf| leaf.is_file())?;
            Some(TreeFile { path: path_from_bytes(path), blob: leaf.id.to_string() })
        };
        let mut altered = Vec::with_capacity(differences.len());
        for difference in differences.iter().filter(|difference| !targets.contains(difference.path.as_slice())) {
            let old = file(&difference.path, difference.old);
            let new = match renamed.get(&difference.path) {
                Some(path) => file(path, there(path)),
                None => file(&difference.path, difference.new),
            };
            if old.is_some() || new.is_some() {
                altered.push(AlteredFile { old, new });
            }
        }
        Ok(altered)
    }

    /// Returns the blob id of a regular file in a commit; `None` when there is no such file.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn blob_at(&self, commit: &str, path: &str) -> Result<Option<String>, GitError> {
        let tree = self.find_commit(commit)?.tree().map_err(self.git_error("read a commit"))?;
        let leaves = path_bytes::from_text(path).into_iter().filter_map(|path| leaf_at(&self.inner, &tree, &path));
        Ok(leaves.filter(|leaf| leaf.is_file()).map(|leaf| leaf.id.to_string()).next())
    }

    /// Computes the hunks between two texts, without context.
    ///
    /// # Errors
    /// Returns an error when libgit2 fails to compare the texts.
    pub fn diff_texts(&self, old: &[u8], new: &[u8]) -> Result<Vec<Hunk>, GitError> {
        diff_texts(old, new).map_err(self.git_error("compare two files"))
    }

    /// Merges the changes from `base` to `theirs` into `ours`; `None` when both sides change the same or adjacent
    /// lines.
    ///
    /// # Errors
    /// Returns an error when libgit2 fails to merge the texts.
    pub fn merge_texts(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        let [base, ours, theirs] = [base, ours, theirs].map(|content| {
            let mut side = git2::MergeFileInput::new();
            side.content(content);
            side
        });
        let merged = git2::merge_file(&base, &ours, &theirs, None).map_err(self.git_error("merge a file"))?;
        Ok(merged.is_automergeable().then(|| merged.content().to_vec()))
    }

    /// Returns true when `commit` equals `of` or is an ancestor of `of`; false when an id is invalid or the commit is
    /// missing.
    pub fn is_in_history(&self, commit: &str, of: &str) -> bool {
        let id = |text: &str| git2::Oid::from_str(text).ok();
        let (Some(commit), Some(of)) = (id(commit), id(of)) else { return false };
        commit == of || self.inner.graph_descendant_of(of, commit).unwrap_or(false)
    }
}
