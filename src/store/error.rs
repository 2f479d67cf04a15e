//! Defines the errors of the store; each names its path.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of the store. [`StoreError::hint`] returns a remedy.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder of the store could not be read, locked or written.
    #[error("cannot {action} {}: {}", shown_path(path, source), shown_cause(source))]
    Io {
        /// Failed action, such as "append to".
        action: &'static str,
        /// File or folder of the action.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
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
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if describe_no_room(&source).is_some() {
                tracing::warn!(action, path = %path.display(), %source, "there is no room to write");
            }
            Self::Io { action, path: path.to_owned(), source }
        }
    }

    /// Returns a remedy as a sentence for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { source, path, .. } => match source.kind() {
                ErrorKind::StorageFull => format!(
                    "the disk is full: free some space (`revdeck store prune` removes old journals) and try again; \
                     nothing half-written was kept in {}",
                    path.display()
                ),
                ErrorKind::QuotaExceeded => format!(
                    "your disk quota is used up: free some space (`revdeck store prune` removes old journals) for {}",
                    path.display()
                ),
                ErrorKind::FileTooLarge => format!(
                    "the file may not grow further (a file size limit is set, see `ulimit -f`); nothing half-written \
                     was kept in {}",
                    path.display()
                ),
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

/// Describes an error of the system that means that there is no room to write, in the same words on every system.
fn describe_no_room(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::StorageFull => Some("no space left on device"),
        ErrorKind::QuotaExceeded => Some("disk quota exceeded"),
        ErrorKind::FileTooLarge => Some("the file may not grow further"),
        _ => None,
    }
}

/// Returns the path of a message. Where there is no room to write, the name of the file is enough, so that the message has
/// one line; [`StoreError::hint`] and the log have the whole path.
fn shown_path<'a>(path: &'a Path, source: &io::Error) -> Cow<'a, str> {
    match path.file_name().filter(|_| describe_no_room(source).is_some()) {
        Some(name) => name.to_string_lossy(),
        None => path.display().to_string().into(),
    }
}

fn shown_cause(source: &io::Error) -> Cow<'static, str> {
    describe_no_room(source).map_or_else(|| source.to_string().into(), Cow::from)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::full(ErrorKind::StorageFull, "cannot append to triage.ndjson: no space left on device")]
    #[case::quota(ErrorKind::QuotaExceeded, "cannot append to triage.ndjson: disk quota exceeded")]
    #[case::limited(ErrorKind::FileTooLarge, "cannot append to triage.ndjson: the file may not grow further")]
    fn an_error_without_room_is_short_and_its_hint_names_the_path(#[case] kind: ErrorKind, #[case] message: &str) {
        let path = "/home/ada/.local/state/revdeck/review/repo-3f9a2c1d/auto-review/triage.ndjson";
        let error = StoreError::io("append to", Path::new(path))(kind.into());
        assert_eq!(error.to_string(), message);
        assert!(error.hint().contains(path), "{}", error.hint());
    }

    #[test]
    fn other_errors_name_the_path() {
        let error = StoreError::io("read", Path::new("/home/ada/runs.ndjson"))(io::Error::other("it is damaged"));
        assert_eq!(error.to_string(), "cannot read /home/ada/runs.ndjson: it is damaged");
    }
}
