//! What can go wrong with a repository, each with its place.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the git room.
#[derive(Debug, Error)]
pub enum GitError {
    #[error("{} is not in a git repository", path.display())]
    NotARepository { path: PathBuf },
    #[error("{text:?} names no commit in {}", path.display())]
    UnknownRevision { text: String, path: PathBuf },
    #[error("cannot {action} in {}: {source}", path.display())]
    Git { action: &'static str, path: PathBuf, source: git2::Error },
}
