//! Defines the time, tokens and money that a run used.

use serde::{Deserialize, Serialize};

use crate::domain::is_default;

/// Token counts as the provider reported them, or estimated where it did not; all 0 for the built-in reviewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, including `cached`.
    pub input: u64,
    /// Part of `input` that the provider read from its cache.
    pub cached: u64,
    /// Tokens of the answers, without `reasoning` where the provider counts it apart.
    pub output: u64,
    /// Tokens of reasoning; 0 where the provider counts them as output.
    pub reasoning: u64,
    /// True if a part was estimated, because the provider did not report it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Returns all billed tokens: input (with cached input), output and reasoning.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.reasoning)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.output = self.output.saturating_add(more.output);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
        self.estimated = self.estimated || more.estimated;
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}

/// Durations of the phases in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseTimings {
    /// From the request to the first start of a worker.
    pub queued_ms: u64,
    /// From the start of a worker until it has read the change from the snapshot, over all attempts.
    pub snapshot_ms: u64,
    /// Review, over all attempts, including waits for the provider and pauses.
    pub review_ms: u64,
    /// From the end of the review until the findings are settled: what became of those of earlier runs, and which
    /// reports are held back. Over all attempts.
    pub resolve_ms: u64,
    /// Time from the request to the first byte of the first answer that the run paid for. `None` before the first
    /// answer, and for reviewers without token usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Time from the request to the first recorded finding; `None` without findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_finding_ms: Option<u64>,
}

/// Usage of one reviewer in a run: the run's own reviewer, one that took over from it, or one that gave second opinions on the
/// list of a panel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewerUsage {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Model as the provider names it. The name may be more exact than the name in the settings.
    pub model: String,
    /// Reasoning effort; empty for the provider's default.
    pub reasoning_effort: String,
    /// Number of answers that the run paid for.
    pub turns: u32,
    /// Tokens of those answers.
    pub tokens: Usage,
    /// Cost of those answers in US dollars; an answer without a known price counts as 0. `None` for a reviewer that reviews,
    /// whose run has the cost, and in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Time from the requests to the ends of those answers, in milliseconds. `None` where `cost` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

impl ReviewerUsage {
    /// Returns the usage of the reviewer that gave most answers, the last among equals; `None` without answers.
    pub fn find_main(answered_by: &[Self]) -> Option<&Self> {
        answered_by.iter().max_by_key(|usage| usage.turns)
    }
}

/// Time, tokens and money that a run used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunUsage {
    /// Durations of the phases.
    #[serde(default)]
    pub phase_timings: PhaseTimings,
    /// Tokens that the request was expected to send.
    #[serde(default)]
    pub prompt_estimate: u64,
    /// Tokens that were sent and received.
    #[serde(default)]
    pub tokens: Usage,
    /// Cost in US dollars; an answer without a known price counts as 0.
    #[serde(default)]
    pub cost: f64,
    /// True if the price of every answer was known, also if it was 0. `None` without an answer, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_known: Option<bool>,
    /// Most that the request under way may cost, in US dollars. Set by members of a panel with a limit, so that they do
    /// not exceed it together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_cost: Option<f64>,
    /// Tokens of the fullest window.
    #[serde(default)]
    pub window_peak: u64,
    /// Maximum number of tokens of that window; 0 if it is unknown, as in records of older versions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub window_limit: u64,
    /// Usage by reviewer, in the order of their first answers; empty for reviewers that do not work in turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<ReviewerUsage>,
    /// Tokens that were not sent because earlier runs covered the code.
    #[serde(default)]
    pub saved_token_estimate: u64,
}
