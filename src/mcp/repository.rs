//! Access to the repository for one call.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::ToolFailure;
use crate::runner::Services;

/// Purpose for which a repository is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenPurpose {
    /// To read: mistakes in the settings are overlooked.
    Read,
    /// To start or end reviews: mistakes in the settings are errors.
    Request,
}

/// Requests that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMode {
    /// Reading and requesting.
    Full,
    /// Reading only. The server writes nothing to the store.
    ReadOnly,
}

/// Opens the repository around the server's folder.
type OpenRepository = dyn Fn(OpenPurpose) -> Result<Services, ToolFailure> + Send + Sync;

/// Way to the repository. Cheap to clone.
#[derive(Clone)]
pub struct RepositoryAccess {
    open: Arc<OpenRepository>,
    /// Requests that the server accepts.
    pub mode: ServerMode,
    /// Number of reviews that this session has started. A server has one client, and so one session.
    pub started_reviews: Arc<AtomicU32>,
}

impl RepositoryAccess {
    /// Creates the access from the function that opens the repository.
    pub fn new(
        mode: ServerMode,
        open: impl Fn(OpenPurpose) -> Result<Services, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { open: Arc::new(open), mode, started_reviews: Arc::default() }
    }

    /// Opens the repository.
    ///
    /// # Errors
    ///
    /// If there is no repository, or its settings or its store cannot be read.
    pub fn open(&self, purpose: OpenPurpose) -> Result<Services, ToolFailure> {
        (self.open)(purpose)
    }
}
