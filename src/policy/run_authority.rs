//! Decides what a run may say about a finding that it did not report.
//!
//! A run shows a state of a branch in a worktree: the working tree, the index, HEAD, or older code that was requested
//! by name. A finding is located in the snapshot of an earlier run, the place. The later run may judge it as follows:
//!
//! | when both have the same branch and worktree, and the run shows | it may judge |
//! |---|---|
//! | code at least as near to the user's files as the place, in a complete review | everything |
//! | the same, in an incomplete review | what it covered |
//! | HEAD or the index, while the place is in uncommitted files | what it covered, in files committed to HEAD since |
//! | older code, or another branch or worktree | nothing |
//!
//! On a detached HEAD, the place's commit must be in the history of the run. A place in a commit that was requested by
//! name belongs to the branch if that commit was in its history. Dismissals do not depend on this: they hold wherever
//! the same code is.
//!
//! A review that came from another machine has no worktree here. Its place is in the run's worktree if its snapshot is a commit
//! in the history of the run: committed code is the same on every machine.

use super::ReviewExtent;
use crate::domain::Scope;

/// Properties of a run that determine which code its snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotView<'a> {
    /// Text form of the [`Scope`].
    pub scope: &'a str,
    pub branch: &'a str,
    pub worktree: &'a str,
    pub head: &'a str,
    pub snapshot: &'a str,
}

/// Distance of a snapshot from the user's files. A greater value is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SnapshotLayer {
    /// Code that was requested by name and is not at the branch's tip.
    Past,
    Head,
    Index,
    Worktree,
}

/// Authority of a run to judge a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAuthority {
    /// Everything in its snapshot.
    Everywhere,
    /// Only code that it put before its reviewer.
    Covered,
    /// Like [`RunAuthority::Covered`], and only in files that changed in HEAD since the place's HEAD.
    CommittedFiles,
}

impl SnapshotView<'_> {
    /// Returns the layer of the snapshot.
    pub fn layer(&self) -> SnapshotLayer {
        match self.scope.parse() {
            Ok(Scope::Worktree | Scope::All) => SnapshotLayer::Worktree,
            Ok(Scope::Staged) => SnapshotLayer::Index,
            Ok(Scope::Branch(_)) => SnapshotLayer::Head,
            _ if !self.snapshot.is_empty() && self.snapshot == self.head => SnapshotLayer::Head,
            _ => SnapshotLayer::Past,
        }
    }
}

/// Returns true if a review has seen uncommitted code of another machine, which nobody has here. Its findings are shown, and count
/// nowhere until a review of committed code reports them, or a request here has the same code: from then on, the review has the
/// worktree of that request.
pub fn is_uncommitted_elsewhere(scope: &str, worktree: &str) -> bool {
    worktree.is_empty() && matches!(scope.parse(), Ok(Scope::Worktree | Scope::Staged))
}

/// Decides how far `run` may judge a finding located in the snapshot of `place`, an earlier run. `None` if it may not
/// judge it. `in_history(a, b)` must return true if commit `a` is `b` or an ancestor of `b`.
pub fn decide_authority(
    run: &SnapshotView<'_>,
    extent: ReviewExtent,
    place: &SnapshotView<'_>,
    in_history: &dyn Fn(&str, &str) -> bool,
) -> Option<RunAuthority> {
    let (mine, its) = (run.layer(), place.layer());
    let is_in_worktree =
        || run.worktree == place.worktree || (place.worktree.is_empty() && in_history(place.snapshot, run.head));
    let related = run.branch == place.branch
        && (!run.branch.is_empty() || in_history(place.head, run.head))
        && (its > SnapshotLayer::Past || in_history(place.snapshot, place.head))
        && is_in_worktree();
    match (mine, extent) {
        (SnapshotLayer::Past, _) => None,
        _ if !related => None,
        _ if mine < its => (run.head != place.head).then_some(RunAuthority::CommittedFiles),
        (_, ReviewExtent::Whole) => Some(RunAuthority::Everywhere),
        (
            _,
            ReviewExtent::Partial
            | ReviewExtent::Unfinished { .. }
            | ReviewExtent::OutOfSight { .. }
            | ReviewExtent::ResultLost { .. }
            | ReviewExtent::StaysUnread { .. },
        ) => Some(RunAuthority::Covered),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::of_this_machine("worktree", "/w", false)]
    #[case::of_another_machine("worktree", "", true)]
    #[case::what_is_staged_there("staged", "", true)]
    #[case::a_commit_of_another_machine("commit:b", "", false)]
    #[case::its_branch("branch:main", "", false)]
    #[case::its_whole_repository("all", "", false)]
    fn only_uncommitted_code_of_others_counts_nowhere(
        #[case] scope: &str,
        #[case] worktree: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(is_uncommitted_elsewhere(scope, worktree), expected);
    }

    fn view(scope: &'static str, head: &'static str, snapshot: &'static str) -> SnapshotView<'static> {
        SnapshotView { scope, branch: "main", worktree: "/w", head, snapshot }
    }

    /// Commits are letters. A letter is in the history of itself and of every later letter. Capitals are snapshots of
    /// worktrees, which are in no history.
    fn in_history(commit: &str, of: &str) -> bool {
        commit.chars().all(char::is_lowercase) && commit <= of
    }

    #[rstest]
    #[case::a_later_look_at_the_worktree(
        view("worktree", "a", "A"),
        view("worktree", "a", "B"),
        Some(RunAuthority::Everywhere)
    )]
    #[case::after_a_commit(view("worktree", "a", "A"), view("worktree", "b", "B"), Some(RunAuthority::Everywhere))]
    #[case::the_commit_made_of_it(
        view("worktree", "a", "A"),
        view("commit:b", "b", "b"),
        Some(RunAuthority::CommittedFiles)
    )]
    #[case::the_commit_before_it(view("worktree", "a", "A"), view("commit:a", "a", "a"), None)]
    #[case::what_is_staged_of_it(view("worktree", "a", "A"), view("staged", "a", "B"), None)]
    #[case::staged_and_then_the_worktree(
        view("staged", "a", "A"),
        view("worktree", "a", "B"),
        Some(RunAuthority::Everywhere)
    )]
    #[case::commit_after_commit(view("commit:a", "a", "a"), view("commit:b", "b", "b"), Some(RunAuthority::Everywhere))]
    #[case::amended_or_rebased(view("commit:c", "c", "c"), view("commit:b", "b", "b"), Some(RunAuthority::Everywhere))]
    #[case::the_branch_as_a_whole(
        view("commit:a", "a", "a"),
        view("branch:main", "c", "c"),
        Some(RunAuthority::Everywhere)
    )]
    #[case::a_range_to_the_tip(
        view("commit:a", "a", "a"),
        view("range:a..c", "c", "c"),
        Some(RunAuthority::Everywhere)
    )]
    #[case::an_old_commit_says_nothing(view("commit:c", "c", "c"), view("commit:a", "c", "a"), None)]
    #[case::found_in_an_old_commit(
        view("commit:a", "c", "a"),
        view("worktree", "c", "B"),
        Some(RunAuthority::Everywhere)
    )]
    #[case::found_in_a_commit_of_another_branch(view("commit:x", "c", "x"), view("worktree", "c", "B"), None)]
    fn whose_word_counts(
        #[case] place: SnapshotView<'static>,
        #[case] run: SnapshotView<'static>,
        #[case] expected: Option<RunAuthority>,
    ) {
        assert_eq!(decide_authority(&run, ReviewExtent::Whole, &place, &in_history), expected);
        let partial =
            expected.map(|reach| if reach == RunAuthority::Everywhere { RunAuthority::Covered } else { reach });
        assert_eq!(decide_authority(&run, ReviewExtent::Partial, &place, &in_history), partial);
        for stranger in [SnapshotView { branch: "topic", ..run }, SnapshotView { worktree: "/v", ..run }] {
            assert_eq!(decide_authority(&stranger, ReviewExtent::Whole, &place, &in_history), None, "{stranger:?}");
        }
    }

    /// A run with the head `b` in the worktree `/w`, and the review of another machine.
    #[rstest]
    #[case::the_commit_before("main", "commit:a", "a", "a", Some(RunAuthority::Everywhere))]
    #[case::the_same_commit("main", "commit:b", "b", "b", Some(RunAuthority::Everywhere))]
    #[case::a_commit_that_is_not_here_yet("main", "commit:c", "c", "c", None)]
    #[case::uncommitted_code("main", "worktree", "a", "A", None)]
    #[case::another_branch("topic", "commit:a", "a", "a", None)]
    fn committed_code_of_another_machine_is_in_every_worktree(
        #[case] branch: &'static str,
        #[case] scope: &'static str,
        #[case] head: &'static str,
        #[case] snapshot: &'static str,
        #[case] expected: Option<RunAuthority>,
    ) {
        let place = SnapshotView { branch, worktree: "", ..view(scope, head, snapshot) };
        let run = view("commit:b", "b", "b");
        assert_eq!(decide_authority(&run, ReviewExtent::Whole, &place, &in_history), expected);
    }

    #[test]
    fn a_detached_head_speaks_of_its_history() {
        let at = |head| SnapshotView { branch: "", ..view("worktree", head, "A") };
        for (place, run, expected) in
            [("a", "b", Some(RunAuthority::Everywhere)), ("a", "a", Some(RunAuthority::Everywhere)), ("b", "a", None)]
        {
            assert_eq!(
                decide_authority(&at(run), ReviewExtent::Whole, &at(place), &in_history),
                expected,
                "{place} {run}"
            );
        }
    }
}
