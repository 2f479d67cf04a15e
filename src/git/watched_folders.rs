//! The folders of a worktree that git looks into, for whoever wants to be told when something moves in them: neither
//! what is ignored nor other repositories, so that a build folder with a million files costs nothing.
//!
//! Invariant: reads folders and the files of rules only. A tracked file that is ignored nevertheless is in no such folder,
//! or counts as ignored in one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::Gitignore;

use super::gitignore::{FolderIgnoreRules, SharedIgnoreRules, parse_globs};
use super::scan::is_repository;
use super::{Repo, path_bytes};

/// Globs whose files' movement is none.
#[derive(Debug, Clone)]
pub struct WatchExclusions(Gitignore);

impl WatchExclusions {
    /// From globs in the syntax of .gitignore.
    pub fn new(patterns: &[String]) -> Self {
        Self(parse_globs(patterns))
    }

    /// `path` is relative to the worktree, as git has it.
    pub(super) fn is_excluded(&self, path: &[u8]) -> bool {
        !self.0.is_empty() && self.0.matched_path_or_any_parents(path_bytes::to_path(path), false).is_ignore()
    }
}

/// The folders that were gone into, with the rules that hold in each.
pub struct WatchedFolders {
    root: PathBuf,
    shared: Arc<SharedIgnoreRules>,
    quiet: WatchExclusions,
    /// By path from the worktree on.
    known: HashMap<Vec<u8>, Arc<FolderIgnoreRules>>,
}

impl Repo {
    /// None yet; [`Folders::enter`] goes into them.
    pub fn watched_folders(&self, quiet: WatchExclusions) -> WatchedFolders {
        let shared = self.shared_ignore_rules(&self.worktree_config());
        WatchedFolders { root: self.root(), shared, quiet, known: HashMap::new() }
    }
}

impl WatchedFolders {
    /// Goes into a folder and all below it; `visit` is called for each before it is read, so that what is made in it
    /// meanwhile is either read or told.
    ///
    /// # Errors
    /// What `visit` says; it ends the walk.
    pub fn enter<E>(&mut self, folder: &Path, visit: &mut dyn FnMut(&Path) -> Result<(), E>) -> Result<(), E> {
        let Some(path) = self.relative_path(folder) else { return Ok(()) };
        let parent = match path.is_empty() {
            true => None,
            false => match self.known.get(parent_path(&path)) {
                Some(above) if above.ignores(&path, true) || self.quiet.is_excluded(&path) => return Ok(()),
                Some(above) => Some(Arc::clone(above)),
                // The way to it was not gone: something above is ignored.
                None => return Ok(()),
            },
        };
        let mut waiting = vec![(path, parent)];
        while let Some((path, parent)) = waiting.pop() {
            let folder = path_bytes::join_path(&self.root, &path);
            let plain = folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            if !plain || (parent.is_some() && is_repository(&folder)) {
                continue;
            }
            visit(&folder)?;
            let rules = folder.join(".gitignore");
            let rules = rules.symlink_metadata().is_ok_and(|metadata| metadata.is_file()).then_some(rules);
            let here = FolderIgnoreRules::new(parent, path.clone(), rules, &self.shared);
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || entry.file_name() == ".git" {
                    continue;
                }
                let name = path_bytes::from_path(Path::new(&entry.file_name()));
                let below = if path.is_empty() { name } else { [path.as_slice(), b"/", &name].concat() };
                if !here.ignores(&below, true) && !self.quiet.is_excluded(&below) {
                    waiting.push((below, Some(Arc::clone(&here))));
                }
            }
            self.known.insert(path, here);
        }
        Ok(())
    }

    /// Forgets a folder that is gone, and those below it; the ones that were known.
    pub fn leave(&mut self, folder: &Path) -> Vec<PathBuf> {
        let Some(path) = self.relative_path(folder).filter(|path| self.known.contains_key(path)) else {
            return Vec::new();
        };
        let within = |known: &[u8]| {
            path.is_empty()
                || known.strip_prefix(path.as_slice()).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        let gone: Vec<Vec<u8>> = self.known.keys().filter(|known| within(known)).cloned().collect();
        gone.iter().for_each(|path| drop(self.known.remove(path)));
        gone.iter().map(|path| path_bytes::join_path(&self.root, path)).collect()
    }

    /// Whether movement of a file or folder means nothing: it is ignored, or in no folder that was gone into.
    pub fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let Some(path) = self.relative_path(path) else { return true };
        match self.known.get(parent_path(&path)) {
            _ if path.is_empty() => false,
            Some(folder) => folder.ignores(&path, is_folder) || self.quiet.is_excluded(&path),
            None => true,
        }
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn relative_path(&self, path: &Path) -> Option<Vec<u8>> {
        path.strip_prefix(&self.root).ok().map(path_bytes::from_path)
    }
}

fn parent_path(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).and_then(|slash| path.get(..slash)).unwrap_or_default()
}
