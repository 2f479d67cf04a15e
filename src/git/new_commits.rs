//! Finds the commits of HEAD that no known commit contains.

use std::collections::HashSet;

use git2::Oid;

use super::{GitError, Repo};
use crate::domain::Scope;

/// Maximum number of commits that are listed. More are another history, not somebody's recent work.
const MAX_LISTED_COMMITS: usize = 10_000;

/// Commits of HEAD that no known commit contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewCommits {
    /// Number of commits, at least 1.
    pub count: usize,
    /// Scope with the change of these commits: one commit, or a range.
    pub scope: Scope,
}

impl Repo {
    /// Finds the commits that HEAD contains and none of `known` (full ids). Ids that name no commit of this repository
    /// are ignored. Returns `None` if there are no such commits, if no known commit is left, or if there are too many
    /// to be recent work.
    ///
    /// # Errors
    /// Returns an error when the history cannot be read.
    pub(crate) fn find_new_commits(&self, known: &[String]) -> Result<Option<NewCommits>, GitError> {
        let failed = self.git_error("read the history");
        let Some(head) = self.head_id() else { return Ok(None) };
        let known: HashSet<Oid> = known.iter().filter_map(|id| Oid::from_str(id).ok()).collect();
        if known.contains(&head) {
            return Ok(None);
        }
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(head).map_err(failed)?;
        let mut has_known = false;
        for id in known {
            // Commits of removed snapshots and of other clones are not there.
            has_known |= self.inner.find_commit(id).is_ok() && walk.hide(id).is_ok();
        }
        if !has_known {
            return Ok(None);
        }
        let mut new = HashSet::new();
        for id in walk.take(MAX_LISTED_COMMITS + 1) {
            new.insert(id.map_err(failed)?);
        }
        if new.is_empty() || new.len() > MAX_LISTED_COMMITS {
            return Ok(None);
        }
        let mut base = Some(head);
        while let Some(id) = base.filter(|id| new.contains(id)) {
            base = self.inner.find_commit(id).map_err(failed)?.parent_id(0).ok();
        }
        let scope = match base {
            Some(base) if new.len() > 1 => Scope::Range { from: self.short_id(base), to: self.short_id(head) },
            _ => Scope::Commit(self.short_id(head)),
        };
        Ok(Some(NewCommits { count: new.len(), scope }))
    }
}
