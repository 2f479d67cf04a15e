//! Folders that the editor has opened, and the repositories around them and around open documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ServerOptions;
use super::document::ColumnUnit;
use super::repository::ReviewedRepository;
use crate::store::{StoreChange, StoreTail};

/// Tells the event loop that the store of a repository has changed. Returns false once nobody listens.
pub type ChangeSender = Arc<dyn Fn(PathBuf) -> bool + Send + Sync>;

/// File of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryFile {
    /// Root of the repository's worktree.
    pub root: PathBuf,
    /// Path relative to the root.
    pub path: String,
}

/// Folders and repositories of one session.
pub struct OpenFolders {
    options: Arc<ServerOptions>,
    changes: ChangeSender,
    unit: ColumnUnit,
    folders: BTreeSet<PathBuf>,
    /// Repositories by root.
    pub repositories: BTreeMap<PathBuf, ReviewedRepository>,
}

impl OpenFolders {
    /// Creates a session without folders.
    pub fn new(options: Arc<ServerOptions>, changes: ChangeSender, unit: ColumnUnit) -> Self {
        Self { options, changes, unit, folders: BTreeSet::new(), repositories: BTreeMap::new() }
    }

    /// Opens the repository around a folder of the workspace. Returns its root if it is new. A folder without a repository
    /// has no findings; that is no error.
    pub fn add(&mut self, folder: PathBuf) -> Option<PathBuf> {
        let root = self.open_around(&folder);
        self.folders.insert(folder);
        root
    }

    /// Closes a folder, and the repositories in which no folder and none of the documents is any more.
    pub fn remove(&mut self, folder: &Path, documents: &[&Path]) {
        self.folders.remove(folder);
        let kept: Vec<&Path> = self.folders.iter().map(PathBuf::as_path).chain(documents.iter().copied()).collect();
        self.repositories.retain(|root, repository| {
            let is_inside = |path: &&Path| {
                path.starts_with(&repository.client_root)
                    || path.canonicalize().is_ok_and(|real| real.starts_with(root))
            };
            kept.iter().any(is_inside)
        });
    }

    /// Opens the repository around a folder. Returns its root if it is new.
    pub fn open_around(&mut self, folder: &Path) -> Option<PathBuf> {
        let services = match (self.options.open)(folder) {
            Ok(services) => services,
            Err(reason) => {
                tracing::debug!(folder = %folder.display(), reason, "no repository");
                return None;
            }
        };
        let root = services.repo.root();
        if self.repositories.contains_key(&root) || !services.repo.has_worktree() {
            return None;
        }
        let mut tail = services.store.open_tail();
        // Another commit or branch changes files, and with them what stands.
        tail.watch_beside(&[&services.repo.git_dir().join("logs").join("HEAD")]);
        let watch = tail.stopper();
        let (changes, watched) = (Arc::clone(&self.changes), root.clone());
        std::thread::spawn(move || send_changes(tail, &watched, &*changes));
        let client_root = spell_root(folder, &root);
        let repository = ReviewedRepository::new(services, client_root, watch, (self.options.least, self.unit));
        self.repositories.insert(root.clone(), repository);
        Some(root)
    }

    /// Returns the innermost repository of a file.
    pub fn find_file(&self, file: &Path) -> Option<RepositoryFile> {
        let inside = self.repositories.iter().filter_map(|(root, repository)| {
            let path = repository.relative_path(file)?;
            Some(RepositoryFile { root: root.clone(), path })
        });
        inside.max_by_key(|found| found.root.components().count())
    }
}

/// Tells each change of a store until the tail is stopped.
fn send_changes(mut tail: StoreTail, root: &Path, changes: &(dyn Fn(PathBuf) -> bool + Send + Sync)) {
    loop {
        match tail.wait() {
            StoreChange::Heartbeat | StoreChange::Viewed | StoreChange::Delivery => {}
            StoreChange::Stopped => return,
            StoreChange::Store if changes(root.to_owned()) => {}
            StoreChange::Store => return,
        }
    }
}

/// Returns the root of a worktree as the client spells it: `folder`, which may contain links, or a folder above it.
fn spell_root(folder: &Path, root: &Path) -> PathBuf {
    let is_root = |path: &&Path| path.canonicalize().is_ok_and(|real| real == root);
    folder.ancestors().find(is_root).unwrap_or(root).to_owned()
}
