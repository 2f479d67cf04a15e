//! Describes reviewers whose cost a limit in US dollars cannot count.

use std::fmt;

use super::text::join_names;

/// Reviewers whose cost limits in US dollars cannot count, because no price is known for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncountedCost {
    /// The limits as the settings name them: `max_cost`, `budget.run_cost`.
    pub limits: Vec<String>,
    /// Names of the reviewers in the settings.
    pub reviewers: Vec<String>,
}

impl UncountedCost {
    /// Creates the description; `None` without limits or without such reviewers.
    pub fn new(limits: Vec<String>, reviewers: Vec<String>) -> Option<Self> {
        (!limits.is_empty() && !reviewers.is_empty()).then_some(Self { limits, reviewers })
    }
}

impl fmt::Display for UncountedCost {
    /// Writes `max_cost cannot count gpt: no price is known; set price_input and price_output of [reviewers.gpt]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<String> = self.reviewers.iter().map(|name| format!("[reviewers.{name}]")).collect();
        write!(
            f,
            "{} cannot count {}: no price is known; set price_input and price_output of {}",
            join_names(&self.limits),
            join_names(&self.reviewers),
            join_names(&tables)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_reviewers_are_named_with_the_settings_that_help() {
        let said = |limits: &[&str], reviewers: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            UncountedCost::new(owned(limits), owned(reviewers)).map(|cost| cost.to_string())
        };
        let one = "max_cost cannot count gpt: no price is known; set price_input and price_output of [reviewers.gpt]";
        assert_eq!(said(&["max_cost"], &["gpt"]).as_deref(), Some(one));
        let both = "max_cost and budget.run_cost cannot count gpt and claude: no price is known; set price_input and \
                    price_output of [reviewers.gpt] and [reviewers.claude]";
        assert_eq!(said(&["max_cost", "budget.run_cost"], &["gpt", "claude"]).as_deref(), Some(both));
        assert_eq!((said(&[], &["gpt"]), said(&["max_cost"], &[])), (None, None));
    }
}
