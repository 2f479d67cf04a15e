//! Defines the errors of the knowledge cache.

use std::path::PathBuf;

use thiserror::Error;

use crate::store::StoreError;

/// Error of the knowledge cache, an export or an import.
#[derive(Debug, Error)]
pub enum KnowledgeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{} is damaged and cannot be set aside: {source}", path.display())]
    Damaged { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be imported: {problem}", path.display())]
    Import { path: PathBuf, problem: String },
    #[error("there is no pattern {id}")]
    NoPattern { id: String },
}

impl KnowledgeError {
    /// Returns advice for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::Store(StoreError::Newer { .. }) => {
                "upgrade revdeck; `revdeck knowledge export` of the newer one gives what it knows".into()
            }
            Self::Store(error) => error.hint(),
            Self::Damaged { .. } => "move the file away by hand: what it holds cannot be read".into(),
            Self::Import { .. } => {
                "name a file that `revdeck knowledge export` wrote: nothing else can be imported".into()
            }
            Self::NoPattern { .. } => "`revdeck knowledge list` lists the patterns".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::full(ErrorKind::StorageFull, "the disk is full")]
    #[case::quota(ErrorKind::QuotaExceeded, "your disk quota is used up")]
    #[case::read_only(ErrorKind::ReadOnlyFilesystem, "read-only file system")]
    #[case::protected(ErrorKind::PermissionDenied, "/home/x/knowledge_cache belongs to somebody else")]
    fn the_way_out_is_that_of_what_went_wrong(#[case] kind: ErrorKind, #[case] says: &str) {
        let path = PathBuf::from("/home/x/knowledge_cache");
        let error = KnowledgeError::from(StoreError::io("write", &path)(kind.into()));
        assert!(error.hint().contains(says), "{}", error.hint());
    }
}
