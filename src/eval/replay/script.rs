//! Plans the steps of a user on the way to one commit. Pure: no IO.

use super::rng::SplitMix64;
use crate::domain::Scope;

/// One step of a user, or of a program that works beside the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionStep {
    /// Writes the next part of the commit's edits into the working tree.
    Edit(EditPart),
    /// Resets the working tree to HEAD.
    Discard,
    /// Requests a review.
    Review(ReplayScope, AfterRequest),
    Commit,
    /// Amends HEAD's commit with the working tree.
    Amend,
    /// Changes the message of HEAD's commit.
    Reword,
    /// Adds a commit to the trunk and rebases the branch onto it.
    Rebase,
    /// Switches to the trunk, requests a review there, and switches back.
    VisitTrunk,
    /// Compares the finished commit's review with a full review of the same code.
    Compare(ReplayScope),
}

/// The part of a commit's edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditPart {
    /// Half of the files, the last of them with half of its hunks.
    Half,
    /// All but the last file.
    MostFiles,
    All,
}

/// The scope of a requested review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplayScope {
    Worktree,
    Head,
    /// The branch against the trunk.
    Branch,
}

/// The continuation after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRequest {
    /// Waits for the review.
    Wait,
    /// Continues while the review works.
    GoOn,
    /// Kills the worker as soon as it has begun; the next command finds it dead.
    Kill,
}

impl ReplayScope {
    pub fn scope(self) -> Scope {
        match self {
            Self::Worktree => Scope::Worktree,
            Self::Head => Scope::Commit("HEAD".to_owned()),
            Self::Branch => Scope::Branch(Some(super::sandbox::TRUNK.to_owned())),
        }
    }
}

/// Plans the steps to one commit. The probabilities describe a lively session and are not measured: two sittings for
/// nearly every commit, a quarter of the commits amended, a tenth rebased, every seventh review interrupted.
pub(super) fn plan_steps(dice: &mut SplitMix64) -> Vec<SessionStep> {
    use AfterRequest::{GoOn, Kill, Wait};
    let mut steps = vec![SessionStep::Edit(EditPart::Half)];
    steps.push(SessionStep::Review(ReplayScope::Worktree, if dice.chance(15) { Kill } else { GoOn }));
    if dice.chance(30) {
        // The editor, a hook and a user send requests at the same time.
        steps.push(SessionStep::Review(ReplayScope::Worktree, GoOn));
    }
    if dice.chance(60) {
        steps.push(SessionStep::Review(ReplayScope::Worktree, Wait));
    }
    if dice.chance(10) {
        steps.extend([
            SessionStep::Discard,
            SessionStep::Review(ReplayScope::Worktree, Wait),
            SessionStep::Edit(EditPart::Half),
        ]);
        steps.push(SessionStep::Review(ReplayScope::Worktree, Wait));
    }
    let amended = dice.chance(15);
    steps.push(SessionStep::Edit(if amended { EditPart::MostFiles } else { EditPart::All }));
    steps.push(SessionStep::Review(ReplayScope::Worktree, if dice.chance(10) { Kill } else { Wait }));
    steps.extend([SessionStep::Commit, SessionStep::Review(ReplayScope::Head, Wait)]);
    if amended {
        steps.extend([SessionStep::Edit(EditPart::All), SessionStep::Review(ReplayScope::Worktree, Wait)]);
        steps.extend([SessionStep::Amend, SessionStep::Review(ReplayScope::Head, Wait)]);
    }
    if dice.chance(25) {
        steps.extend([SessionStep::Reword, SessionStep::Review(ReplayScope::Head, Wait)]);
    }
    steps.push(SessionStep::Compare(ReplayScope::Head));
    if dice.chance(35) {
        steps.push(SessionStep::Review(ReplayScope::Branch, Wait));
    }
    if dice.chance(10) {
        steps.extend([
            SessionStep::Rebase,
            SessionStep::Review(ReplayScope::Head, Wait),
            SessionStep::Review(ReplayScope::Branch, Wait),
        ]);
    }
    if dice.chance(10) {
        steps.extend([SessionStep::VisitTrunk, SessionStep::Review(ReplayScope::Head, Wait)]);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_ends_complete_and_compared() {
        let mut dice = SplitMix64::new(1);
        for _ in 0..500 {
            let steps = plan_steps(&mut dice);
            let last_edit = steps.iter().rev().find_map(|step| match step {
                SessionStep::Edit(part) => Some(*part),
                _ => None,
            });
            assert_eq!(last_edit, Some(EditPart::All), "{steps:?}");
            let place = |wanted: &SessionStep| steps.iter().position(|step| step == wanted);
            assert!(place(&SessionStep::Commit) < place(&SessionStep::Compare(ReplayScope::Head)), "{steps:?}");
            assert!(
                place(&SessionStep::Edit(EditPart::All)) < place(&SessionStep::Compare(ReplayScope::Head)),
                "{steps:?}"
            );
        }
    }

    #[test]
    fn a_seed_plays_the_same_session() {
        let session =
            |seed| (0..50).map(|_| 0).scan(SplitMix64::new(seed), |dice, _| Some(plan_steps(dice))).collect::<Vec<_>>();
        assert_eq!(session(7), session(7));
        assert_ne!(session(7), session(8));
    }
}
