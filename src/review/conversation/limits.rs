//! The limits of a conversation, and the phase of each turn.

use crate::domain::{BudgetKind, BudgetStop, Priority, SummaryAuthor, TurnPhase};
use crate::review::RunCost;

/// A limit of a budget, and what counts against it besides the answers of the conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetLimit {
    /// In tokens or US dollars.
    pub limit: f64,
    /// Part of the limit that is used up already: by vectors for the run, and of a limit of the day by other runs.
    pub used: f64,
}

impl BudgetLimit {
    /// Returns what the conversation may use, at least 0.
    fn rest(&self) -> f64 {
        (self.limit - self.used).max(0.0)
    }
}

/// The limits that a run may still reach; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RemainingBudget {
    /// Tokens of all requests and answers of the run.
    pub run_tokens: Option<BudgetLimit>,
    /// Tokens of the day. Free requests do not count.
    pub day_tokens: Option<BudgetLimit>,
    /// US dollars of the run. Limits of money apply only to models with a known price.
    pub run_cost: Option<BudgetLimit>,
    /// US dollars of the day.
    pub day_cost: Option<BudgetLimit>,
}

impl RemainingBudget {
    /// Returns the limit that a request of these tokens would exceed; of two, the one of which less is left. `cost` is the
    /// price of these tokens in US dollars; with `None` no limit in US dollars applies.
    pub(crate) fn find_stop(&self, spent: &RunCost, tokens: u64, cost: Option<f64>) -> Option<BudgetStop> {
        let is_free = cost.is_some_and(|cost| cost <= 0.0);
        let of_day = |limit: Option<BudgetLimit>| limit.filter(|_| !is_free);
        let by_tokens = [(BudgetKind::RunTokens, self.run_tokens), (BudgetKind::DayTokens, of_day(self.day_tokens))];
        let by_cost = [(BudgetKind::RunCost, self.run_cost), (BudgetKind::DayCost, of_day(self.day_cost))];
        find_exceeded(by_tokens, spent.usage.total() as f64, tokens as f64)
            .or_else(|| find_exceeded(by_cost, spent.cost, cost?))
    }

    /// Returns the tokens that are left before the conversation begins; `None` for no limit.
    pub(crate) fn tokens_left(&self) -> Option<u64> {
        smallest_rest([self.run_tokens, self.day_tokens]).map(|rest| rest as u64)
    }

    /// Returns the US dollars that are left before the conversation begins; `None` for no limit.
    pub(crate) fn cost_left(&self) -> Option<f64> {
        smallest_rest([self.run_cost, self.day_cost])
    }
}

/// Returns the tightest of the limits that the next request would exceed.
fn find_exceeded(limits: [(BudgetKind, Option<BudgetLimit>); 2], spent: f64, next: f64) -> Option<BudgetStop> {
    let known = limits.into_iter().filter_map(|(kind, limit)| Some((kind, limit?)));
    let exceeded = known.filter(|(_, limit)| spent + next > limit.rest());
    let (kind, limit) = exceeded.min_by(|(_, one), (_, other)| one.rest().total_cmp(&other.rest()))?;
    Some(BudgetStop { kind, reached: limit.used + spent, limit: limit.limit })
}

fn smallest_rest(limits: [Option<BudgetLimit>; 2]) -> Option<f64> {
    limits.into_iter().flatten().map(|limit| limit.rest()).min_by(f64::total_cmp)
}

/// The limits of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationLimits {
    /// Maximum number of requests; at least 1.
    pub max_turns: u32,
    /// Maximum number of tokens in one request, including tools and system prompt.
    pub window_tokens: u64,
    /// Maximum number of tokens in one answer.
    pub output_tokens: u64,
    /// `true` if the model is given tools, so that the window needs room for their results.
    pub has_tools: bool,
    /// The window slides after this turn ...
    pub slide_after_turn: u32,
    /// ... if it holds more messages than this ...
    pub slide_over_messages: usize,
    /// ... down to this number of messages.
    pub keep_messages: usize,
    /// Spending limits of the run, over all of its attempts.
    pub budget: RemainingBudget,
    /// US dollars for a million uncached input tokens; `None` if unknown.
    pub input_price: Option<f64>,
    /// `true` if tokens are counted in another encoding than the model's.
    pub approximate: bool,
    /// Author of the summary of messages that slide out of the window.
    pub summary: SummaryAuthor,
    /// Findings with this or a more urgent priority get a second opinion.
    pub opinion: Option<Priority>,
}

impl ConversationLimits {
    /// Returns limits for a conversation without messages.
    pub(super) fn empty() -> Self {
        Self {
            max_turns: 1,
            window_tokens: 0,
            output_tokens: 0,
            has_tools: false,
            slide_after_turn: 0,
            slide_over_messages: 0,
            keep_messages: 0,
            budget: RemainingBudget::default(),
            input_price: None,
            approximate: false,
            summary: SummaryAuthor::Local,
            opinion: None,
        }
    }

    /// Maximum number of tokens in the summary of messages that left the window.
    pub const MAX_SUMMARY_TOKENS: u64 = 2_000;

    /// Returns the maximum tokens of the pinned part: system prompt, tools, and the task with the first parts of the
    /// diff. It is half of the window, or two thirds without tools: then a later part of the diff and answers are all that
    /// follows.
    pub fn pinned_tokens(&self) -> u64 {
        match self.has_tools {
            true => self.window_tokens / 2,
            false => self.window_tokens * 2 / 3,
        }
    }

    /// Returns the maximum tokens of a later part of the diff.
    pub fn part_tokens(&self) -> u64 {
        self.window_tokens / 5
    }

    /// Returns the maximum tokens of all tool results of one turn. They are added to everything that the window keeps.
    pub fn results_tokens(&self) -> u64 {
        self.window_tokens / 4
    }

    /// Returns the phase of a turn (1-based). The first quarter of the turns investigates, the last quarter finishes:
    /// of 20 turns, 1 to 5 and 16 to 20.
    pub fn phase(&self, turn: u32) -> TurnPhase {
        if turn <= self.max_turns.div_ceil(4) {
            TurnPhase::Investigate
        } else if turn <= self.max_turns * 3 / 4 {
            TurnPhase::Analyse
        } else {
            TurnPhase::Finish
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::Usage;

    fn whole(limit: f64) -> Option<BudgetLimit> {
        Some(BudgetLimit { limit, used: 0.0 })
    }

    fn used(used: f64, limit: f64) -> Option<BudgetLimit> {
        Some(BudgetLimit { limit, used })
    }

    /// Limits of tokens and of US dollars, first that of the run and then that of the day.
    type Limits = [Option<BudgetLimit>; 2];

    #[rstest]
    #[case::no_limit([None; 2], [None; 2], (9_000, Some(9.0)), None)]
    #[case::both_fit([whole(1_500.0), None], [whole(1.5), None], (500, Some(0.5)), None)]
    #[case::too_many_tokens([whole(1_499.0), None], [whole(1.5), None], (500, Some(0.5)), Some((BudgetKind::RunTokens, 1_000.0, 1_499.0)))]
    #[case::too_dear([whole(1_500.0), None], [whole(1.4), None], (500, Some(0.5)), Some((BudgetKind::RunCost, 1.0, 1.4)))]
    #[case::no_price([None; 2], [whole(0.5), whole(0.5)], (500, None), None)]
    #[case::the_rest_of_the_day([whole(9_000.0), used(8_000.0, 9_400.0)], [None; 2], (500, Some(0.5)), Some((BudgetKind::DayTokens, 9_000.0, 9_400.0)))]
    #[case::the_money_of_the_day([None; 2], [whole(2.0), used(8.75, 10.0)], (500, Some(0.5)), Some((BudgetKind::DayCost, 9.75, 10.0)))]
    #[case::less_is_left_of_the_run([None; 2], [whole(1.25), used(8.5, 10.0)], (500, Some(0.75)), Some((BudgetKind::RunCost, 1.0, 1.25)))]
    #[case::as_much_is_left_of_both([None; 2], [whole(1.25), used(8.75, 10.0)], (500, Some(0.75)), Some((BudgetKind::RunCost, 1.0, 1.25)))]
    #[case::vectors_have_used_a_part([used(600.0, 2_000.0), None], [None; 2], (500, None), Some((BudgetKind::RunTokens, 1_600.0, 2_000.0)))]
    #[case::free_requests_are_none_of_the_day([whole(9_000.0), whole(10.0)], [None, whole(0.5)], (500, Some(0.0)), None)]
    fn a_request_is_held_to_the_tightest_limit(
        #[case] tokens: Limits,
        #[case] cost: Limits,
        #[case] next: (u64, Option<f64>),
        #[case] expected: Option<(BudgetKind, f64, f64)>,
    ) {
        let usage = Usage { input: 1_000, ..Usage::default() };
        let spent = RunCost { usage, cost: 1.0, ..RunCost::default() };
        let [run_tokens, day_tokens] = tokens;
        let [run_cost, day_cost] = cost;
        let budget = RemainingBudget { run_tokens, day_tokens, run_cost, day_cost };
        let stop = budget.find_stop(&spent, next.0, next.1);
        assert_eq!(stop.map(|stop| (stop.kind, stop.reached, stop.limit)), expected);
    }

    #[test]
    fn less_than_nothing_is_never_left() {
        let budget = RemainingBudget {
            run_tokens: whole(2_000.0),
            day_tokens: used(8_500.0, 9_000.0),
            run_cost: whole(0.75),
            day_cost: used(11.0, 10.0),
        };
        assert_eq!((budget.tokens_left(), budget.cost_left()), (Some(500), Some(0.0)));
        assert_eq!((RemainingBudget::default().tokens_left(), RemainingBudget::default().cost_left()), (None, None));
    }
}
