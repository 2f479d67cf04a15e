//! History of a repository: which files commits changed together, at which lines, and with which words.
//!
//! - Commits are ordered by time, newest first.
//! - This module reads neither git nor a clock; [`super::history_cache`] fills a history.

use std::collections::{HashMap, HashSet};

use crate::git::Hunk;

/// Most files of a commit that counts for joint changes. Larger commits (moves, licences, formatting) say little about
/// which files belong together.
pub const MAX_FILES_PER_COMMIT: usize = 60;
/// Most words kept of a commit. A commit with more words is about everything, and its words are dropped.
pub const MAX_WORDS_PER_COMMIT: usize = 1_500;

/// Number of a path in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// Kind of change of a file in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    Added,
    Modified,
    Deleted,
}

/// File that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastFile {
    pub path: PathId,
    pub touch: Touch,
    /// Hunks without context, ordered by line. A side without lines names the line before.
    pub hunks: Vec<Hunk>,
}

/// Commit with its changes; a merge commit has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCommit {
    pub files: Vec<PastFile>,
    /// Identifiers of the added and removed lines as [`fingerprint`]s, sorted and without duplicates.
    pub words: Vec<u32>,
}

/// Hashes an identifier (32-bit FNV-1a). A collision only makes a commit look slightly more similar.
pub fn fingerprint(identifier: &str) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    for byte in identifier.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

/// History of the ancestors of a commit.
#[derive(Debug, Default)]
pub struct History {
    paths: Vec<Box<str>>,
    path_ids: HashMap<Box<str>, PathId>,
    /// Newest first.
    pub commits: Vec<PastCommit>,
}

impl History {
    pub fn intern_path(&mut self, path: &str) -> PathId {
        if let Some(id) = self.path_ids.get(path) {
            return *id;
        }
        let id = PathId(self.paths.len() as u32);
        self.paths.push(path.into());
        self.path_ids.insert(path.into(), id);
        id
    }

    pub fn find_path(&self, path: &str) -> Option<PathId> {
        self.path_ids.get(path).copied()
    }

    pub fn path(&self, id: PathId) -> &str {
        self.paths.get(id.0 as usize).map_or("", AsRef::as_ref)
    }

    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Calls `visit` with the position in `which`, the commit, and the renames up to that commit, for each commit in
    /// `which` (newest first).
    ///
    /// A rename is detected if a commit deletes one file and adds a file with the same name elsewhere.
    pub fn walk(&self, which: &[usize], mut visit: impl FnMut(usize, &PastCommit, &RenameMap)) {
        let mut moves = RenameMap::default();
        for (age, at) in which.iter().enumerate() {
            let Some(commit) = self.commits.get(*at) else { continue };
            moves.record_renames(self, commit);
            visit(age, commit, &moves);
        }
    }
}

/// Maps past paths of files to their current paths.
#[derive(Debug, Default)]
pub struct RenameMap {
    renames: HashMap<PathId, PathId>,
}

impl RenameMap {
    /// Returns the current path of a file; the same path if it was not renamed.
    pub fn current_path(&self, path: PathId) -> PathId {
        self.renames.get(&path).copied().unwrap_or(path)
    }

    fn record_renames(&mut self, history: &History, commit: &PastCommit) {
        let of = |touch: Touch| commit.files.iter().filter(move |file| file.touch == touch);
        if of(Touch::Deleted).next().is_none() {
            return;
        }
        let name = |path: PathId| history.path(path).rsplit('/').next().unwrap_or_default();
        let mut gone: HashMap<&str, Option<PathId>> = HashMap::new();
        for file in of(Touch::Deleted) {
            // Two deleted files have this name, so the origin is ambiguous.
            gone.entry(name(file.path)).and_modify(|known| *known = None).or_insert(Some(file.path));
        }
        let mut taken = HashSet::new();
        for file in of(Touch::Added) {
            if let Some(Some(old)) = gone.get(name(file.path))
                && taken.insert(*old)
            {
                self.renames.insert(*old, self.current_path(file.path));
            }
        }
    }
}
