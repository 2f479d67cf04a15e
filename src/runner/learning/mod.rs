//! Learning from decisions, and the learned rules that the built-in reviewer applies.

pub(super) mod learn;
pub(super) mod learned_rules;
