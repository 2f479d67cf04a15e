//! Which repository this is: opening, identity, HEAD, and the refs that keep snapshots from gc.

use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode, Oid, Repository};

use super::{GitError, Repo, path_bytes};
use crate::domain::RunId;

/// Below here each kept snapshot has a ref named after its run.
const SNAPSHOT_REFS: &str = "refs/revdeck/snapshots/";
/// Hexadecimal digits of a repository key.
const KEY_DIGITS: usize = 16;

impl Repo {
    /// The repository around `folder`; or, as in git, the one that `GIT_DIR` and `GIT_WORK_TREE` name (in a hook, for
    /// instance), with the index that `GIT_INDEX_FILE` names.
    pub fn discover(folder: &Path) -> Result<Self, GitError> {
        // Hashing every object again on its way in costs more than reading it; git does not do it either, but in fsck.
        git2::opts::strict_hash_verification(false);
        let git_dir = path_from_environment("GIT_DIR");
        let opened = match &git_dir {
            Some(_) => Repository::open_from_env(),
            None => Repository::discover(folder),
        };
        let inner = opened.map_err(|error| match (error.code(), error.class()) {
            (ErrorCode::NotFound, _) => match git_dir {
                Some(path) => GitError::NotAGitDir { path },
                None => GitError::NotARepository { path: folder.to_owned() },
            },
            (ErrorCode::Owner, _) => GitError::NotOwned { path: folder.to_owned() },
            (_, ErrorClass::Repository) => {
                GitError::Unsupported { path: folder.to_owned(), what: error.message().to_owned() }
            }
            _ => GitError::from_git2("open the repository", folder, error),
        })?;
        // As git does: a hook's index, such as that of `git commit --all`, counts from the top of the worktree.
        let index = match path_from_environment("GIT_INDEX_FILE") {
            Some(path) => inner.workdir().unwrap_or_else(|| inner.path()).join(path),
            None => inner.path().join("index"),
        };
        Ok(Self { inner, index })
    }

    /// 16 hexadecimal digits from the common git dir, so that linked worktrees share one store.
    pub fn key(&self) -> String {
        let mut key = blake3::hash(&path_bytes::from_path(&self.common_dir())).to_hex().to_string();
        key.truncate(KEY_DIGITS);
        key
    }

    /// The folder's name, for people.
    pub fn name(&self) -> String {
        let root = self.root();
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match name.strip_suffix(".git") {
            Some(stem) if self.inner.is_bare() && !stem.is_empty() => stem.to_owned(),
            _ => name,
        }
    }

    /// The git dir that all linked worktrees share, without symbolic links in it.
    pub fn common_dir(&self) -> PathBuf {
        let dir = self.inner.commondir();
        dir.canonicalize().unwrap_or_else(|_| dir.to_owned())
    }

    /// The working tree; the git dir for a bare repository.
    pub fn root(&self) -> PathBuf {
        let root = self.inner.workdir().unwrap_or_else(|| self.inner.path());
        root.canonicalize().unwrap_or_else(|_| root.to_owned())
    }

    /// The working tree, or that there is none.
    pub(super) fn worktree_root(&self) -> Result<PathBuf, GitError> {
        match self.inner.workdir() {
            Some(_) => Ok(self.root()),
            None => Err(GitError::NoWorktree { path: self.root() }),
        }
    }

    /// Whether who looks around in the working tree finds this repository, without being told where it is.
    pub fn is_discoverable_from_worktree(&self) -> bool {
        Repository::discover(self.root()).is_ok_and(|found| found.path() == self.inner.path())
    }

    /// Whether who looks around in a folder finds this repository or one of its worktrees, without being told where it is.
    pub fn is_discoverable_from(&self, folder: &Path) -> bool {
        let found = Repository::discover(folder).map(|found| found.commondir().to_owned());
        found.is_ok_and(|dir| dir.canonicalize().unwrap_or(dir) == self.common_dir())
    }

    /// Short name of the branch; empty when detached; the future branch's name when unborn.
    pub fn branch(&self) -> String {
        let Ok(head) = self.inner.find_reference("HEAD") else { return String::new() };
        let target = head.symbolic_target_bytes().unwrap_or_default();
        text_from_bytes(target.strip_prefix(b"refs/heads/").unwrap_or(target))
    }

    /// HEAD's commit; empty when unborn.
    pub fn head(&self) -> String {
        self.head_id().map(|id| id.to_string()).unwrap_or_default()
    }

    pub(super) fn head_id(&self) -> Option<Oid> {
        self.inner.head().ok()?.peel_to_commit().ok().map(|commit| commit.id())
    }

    /// Keeps a snapshot from gc: `refs/revdeck/snapshots/<run_id>`.
    pub fn keep_snapshot(&self, run: &RunId, snapshot_commit: &str) -> Result<(), GitError> {
        let id = self.commit_id(snapshot_commit)?;
        let name = format!("{SNAPSHOT_REFS}{run}");
        self.inner
            .reference(&name, id, true, "revdeck: snapshot of a review")
            .map_err(self.git_error("keep a snapshot"))?;
        Ok(())
    }

    /// Lets gc have a snapshot; one that is not kept is no error.
    pub fn release_snapshot(&self, run: &RunId) -> Result<(), GitError> {
        match self.inner.find_reference(&format!("{SNAPSHOT_REFS}{run}")) {
            Ok(mut reference) => reference.delete().map_err(self.git_error("release a snapshot")),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(self.git_error("release a snapshot")(error)),
        }
    }

    /// The runs whose snapshots are kept.
    pub fn kept_snapshot_runs(&self) -> Result<Vec<RunId>, GitError> {
        let failed = self.git_error("list the snapshots");
        let mut runs = Vec::new();
        for reference in self.inner.references_glob(&format!("{SNAPSHOT_REFS}*")).map_err(&failed)? {
            let reference = reference.map_err(&failed)?;
            let name = reference.name().ok().and_then(|name| name.strip_prefix(SNAPSHOT_REFS));
            runs.extend(name.and_then(|name| name.parse::<RunId>().ok()));
        }
        runs.sort();
        Ok(runs)
    }

    /// Makes an error of libgit2 one of ours.
    pub(super) fn git_error(&self, action: &'static str) -> impl Fn(git2::Error) -> GitError + Copy + use<'_> {
        move |source| GitError::from_git2(action, self.root(), source)
    }
}

/// A path from the environment; an empty one is none.
fn path_from_environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn text_from_bytes(bytes: &[u8]) -> String {
    crate::domain::text::path_from_bytes(bytes)
}
