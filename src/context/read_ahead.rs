//! Reads into the caches what the next context of a repository needs: its history and the documents of its code.
//!
//! - One process at a time reads ahead in a repository. Another process leaves the work to it.
//! - What was read before a stop stays.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::builder::MAX_HISTORY_COMMITS;
use crate::git::{GitError, Repo};
use crate::index::document_store::{AuthoredFilter, DocumentStore, list_code_files};
use crate::index::history_cache::{HistoryCompleteness, RepoHistory};

/// Sources of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSources {
    /// Commit whose tree is searched.
    pub tree: String,
    /// Commit whose history is read.
    pub history: String,
}

/// Reads history and documents into the caches in `folder` until `stopped` returns true. Returns true if nothing is left
/// to read ahead: all of the history is read, and all documents or as many as half of the cache holds. Returns false
/// after a stop, or if another process reads.
///
/// # Errors
/// Fails if git cannot read the tree or the history. A failure of the caches costs only time.
pub fn read_ahead(
    repo: &Repo,
    sources: &ContextSources,
    folder: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<bool, GitError> {
    let Some(_lock) = lock(folder) else { return Ok(false) };
    let history = RepoHistory::read(repo, &sources.history, MAX_HISTORY_COMMITS, Some(folder), stopped)?;
    let listing = repo.list_tree(&sources.tree)?;
    let mut library = DocumentStore::open(Some(folder));
    let mut authored = AuthoredFilter::from_tree(repo, &sources.tree, &|_| false)?;
    let files = authored.retain_by_name(list_code_files(&listing, &HashSet::new()));
    let unknown = library.find_unknown(&files);
    let is_prepared = library.prepare_within_cache(repo, &unknown, &mut authored, stopped);
    library.close();
    Ok(history.completeness == HistoryCompleteness::Whole && is_prepared)
}

/// Takes the lock of the folder; `None` if another process has it or the folder cannot be written. Closing the returned
/// file releases the lock.
fn lock(folder: &Path) -> Option<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let file = File::open(folder).ok()?;
    file.try_lock().ok().map(|()| file)
}
