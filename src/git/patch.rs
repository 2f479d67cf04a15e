//! A snapshot with changes laid over it, as objects only, and the difference of the two as a patch.
//!
//! Invariant: nothing here looks at a worktree or an index.

use git2::{DiffFormat, DiffOptions, Oid, Signature, Time};

use super::trees::{self, MODE_EXECUTABLE, MODE_FILE, TreeLeaf, diff_trees, leaf_at};
use super::{GitError, Repo, path_bytes};
use crate::domain::text::path_from_bytes;

const FIX_AUTHOR_NAME: &str = "revdeck";
const FIX_AUTHOR_EMAIL: &str = "revdeck@localhost";
const FIX_COMMIT_MESSAGE: &str = "Fix for findings of a review\n";
/// Unchanged lines around each hunk of a patch.
const CONTEXT_LINES: u32 = 3;
/// Digits of the ids in a patch: all of them.
const ID_DIGITS: u16 = 40;

/// What is to stand at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// The executable bit of a file that is there stays as it is.
    Write {
        content: Vec<u8>,
        executable: bool,
    },
    Delete,
}

/// The difference of two commits as text in git's format, and the paths of its files in the same order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchText {
    pub text: Vec<u8>,
    pub paths: Vec<String>,
}

impl Repo {
    /// A commit on top of `commit` with these changes in it, kept by nothing. Only ordinary files are changed: where a
    /// symbolic link, a folder or a submodule stands, the path is left as it is.
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

    /// The bytes that a shown path stands for in a tree.
    fn path_in_tree(&self, tree: &git2::Tree<'_>, path: &str) -> Vec<u8> {
        let mut guesses = path_bytes::from_text(path);
        let known = guesses.iter().position(|guess| leaf_at(&self.inner, tree, guess).is_some());
        guesses.swap_remove(known.unwrap_or(0))
    }

    /// What differs between two commits. Renames are a file that goes and one that comes.
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
