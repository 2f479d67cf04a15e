//! What earlier commits changed: which files, at which lines, with which lines of text.
//!
//! Invariants: everything comes from objects; a commit that cannot be read (a shallow or partial clone ends somewhere)
//! ends the walk or is passed over, it fails nothing.

use git2::{Commit, Delta, DiffDelta, DiffOptions, Oid, Sort};

use super::{GitError, Hunk, Repo};
use crate::domain::Time;
use crate::domain::text::path_from_bytes;

/// Larger files are compared by name only, in bytes: nobody wrote them by hand.
const MAX_BYTES: i64 = 1 << 20;

/// A commit and those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Hexadecimal.
    pub commit: String,
    pub parents: Vec<String>,
}

/// What a commit did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastKind {
    Added,
    Modified,
    Deleted,
}

/// A file that a commit changed, against its first parent; renames are a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastChange {
    pub path: String,
    pub kind: PastKind,
    /// Without context, by line. None of binary and very large files.
    pub hunks: Vec<PastHunk>,
}

/// Both sides of a file that a commit modified, as blob ids in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastVersions {
    pub path: String,
    pub old_blob: String,
    pub new_blob: String,
}

/// What a commit changed, as far as git has it here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastChanges {
    pub changes: Vec<PastChange>,
    /// Objects that a shallow or partial clone lacks: once they are there, there is more to tell.
    pub missing: u32,
}

/// Lines that a commit took away and put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastHunk {
    pub place: Hunk,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl Repo {
    /// The commit that a revision names, as hexadecimal.
    pub fn resolve_commit(&self, revision: &str) -> Result<String, GitError> {
        Ok(self.commit_id(revision)?.to_string())
    }

    /// A commit and those it has behind it, at most `limit`, the newest first, children before their parents.
    pub fn ancestors(&self, commit: &str, limit: usize) -> Result<Vec<Ancestor>, GitError> {
        let failed = self.failed("walk through the history");
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(failed)?;
        walk.push(self.commit_id(commit)?).map_err(failed)?;
        let mut found = Vec::new();
        for id in walk.take(limit) {
            // A shallow clone, or one that lacks objects: the history ends here.
            let Ok(commit) = id.and_then(|id| self.inner.find_commit(id)) else { break };
            found.push(ancestor(&commit));
        }
        Ok(found)
    }

    /// A commit with its parents.
    ///
    /// # Errors
    /// A commit that git does not have.
    pub fn ancestor(&self, commit: &str) -> Result<Ancestor, GitError> {
        Ok(ancestor(&self.commit(commit)?))
    }

    /// What a commit says of itself, and when it was made. Bytes that are not UTF-8 are replaced.
    pub fn commit_message(&self, commit: &str) -> Result<(String, Time), GitError> {
        let commit = self.commit(commit)?;
        let made = Time::from_second(commit.time().seconds()).unwrap_or_default();
        Ok((String::from_utf8_lossy(commit.message_bytes()).into_owned(), made))
    }

    /// The files that are wanted, and that a commit modified against its first parent, by path: neither added, nor deleted,
    /// nor renamed. Only trees are read. Empty for merges, and with more than `most` such files.
    pub fn versions(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<PastVersions>, GitError> {
        let failed = self.failed("compare two commits");
        let commit = self.commit(commit)?;
        if commit.parent_count() != 1 {
            return Ok(Vec::new());
        }
        let Ok(old) = commit.parent(0).and_then(|parent| parent.tree()) else { return Ok(Vec::new()) };
        let new = commit.tree().map_err(failed)?;
        let mut options = DiffOptions::new();
        options.ignore_submodules(true);
        let objects = self.objects().map_err(failed)?;
        let diff = objects.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options)).map_err(failed)?;
        let mut versions = Vec::new();
        for delta in diff.deltas() {
            let Some((path, PastKind::Modified)) = named(&delta).filter(|(path, _)| is_wanted(path)) else { continue };
            if versions.len() == most {
                return Ok(Vec::new());
            }
            let (old_blob, new_blob) = (delta.old_file().id().to_string(), delta.new_file().id().to_string());
            versions.push(PastVersions { path, old_blob, new_blob });
        }
        Ok(versions)
    }

    /// What a commit changed of the files that are wanted, by path. Empty for merges; with more than `most` files their
    /// names without hunks.
    pub fn past(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<PastChange>, GitError> {
        self.past_changes(commit, most, is_wanted).map(|past| past.changes)
    }

    /// As [`Repo::past`], and how much of it git does not have here.
    pub fn past_changes(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<PastChanges, GitError> {
        let failed = self.failed("compare two commits");
        let commit = self.inner.find_commit(Oid::from_str(commit).map_err(failed)?).map_err(failed)?;
        // Where a shallow clone ends, libgit2 takes a commit's parents away; the commit itself still names them.
        let is_parent = |line: &&[u8]| line.starts_with(b"parent ");
        let parents = commit.raw_header_bytes().split(|byte| *byte == b'\n').filter(is_parent).count();
        if commit.parent_count() < parents {
            return Ok(PastChanges { changes: Vec::new(), missing: 1 });
        }
        if parents > 1 {
            return Ok(PastChanges::default());
        }
        let new = commit.tree().map_err(failed)?;
        let old = commit.parent(0).and_then(|parent| parent.tree()).ok();
        if old.is_none() && parents == 1 {
            return Ok(PastChanges { changes: Vec::new(), missing: 1 });
        }
        let mut options = DiffOptions::new();
        options
            .context_lines(0)
            .interhunk_lines(0)
            .ignore_submodules(true)
            .max_size(MAX_BYTES)
            .skip_binary_check(false);
        let objects = self.objects().map_err(failed)?;
        let diff = objects.diff_tree_to_tree(old.as_ref(), Some(&new), Some(&mut options)).map_err(failed)?;
        let mut changes = Vec::new();
        let wanted = |delta: &DiffDelta<'_>| named(delta).filter(|(path, _)| is_wanted(path));
        if diff.deltas().filter(|delta| wanted(delta).is_some()).count() > most {
            let named = diff.deltas().filter_map(|delta| wanted(&delta));
            let changes = named.map(|(path, kind)| PastChange { path, kind, hunks: Vec::new() }).collect();
            return Ok(PastChanges { changes, missing: 0 });
        }
        let mut missing = 0;
        for (at, delta) in diff.deltas().enumerate() {
            let Some((path, kind)) = wanted(&delta) else { continue };
            // One file that cannot be had does not hide the others.
            let patch = git2::Patch::from_diff(&diff, at);
            let hunks = patch.and_then(|patch| patch.map_or(Ok(Vec::new()), |patch| hunks(&patch)));
            missing += u32::from(hunks.is_err());
            changes.push(PastChange { path, kind, hunks: hunks.unwrap_or_default() });
        }
        Ok(PastChanges { changes, missing })
    }
}

fn ancestor(commit: &Commit<'_>) -> Ancestor {
    Ancestor {
        commit: commit.id().to_string(),
        parents: commit.parent_ids().map(|parent| parent.to_string()).collect(),
    }
}

fn named(delta: &DiffDelta<'_>) -> Option<(String, PastKind)> {
    let (file, kind) = match delta.status() {
        Delta::Added => (delta.new_file(), PastKind::Added),
        Delta::Deleted => (delta.old_file(), PastKind::Deleted),
        Delta::Modified => (delta.new_file(), PastKind::Modified),
        _ => return None,
    };
    Some((path_from_bytes(file.path_bytes()?), kind))
}

fn hunks(patch: &git2::Patch<'_>) -> Result<Vec<PastHunk>, git2::Error> {
    let mut hunks = Vec::with_capacity(patch.num_hunks());
    for at in 0..patch.num_hunks() {
        let (hunk, lines) = patch.hunk(at)?;
        let place = Hunk {
            old_start: hunk.old_start(),
            old_lines: hunk.old_lines(),
            new_start: hunk.new_start(),
            new_lines: hunk.new_lines(),
        };
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for line in 0..lines {
            let line = patch.line_in_hunk(at, line)?;
            let text = || String::from_utf8_lossy(line.content()).trim_end_matches(['\r', '\n']).to_owned();
            match line.origin() {
                '+' => added.push(text()),
                '-' => removed.push(text()),
                _ => {}
            }
        }
        hunks.push(PastHunk { place, removed, added });
    }
    Ok(hunks)
}
