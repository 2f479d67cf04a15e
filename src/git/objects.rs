//! Reads blobs and files of a commit.

use git2::Oid;

use super::blocking_files::open_repository;
use super::trees::leaf_at;
use super::{EntryKind, GitError, Repo, TreeFile, path_bytes};

impl Repo {
    /// Opens the same repository again, for another thread.
    ///
    /// # Errors
    /// Returns an error when the repository cannot be opened.
    pub fn reopen(&self) -> Result<Self, GitError> {
        let inner = open_repository(self.inner.path())?;
        Ok(Self {
            inner,
            index: self.index.clone(),
            git_patience: self.git_patience,
            converted_files: Default::default(),
        })
    }

    /// Returns the id of a commit's tree in hexadecimal.
    ///
    /// # Errors
    /// Returns an error when `commit` names no commit.
    pub fn tree_id(&self, commit: &str) -> Result<String, GitError> {
        Ok(self.find_commit(commit)?.tree_id().to_string())
    }

    /// Returns the content of a blob.
    ///
    /// # Errors
    /// Returns an error when `id` is not a valid id or the blob cannot be read.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        let failed = self.git_error("read a blob");
        let id = Oid::from_str(id).map_err(failed)?;
        Ok(self.inner.find_blob(id).map_err(failed)?.content().to_vec())
    }

    /// Returns a file's content in a commit, or the target of a symbolic link. `path` is written as in [`TreeFile`] and
    /// [`super::FileChange`]. Returns `None` for a missing path, a folder or a submodule.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let tree = self.find_commit(commit)?.tree().map_err(self.git_error("read a commit"))?;
        for path in path_bytes::from_text(path) {
            if let Some(leaf) = leaf_at(&self.inner, &tree, &path) {
                let blob = self.inner.find_blob(leaf.id).ok();
                return Ok(blob.map(|blob| blob.content().to_vec()));
            }
        }
        Ok(None)
    }

    /// Returns the content of a regular file in a commit; `None` for a missing path and for anything else.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn regular_file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let tree = self.find_commit(commit)?.tree().map_err(self.git_error("read a commit"))?;
        let leaf = leaf_at(&self.inner, &tree, path.as_bytes()).filter(|leaf| leaf.is_file());
        Ok(leaf.and_then(|leaf| Some(self.inner.find_blob(leaf.id).ok()?.content().to_vec())))
    }

    /// Lists the regular files of a commit by path, without symbolic links and submodules, under the limits of
    /// [`Repo::list_tree`]. [`Repo::review_filter`] tells which of these files a review leaves out.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn tree_files(&self, commit: &str) -> Result<Vec<TreeFile>, GitError> {
        let files =
            self.list_tree_with(commit, false)?.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
        Ok(files.map(|entry| TreeFile { path: entry.path, blob: entry.id }).collect())
    }
}
