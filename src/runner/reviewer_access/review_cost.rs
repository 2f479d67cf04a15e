//! Determines which reviewers cost money, and the most that one review by them may cost.
//!
//! - Nothing that costs money starts unless a user names its reviewer: see [`ReviewerAccess::automatic_reviewer`].

use std::fmt;

use crate::config::{ModelCatalog, ModelFacts, ModelPrice, ReviewerKind, ReviewerSettings, Settings};
use crate::domain::text::{format_limit_dollars, round_up_dollars};
use crate::domain::{SummaryAuthor, Usage};
use crate::runner::reviewer_access::model_reviewer::{MAX_ANSWER_TOKENS, max_turns};
use crate::runner::{BUILTIN_REVIEWER, ReviewerAccess, RunnerError};

/// Most that one review or question may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostLimit {
    /// It is free.
    Nothing,
    /// It costs no more than this.
    AtMost {
        /// US dollars, rounded up to what is written.
        dollars: f64,
    },
    /// The price is unknown.
    Unknown {
        /// Maximum number of tokens; `None` if no setting limits them or they are not reported.
        tokens: Option<u64>,
    },
}

impl CostLimit {
    /// Returns the limit of an amount in US dollars, rounded up to a cent; below ten cents, to two digits.
    pub(in crate::runner) fn at_most(dollars: f64) -> Self {
        Self::AtMost { dollars: round_up_dollars(dollars) }
    }

    /// Returns the limit of both together. An unknown price makes the sum unknown.
    pub(in crate::runner) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown { tokens: one }, Self::Unknown { tokens: two }) => {
                Self::Unknown { tokens: one.zip(two).map(|(one, two)| one.saturating_add(two)) }
            }
            (Self::Unknown { .. }, _) | (_, Self::Unknown { .. }) => Self::Unknown { tokens: None },
            (Self::AtMost { dollars: one }, Self::AtMost { dollars: two }) => Self::at_most(one + two),
            (Self::Nothing, limit) | (limit, Self::Nothing) => limit,
        }
    }

    /// Returns the higher limit. An unknown price is the highest.
    fn max(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown { tokens: one }, Self::Unknown { tokens: two }) => {
                Self::Unknown { tokens: one.zip(two).map(|(one, two)| one.max(two)) }
            }
            (unknown @ Self::Unknown { .. }, _) | (_, unknown @ Self::Unknown { .. }) => unknown,
            (Self::AtMost { dollars: one }, Self::AtMost { dollars: two }) => Self::AtMost { dollars: one.max(two) },
            (Self::Nothing, limit) | (limit, Self::Nothing) => limit,
        }
    }
}

impl fmt::Display for CostLimit {
    /// Writes `at no cost`, `at most $1.16` or `its price is not known`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("at no cost"),
            Self::AtMost { dollars } => write!(f, "at most {}", format_limit_dollars(*dollars)),
            Self::Unknown { tokens: None } => f.write_str("its price is not known"),
            Self::Unknown { tokens: Some(tokens) } => write!(f, "its price is not known, at most {tokens} tokens"),
        }
    }
}

/// Reviewer and the most that one of its reviews may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewerTerms {
    /// Name in the settings, or `builtin`.
    pub name: String,
    pub limit: CostLimit,
}

/// Reviewer of the reviews that nobody requests by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomaticReviewer {
    /// Name in the settings, or `builtin`.
    pub name: String,
    /// The default reviewer, if it is passed over because it costs money.
    pub passed_over: Option<String>,
}

impl ReviewerAccess<'_> {
    /// Returns the reviewer of automatic reviews: the one that `watch.reviewer` names, else the default reviewer if it
    /// is free, else the built-in one.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub fn automatic_reviewer(&self) -> Result<AutomaticReviewer, RunnerError> {
        if let Some(name) = &self.services.settings.watch.reviewer {
            return Ok(AutomaticReviewer { name: name.clone(), passed_over: None });
        }
        let default = &self.services.settings.default_reviewer;
        Ok(match self.is_free(default)? {
            true => AutomaticReviewer { name: default.clone(), passed_over: None },
            false => AutomaticReviewer { name: BUILTIN_REVIEWER.to_owned(), passed_over: Some(default.clone()) },
        })
    }

    /// Returns `true` if a review by this reviewer, or by its fallbacks, costs nothing.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub fn is_free(&self, name: &str) -> Result<bool, RunnerError> {
        Ok(self.cost_limit(name)? == CostLimit::Nothing)
    }

    /// Returns the default panel or reviewer of a person with the most that one of its reviews may cost.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub fn default_terms(&self) -> Result<ReviewerTerms, RunnerError> {
        let name = self.default_panel().unwrap_or_else(|| self.services.settings.default_reviewer.clone());
        Ok(ReviewerTerms { limit: self.cost_limit(&name)?, name })
    }

    /// Returns the most that one review by this reviewer or its fallbacks may cost. The budget of the day is left out.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub fn cost_limit(&self, name: &str) -> Result<CostLimit, RunnerError> {
        if name == BUILTIN_REVIEWER {
            return Ok(CostLimit::Nothing);
        }
        if let Some(panel) = self.find_panel(name)? {
            return self.panel_cost_limit(&panel);
        }
        let models = ModelCatalog::load(&self.services.paths)?;
        let mut limit = CostLimit::Nothing;
        let mut next = Some(name);
        // The settings have no cycle of fallbacks.
        while let Some(name) = next {
            let settings = self.model_settings(name)?;
            limit =
                limit.max(limit_review_cost(settings, &models.facts_for_reviewer(settings), &self.services.settings));
            next = settings.fallback.as_deref();
        }
        Ok(limit)
    }

    /// Returns the highest cost of one answer of these reviewers or of their fallbacks, in US dollars. Those without a known price
    /// are left out.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub(super) fn longest_answer_cost(&self, names: &[&str]) -> Result<f64, RunnerError> {
        let models = ModelCatalog::load(&self.services.paths)?;
        let mut highest: f64 = 0.0;
        for name in names {
            let mut next = Some(*name);
            while let Some(name) = next.filter(|name| *name != BUILTIN_REVIEWER) {
                let settings = self.model_settings(name)?;
                let facts = models.facts_for_reviewer(settings);
                let max_tokens = self.services.settings.window.max_tokens;
                let answer = facts.price.as_ref().map(|price| cost_of_longest_answer(price, &facts, max_tokens));
                highest = highest.max(answer.unwrap_or(0.0));
                next = settings.fallback.as_deref();
            }
        }
        Ok(highest)
    }
}

/// Returns the most that one review by this reviewer may cost, without its fallbacks.
fn limit_review_cost(settings: &ReviewerSettings, facts: &ModelFacts, limits: &Settings) -> CostLimit {
    let (window, budget) = (&limits.window, &limits.budget);
    match settings.kind {
        ReviewerKind::Builtin => return CostLimit::Nothing,
        // Whether an agent reports its tokens is up to the agent.
        ReviewerKind::Command => return CostLimit::Unknown { tokens: None },
        _ => {}
    }
    let Some(price) = &facts.price else { return CostLimit::Unknown { tokens: budget.run_tokens } };
    if price.is_free() {
        return CostLimit::Nothing;
    }
    let answer = cost_of_longest_answer(price, facts, window.max_tokens);
    let mut most = Vec::new();
    // Second opinions and a model's own summaries are further requests, which only the budgets limit.
    if settings.critic.is_none() && settings.summary == SummaryAuthor::Local {
        let request = price.cost(&limit_request(facts, window.max_tokens));
        most.push(f64::from(max_turns(settings, window)) * request);
    }
    // The budgets are checked before each request, for what it sends: its answer comes on top.
    most.extend(budget.run_cost.map(|cost| cost.as_f64() + answer));
    most.extend(budget.run_tokens.map(|tokens| cost_of_tokens(price, tokens) + answer));
    match most.into_iter().min_by(f64::total_cmp) {
        Some(dollars) => CostLimit::at_most(dollars),
        None => CostLimit::Unknown { tokens: None },
    }
}

/// Returns the largest request and the longest answer of a conversation, in tokens. `max_tokens` is the limit of its window.
fn limit_request(facts: &ModelFacts, max_tokens: u64) -> Usage {
    let output = facts.max_output.min(MAX_ANSWER_TOKENS);
    let input = max_tokens.min(facts.context_window.saturating_sub(output));
    Usage { input, output, ..Usage::default() }
}

/// Returns the highest cost of one answer, in US dollars: that after the largest request, because long prompts may have dearer
/// answers.
fn cost_of_longest_answer(price: &ModelPrice, facts: &ModelFacts, max_tokens: u64) -> f64 {
    let request = limit_request(facts, max_tokens);
    let sent = Usage { output: 0, ..request };
    price.cost(&request) - price.cost(&sent)
}

/// Returns the highest cost of a number of tokens, in US dollars.
fn cost_of_tokens(price: &ModelPrice, tokens: u64) -> f64 {
    let as_input = price.cost(&Usage { input: tokens, ..Usage::default() });
    // The input of 0 has no higher price for long prompts; such prompts are dearer as input and as output.
    let long = price.long.map_or(1.0, |long| f64::from(long.output_percent.max(100)) / 100.0);
    let as_output = price.cost(&Usage { output: tokens, ..Usage::default() }) * long;
    as_input.max(as_output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Dollars;
    use crate::domain::Priority;

    #[test]
    fn the_limit_comes_from_price_turns_window_and_budgets() {
        let reviewer = |kind| ReviewerSettings {
            price_input: Dollars::new(2.0),
            price_output: Dollars::new(10.0),
            context_window: Some(200_000),
            max_output: Some(8_000),
            max_turns: Some(5),
            ..ReviewerSettings::new(kind)
        };
        let limit = |settings: &ReviewerSettings, run_cost: f64, run_tokens: u64| {
            let mut limits = Settings::default();
            limits.budget.run_cost = Dollars::new(run_cost).filter(|cost| *cost != Dollars::ZERO);
            limits.budget.run_tokens = Some(run_tokens).filter(|tokens| *tokens > 0);
            limit_review_cost(settings, &ModelCatalog::default().facts_for_reviewer(settings), &limits).to_string()
        };
        let paid = reviewer(ReviewerKind::Openai);
        // 5 turns of 70,000 tokens in and 8,000 out.
        assert_eq!(limit(&paid, 0.0, 0), "at most $1.10");
        // A budget, and the last answer.
        assert_eq!(limit(&paid, 0.5, 0), "at most $0.58");
        assert_eq!(limit(&paid, 0.0, 10_000), "at most $0.18");
        let judging = ReviewerSettings { critic: Some(Priority::P1), ..paid.clone() };
        assert_eq!(limit(&judging, 0.0, 0), "its price is not known", "nothing limits second opinions");
        assert_eq!(limit(&judging, 2.0, 0), "at most $2.08");
        let nameless =
            ReviewerSettings { model: "who/knows".to_owned(), price_input: None, price_output: None, ..paid };
        assert_eq!(limit(&nameless, 1.0, 9_000), "its price is not known, at most 9000 tokens");
        assert_eq!(limit(&ReviewerSettings::new(ReviewerKind::Ollama), 1.0, 0), "at no cost");
        assert_eq!(limit(&ReviewerSettings::new(ReviewerKind::Builtin), 1.0, 0), "at no cost");
        // What an agent costs is unknown, whatever the settings say.
        assert_eq!(limit(&reviewer(ReviewerKind::Command), 1.0, 9_000), "its price is not known");
    }

    #[test]
    fn an_unknown_price_is_the_highest_limit() {
        let (some, more) = (CostLimit::AtMost { dollars: 0.5 }, CostLimit::AtMost { dollars: 1.25 });
        let unknown = CostLimit::Unknown { tokens: Some(9) };
        for (one, two, expected) in [
            (CostLimit::Nothing, some, some),
            (more, some, more),
            (more, unknown, unknown),
            (unknown, CostLimit::Unknown { tokens: None }, CostLimit::Unknown { tokens: None }),
            (CostLimit::Nothing, CostLimit::Nothing, CostLimit::Nothing),
        ] {
            assert_eq!((one.max(two), two.max(one)), (expected, expected), "{one:?} and {two:?}");
        }
        assert_eq!(more.to_string(), "at most $1.25");
    }
}
