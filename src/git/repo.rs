//! Opens a repository and returns its identity, HEAD, and the refs that protect snapshots from `git gc`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ErrorClass, ErrorCode, Oid, Repository};

use super::blocking_files::check_git_dir;
use super::{DEFAULT_GIT_PATIENCE, GitError, Repo, RepositoryPlace, path_bytes};
use crate::domain::RunId;

/// Ref prefix of kept snapshots; the ref's last part is the run id.
const SNAPSHOT_REFS: &str = "refs/revdeck/snapshots/";
/// Length of a repository key, in hexadecimal digits.
const KEY_DIGITS: usize = 16;

impl RepositoryPlace {
    /// Returns true if the repository or its working tree is not there any more: deleted, moved, or unmounted. False if the
    /// system does not tell.
    pub fn is_gone(&self) -> bool {
        let is_missing = |path: &Path| matches!(path.try_exists(), Ok(false));
        is_missing(&self.git_dir) || self.worktree.as_deref().is_some_and(is_missing)
    }
}

impl Repo {
    /// Opens the repository that contains `folder`. As in git, `GIT_DIR` and `GIT_WORK_TREE` override `folder` (git
    /// sets them in a hook, for example), and `GIT_INDEX_FILE` names the index.
    ///
    /// # Errors
    /// Returns an error when there is no repository, when it belongs to another user, or when libgit2 cannot read its
    /// format.
    pub fn discover(folder: &Path) -> Result<Self, GitError> {
        // Verifying the hash of each object costs more than reading the object; git does this in `fsck` only.
        git2::opts::strict_hash_verification(false);
        let git_dir = path_from_environment("GIT_DIR");
        let opened = match &git_dir {
            Some(path) => {
                check_git_dir(path)?;
                Repository::open_from_env()
            }
            None => match Repository::discover_path(folder, std::iter::empty::<&Path>()) {
                Ok(path) => {
                    check_git_dir(&path)?;
                    Repository::open(path)
                }
                Err(error) => Err(error),
            },
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
        // As in git, a relative `GIT_INDEX_FILE` (for example in a hook of `git commit --all`) starts at the root of
        // the worktree.
        let index = match path_from_environment("GIT_INDEX_FILE") {
            Some(path) => inner.workdir().unwrap_or_else(|| inner.path()).join(path),
            None => inner.path().join("index"),
        };
        Ok(Self { inner, index, git_patience: DEFAULT_GIT_PATIENCE, converted_files: Default::default() })
    }

    /// Returns the repository with another limit for the time in which the git program, and what it starts, writes
    /// nothing.
    pub fn with_git_patience(self, git_patience: Duration) -> Self {
        Self { git_patience, ..self }
    }

    /// Opens this repository once more, for another thread or another owner, as [`Repo::discover`] finds it from the
    /// root.
    ///
    /// # Errors
    /// Returns an error when the repository is gone or cannot be read any more.
    pub fn discover_again(&self) -> Result<Self, GitError> {
        Ok(Self::discover(&self.root())?.with_git_patience(self.git_patience))
    }

    /// Returns the repository key: 16 hexadecimal digits, hashed from the common git dir, so that linked worktrees
    /// share a store.
    pub fn key(&self) -> String {
        let mut key = blake3::hash(&path_bytes::from_path(&self.common_dir())).to_hex().to_string();
        key.truncate(KEY_DIGITS);
        key
    }

    /// Returns a display name: the name of the root folder, without `.git` for a bare repository.
    pub fn name(&self) -> String {
        let root = self.root();
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match name.strip_suffix(".git") {
            Some(stem) if self.inner.is_bare() && !stem.is_empty() => stem.to_owned(),
            _ => name,
        }
    }

    /// Returns the git dir that all linked worktrees share, with symbolic links resolved.
    pub fn common_dir(&self) -> PathBuf {
        let dir = self.inner.commondir();
        dir.canonicalize().unwrap_or_else(|_| dir.to_owned())
    }

    /// Returns the root of the working tree, or the git dir of a bare repository.
    pub fn root(&self) -> PathBuf {
        let root = self.inner.workdir().unwrap_or_else(|| self.inner.path());
        root.canonicalize().unwrap_or_else(|_| root.to_owned())
    }

    /// Returns true if the repository or its working tree is not at its place any more: deleted, moved, or unmounted.
    /// False if the system does not tell.
    pub fn is_gone(&self) -> bool {
        self.place().is_gone()
    }

    /// Returns where the repository is, to look later whether it is still there.
    pub fn place(&self) -> RepositoryPlace {
        RepositoryPlace { git_dir: self.inner.path().to_owned(), worktree: self.inner.workdir().map(Path::to_owned) }
    }

    /// Returns the root of the working tree, or an error for a bare repository.
    pub(super) fn worktree_root(&self) -> Result<PathBuf, GitError> {
        match self.inner.workdir() {
            Some(_) => Ok(self.root()),
            None => Err(GitError::NoWorktree { path: self.root() }),
        }
    }

    /// Returns true when repository discovery from the working tree finds this repository, without help from the
    /// environment.
    pub fn is_discoverable_from_worktree(&self) -> bool {
        Repository::discover(self.root()).is_ok_and(|found| found.path() == self.inner.path())
    }

    /// Returns true when repository discovery from `folder` finds this repository or one of its worktrees, without help
    /// from the environment.
    pub fn is_discoverable_from(&self, folder: &Path) -> bool {
        let found = Repository::discover(folder).map(|found| found.commondir().to_owned());
        found.is_ok_and(|dir| dir.canonicalize().unwrap_or(dir) == self.common_dir())
    }

    /// Returns the short name of the branch; empty when HEAD is detached. For an unborn HEAD, returns the name of the
    /// future branch.
    pub fn branch(&self) -> String {
        let Ok(head) = self.inner.find_reference("HEAD") else { return String::new() };
        let target = head.symbolic_target_bytes().unwrap_or_default();
        text_from_bytes(target.strip_prefix(b"refs/heads/").unwrap_or(target))
    }

    /// Returns the id of HEAD's commit in hexadecimal; empty when HEAD is unborn.
    pub fn head(&self) -> String {
        self.head_id().map(|id| id.to_string()).unwrap_or_default()
    }

    /// Returns the name that git writes into the user's commits; `None` if it is not set or not UTF-8.
    pub fn user_name(&self) -> Option<String> {
        let config = self.inner.config().and_then(|mut config| config.snapshot()).ok()?;
        config.get_string("user.name").ok().filter(|name| !name.trim().is_empty())
    }

    /// Returns the URL of a remote; `None` if there is no such remote, or its URL is not UTF-8.
    pub fn remote_url(&self, name: &str) -> Option<String> {
        let remote = self.inner.find_remote(name).ok()?;
        remote.url().ok().map(str::to_owned)
    }

    /// Returns true if the repository has a working tree.
    pub(crate) fn has_worktree(&self) -> bool {
        self.inner.workdir().is_some()
    }

    pub(super) fn head_id(&self) -> Option<Oid> {
        self.inner.head().ok()?.peel_to_commit().ok().map(|commit| commit.id())
    }

    /// Protects a snapshot from `git gc` with the ref `refs/revdeck/snapshots/<run_id>`.
    ///
    /// # Errors
    /// Returns an error when the commit does not exist or the ref cannot be written.
    pub fn keep_snapshot(&self, run: &RunId, snapshot_commit: &str) -> Result<(), GitError> {
        let id = self.commit_id(snapshot_commit)?;
        let name = format!("{SNAPSHOT_REFS}{run}");
        self.inner
            .reference(&name, id, true, "revdeck: snapshot of a review")
            .map_err(self.git_error("keep a snapshot"))?;
        Ok(())
    }

    /// Deletes the ref that protects a snapshot from `git gc`. Does nothing when there is no such ref.
    ///
    /// # Errors
    /// Returns an error when the ref cannot be read or deleted.
    pub fn release_snapshot(&self, run: &RunId) -> Result<(), GitError> {
        match self.inner.find_reference(&format!("{SNAPSHOT_REFS}{run}")) {
            Ok(mut reference) => reference.delete().map_err(self.git_error("release a snapshot")),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(self.git_error("release a snapshot")(error)),
        }
    }

    /// Returns the ids of the runs whose snapshots are kept, sorted.
    ///
    /// # Errors
    /// Returns an error when the refs cannot be listed.
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

    /// Returns a function that converts a libgit2 error into a [`GitError`] for `action`.
    pub(super) fn git_error(&self, action: &'static str) -> impl Fn(git2::Error) -> GitError + Copy + use<'_> {
        move |source| GitError::from_git2(action, self.root(), source)
    }
}

/// Reads a path from an environment variable; `None` when it is unset or empty.
fn path_from_environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn text_from_bytes(bytes: &[u8]) -> String {
    crate::domain::text::path_from_bytes(bytes)
}
