//! The cost of a run.

use crate::domain::Usage;

/// Tokens and money that a run has cost so far, and the size of its largest request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunCost {
    pub usage: Usage,
    /// In US dollars; 0 if no price is known.
    pub cost: f64,
    /// Tokens of the largest request.
    pub window_peak: u64,
    /// Maximum number of tokens of that request; 0 if it is unknown.
    pub window_limit: u64,
    /// Number of paid answers.
    pub turns: u32,
    /// The model of the last answer, as the provider reports it.
    pub model: String,
}

impl RunCost {
    /// Counts a request of this size.
    pub fn add_request(&mut self, tokens: u64, limit: u64) {
        if tokens >= self.window_peak {
            (self.window_peak, self.window_limit) = (tokens, limit);
        }
    }

    pub fn add(&mut self, usage: &Usage, cost: f64, model: &str) {
        self.usage += *usage;
        self.cost += cost;
        self.turns += 1;
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
    }
}
