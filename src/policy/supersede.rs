//! Decides if an active run may finish when newer code of the same lineage is requested.
//!
//! Invariants:
//! - A run may finish because of the value of its remaining work, never because of its age.
//! - A run that a person paused, or whose worker died, delays nothing.
//! - Every verdict has a reason in one sentence.
//!
//! | the run | and | it |
//! |---|---|---|
//! | waits, is paused, is dead | | is cancelled: nothing is lost |
//! | has delivered `finish_from` percent of its hunks or more | some hunk is unchanged | finishes |
//! | has delivered less | most remaining hunks are unchanged | finishes: the newer run carries them over |
//! | has delivered less | most remaining hunks have changed | is cancelled: covered hunks are carried over |
//! | any | none of its hunks is unchanged | is cancelled |
//!
//! The newer run waits for a run that may finish, to carry over its results. A run only waits for an older run that
//! holds a slot, so no two runs wait for each other, however few slots there are.

use crate::domain::text::format_count;

/// Settings in `[policy]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishRule {
    /// Share of delivered hunks, in percent, from which a run may finish. A value over 100 means never.
    pub finish_from: u32,
}

/// State of a run's worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// The worker process is alive and reviews.
    Working,
    /// The run has not started, or waits for its next attempt.
    Waiting,
    /// A person has paused it.
    Paused,
    /// The worker process is gone.
    Dead,
}

/// Progress of a run, and the part of it that still applies to the newer code. Counts are hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunProgress {
    /// State of the run's worker.
    pub pace: WorkerState,
    /// Hunks to put before the reviewer, of all files, without those carried over.
    pub hunks: u32,
    /// Hunks that the reviewer has answered.
    pub delivered: u32,
    /// Remaining hunks that are unchanged in the newer code.
    pub left_unchanged: u32,
    /// All hunks that are unchanged in the newer code.
    pub unchanged: u32,
    /// Tokens spent so far.
    pub tokens: u64,
    /// Estimated tokens for the remaining hunks.
    pub tokens_left: u64,
}

impl RunProgress {
    /// Creates the progress of a run that is not working. Its counts do not matter.
    pub fn new_idle(pace: WorkerState) -> Self {
        Self { pace, hunks: 0, delivered: 0, left_unchanged: 0, unchanged: 0, tokens: 0, tokens_left: 0 }
    }

    fn hunks_left(&self) -> u32 {
        self.hunks.saturating_sub(self.delivered)
    }

    /// Returns the share of delivered hunks, in percent.
    fn delivered_percent(&self) -> u32 {
        let share = u64::from(self.delivered) * 100 / u64::from(self.hunks.max(1));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// Verdict about an older run. The reason is a part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupersedeVerdict {
    /// The run may finish before the newer run starts.
    Finish(String),
    /// The run is to be cancelled.
    Cancel(String),
}

/// Decides about one run.
pub fn judge_older_run(run: &RunProgress, rule: FinishRule) -> SupersedeVerdict {
    let cancel = |text: &str| SupersedeVerdict::Cancel(text.to_owned());
    match run.pace {
        WorkerState::Waiting => return cancel("it was not at work"),
        WorkerState::Paused => return cancel("it was paused"),
        WorkerState::Dead => return cancel("its worker is gone"),
        WorkerState::Working => {}
    }
    let hunks = |n: u32| format_count(n as usize, "hunk");
    if run.hunks == 0 {
        return cancel("it had not yet counted what it was to review");
    }
    if run.unchanged == 0 {
        return cancel("none of its hunks is as it was");
    }
    let (left, share) = (run.hunks_left(), run.delivered_percent());
    if share >= rule.finish_from {
        let of = hunks(run.hunks);
        return SupersedeVerdict::Finish(format!(
            "{} of its {of} are delivered ({share} %, policy.finish_from is {} %)",
            run.delivered, rule.finish_from
        ));
    }
    // The run may finish if more of its remaining work would be carried over than thrown away.
    let (gives, wastes) = (run.left_unchanged, left.saturating_sub(run.left_unchanged));
    let cost = match run.tokens_left {
        0 => String::new(),
        tokens => format!(", about {tokens} tokens"),
    };
    let tally = format!("of the {} it has left{cost}, {gives} are as they were", hunks(left));
    if rule.finish_from <= 100 && gives > wastes {
        return SupersedeVerdict::Finish(tally);
    }
    let spent = match run.tokens {
        0 => String::new(),
        tokens => format!("; {tokens} tokens are spent"),
    };
    SupersedeVerdict::Cancel(format!("{tally}, and {share} % is delivered{spent}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const RULE: FinishRule = FinishRule { finish_from: 80 };

    fn underway(hunks: u32, delivered: u32, left_unchanged: u32, unchanged: u32) -> RunProgress {
        RunProgress {
            pace: WorkerState::Working,
            hunks,
            delivered,
            left_unchanged,
            unchanged,
            tokens: 9_000,
            tokens_left: u64::from(hunks - delivered) * 100,
        }
    }

    #[rstest]
    #[case::nearly_done(underway(10, 8, 0, 5), true, "8 of its 10 hunks are delivered (80 %")]
    #[case::not_yet(underway(10, 7, 0, 5), false, "of the 3 hunks it has left, about 300 tokens, 0 are as they were")]
    #[case::nearly_done_with_what_is_gone(underway(10, 9, 0, 0), false, "none of its hunks is as it was")]
    #[case::most_of_the_rest_still_holds(underway(10, 1, 8, 9), true, "9 hunks it has left, about 900 tokens, 8 are")]
    #[case::half_of_the_rest_is_not_enough(underway(10, 2, 4, 6), false, "9000 tokens are spent")]
    #[case::just_begun_and_all_of_it_changed(underway(10, 0, 0, 0), false, "none of its hunks")]
    #[case::not_counted_yet(underway(0, 0, 0, 0), false, "not yet counted")]
    #[case::waits(RunProgress::new_idle(WorkerState::Waiting), false, "not at work")]
    #[case::paused(RunProgress { pace: WorkerState::Paused, ..underway(10, 9, 1, 9) }, false, "paused")]
    #[case::dead(RunProgress { pace: WorkerState::Dead, ..underway(10, 9, 1, 9) }, false, "worker is gone")]
    fn who_may_finish(#[case] run: RunProgress, #[case] finishes: bool, #[case] reason: &str) {
        let verdict = judge_older_run(&run, RULE);
        assert_eq!(matches!(verdict, SupersedeVerdict::Finish(_)), finishes, "{verdict:?}");
        let (SupersedeVerdict::Finish(said) | SupersedeVerdict::Cancel(said)) = verdict;
        assert!(said.contains(reason), "{said:?}");
    }

    #[test]
    fn over_a_hundred_nobody_finishes_and_at_0_whoever_still_counts() {
        for run in [underway(10, 10, 0, 10), underway(10, 0, 10, 10)] {
            assert!(matches!(judge_older_run(&run, FinishRule { finish_from: 101 }), SupersedeVerdict::Cancel(_)));
            assert!(matches!(judge_older_run(&run, FinishRule { finish_from: 0 }), SupersedeVerdict::Finish(_)));
        }
    }

    proptest! {
        /// More delivered or more unchanged hunks never turn a run that may finish into one that may not.
        #[test]
        fn more_in_hand_is_never_worse(hunks in 1..40_u32, delivered in 0..40_u32, kept in 0..40_u32, from in 0..=101_u32) {
            let delivered = delivered.min(hunks);
            let kept = kept.min(hunks - delivered);
            let rule = FinishRule { finish_from: from };
            let finishes = |run: &RunProgress| matches!(judge_older_run(run, rule), SupersedeVerdict::Finish(_));
            let run = underway(hunks, delivered, kept, kept + 1);
            if finishes(&run) && kept < hunks - delivered {
                prop_assert!(finishes(&underway(hunks, delivered, kept + 1, kept + 2)));
            }
            if finishes(&run) && delivered < hunks && kept < hunks - delivered {
                prop_assert!(finishes(&underway(hunks, delivered + 1, kept, kept + 1)));
            }
        }
    }
}
