//! Which runs may say something about a finding that they did not report.
//!
//! A run shows a state of a branch in a worktree: the working tree, the index, HEAD, or something older that it was asked
//! for by name. A finding has its place in the snapshot of an earlier run. The later run may judge it
//!
//! | when both are of one branch and worktree, and the run shows | it may judge |
//! |---|---|
//! | what is at least as near to the user's files as the place, in a completed review | everything |
//! | the same, in a run that did not get through | what it covered |
//! | HEAD or the index, while the place is in files that were not committed then | what it covered, in files that came into HEAD since |
//! | older code, or another branch or worktree | nothing |
//!
//! Of a detached HEAD the place's commit has to be in the run's history. A place in a commit that was named belongs to
//! the branch if the commit was in its history. Dismissals are not about lineage: they hold wherever the same code is.

use super::Extent;
use crate::domain::Scope;

/// A run as far as it matters which code its snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight<'a> {
    /// As [`Scope`] writes itself.
    pub scope: &'a str,
    pub branch: &'a str,
    pub worktree: &'a str,
    pub head: &'a str,
    pub snapshot: &'a str,
}

/// How near a snapshot is to the user's files; greater is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Code that was asked for by name and is not at the branch's tip.
    Past,
    Head,
    Index,
    Worktree,
}

/// About what a run may judge a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whatever its snapshot shows.
    Everywhere,
    /// What it put before its reviewer.
    Covered,
    /// As [`Reach::Covered`], in files that changed in HEAD since the place's own.
    Landed,
}

impl Sight<'_> {
    pub fn layer(&self) -> Layer {
        match self.scope.parse() {
            Ok(Scope::Worktree | Scope::All) => Layer::Worktree,
            Ok(Scope::Staged) => Layer::Index,
            Ok(Scope::Branch(_)) => Layer::Head,
            _ if !self.snapshot.is_empty() && self.snapshot == self.head => Layer::Head,
            _ => Layer::Past,
        }
    }
}

/// How far the word of `run` goes about a finding that stands in the snapshot of `place`, an earlier run; `None` when it
/// says nothing. `in_history` tells whether a commit is another one or comes before it.
pub fn reach(
    run: &Sight<'_>,
    extent: Extent,
    place: &Sight<'_>,
    in_history: &dyn Fn(&str, &str) -> bool,
) -> Option<Reach> {
    let (mine, its) = (run.layer(), place.layer());
    let related = run.worktree == place.worktree
        && run.branch == place.branch
        && (!run.branch.is_empty() || in_history(place.head, run.head))
        && (its > Layer::Past || in_history(place.snapshot, place.head));
    match (mine, extent) {
        (Layer::Past, _) => None,
        _ if !related => None,
        _ if mine < its => (run.head != place.head).then_some(Reach::Landed),
        (_, Extent::Whole) => Some(Reach::Everywhere),
        (_, Extent::Partial | Extent::StaysUnread { .. }) => Some(Reach::Covered),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sight(scope: &'static str, head: &'static str, snapshot: &'static str) -> Sight<'static> {
        Sight { scope, branch: "main", worktree: "/w", head, snapshot }
    }

    /// Commits are letters; a letter is in the history of itself and of every later one. Capitals are snapshots of
    /// worktrees, in nobody's history.
    fn in_history(commit: &str, of: &str) -> bool {
        commit.chars().all(char::is_lowercase) && commit <= of
    }

    #[rstest]
    #[case::a_later_look_at_the_worktree(
        sight("worktree", "a", "A"),
        sight("worktree", "a", "B"),
        Some(Reach::Everywhere)
    )]
    #[case::after_a_commit(sight("worktree", "a", "A"), sight("worktree", "b", "B"), Some(Reach::Everywhere))]
    #[case::the_commit_made_of_it(sight("worktree", "a", "A"), sight("commit:b", "b", "b"), Some(Reach::Landed))]
    #[case::the_commit_before_it(sight("worktree", "a", "A"), sight("commit:a", "a", "a"), None)]
    #[case::what_is_staged_of_it(sight("worktree", "a", "A"), sight("staged", "a", "B"), None)]
    #[case::staged_and_then_the_worktree(
        sight("staged", "a", "A"),
        sight("worktree", "a", "B"),
        Some(Reach::Everywhere)
    )]
    #[case::commit_after_commit(sight("commit:a", "a", "a"), sight("commit:b", "b", "b"), Some(Reach::Everywhere))]
    #[case::amended_or_rebased(sight("commit:c", "c", "c"), sight("commit:b", "b", "b"), Some(Reach::Everywhere))]
    #[case::the_branch_as_a_whole(sight("commit:a", "a", "a"), sight("branch:main", "c", "c"), Some(Reach::Everywhere))]
    #[case::a_range_to_the_tip(sight("commit:a", "a", "a"), sight("range:a..c", "c", "c"), Some(Reach::Everywhere))]
    #[case::an_old_commit_says_nothing(sight("commit:c", "c", "c"), sight("commit:a", "c", "a"), None)]
    #[case::found_in_an_old_commit(sight("commit:a", "c", "a"), sight("worktree", "c", "B"), Some(Reach::Everywhere))]
    #[case::found_in_a_commit_of_another_branch(sight("commit:x", "c", "x"), sight("worktree", "c", "B"), None)]
    fn whose_word_counts(#[case] place: Sight<'static>, #[case] run: Sight<'static>, #[case] expected: Option<Reach>) {
        assert_eq!(reach(&run, Extent::Whole, &place, &in_history), expected);
        let partial = expected.map(|reach| if reach == Reach::Everywhere { Reach::Covered } else { reach });
        assert_eq!(reach(&run, Extent::Partial, &place, &in_history), partial);
        for stranger in [Sight { branch: "topic", ..run }, Sight { worktree: "/v", ..run }] {
            assert_eq!(reach(&stranger, Extent::Whole, &place, &in_history), None, "{stranger:?}");
        }
    }

    #[test]
    fn a_detached_head_speaks_of_its_history() {
        let at = |head| Sight { branch: "", ..sight("worktree", head, "A") };
        for (place, run, expected) in
            [("a", "b", Some(Reach::Everywhere)), ("a", "a", Some(Reach::Everywhere)), ("b", "a", None)]
        {
            assert_eq!(reach(&at(run), Extent::Whole, &at(place), &in_history), expected, "{place} {run}");
        }
    }
}
