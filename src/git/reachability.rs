//! Finds out if a commit still belongs to the repository's history, and which commits came in its place.

use git2::{Oid, Repository};

use super::{GitError, Repo};

/// Prefix of revdeck's own refs, which keep snapshots and hold nothing of the user's history.
const OWN_REFS: &str = "refs/revdeck/";

impl Repo {
    /// Returns true when a ref or the HEAD of a working tree contains `commit`. False when the commit was rewritten, or
    /// does not exist. Refs of revdeck itself do not count.
    ///
    /// # Errors
    /// Returns an error when the refs or the history cannot be read.
    pub fn is_reachable(&self, commit: &str) -> Result<bool, GitError> {
        let failed = self.git_error("look for a commit in the history");
        let Ok(commit) = Oid::from_str(commit) else { return Ok(false) };
        if self.inner.find_commit(commit).is_err() {
            return Ok(false);
        }
        // The ordinary case, without a look at all refs.
        if self.head_id() == Some(commit) {
            return Ok(true);
        }
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(commit).map_err(failed)?;
        for tip in self.history_tips()? {
            walk.hide(tip).map_err(failed)?;
        }
        // Everything that a tip contains is hidden.
        Ok(walk.next().transpose().map_err(failed)?.is_none())
    }

    /// Lists the commits of HEAD that `before` does not contain, newest first, at most `limit`: after a rewrite, the
    /// commits that came in place of those of `before`.
    ///
    /// # Errors
    /// Returns an error when the history cannot be read.
    pub fn commits_since(&self, before: &str, limit: usize) -> Result<Vec<String>, GitError> {
        let failed = self.git_error("list the new commits");
        let Some(head) = self.head_id() else { return Ok(Vec::new()) };
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.push(head).map_err(failed)?;
        if let Ok(before) = Oid::from_str(before)
            && self.inner.find_commit(before).is_ok()
        {
            walk.hide(before).map_err(failed)?;
        }
        walk.take(limit).map(|id| id.map(|id| id.to_string()).map_err(failed)).collect()
    }

    /// Returns the commits of all refs, except revdeck's own, and of the HEADs of all working trees.
    fn history_tips(&self) -> Result<Vec<Oid>, GitError> {
        let failed = self.git_error("list the refs");
        let mut tips: Vec<Oid> = self.head_id().into_iter().collect();
        for reference in self.inner.references().map_err(failed)? {
            let reference = reference.map_err(failed)?;
            if !reference.name_bytes().starts_with(OWN_REFS.as_bytes())
                && let Ok(commit) = reference.peel_to_commit()
            {
                tips.push(commit.id());
            }
        }
        for worktree in self.worktrees() {
            let head = Repository::open(&worktree).ok();
            tips.extend(head.and_then(|repo| Some(repo.head().ok()?.peel_to_commit().ok()?.id())));
        }
        tips.sort_unstable();
        tips.dedup();
        Ok(tips)
    }
}
