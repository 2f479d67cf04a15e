//! Applies edits to a snapshot as a new commit, and formats the difference of two commits as a patch.
//!
//! Invariant: only git objects are used; no worktree and no index.

use git2::{DiffFormat, DiffOptions, Oid, Signature, Time};

use super::trees::{self, MODE_EXECUTABLE, MODE_FILE, TreeLeaf, diff_trees, leaf_at};
use super::{GitError, Repo, path_bytes};
use crate::domain::text::path_from_bytes;

const FIX_AUTHOR_NAME: &str = "revdeck";
const FIX_AUTHOR_EMAIL: &str = "revdeck@localhost";
const FIX_COMMIT_MESSAGE: &str = "Fix for findings of a review\n";
/// Number of unchanged lines around each hunk of a patch.
const CONTEXT_LINES: u32 = 3;
/// Length of the ids in a patch, in hexadecimal digits: full ids.
const ID_DIGITS: u16 = 40;

/// Edit of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// Writes a file. An existing file keeps its mode; `executable` applies to new files only.
    Write {
        content: Vec<u8>,
        executable: bool,
    },
    Delete,
}

/// Difference of two commits in git's patch format, with the paths of its files in the same order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchText {
    pub text: Vec<u8>,
    pub paths: Vec<String>,
}

impl Repo {
    /// Creates a commit on top of `commit` with the edits and returns its id. No ref points to the new commit. Only
    /// regular files are edited: a path with a symbolic link, folder or submodule stays as it is.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read or the objects cannot be written.
    pub fn commit_with_edits(&self, commit: &str, changes: &[(String, FileEdit)]) -> Result<String, GitError> {
        let failed = self.git_error("write a fix");
        let parent = self.find_commit(commit)?;
        let tree = parent.tree().map_err(failed)?;
        let mut leaves: Vec<(Vec<u8>, Option<TreeLeaf>)> = Vec::with_capacity(changes.len());
        for (path, put) in changes {
            let path = self.path_in_tree(&tree, path);
            let known = leaf_at(&self.inner, &tree, &path);
            let is_taken =
                known.is_none_or(|leaf| !leaf.is_file()) && tree.get_path(&path_bytes::to_path(&path)).is_ok();
            if is_taken {
                continue;
            }
            let leaf = match put {
                FileEdit::Delete => None,
                FileEdit::Write { content, executable } => {
                    let new = if *executable { MODE_EXECUTABLE } else { MODE_FILE };
                    let id = self.inner.blob(content).map_err(failed)?;
                    Some(TreeLeaf { mode: known.map_or(new, |known| known.mode), id })
                }
            };
            leaves.push((path, leaf));
        }
        let changes: Vec<(&[u8], Option<TreeLeaf>)> =
            leaves.iter().map(|(path, leaf)| (path.as_slice(), *leaf)).collect();
        let id = match trees::write_tree(&self.inner, Some(&tree), &changes).map_err(failed)? {
            Some(id) => id,
            None => self.inner.treebuilder(None).and_then(|builder| builder.write()).map_err(failed)?,
        };
        let who = Signature::new(FIX_AUTHOR_NAME, FIX_AUTHOR_EMAIL, &Time::new(parent.time().seconds(), 0))
            .map_err(failed)?;
        let tree = self.inner.find_tree(id).map_err(failed)?;
        self.inner
            .commit(None, &who, &who, FIX_COMMIT_MESSAGE, &tree, &[&parent])
            .map(|id: Oid| id.to_string())
            .map_err(failed)
    }

    /// Returns the bytes of a displayed path, preferring a form that exists in the tree.
    fn path_in_tree(&self, tree: &git2::Tree<'_>, path: &str) -> Vec<u8> {
        let mut guesses = path_bytes::from_text(path);
        let known = guesses.iter().position(|guess| leaf_at(&self.inner, tree, guess).is_some());
        guesses.swap_remove(known.unwrap_or(0))
    }

    /// Computes the patch between two commits. A rename appears as a deleted file and an added file.
    ///
    /// # Errors
    /// Returns an error when a commit cannot be read or compared.
    pub fn diff_as_patch(&self, from: &str, to: &str) -> Result<PatchText, GitError> {
        let failed = self.git_error("compare two commits");
        let (old, new) =
            (self.find_commit(from)?.tree().map_err(failed)?, self.find_commit(to)?.tree().map_err(failed)?);
        let paths = diff_trees(&self.inner, Some(&old), Some(&new)).map_err(failed)?;
        let objects = self.objects_only_repository().map_err(failed)?;
        let (old, new) = (objects.find_tree(old.id()).map_err(failed)?, objects.find_tree(new.id()).map_err(failed)?);
        let mut options = DiffOptions::new();
        options.context_lines(CONTEXT_LINES).id_abbrev(ID_DIGITS).interhunk_lines(0);
        let diff = objects.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options)).map_err(failed)?;
        let mut text = Vec::new();
        diff.print(DiffFormat::Patch, |_, _, line| {
            if matches!(line.origin(), ' ' | '+' | '-') {
                text.push(line.origin() as u8);
            }
            text.extend_from_slice(line.content());
            true
        })
        .map_err(failed)?;
        Ok(PatchText { text, paths: paths.iter().map(|difference| path_from_bytes(&difference.path)).collect() })
    }
}
