//! Lists the folders of a worktree that a watcher should observe. Ignored folders and other repositories are excluded,
//! so that a build folder with a million files costs nothing.
//!
//! Invariants:
//! - Only folders and rule files are read.
//! - A tracked file that the ignore rules match is not in a watched folder, or counts as ignored there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::Gitignore;

use super::gitignore::{FolderIgnoreRules, SharedIgnoreRules, parse_globs};
use super::scan::is_repository;
use super::{Repo, path_bytes};

/// Globs of files whose changes are not reported.
#[derive(Debug, Clone)]
pub struct WatchExclusions(Gitignore);

impl WatchExclusions {
    /// Parses globs in `.gitignore` syntax.
    pub fn new(patterns: &[String]) -> Self {
        Self(parse_globs(patterns))
    }

    /// Returns true when a glob matches `path`, which is relative to the worktree and in git's form.
    pub(super) fn is_excluded(&self, path: &[u8]) -> bool {
        !self.0.is_empty() && self.0.matched_path_or_any_parents(path_bytes::to_path(path), false).is_ignore()
    }
}

/// The folders entered so far, with the ignore rules of each.
pub struct WatchedFolders {
    root: PathBuf,
    shared: Arc<SharedIgnoreRules>,
    quiet: WatchExclusions,
    /// Key: path relative to the worktree.
    known: HashMap<Vec<u8>, Arc<FolderIgnoreRules>>,
}

impl Repo {
    /// Returns an empty set of folders; [`WatchedFolders::enter`] adds folders.
    pub fn watched_folders(&self, quiet: WatchExclusions) -> WatchedFolders {
        let shared = self.shared_ignore_rules(&self.worktree_config());
        WatchedFolders { root: self.root(), shared, quiet, known: HashMap::new() }
    }
}

impl WatchedFolders {
    /// Adds a folder and all folders below it. `visit` is called for each folder before it is read, so that an entry
    /// created meanwhile is either read or reported by the watch.
    ///
    /// # Errors
    /// Returns the first error of `visit`, which ends the walk.
    pub fn enter<E>(&mut self, folder: &Path, visit: &mut dyn FnMut(&Path) -> Result<(), E>) -> Result<(), E> {
        let Some(path) = self.relative_path(folder) else { return Ok(()) };
        let parent = match path.is_empty() {
            true => None,
            false => match self.known.get(parent_path(&path)) {
                Some(above) if above.ignores(&path, true) || self.quiet.is_excluded(&path) => return Ok(()),
                Some(above) => Some(Arc::clone(above)),
                // The parent folder is not watched, because a folder above is ignored.
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

    /// Removes a deleted folder and the folders below it; returns the removed folders.
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

    /// Returns true when a change of a file or folder can be ignored: an ignore rule or exclusion matches it, or its
    /// folder is not watched.
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
