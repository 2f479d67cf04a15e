//! Reads the changes of earlier commits: files, line ranges and changed text.
//!
//! Invariants:
//! - Everything is read from git objects.
//! - A commit that cannot be read, as at the end of a shallow or partial clone, ends the walk or is skipped; it is not
//!   an error.

use std::collections::{BinaryHeap, HashMap};

use git2::{Commit, Delta, DiffDelta, DiffOptions, Oid};

use super::{GitError, Hunk, Repo};
use crate::domain::Time;
use crate::domain::text::path_from_bytes;

/// Size limit in bytes for comparing content; larger files are not hand-written and are reported by name only.
const MAX_FILE_BYTES: i64 = 1 << 20;
/// Number of extra commits to read, because wrong clocks can make children older than their parents.
const MAX_LATE_COMMITS: usize = 100;

/// A commit with its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitAncestor {
    /// Commit id in hexadecimal.
    pub commit: String,
    pub parents: Vec<String>,
}

/// Kind of change of a file in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFileChangeKind {
    Added,
    Modified,
    Deleted,
}

/// Change of a file against the first parent; a rename appears as a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFileChange {
    pub path: String,
    pub kind: CommitFileChangeKind,
    /// Hunks without context, sorted by line; empty for binary and very large files.
    pub hunks: Vec<CommitHunk>,
}

/// Blob ids, in hexadecimal, of both sides of a modified file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifiedFileBlobs {
    pub path: String,
    pub old_blob: String,
    pub new_blob: String,
}

/// The changes of a commit, as far as their objects are present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitChanges {
    pub changes: Vec<CommitFileChange>,
    /// Number of missing objects in a shallow or partial clone; when the objects arrive, the result can grow.
    pub missing: u32,
}

/// Commit in a list for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentCommit {
    /// Shortened id, unique in the repository.
    pub short_id: String,
    /// First line of the message; invalid UTF-8 is replaced.
    pub subject: String,
    /// Commit time.
    pub time: Time,
}

/// Lines that a commit removed and added at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHunk {
    pub range: Hunk,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl Repo {
    /// Returns the id of the commit that a revision names, in hexadecimal.
    ///
    /// # Errors
    /// Returns an error when the revision names no commit.
    pub fn resolve_commit(&self, revision: &str) -> Result<String, GitError> {
        Ok(self.commit_id(revision)?.to_string())
    }

    /// Lists a commit and its ancestors, at most `limit`, newest first, with children before their parents.
    ///
    /// # Errors
    /// Returns an error when the commit does not exist or the walk cannot start.
    pub fn ancestors(&self, commit: &str, limit: usize) -> Result<Vec<CommitAncestor>, GitError> {
        let failed = self.git_error("walk through the history");
        // When it sorts, libgit2 reads every commit first; unsorted, commits arrive in time order while they are read.
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(self.commit_id(commit)?).map_err(failed)?;
        let mut found = Vec::new();
        for id in walk.take(limit.saturating_add(MAX_LATE_COMMITS)) {
            // The history of a shallow or partial clone ends here.
            let Ok(commit) = id.and_then(|id| self.inner.find_commit(id)) else { break };
            found.push((commit.time().seconds(), to_ancestor(&commit)));
        }
        Ok(sort_children_first(found, limit))
    }

    /// Returns a commit with its parents.
    ///
    /// # Errors
    /// Returns an error when git does not have the commit.
    pub fn ancestor(&self, commit: &str) -> Result<CommitAncestor, GitError> {
        Ok(to_ancestor(&self.find_commit(commit)?))
    }

    /// Returns a commit's message and commit time. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// Returns an error when git does not have the commit.
    pub fn commit_message(&self, commit: &str) -> Result<(String, Time), GitError> {
        let commit = self.find_commit(commit)?;
        Ok((String::from_utf8_lossy(commit.message_bytes()).into_owned(), committer_time(&commit)))
    }

    /// Lists HEAD's commit and its ancestors, at most `limit`, newest first, with subject and commit time. Returns an
    /// empty list while HEAD is unborn.
    ///
    /// # Errors
    /// Returns an error when the walk cannot start.
    pub fn recent_commits(&self, limit: usize) -> Result<Vec<RecentCommit>, GitError> {
        let failed = self.git_error("walk through the history");
        let Some(head) = self.head_id() else { return Ok(Vec::new()) };
        // Unsorted, commits arrive in time order while they are read.
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(head).map_err(failed)?;
        // The history of a shallow or partial clone ends early.
        let commits = walk.map_while(|id| self.inner.find_commit(id.ok()?).ok()).take(limit);
        Ok(commits
            .map(|commit| RecentCommit {
                short_id: self.short_id(commit.id()),
                subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned(),
                time: committer_time(&commit),
            })
            .collect())
    }

    /// Lists the names of the local branches, sorted. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// Returns an error when the branches cannot be read.
    pub fn branch_names(&self) -> Result<Vec<String>, GitError> {
        let failed = self.git_error("list the branches");
        let branches = self.inner.branches(Some(git2::BranchType::Local)).map_err(failed)?;
        let mut names: Vec<String> =
            branches.filter_map(|branch| Some(branch.ok()?.0.name().ok()??.to_owned())).collect();
        names.sort();
        Ok(names)
    }

    /// Lists the names of the tags. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// Returns an error when the tags cannot be read.
    pub fn tag_names(&self) -> Result<Vec<String>, GitError> {
        let tags = self.inner.tag_names(None).map_err(self.git_error("list the tags"))?;
        Ok(tags.iter().flatten().flatten().map(str::to_owned).collect())
    }

    /// Counts the commits of `tip` that `base` does not contain, at most `limit`. An empty `base` contains nothing.
    ///
    /// # Errors
    /// Returns an error when a commit does not exist or the walk cannot start.
    pub fn count_commits(&self, base: &str, tip: &str, limit: usize) -> Result<usize, GitError> {
        let failed = self.git_error("walk through the history");
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(self.commit_id(tip)?).map_err(failed)?;
        if !base.is_empty() {
            walk.hide(self.commit_id(base)?).map_err(failed)?;
        }
        Ok(walk.take(limit).count())
    }

    /// Returns the commit time.
    ///
    /// # Errors
    /// Returns an error when git does not have the commit.
    pub fn commit_time(&self, commit: &str) -> Result<Time, GitError> {
        Ok(committer_time(&self.find_commit(commit)?))
    }

    /// Lists the files that `is_wanted` accepts and that a commit modified against its first parent, by path; added,
    /// deleted and renamed files are not included. Reads trees only. Returns an empty list for merges and root commits,
    /// and when there are more than `most` such files.
    ///
    /// # Errors
    /// Returns an error when the commit or its tree cannot be read.
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

    /// Lists the changes of a commit to the files that `is_wanted` accepts, by path, and counts the missing objects.
    /// Empty for merges. With more than `most` files, the changes have no hunks.
    ///
    /// # Errors
    /// Returns an error when the commit or its tree cannot be read.
    pub fn commit_changes(
        &self,
        commit: &str,
        most: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<CommitChanges, GitError> {
        let failed = self.git_error("compare two commits");
        let commit = self.inner.find_commit(Oid::from_str(commit).map_err(failed)?).map_err(failed)?;
        // At the boundary of a shallow clone, libgit2 hides a commit's parents; the raw header still names them.
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
            // An unreadable file must not hide the other files.
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

/// Returns the first `limit` commits, newest first, with no parent before its children.
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

    /// Creates an empty commit at the given second.
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
        // Commit with a clock that is behind.
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
