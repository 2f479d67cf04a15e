//! Learning from decisions, and the learned rules that the built-in reviewer applies.

pub(super) mod learn;
pub(super) mod learned_rules;

use crate::runner::Services;

/// Service that learns from decisions about findings and loads the learned rules.
#[derive(Clone, Copy)]
pub struct Learning<'a> {
    pub(in crate::runner) services: &'a Services,
}
