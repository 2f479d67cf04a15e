//! The dependencies of all services of the runner, and the services over them.

use std::sync::Arc;

use crate::config::{ClockAndIds, Paths, Settings};
use crate::domain::RunId;
use crate::git::Repo;
use crate::review::JournalState;
use crate::runner::{
    Asker, FindingLifecycle, Fixer, Importer, Indexer, Launcher, Learning, PromptBuilder, Recovery, RepositoryRules,
    ReviewerAccess, RunCloser, RunControl, TeamSync, Watcher, Worker,
};
use crate::store::{Store, StoreError};

/// The name of the reviewer that needs no settings.
pub const BUILTIN_REVIEWER: &str = "builtin";

/// Dependencies of the services: one repository with its store, settings, folders and clock. Cheap to create, one per
/// process. Each service is a view that borrows them.
pub struct Services {
    pub repo: Repo,
    pub store: Store,
    pub settings: Arc<Settings>,
    /// Settings that the reviewed repository takes part in, for each change.
    pub rules: RepositoryRules,
    pub paths: Paths,
    pub ambient: ClockAndIds,
}

impl Services {
    /// Opens the repository again for another thread. Returns `None` if it cannot be opened any more.
    pub fn open_again(&self) -> Option<Self> {
        let repo = Repo::discover(&self.repo.root()).ok()?;
        Some(Self {
            repo,
            store: self.store.clone(),
            settings: Arc::clone(&self.settings),
            rules: self.rules.clone(),
            paths: self.paths.clone(),
            ambient: ClockAndIds::system(),
        })
    }

    /// Returns the service for requests, starts and previews.
    pub fn launcher(&self) -> Launcher<'_> {
        Launcher { services: self }
    }

    /// Returns the service for cancelling, pausing and waiting.
    pub fn control(&self) -> RunControl<'_> {
        RunControl { services: self }
    }

    /// Returns the service that executes a run.
    pub fn worker(&self) -> Worker<'_> {
        Worker { services: self }
    }

    /// Returns the service for automatic reviews.
    pub fn watcher(&self) -> Watcher<'_> {
        Watcher { services: self }
    }

    /// Returns the service for fixes.
    pub fn fixer(&self) -> Fixer<'_> {
        Fixer { services: self }
    }

    /// Returns the service for questions about findings.
    pub fn asker(&self) -> Asker<'_> {
        Asker { services: self }
    }

    /// Returns the service for recovery, leftovers and retention.
    pub fn recovery(&self) -> Recovery<'_> {
        Recovery { services: self }
    }

    /// Returns the service that ends runs.
    pub fn closer(&self) -> RunCloser<'_> {
        RunCloser { services: self }
    }

    /// Returns the service for reports of other tools.
    pub fn importer(&self) -> Importer<'_> {
        Importer { services: self }
    }

    /// Returns the service for the life of findings.
    pub fn findings(&self) -> FindingLifecycle<'_> {
        FindingLifecycle { services: self }
    }

    /// Returns the service for what a model is sent.
    pub fn prompts(&self) -> PromptBuilder<'_> {
        PromptBuilder { services: self }
    }

    /// Returns the service for reviewers of the settings.
    pub fn reviewers(&self) -> ReviewerAccess<'_> {
        ReviewerAccess::new(self)
    }

    /// Returns the service for learned patterns.
    pub fn learning(&self) -> Learning<'_> {
        Learning { services: self }
    }

    /// Returns the service that exchanges records with the team.
    pub fn team(&self) -> TeamSync<'_> {
        TeamSync { services: self }
    }

    /// Returns the service for the repository index.
    pub fn indexer(&self) -> Indexer<'_> {
        Indexer { services: self }
    }

    /// Returns the state that the journal of a run describes.
    ///
    /// # Errors
    ///
    /// If the journal cannot be read.
    pub(crate) fn replay_journal(&self, run: &RunId) -> Result<JournalState, StoreError> {
        let entries = self.store.read_journal(run)?;
        Ok(JournalState::from_events(entries.iter().map(|entry| &entry.event)))
    }
}
