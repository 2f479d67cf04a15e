//! Access to reviewers: their identity, their clients, their prompts and what they may spend.

pub(super) mod local_reviewers;
pub(super) mod missing_key;
pub(super) mod model_reviewer;
mod panels;
pub(super) mod review_cost;
pub(super) mod reviewer_identity;
pub(super) mod reviewer_probe;
pub(super) mod unpriced;
pub(super) mod usage_estimate;

use crate::runner::Services;

/// Service that resolves reviewers by their names, opens them, and knows what they may spend.
#[derive(Clone, Copy)]
pub struct ReviewerAccess<'a> {
    pub(in crate::runner) services: &'a Services,
    /// Prompt set of the review that the access is for; `None` for the prompts outside of a set.
    prompt_set: Option<&'a str>,
}

impl<'a> ReviewerAccess<'a> {
    pub(super) fn new(services: &'a Services) -> Self {
        Self { services, prompt_set: None }
    }

    /// Returns the access for a review with this prompt set.
    pub(super) fn with_prompt_set(self, prompt_set: Option<&'a str>) -> Self {
        Self { prompt_set, ..self }
    }
}
