//! Prompts: the material of a review, the code around it and the patterns known of it, under a token budget.

pub(super) mod code_context;
pub(super) mod pattern_hints;
pub(super) mod pattern_queries;
pub(super) mod prompt_material;

use crate::runner::Services;

/// Service that gathers and packs what a model is sent: the change, the rules, learned patterns and the code around it.
#[derive(Clone, Copy)]
pub struct PromptBuilder<'a> {
    pub(in crate::runner) services: &'a Services,
}
