//! What a conversation may use, and which phase a turn belongs to.

use crate::domain::{Priority, TurnPhase};

/// What a run may still spend.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RemainingBudget {
    pub tokens: Option<u64>,
    /// In US dollars; holds only for models whose price is known.
    pub cost: Option<f64>,
}

/// Who writes the summary of what slides out of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WindowSummaryAuthor {
    /// revdeck, for nothing.
    #[default]
    Local,
    /// The model, in a request of its own.
    Model,
}

/// The bounds of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationLimits {
    /// Requests; at least 1.
    pub max_turns: u32,
    /// The most that one request may hold, in tokens, tools and system prompt included.
    pub window_tokens: u64,
    /// The most that one answer may hold.
    pub output_tokens: u64,
    /// After this turn the window slides ...
    pub slide_after_turn: u32,
    /// ... when it holds more messages than this ...
    pub slide_over_messages: usize,
    /// ... down to this many.
    pub keep_messages: usize,
    pub budget: RemainingBudget,
    /// US dollars for a million tokens of input that is in no cache; `None` when it is not known.
    pub input_price: Option<f64>,
    /// The counts are of another encoding than the model's.
    pub approximate: bool,
    pub summary: WindowSummaryAuthor,
    /// Findings of this priority or a more urgent one are judged a second time.
    pub opinion: Option<Priority>,
}

impl ConversationLimits {
    /// For a conversation in which nothing is said.
    pub(super) fn empty() -> Self {
        Self {
            max_turns: 1,
            window_tokens: 0,
            output_tokens: 0,
            slide_after_turn: 0,
            slide_over_messages: 0,
            keep_messages: 0,
            budget: RemainingBudget::default(),
            input_price: None,
            approximate: false,
            summary: WindowSummaryAuthor::Local,
            opinion: None,
        }
    }

    /// The longest summary of what slid out of the window. Tokens.
    pub const MAX_SUMMARY_TOKENS: u64 = 2_000;

    /// Of the window, what the pinned part (system prompt, tools, task with the first part of the diff) may take.
    pub fn pinned_tokens(&self) -> u64 {
        self.window_tokens / 2
    }

    /// What one later part of the diff may take.
    pub fn part_tokens(&self) -> u64 {
        self.window_tokens / 5
    }

    /// What the tool results of one turn may take together: they come on top of everything that is kept.
    pub fn results_tokens(&self) -> u64 {
        self.window_tokens / 4
    }

    /// The first quarter of the turns investigates, the last one finishes: of 20 turns 1 to 5 and 16 to 20.
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
