//! What a person does on the way to one commit, as a list of steps; pure.

use super::dice::Dice;
use crate::domain::Scope;

/// One thing that a person, or a program beside them, does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The next part of the commit's edits is written into the working tree.
    Edit(Part),
    /// The working tree goes back to HEAD.
    TakeBack,
    /// A review is asked for.
    Review(Asked, After),
    Commit,
    /// Everything that is in the working tree goes into HEAD's commit.
    Amend,
    /// HEAD's commit gets another message.
    Reword,
    /// The trunk has moved meanwhile; the branch is put on top of it.
    Rebase,
    /// To the trunk and back, with a review there.
    LookAtTrunk,
    /// Everything on the commit is done: its review and a full review of the same code are held against each other.
    Compare(Asked),
}

/// How much of a commit's edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Half of the files, the last of them with half of its hunks.
    Half,
    /// All but the last file.
    MostFiles,
    All,
}

/// What a review is asked of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Worktree,
    Head,
    /// The branch against the trunk.
    Branch,
}

/// What happens to a review that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It is waited for.
    Wait,
    /// The session goes on while it works.
    GoOn,
    /// Its worker is killed as soon as it has begun; the next command finds it dead.
    Kill,
}

impl Asked {
    pub fn scope(self) -> Scope {
        match self {
            Self::Worktree => Scope::Worktree,
            Self::Head => Scope::Commit("HEAD".to_owned()),
            Self::Branch => Scope::Branch(Some(super::desk::TRUNK.to_owned())),
        }
    }
}

/// The steps to one commit. The shares are a picture of a lively session, not a measurement of people: two sittings for
/// nearly every commit, a quarter of them amended, a tenth rebased, every seventh review interrupted.
pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    use After::{GoOn, Kill, Wait};
    let mut steps = vec![Step::Edit(Part::Half)];
    steps.push(Step::Review(Asked::Worktree, if dice.chance(15) { Kill } else { GoOn }));
    if dice.chance(30) {
        // The editor, a hook and a person ask at once.
        steps.push(Step::Review(Asked::Worktree, GoOn));
    }
    if dice.chance(60) {
        steps.push(Step::Review(Asked::Worktree, Wait));
    }
    if dice.chance(10) {
        steps.extend([Step::TakeBack, Step::Review(Asked::Worktree, Wait), Step::Edit(Part::Half)]);
        steps.push(Step::Review(Asked::Worktree, Wait));
    }
    let amended = dice.chance(15);
    steps.push(Step::Edit(if amended { Part::MostFiles } else { Part::All }));
    steps.push(Step::Review(Asked::Worktree, if dice.chance(10) { Kill } else { Wait }));
    steps.extend([Step::Commit, Step::Review(Asked::Head, Wait)]);
    if amended {
        steps.extend([Step::Edit(Part::All), Step::Review(Asked::Worktree, Wait)]);
        steps.extend([Step::Amend, Step::Review(Asked::Head, Wait)]);
    }
    if dice.chance(25) {
        steps.extend([Step::Reword, Step::Review(Asked::Head, Wait)]);
    }
    steps.push(Step::Compare(Asked::Head));
    if dice.chance(35) {
        steps.push(Step::Review(Asked::Branch, Wait));
    }
    if dice.chance(10) {
        steps.extend([Step::Rebase, Step::Review(Asked::Head, Wait), Step::Review(Asked::Branch, Wait)]);
    }
    if dice.chance(10) {
        steps.extend([Step::LookAtTrunk, Step::Review(Asked::Head, Wait)]);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_ends_complete_and_compared() {
        let mut dice = Dice::new(1);
        for _ in 0..500 {
            let steps = steps(&mut dice);
            let last_edit = steps.iter().rev().find_map(|step| match step {
                Step::Edit(part) => Some(*part),
                _ => None,
            });
            assert_eq!(last_edit, Some(Part::All), "{steps:?}");
            let place = |wanted: &Step| steps.iter().position(|step| step == wanted);
            assert!(place(&Step::Commit) < place(&Step::Compare(Asked::Head)), "{steps:?}");
            assert!(place(&Step::Edit(Part::All)) < place(&Step::Compare(Asked::Head)), "{steps:?}");
        }
    }

    #[test]
    fn a_seed_plays_the_same_session() {
        let session = |seed| (0..50).map(|_| 0).scan(Dice::new(seed), |dice, _| Some(steps(dice))).collect::<Vec<_>>();
        assert_eq!(session(7), session(7));
        assert_ne!(session(7), session(8));
    }
}
