//! What earlier commits changed: which files, at which lines, with which lines of text.
//!
//! Invariants: everything comes from objects; a commit that cannot be read (a shallow or partial clone ends somewhere)
//! ends the walk or is passed over, it fails nothing.

use std::collections::{BinaryHeap, HashMap};

use git2::{Commit, Delta, DiffDelta, DiffOptions, Oid};

use super::{GitError, Hunk, Repo};
use crate::domain::Time;
use crate::domain::text::path_from_bytes;

/// Larger files are compared by name only, in bytes: nobody wrote them by hand.
const MAX_FILE_BYTES: i64 = 1 << 20;
/// So many commits more are looked at for children that are older than their parents, by clocks that went wrong.
const MAX_LATE_COMMITS: usize = 100;

/// A commit and those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitAncestor {
    /// Hexadecimal.
    pub commit: String,
    pub parents: Vec<String>,
}

/// What a commit did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFileChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A file that a commit changed, against its first parent; renames are a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFileChange {
    pub path: String,
    pub kind: CommitFileChangeKind,
    /// Without context, by line. None of binary and very large files.
    pub hunks: Vec<CommitHunk>,
}

/// Both sides of a file that a commit modified, as blob ids in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifiedFileBlobs {
    pub path: String,
    pub old_blob: String,
    pub new_blob: String,
}

/// What a commit changed, as far as git has it here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitChanges {
    pub changes: Vec<CommitFileChange>,
    /// Objects that a shallow or partial clone lacks: once they are there, there is more to tell.
    pub missing: u32,
}

/// Lines that a commit took away and put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHunk {
    pub range: Hunk,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl Repo {
    /// The commit that a revision names, as hexadecimal.
    pub fn resolve_commit(&self, revision: &str) -> Result<String, GitError> {
        Ok(self.commit_id(revision)?.to_string())
    }

    /// A commit and those it has behind it, at most `limit`, the newest first, children before their parents.
    pub fn ancestors(&self, commit: &str, limit: usize) -> Result<Vec<CommitAncestor>, GitError> {
        let failed = self.git_error("walk through the history");
        // Before it sorts, libgit2 reads every commit that there is; unsorted they come by time, as they are read.
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(self.commit_id(commit)?).map_err(failed)?;
        let mut found = Vec::new();
        for id in walk.take(limit.saturating_add(MAX_LATE_COMMITS)) {
            // A shallow clone, or one that lacks objects: the history ends here.
            let Ok(commit) = id.and_then(|id| self.inner.find_commit(id)) else { break };
            found.push((commit.time().seconds(), to_ancestor(&commit)));
        }
        Ok(sort_children_first(found, limit))
    }

    /// A commit with its parents.
    ///
    /// # Errors
    /// A commit that git does not have.
    pub fn ancestor(&self, commit: &str) -> Result<CommitAncestor, GitError> {
        Ok(to_ancestor(&self.find_commit(commit)?))
    }

    /// What a commit says of itself, and when it was made. Bytes that are not UTF-8 are replaced.
    pub fn commit_message(&self, commit: &str) -> Result<(String, Time), GitError> {
        let commit = self.find_commit(commit)?;
        Ok((String::from_utf8_lossy(commit.message_bytes()).into_owned(), committer_time(&commit)))
    }

    /// When a commit was made.
    ///
    /// # Errors
    /// A commit that git does not have.
    pub fn commit_time(&self, commit: &str) -> Result<Time, GitError> {
        Ok(committer_time(&self.find_commit(commit)?))
    }

    /// The files that are wanted, and that a commit modified against its first parent, by path: neither added, nor deleted,
    /// nor renamed. Only trees are read. Empty for merges, and with more than `most` such files.
    pub fn modified_file_blobs(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<ModifiedFileBlobs>, GitError> {
        let failed = self.git_error("compare two commits");
        let commit = self.find_commit(commit)?;
        if commit.parent_count() != 1 {
            return Ok(Vec::new());
        }
        let Ok(old) = commit.parent(0).and_then(|parent| parent.tree()) else { return Ok(Vec::new()) };
        let new = commit.tree().map_err(failed)?;
        let mut options = DiffOptions::new();
        options.ignore_submodules(true);
        let objects = self.objects_only_repository().map_err(failed)?;
        let diff = objects.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options)).map_err(failed)?;
        let mut versions = Vec::new();
        for delta in diff.deltas() {
            let Some((path, CommitFileChangeKind::Modified)) =
                path_and_kind(&delta).filter(|(path, _)| is_wanted(path))
            else {
                continue;
            };
            if versions.len() == most {
                return Ok(Vec::new());
            }
            let (old_blob, new_blob) = (delta.old_file().id().to_string(), delta.new_file().id().to_string());
            versions.push(ModifiedFileBlobs { path, old_blob, new_blob });
        }
        Ok(versions)
    }

    /// What a commit changed of the files that are wanted, by path. Empty for merges; with more than `most` files their
    /// names without hunks.
    pub fn commit_file_changes(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<CommitFileChange>, GitError> {
        self.commit_changes(commit, most, is_wanted).map(|past| past.changes)
    }

    /// As [`Repo::past`], and how much of it git does not have here.
    pub fn commit_changes(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<CommitChanges, GitError> {
        let failed = self.git_error("compare two commits");
        let commit = self.inner.find_commit(Oid::from_str(commit).map_err(failed)?).map_err(failed)?;
        // Where a shallow clone ends, libgit2 takes a commit's parents away; the commit itself still names them.
        let is_parent = |line: &&[u8]| line.starts_with(b"parent ");
        let parents = commit.raw_header_bytes().split(|byte| *byte == b'\n').filter(is_parent).count();
        if commit.parent_count() < parents {
            return Ok(CommitChanges { changes: Vec::new(), missing: 1 });
        }
        if parents > 1 {
            return Ok(CommitChanges::default());
        }
        let new = commit.tree().map_err(failed)?;
        let old = commit.parent(0).and_then(|parent| parent.tree()).ok();
        if old.is_none() && parents == 1 {
            return Ok(CommitChanges { changes: Vec::new(), missing: 1 });
        }
        let mut options = DiffOptions::new();
        options
            .context_lines(0)
            .interhunk_lines(0)
            .ignore_submodules(true)
            .max_size(MAX_FILE_BYTES)
            .skip_binary_check(false);
        let objects = self.objects_only_repository().map_err(failed)?;
        let diff = objects.diff_tree_to_tree(old.as_ref(), Some(&new), Some(&mut options)).map_err(failed)?;
        let mut changes = Vec::new();
        let wanted = |delta: &DiffDelta<'_>| path_and_kind(delta).filter(|(path, _)| is_wanted(path));
        if diff.deltas().filter(|delta| wanted(delta).is_some()).count() > most {
            let named = diff.deltas().filter_map(|delta| wanted(&delta));
            let changes = named.map(|(path, kind)| CommitFileChange { path, kind, hunks: Vec::new() }).collect();
            return Ok(CommitChanges { changes, missing: 0 });
        }
        let mut missing = 0;
        for (at, delta) in diff.deltas().enumerate() {
            let Some((path, kind)) = wanted(&delta) else { continue };
            // One file that cannot be had does not hide the others.
            let patch = git2::Patch::from_diff(&diff, at);
            let hunks = patch.and_then(|patch| patch.map_or(Ok(Vec::new()), |patch| read_hunks(&patch)));
            missing += u32::from(hunks.is_err());
            changes.push(CommitFileChange { path, kind, hunks: hunks.unwrap_or_default() });
        }
        Ok(CommitChanges { changes, missing })
    }
}

fn committer_time(commit: &Commit<'_>) -> Time {
    Time::from_second(commit.time().seconds()).unwrap_or_default()
}

/// The first `limit` of some commits, the newest first but none before its children.
fn sort_children_first(found: Vec<(i64, CommitAncestor)>, limit: usize) -> Vec<CommitAncestor> {
    let mut children: HashMap<&str, u32> = HashMap::new();
    for parent in found.iter().flat_map(|(_, ancestor)| &ancestor.parents) {
        *children.entry(parent).or_default() += 1;
    }
    let numbers: HashMap<&str, usize> =
        found.iter().enumerate().map(|(number, (_, ancestor))| (ancestor.commit.as_str(), number)).collect();
    let entry = |number: usize| found.get(number).map(|(time, ancestor)| (*time, ancestor.commit.as_str(), number));
    let is_free = |(_, ancestor): &(i64, CommitAncestor)| !children.contains_key(ancestor.commit.as_str());
    let free = found.iter().enumerate().filter(|(_, found)| is_free(found));
    let mut free: BinaryHeap<(i64, &str, usize)> = free.filter_map(|(number, _)| entry(number)).collect();
    let mut order = Vec::with_capacity(limit.min(found.len()));
    while order.len() < limit
        && let Some((_, _, number)) = free.pop()
    {
        order.push(number);
        for parent in found.get(number).map_or(&[][..], |(_, ancestor)| &ancestor.parents) {
            let Some(left) = children.get_mut(parent.as_str()) else { continue };
            *left -= 1;
            if *left == 0 {
                free.extend(numbers.get(parent.as_str()).and_then(|number| entry(*number)));
            }
        }
    }
    let mut found: Vec<Option<CommitAncestor>> = found.into_iter().map(|(_, ancestor)| Some(ancestor)).collect();
    order.into_iter().filter_map(|number| found[number].take()).collect()
}

fn to_ancestor(commit: &Commit<'_>) -> CommitAncestor {
    CommitAncestor {
        commit: commit.id().to_string(),
        parents: commit.parent_ids().map(|parent| parent.to_string()).collect(),
    }
}

fn path_and_kind(delta: &DiffDelta<'_>) -> Option<(String, CommitFileChangeKind)> {
    let (file, kind) = match delta.status() {
        Delta::Added => (delta.new_file(), CommitFileChangeKind::Added),
        Delta::Deleted => (delta.old_file(), CommitFileChangeKind::Deleted),
        Delta::Modified => (delta.new_file(), CommitFileChangeKind::Modified),
        _ => return None,
    };
    Some((path_from_bytes(file.path_bytes()?), kind))
}

fn read_hunks(patch: &git2::Patch<'_>) -> Result<Vec<CommitHunk>, git2::Error> {
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
        hunks.push(CommitHunk { range: place, removed, added });
    }
    Ok(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty commit of a second.
    fn commit(git: &git2::Repository, second: i64, parents: &[Oid]) -> Oid {
        let tree = git.treebuilder(None).and_then(|tree| tree.write()).expect("a tree");
        let tree = git.find_tree(tree).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(second, 0)).expect("a name");
        let parents: Vec<Commit<'_>> = parents.iter().map(|id| git.find_commit(*id).expect("a commit")).collect();
        let parents: Vec<&Commit<'_>> = parents.iter().collect();
        git.commit(None, &who, &who, "a", &tree, &parents).expect("a commit")
    }

    fn sample() -> (tempfile::TempDir, git2::Repository, Repo) {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        (folder, git, repo)
    }

    #[test]
    fn the_newest_come_first_and_children_before_their_parents() {
        let (_folder, git, repo) = sample();
        let first = commit(&git, 10, &[]);
        let left = commit(&git, 20, &[first]);
        // Its clock was behind.
        let right = commit(&git, 5, &[first]);
        let later = commit(&git, 15, &[right]);
        let top = commit(&git, 30, &[left, later]);
        let order = |limit: usize| -> Vec<String> {
            let ancestors = repo.ancestors(&top.to_string(), limit).expect("a history");
            ancestors.into_iter().map(|ancestor| ancestor.commit).collect()
        };
        let expected = [top, left, later, right, first].map(|id| id.to_string());
        for limit in 0..=6 {
            assert_eq!(order(limit), expected[..limit.min(5)], "{limit}");
        }
    }

    #[test]
    fn no_more_of_a_history_is_read_than_is_asked_for() {
        let (folder, git, repo) = sample();
        let first = commit(&git, 0, &[]);
        let mut tip = first;
        for second in 1..MAX_LATE_COMMITS as i64 + 10 {
            tip = commit(&git, second, &[tip]);
        }
        let first = first.to_string();
        std::fs::remove_file(folder.path().join("objects").join(&first[..2]).join(&first[2..])).expect("an object");
        assert_eq!(repo.ancestors(&tip.to_string(), 5).expect("a history").len(), 5);
    }
}
