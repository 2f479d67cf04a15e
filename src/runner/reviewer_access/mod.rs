//! Access to reviewers: their identity, their clients, their prompts and what they may spend.

pub(super) mod model_reviewer;
pub(super) mod reviewer_identity;
pub(super) mod reviewer_probe;
