//! What can go wrong with a repository, each with its place and, where there is one, the way out.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the git room.
#[derive(Debug, Error)]
pub enum GitError {
    #[error("{} is not in a git repository", path.display())]
    NotARepository { path: PathBuf },
    /// git's own protection against repositories that somebody else prepared.
    #[error("the repository around {} belongs to somebody else", path.display())]
    NotOwned { path: PathBuf },
    /// A repository format that libgit2 cannot read, such as SHA-256 or reftable.
    #[error("the repository around {} has a format that revdeck cannot read: {what}", path.display())]
    Unsupported { path: PathBuf, what: String },
    #[error("{} has no working tree", path.display())]
    NoWorktree { path: PathBuf },
    #[error("{text:?} names no commit in {}", path.display())]
    UnknownRevision { text: String, path: PathBuf },
    #[error("{} has no commit yet", path.display())]
    Unborn { path: PathBuf },
    /// `tried` are the names that could have been the base of the branch.
    #[error("cannot guess what the branch started from in {}: none of {} exists", path.display(), tried.join(", "))]
    NoBase { tried: Vec<String>, path: PathBuf },
    #[error("{one:?} and {other:?} have no common ancestor in {}", path.display())]
    NoMergeBase { one: String, other: String, path: PathBuf },
    /// What a partial clone lacks did not come from its remote.
    #[error("{} is a partial clone and misses contents that its remote did not give: {what}", path.display())]
    Missing { path: PathBuf, what: String },
    #[error("cannot read the index {}: {what}", path.display())]
    Index { path: PathBuf, what: String },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot {action} in {}: {source}", path.display())]
    Git { action: &'static str, path: PathBuf, source: git2::Error },
}

impl GitError {
    /// What somebody can do about it, as a sentence; `None` when there is nothing particular to say.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotARepository { .. } => "change into a repository, or make one with `git init`".to_owned(),
            Self::NotOwned { path } => {
                format!("if you trust it, run `git config --global --add safe.directory {}`", path.display())
            }
            Self::Unsupported { .. } => {
                "a clone with the default formats (SHA-1 objects, files as refs) works".to_owned()
            }
            Self::NoWorktree { .. } => "name a commit, a range or a branch instead of the working tree".to_owned(),
            Self::UnknownRevision { .. } => "`git log --oneline --all` shows the commits there are".to_owned(),
            Self::Unborn { .. } => "review the working tree, or commit first".to_owned(),
            Self::NoBase { .. } => "name the base yourself, as in `--branch origin/develop`".to_owned(),
            Self::NoMergeBase { .. } => {
                "in a shallow clone `git fetch --unshallow` brings the history that is missing".to_owned()
            }
            Self::Missing { .. } => {
                "`git fetch --refetch --no-filter` makes it a whole clone, once its remote can be reached".to_owned()
            }
            Self::Index { .. } => "`git status` says whether git itself can read it".to_owned(),
            Self::Io { .. } | Self::Git { .. } => return None,
        })
    }

    /// The error of libgit2 while doing `action`.
    pub(super) fn git(action: &'static str, path: impl Into<PathBuf>, source: git2::Error) -> Self {
        Self::Git { action, path: path.into(), source }
    }
}
