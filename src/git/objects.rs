//! Reading from a snapshot: blobs, files of a commit, all of its files.

use git2::Oid;

use super::trees::leaf_at;
use super::{EntryKind, GitError, Repo, TreeFile, path_bytes};

impl Repo {
    /// The same repository once more, for another thread.
    pub fn reopen(&self) -> Result<Self, GitError> {
        let inner = git2::Repository::open(self.inner.path()).map_err(self.git_error("open the repository"))?;
        Ok(Self { inner, index: self.index.clone() })
    }

    /// The id of a commit's tree, as hexadecimal.
    pub fn tree_id(&self, commit: &str) -> Result<String, GitError> {
        Ok(self.find_commit(commit)?.tree_id().to_string())
    }

    /// A blob's bytes.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        let failed = self.git_error("read a blob");
        let id = Oid::from_str(id).map_err(failed)?;
        Ok(self.inner.find_blob(id).map_err(failed)?.content().to_vec())
    }

    /// A file of a commit's tree; `None` when it is not there, or is a folder or a submodule. Of a symbolic link it is
    /// the text of the link. `path` is as [`TreeFile`] and [`super::FileChange`] have it.
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

    /// Every ordinary file of a commit's tree, by path; no symbolic links and no submodules, and no more than
    /// [`Repo::listing`] has.
    /// [`Repo::judge`] says which of them a review leaves out.
    pub fn tree_files(&self, commit: &str) -> Result<Vec<TreeFile>, GitError> {
        let files =
            self.list_tree_with(commit, false)?.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
        Ok(files.map(|entry| TreeFile { path: entry.path, blob: entry.id }).collect())
    }
}
