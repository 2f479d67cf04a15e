//! The limits of a conversation, and the phase of each turn.

use crate::domain::{Priority, SummaryAuthor, TurnPhase};

/// The remaining budget of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RemainingBudget {
    /// In tokens of all requests and answers; `None` for no limit.
    pub tokens: Option<u64>,
    /// In US dollars; applies only to models with a known price.
    pub cost: Option<f64>,
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
