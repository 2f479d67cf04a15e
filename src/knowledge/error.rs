//! What can go wrong with knowledge.

use std::path::PathBuf;

use thiserror::Error;

use crate::store::StoreError;

/// An error of the knowledge cache or of an exchange.
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
    /// The way out, as a sentence for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::Store(StoreError::Io { .. }) => {
                "give yourself access to this folder, or set REVDECK_HOME to one of your own; nothing half-written was \
                 kept"
                    .into()
            }
            Self::Store(StoreError::Newer { .. }) => {
                "upgrade revdeck; `revdeck knowledge export` of the newer one gives what it knows".into()
            }
            Self::Store(error) => error.hint(),
            Self::Damaged { .. } => "move the file away by hand: what it holds cannot be read".into(),
            Self::Import { .. } => {
                "only what `revdeck knowledge export` wrote can be imported; ask for it again".into()
            }
            Self::NoPattern { .. } => "`revdeck knowledge list` lists the patterns".into(),
        }
    }
}
