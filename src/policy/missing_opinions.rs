//! Decides whether a panel that has its list is asked again for the second opinions that the list lacks.
//!
//! | the list lacks second opinions, because | a request for the panel |
//! |---|---|
//! | a reviewer did not answer, or gave no verdict, in fewer than [`MAX_ATTEMPTS`] runs | begins a new run |
//! | a reviewer gave no verdict in as many runs | reuses the list, and says so |
//! | a limit was reached that allows more now | begins a new run |
//! | a limit of each run was reached, and the last run got verdicts that the one before it had not | begins a new run |
//! | a limit was reached that stands, or a run with this limit got no new verdict | reuses the list, and says so |
//!
//! The new run reuses the members and the verdicts that are there, so that only the missing ones are asked for. A reviewer that
//! gets other settings is another question, and so is a forced request: both begin anew.

use super::decide::{Decision, MAX_ATTEMPTS, ReviewAction};
use crate::domain::{BudgetKind, BudgetStop, RunId};

/// Reasons why the run of a panel lacks second opinions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MissingOpinions {
    /// Number of runs of the panel in which a reviewer did not answer, or its answer had no verdict on a finding: the last one,
    /// and those before it that it completes.
    pub failed_runs: u32,
    /// True if the last run has verdicts that the run which it completes had not.
    pub has_new_verdicts: bool,
    /// Limits at which the last run sent no request.
    pub stops: Vec<OpinionStop>,
}

/// Limit at which a run of a panel did not ask for second opinions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpinionStop {
    pub stop: BudgetStop,
    /// The same limit as it is now.
    pub present: PresentLimit,
}

/// Limit as it is now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PresentLimit {
    /// There is none any more, or a part of it is left.
    Open,
    /// Amount in US dollars or tokens.
    AtMost(f64),
    /// Nothing is left of it.
    UsedUp,
}

impl OpinionStop {
    /// Returns true if a new run can get more than the stopped one.
    fn allows_more(&self, has_new_verdicts: bool) -> bool {
        let OpinionStop { stop: BudgetStop { kind, reached, limit }, present } = *self;
        match present {
            PresentLimit::Open => true,
            PresentLimit::UsedUp => false,
            // A new run has the whole limit of a run. After one without a new verdict, it would pay for the same requests again.
            PresentLimit::AtMost(now) => {
                let is_of_run = matches!(kind, BudgetKind::RunCost | BudgetKind::RunTokens);
                (now > limit && now > reached) || (is_of_run && has_new_verdicts)
            }
        }
    }
}

/// Returns the decision about a request for a panel whose list a run has: to begin a new run if the list lacks second opinions
/// that can be asked for.
pub fn renew_opinions(decision: Decision, missing: &MissingOpinions) -> Decision {
    let ReviewAction::Reuse { run } = &decision.action else { return decision };
    let anew = |run: &RunId, why: &str| format!("{run} lacks second opinions: {why}");
    if (1..MAX_ATTEMPTS).contains(&missing.failed_runs) {
        let reason = anew(run, "who was asked for them gave none");
        return Decision { action: ReviewAction::Launch, reason, ..decision };
    }
    if let Some(open) = missing.stops.iter().find(|stop| stop.allows_more(missing.has_new_verdicts)) {
        let reason = anew(run, &format!("{}, which allows more now", open.stop.describe()));
        return Decision { action: ReviewAction::Launch, reason, ..decision };
    }
    let lacks = if missing.failed_runs > 0 {
        format!("who was asked for them gave none in {} runs; --force asks again", missing.failed_runs)
    } else if let Some(OpinionStop { stop, .. }) = missing.stops.first() {
        format!("{}; {}", stop.describe(), stop.next_step())
    } else {
        return decision;
    };
    let reason = format!("{}; it lacks second opinions: {lacks}", decision.reason);
    Decision { reason, ..decision }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const RUN: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";

    fn decide_anew(action: ReviewAction, missing: &MissingOpinions) -> Decision {
        let reason = "reviewed".to_owned();
        let decision = Decision { action, reason, saved_token_estimate: 9, older: Vec::new(), duplicate_of: None };
        renew_opinions(decision, missing)
    }

    fn reuse() -> ReviewAction {
        ReviewAction::Reuse { run: RUN.parse().expect("an id") }
    }

    fn stop(kind: BudgetKind, reached: f64, limit: f64, present: PresentLimit) -> OpinionStop {
        OpinionStop { stop: BudgetStop { kind, reached, limit }, present }
    }

    #[rstest]
    #[case::nothing_lacks(0, None, false, "reviewed")]
    #[case::no_answer(1, None, true, "gave none")]
    #[case::no_answer_twice(2, None, true, "gave none")]
    #[case::no_attempts_left(3, None, false, "in 3 runs; --force asks again")]
    #[case::a_raised_limit(
        0,
        Some(stop(BudgetKind::PanelCost, 0.9, 1.0, PresentLimit::AtMost(1.5))),
        true,
        "allows more now"
    )]
    #[case::no_limit(0, Some(stop(BudgetKind::PanelCost, 0.9, 1.0, PresentLimit::Open)), true, "allows more now")]
    #[case::the_same_limit(
        0,
        Some(stop(BudgetKind::PanelCost, 0.9, 1.0, PresentLimit::AtMost(1.0))),
        false,
        "a higher max_cost"
    )]
    #[case::a_lower_limit(
        0,
        Some(stop(BudgetKind::PanelCost, 0.9, 1.0, PresentLimit::AtMost(0.5))),
        false,
        "a higher max_cost"
    )]
    #[case::still_spent(
        0,
        Some(stop(BudgetKind::PanelCost, 1.4, 1.0, PresentLimit::AtMost(1.2))),
        false,
        "a higher max_cost"
    )]
    #[case::a_run_that_asked_for_some(
        0,
        Some(stop(BudgetKind::RunCost, 0.9, 1.0, PresentLimit::AtMost(1.0))),
        true,
        "allows more now"
    )]
    #[case::a_run_that_asked_for_none(
        0,
        Some(stop(BudgetKind::RunCost, 0.0, 1.0, PresentLimit::AtMost(1.0))),
        false,
        "budget.run_cost"
    )]
    #[case::a_raised_limit_of_a_run(
        0,
        Some(stop(BudgetKind::RunTokens, 0.0, 9.0, PresentLimit::AtMost(10.0))),
        true,
        "allows more now"
    )]
    #[case::the_day_is_used_up(
        0,
        Some(stop(BudgetKind::DayCost, 9.0, 9.0, PresentLimit::UsedUp)),
        false,
        "after midnight"
    )]
    #[case::another_day(0, Some(stop(BudgetKind::DayCost, 9.0, 9.0, PresentLimit::Open)), true, "allows more now")]
    #[case::no_attempts_left_and_a_raised_limit(
        3,
        Some(stop(BudgetKind::PanelCost, 0.9, 1.0, PresentLimit::AtMost(2.0))),
        true,
        "allows more"
    )]
    fn a_panel_is_asked_again_only_for_what_it_can_get(
        #[case] failed_runs: u32,
        #[case] stopped: Option<OpinionStop>,
        #[case] is_asked: bool,
        #[case] says: &str,
    ) {
        // A run that spent something has got a verdict for it.
        let has_new_verdicts = stopped.is_some_and(|stopped| stopped.stop.reached > 0.0);
        let missing = MissingOpinions { failed_runs, has_new_verdicts, stops: stopped.into_iter().collect() };
        let decision = decide_anew(reuse(), &missing);
        assert_eq!(decision.action, if is_asked { ReviewAction::Launch } else { reuse() }, "{}", decision.reason);
        assert!(decision.reason.contains(says), "{}", decision.reason);
        let begins = if is_asked { format!("{RUN} lacks second opinions: ") } else { "reviewed".to_owned() };
        assert!(decision.reason.starts_with(&begins), "{}", decision.reason);
        // Who is not given a list gets none of this.
        assert_eq!(decide_anew(ReviewAction::Skip, &missing).reason, "reviewed");
    }

    #[rstest]
    #[case::a_new_verdict(true)]
    #[case::an_answer_without_a_verdict(false)]
    fn a_limit_of_each_run_holds_anew_only_while_runs_get_verdicts(#[case] has_new_verdicts: bool) {
        let stops = vec![stop(BudgetKind::RunCost, 0.9, 1.0, PresentLimit::AtMost(1.0))];
        let decision = decide_anew(reuse(), &MissingOpinions { failed_runs: 0, has_new_verdicts, stops });
        assert_eq!(decision.action == ReviewAction::Launch, has_new_verdicts, "{}", decision.reason);
    }
}
