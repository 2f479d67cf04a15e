//! Defines the errors of the store; each names its path.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of the store. [`StoreError::hint`] returns a remedy.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder of the store could not be read, locked or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Failed action, such as "append to".
        action: &'static str,
        /// File or folder of the action.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A write was refused, because a newer revdeck wrote the store.
    #[error("{} was written by a newer revdeck (schema {found}, this one knows {known})", path.display())]
    Newer {
        /// Folder of the store.
        path: PathBuf,
        /// Schema version of the store.
        found: u32,
        /// Schema version of this revdeck.
        known: u32,
    },
    /// The store has no run with the requested id.
    #[error("there is no run {id} in {}", path.display())]
    NoRun {
        /// Requested id.
        id: String,
        /// The file with the runs.
        path: PathBuf,
    },
    /// A value could not be serialized.
    #[error("cannot write {what} as JSON: {source}")]
    Encode {
        /// Description of the value, such as "a run's output".
        what: &'static str,
        /// Error of the serializer.
        source: serde_json::Error,
    },
}

impl StoreError {
    /// Converts an IO error into an error that names the file: `.map_err(StoreError::io("read", &path))`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Returns a remedy as a sentence for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { source, path, .. } => match source.kind() {
                ErrorKind::StorageFull => {
                    "the disk is full: free some space (`revdeck store prune` removes old journals) and try again; \
                     nothing half-written was kept"
                        .into()
                }
                ErrorKind::QuotaExceeded => {
                    "your disk quota is used up: free some space (`revdeck store prune` removes old journals)".into()
                }
                ErrorKind::FileTooLarge => {
                    "the file may not grow further (a file size limit is set, see `ulimit -f`); nothing half-written \
                     was kept"
                        .into()
                }
                ErrorKind::ReadOnlyFilesystem => {
                    "the store is on a read-only file system: reading works; set REVDECK_HOME to a folder that can be \
                     written to review or triage"
                        .into()
                }
                ErrorKind::PermissionDenied => format!(
                    "{} belongs to somebody else or is protected: give yourself access, or set REVDECK_HOME to a \
                     folder of your own",
                    path.display()
                ),
                ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                    format!("a file is in the way of a folder of the store: move it ({})", path.display())
                }
                _ => "run `revdeck store verify` to see whether the store is whole".into(),
            },
            Self::Newer { .. } => {
                "upgrade revdeck to write to this store; reading it goes on working with this version".into()
            }
            Self::NoRun { .. } => "`revdeck runs` lists the runs of this repository".into(),
            Self::Encode { .. } => "this is a fault in revdeck; please report it".into(),
        }
    }
}
