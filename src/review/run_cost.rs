//! What a run has cost.

use crate::domain::Usage;

/// Tokens and money that a run has cost so far, and the most that one of its requests held.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunCost {
    pub usage: Usage,
    /// In US dollars; 0 when no price is known.
    pub cost: f64,
    /// Tokens.
    pub window_peak: u64,
    /// Answers that were paid for.
    pub turns: u32,
    /// The model that answered last, by the provider's word.
    pub model: String,
}

impl RunCost {
    pub fn add(&mut self, usage: &Usage, cost: f64, model: &str) {
        self.usage += *usage;
        self.cost += cost;
        self.turns += 1;
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
    }
}
