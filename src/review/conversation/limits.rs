//! The limits of a conversation, and the phase of each turn.

use crate::domain::{BudgetKind, BudgetStop, Priority, SummaryAuthor, TurnPhase};
use crate::review::RunCost;

/// The remaining budget of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RemainingBudget {
    /// In tokens of all requests and answers; `None` for no limit.
    pub tokens: Option<u64>,
    /// In US dollars; applies only to models with a known price.
    pub cost: Option<f64>,
}

impl RemainingBudget {
    /// Returns the limit that a request of these tokens would exceed. `cost` is the price of these tokens in US dollars; with
    /// `None` the limit in US dollars does not apply.
    pub(crate) fn find_stop(&self, spent: &RunCost, tokens: u64, cost: Option<f64>) -> Option<BudgetStop> {
        let used = spent.usage.total();
        if let Some(most) = self.tokens.filter(|most| used.saturating_add(tokens) > *most) {
            return Some(BudgetStop { kind: BudgetKind::RunTokens, reached: used as f64, limit: most as f64 });
        }
        let (limit, _) = self.cost.zip(cost).filter(|(limit, next)| spent.cost + next > *limit)?;
        Some(BudgetStop { kind: BudgetKind::RunCost, reached: spent.cost, limit })
    }
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

    #[rstest]
    #[case::no_limit(None, None, (9_000, Some(9.0)), None)]
    #[case::both_fit(Some(1_500), Some(1.5), (500, Some(0.5)), None)]
    #[case::too_many_tokens(Some(1_499), Some(1.5), (500, Some(0.5)), Some(BudgetKind::RunTokens))]
    #[case::too_dear(Some(1_500), Some(1.4), (500, Some(0.5)), Some(BudgetKind::RunCost))]
    #[case::no_price(None, Some(0.5), (500, None), None)]
    fn a_request_is_held_to_the_limits_of_a_run(
        #[case] tokens: Option<u64>,
        #[case] cost: Option<f64>,
        #[case] next: (u64, Option<f64>),
        #[case] expected: Option<BudgetKind>,
    ) {
        let usage = Usage { input: 1_000, ..Usage::default() };
        let spent = RunCost { usage, cost: 1.0, ..RunCost::default() };
        let stop = RemainingBudget { tokens, cost }.find_stop(&spent, next.0, next.1);
        assert_eq!(stop.map(|stop| stop.kind), expected);
    }
}
