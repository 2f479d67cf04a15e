//! Decides which live runs nobody needs any more: their commit was rewritten, or another live run reviews the same.
//!
//! Invariants:
//! - Only proof ends a run: a commit that was in the history and is no longer, or a twin that is further.
//! - A run that was forced, or that a person paused or ended, is never called a duplicate.
//! - Of equal runs at least one goes on, and the same one whoever looks.

use crate::domain::RunId;

use super::KnownRun;

/// Commit that a live run reviews, compared with the history as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewedCommit {
    /// The run reviews no commit, or the commit is in the history, or it never was.
    Standing,
    /// The commit was in the history of HEAD at the request, and no ref and no HEAD contains it any more.
    Rewritten,
    /// Like [`ReviewedCommit::Rewritten`]; this commit came in its place and shows exactly the same change.
    RewrittenAs(String),
}

/// Live run with the facts that decide if it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRun<'a> {
    /// The run as decisions see it.
    pub run: KnownRun<'a>,
    /// Its commit and the history.
    pub commit: ReviewedCommit,
    /// Number of hunks that the reviewer has answered.
    pub delivered: u32,
    /// True if a person asked for it in spite of an equivalent run, or paused it.
    pub is_wanted_twice: bool,
}

/// Verdict about a live run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeedlessVerdict {
    /// The run goes on, as the review of the commit that came in place of its own.
    Adopt {
        /// Commit with the same change.
        commit: String,
    },
    /// The run ends: its commit was rewritten with another change.
    Obsolete,
    /// The run ends: this run reviews exactly the same and is further.
    DuplicateOf(RunId),
}

/// Returns the runs that are not needed as they are, with the verdict about each. Rewritten commits come first: a run
/// that ends as obsolete is nobody's twin.
pub fn find_needless_runs(live: &[LiveRun<'_>]) -> Vec<(RunId, NeedlessVerdict)> {
    let mut verdicts = Vec::new();
    let mut standing: Vec<&LiveRun<'_>> = Vec::new();
    for one in live.iter().filter(|one| one.run.is_active()) {
        let verdict = match &one.commit {
            ReviewedCommit::Standing => None,
            ReviewedCommit::Rewritten => Some(NeedlessVerdict::Obsolete),
            ReviewedCommit::RewrittenAs(commit) => Some(NeedlessVerdict::Adopt { commit: commit.clone() }),
        };
        if verdict != Some(NeedlessVerdict::Obsolete) && !one.is_wanted_twice {
            standing.push(one);
        }
        verdicts.extend(one.run.id.parse().ok().zip(verdict));
    }
    for one in &standing {
        // The run that is furthest stays; among equals, the oldest.
        let rank = |one: &LiveRun<'_>| (one.delivered, one.run.tokens, std::cmp::Reverse(one.run.id.to_owned()));
        let twins = standing.iter().filter(|other| other.run.equivalence_key() == one.run.equivalence_key());
        let Some(best) = twins.max_by_key(|other| rank(other)) else { continue };
        if best.run.id != one.run.id
            && let (Ok(id), Ok(best)) = (one.run.id.parse(), best.run.id.parse())
        {
            verdicts.retain(|(known, _)| *known != id);
            verdicts.push((id, NeedlessVerdict::DuplicateOf(best)));
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RunStatus;
    use crate::policy::{Activity, CancelRequest, Liveness, Resumable, ReviewExtent};

    const IDS: [&str; 3] =
        ["ar_01JD3Z8Q6M7S5V2K4T9XWB1C01", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C02", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C03"];

    fn live(number: usize, delivered: u32) -> LiveRun<'static> {
        LiveRun {
            run: KnownRun {
                id: IDS[number],
                status: RunStatus::Reviewing,
                liveness: Liveness::Working(Activity::Recent),
                scope: "commit:abc",
                scope_hash: "s",
                diff_fingerprint: "d",
                policy_version: "p",
                reviewer: "m",
                model: "model",
                reasoning_effort: "",
                branch: "main",
                worktree: "/repo",
                attempt: 1,
                epoch: 1,
                ending: CancelRequest::NotRequested,
                extent: ReviewExtent::Whole,
                findings: 0,
                tokens: 0,
                superseded_by: "",
                resumable: Resumable::No,
                underway: None,
            },
            commit: ReviewedCommit::Standing,
            delivered,
            is_wanted_twice: false,
        }
    }

    fn with(one: LiveRun<'static>, change: impl FnOnce(&mut LiveRun<'static>)) -> LiveRun<'static> {
        let mut one = one;
        change(&mut one);
        one
    }

    /// Returns the verdicts as `number: word`.
    fn verdicts(live: &[LiveRun<'_>]) -> Vec<String> {
        let number = |id: &str| IDS.iter().position(|known| *known == id).expect("a known id");
        let said = |(id, verdict): (RunId, NeedlessVerdict)| {
            let word = match verdict {
                NeedlessVerdict::Adopt { commit } => format!("adopt {commit}"),
                NeedlessVerdict::Obsolete => "obsolete".to_owned(),
                NeedlessVerdict::DuplicateOf(of) => format!("duplicate of {}", number(of.as_str())),
            };
            format!("{}: {word}", number(id.as_str()))
        };
        find_needless_runs(live).into_iter().map(said).collect()
    }

    #[test]
    fn a_rewritten_commit_ends_its_review_or_is_adopted() {
        let rewritten = |commit| with(live(0, 1), |one| one.commit = commit);
        for (commit, expected) in [
            (ReviewedCommit::Standing, vec![]),
            (ReviewedCommit::Rewritten, vec!["0: obsolete"]),
            (ReviewedCommit::RewrittenAs("def".to_owned()), vec!["0: adopt def"]),
        ] {
            assert_eq!(verdicts(&[rewritten(commit.clone())]), expected, "{commit:?}");
        }
        let over = with(rewritten(ReviewedCommit::Rewritten), |one| one.run.status = RunStatus::Completed);
        assert_eq!(verdicts(&[over]), Vec::<String>::new());
        let ending = with(rewritten(ReviewedCommit::Rewritten), |one| one.run.ending = CancelRequest::StoppedByPerson);
        assert_eq!(verdicts(&[ending]), Vec::<String>::new());
    }

    #[test]
    fn of_equal_runs_the_one_with_less_progress_ends() {
        for (runs, expected) in [
            (vec![live(0, 2), live(1, 5)], vec!["0: duplicate of 1"]),
            (vec![live(0, 5), live(1, 2)], vec!["1: duplicate of 0"]),
            // The older of two that are equally far stays.
            (vec![live(1, 2), live(0, 2)], vec!["1: duplicate of 0"]),
            (vec![live(0, 2), with(live(1, 2), |one| one.run.tokens = 9)], vec!["0: duplicate of 1"]),
            (vec![live(0, 1), live(1, 3), live(2, 2)], vec!["0: duplicate of 1", "2: duplicate of 1"]),
            (vec![live(0, 2), with(live(1, 5), |one| one.run.worktree = "/other")], vec!["0: duplicate of 1"]),
            (vec![live(0, 2), with(live(1, 5), |one| one.run.diff_fingerprint = "e")], vec![]),
            (vec![live(0, 2), with(live(1, 5), |one| one.run.reviewer = "n")], vec![]),
            (vec![live(0, 2), with(live(1, 5), |one| one.is_wanted_twice = true)], vec![]),
            (vec![live(0, 2), with(live(1, 5), |one| one.run.liveness = Liveness::Dead)], vec![]),
            // A run that ends as obsolete is nobody's twin, and an adopted one may be.
            (vec![live(0, 2), with(live(1, 5), |one| one.commit = ReviewedCommit::Rewritten)], vec!["1: obsolete"]),
            (
                vec![with(live(0, 2), |one| one.commit = ReviewedCommit::RewrittenAs("def".to_owned())), live(1, 5)],
                vec!["0: duplicate of 1"],
            ),
        ] {
            assert_eq!(verdicts(&runs), expected);
        }
    }
}
