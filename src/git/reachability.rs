//! Finds out if a commit still belongs to the repository's history, and which commits came in its place.
//!
//! The question is asked before every request to a model, so it must be cheap where the history is long: the commit of a
//! review is nearly always HEAD or not far below it. Only if a bounded search finds nothing are all refs walked, and the
//! answer is remembered until they change.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use git2::{Oid, Repository};

use super::{GitError, Repo};

/// Prefix of revdeck's own refs, which keep snapshots and hold nothing of the user's history.
const OWN_REFS: &str = "refs/revdeck/";

/// Maximum number of commits that a bounded search reads. Not from the literature: reading them takes 50 ms.
const MAX_SEARCHED_COMMITS: usize = 5_000;

/// Seconds by which the clock of a child may be behind that of its parent. Not from the literature: a wrong time zone. A
/// commit with a worse clock is found by the walk over all refs.
const MAX_CLOCK_SKEW_SECONDS: i64 = 24 * 60 * 60;

/// Maximum number of commits of which an answer is remembered.
const MAX_REMEMBERED: usize = 1_000;

/// Tips of a history, and whether it contains the commit that was asked for.
type RememberedAnswer = (Vec<Oid>, bool);

/// Answers about the commits that were asked for last. Commits never change, so an answer holds for as long as the tips
/// are the same.
static ANSWERS: LazyLock<Mutex<HashMap<Oid, RememberedAnswer>>> = LazyLock::new(Mutex::default);

/// Answer of a search, with the number of commits that were read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SearchAnswer {
    is_found: bool,
    read: usize,
}

impl Repo {
    /// Returns true when a ref or the HEAD of a working tree contains `commit`. False when the commit was rewritten, or
    /// does not exist. Refs of revdeck itself do not count.
    ///
    /// # Errors
    /// Returns an error when the refs or the history cannot be read.
    pub fn is_reachable(&self, commit: &str) -> Result<bool, GitError> {
        let Ok(commit) = Oid::from_str(commit) else { return Ok(false) };
        Ok(self.search_history(commit)?.is_found)
    }

    /// Searches HEAD, then the newest commits of all refs, then everything.
    fn search_history(&self, commit: Oid) -> Result<SearchAnswer, GitError> {
        let failed = self.git_error("look for a commit in the history");
        if self.inner.find_commit(commit).is_err() {
            return Ok(SearchAnswer { is_found: false, read: 0 });
        }
        let head: Vec<Oid> = self.head_id().into_iter().collect();
        if head.contains(&commit) || recall_answer(commit, &head) == Some(true) {
            return Ok(SearchAnswer { is_found: true, read: 0 });
        }
        let below_head = self.search_below(&head, commit)?;
        if below_head.is_found {
            remember_answer(commit, head, true);
            return Ok(below_head);
        }
        let tips = self.history_tips()?;
        if let Some(is_found) = recall_answer(commit, &tips) {
            return Ok(SearchAnswer { is_found, read: below_head.read });
        }
        let near_tips = self.search_below(&tips, commit)?;
        let mut read = below_head.read + near_tips.read;
        let mut is_found = near_tips.is_found;
        if !is_found {
            let mut walk = self.inner.revwalk().map_err(failed)?;
            walk.push(commit).map_err(failed)?;
            for tip in &tips {
                walk.hide(*tip).map_err(failed)?;
            }
            // Everything that a tip contains is hidden.
            is_found = walk.next().transpose().map_err(failed)?.is_none();
            read = usize::MAX;
        }
        remember_answer(commit, tips, is_found);
        Ok(SearchAnswer { is_found, read })
    }

    /// Searches the newest commits below some tips, as far back as the commit was made, at most
    /// [`MAX_SEARCHED_COMMITS`]. Not to find it proves nothing.
    fn search_below(&self, tips: &[Oid], commit: Oid) -> Result<SearchAnswer, GitError> {
        let failed = self.git_error("look for a commit in the history");
        let time_of = |id: Oid| Ok::<_, GitError>(self.inner.find_commit(id).map_err(failed)?.time().seconds());
        let oldest = time_of(commit)?.saturating_sub(MAX_CLOCK_SKEW_SECONDS);
        let mut seen: HashSet<Oid> = tips.iter().copied().collect();
        let mut newest_first = BinaryHeap::new();
        for tip in &seen {
            newest_first.push((time_of(*tip)?, *tip));
        }
        let mut read = 0;
        while let Some((time, id)) = newest_first.pop() {
            if id == commit {
                return Ok(SearchAnswer { is_found: true, read });
            }
            if time < oldest || read >= MAX_SEARCHED_COMMITS {
                break;
            }
            read += 1;
            for parent in self.inner.find_commit(id).map_err(failed)?.parent_ids() {
                // A shallow clone names parents that it does not have.
                if seen.insert(parent)
                    && let Ok(time) = time_of(parent)
                {
                    newest_first.push((time, parent));
                }
            }
        }
        Ok(SearchAnswer { is_found: false, read })
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

/// Returns what is known of a commit and these tips.
fn recall_answer(commit: Oid, tips: &[Oid]) -> Option<bool> {
    let answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    answers.get(&commit).filter(|(known, _)| known == tips).map(|(_, is_found)| *is_found)
}

fn remember_answer(commit: Oid, tips: Vec<Oid>, is_found: bool) {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if answers.len() >= MAX_REMEMBERED {
        answers.clear();
    }
    answers.insert(commit, (tips, is_found));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of commits on the long branch.
    const LONG: i64 = 3_000;

    /// Repository with a long branch that HEAD follows, and a side branch with a few commits and many tags.
    struct LongHistory {
        _folder: tempfile::TempDir,
        git: Repository,
        repo: Repo,
        /// From the first to the last.
        main: Vec<Oid>,
        side: Vec<Oid>,
    }

    impl LongHistory {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let git = Repository::init_bare(folder.path()).expect("a repository");
            git.set_head("refs/heads/main").expect("a HEAD");
            let tree = git.treebuilder(None).and_then(|tree| tree.write()).expect("a tree");
            let commit = |second: i64, parent: Option<&Oid>| {
                let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(second, 0)).expect("a name");
                let tree = git.find_tree(tree).expect("the tree");
                let parent = parent.map(|id| git.find_commit(*id).expect("a commit"));
                let parents: Vec<_> = parent.iter().collect();
                git.commit(None, &who, &who, &second.to_string(), &tree, &parents).expect("a commit")
            };
            let day = 24 * 60 * 60;
            let (mut main, mut side) = (Vec::new(), Vec::new());
            for number in 0..LONG {
                main.push(commit(number * day, main.last()));
            }
            for number in 0..5 {
                side.push(commit((LONG + number) * day, Some(side.last().unwrap_or(&main[10]))));
            }
            let refer = |name: &str, id: Oid| git.reference(name, id, true, "test").map(drop).expect("a ref");
            refer("refs/heads/main", main[LONG as usize - 1]);
            refer("refs/heads/side", side[4]);
            for (number, id) in main.iter().enumerate().step_by(10) {
                refer(&format!("refs/tags/v{number}"), *id);
            }
            let repo = Repo::discover(folder.path()).expect("a repository");
            Self { _folder: folder, git, repo, main, side }
        }

        fn search(&self, commit: Oid) -> SearchAnswer {
            self.repo.search_history(commit).expect("a history")
        }
    }

    #[test]
    fn a_commit_near_a_tip_is_found_by_reading_a_few_commits() {
        let history = LongHistory::new();
        let newest = |back: usize| history.main[LONG as usize - 1 - back];
        for (commit, most) in [(newest(0), 0), (newest(1), 1), (newest(40), 40), (history.side[2], 50)] {
            let answer = history.search(commit);
            assert!(answer.is_found && answer.read <= most, "{commit}: {answer:?}");
            let again = history.search(commit);
            assert!(again.is_found && again.read <= 5, "{commit}: {again:?}");
        }
    }

    #[test]
    fn a_rewritten_commit_is_looked_for_once_until_the_refs_change() {
        let history = LongHistory::new();
        let gone = history.side[4];
        history.git.find_reference("refs/heads/side").and_then(|mut side| side.delete()).expect("no branch");
        assert_eq!(history.search(gone), SearchAnswer { is_found: false, read: usize::MAX });
        let again = history.search(gone);
        assert!(!again.is_found && again.read < 10, "{again:?}");
        history.git.reference("refs/heads/back", gone, true, "test").expect("a branch");
        assert!(history.search(gone).is_found);
        assert!(!history.search(Oid::from_bytes(&[7; 20]).expect("an id")).is_found);
    }

    #[test]
    fn a_clock_that_is_far_behind_hides_no_commit() {
        let history = LongHistory::new();
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(i64::from(u32::MAX), 0)).expect("a name");
        let parent = history.git.find_commit(history.main[LONG as usize - 1]).expect("a commit");
        let tree = parent.tree().expect("a tree");
        let ahead = history.git.commit(None, &who, &who, "ahead", &tree, &[&parent]).expect("a commit");
        let early = git2::Signature::new("a", "a@example.org", &git2::Time::new(1, 0)).expect("a name");
        let ahead_commit = history.git.find_commit(ahead).expect("a commit");
        let top = history.git.commit(None, &early, &early, "top", &tree, &[&ahead_commit]).expect("a commit");
        history.git.reference("refs/heads/odd", top, true, "test").expect("a branch");
        assert!(history.search(ahead).is_found);
    }
}
