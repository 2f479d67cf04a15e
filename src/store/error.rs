//! What can go wrong in the store, each with its path.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the store. Every variant says which file, and [`StoreError::hint`] says what to do.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} was written by a newer revdeck (schema {found}, this one knows {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("there is no run {id} in {}", path.display())]
    NoRun { id: String, path: PathBuf },
    #[error("cannot write {what} as JSON: {source}")]
    Encode { what: &'static str, source: serde_json::Error },
}
