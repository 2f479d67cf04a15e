//! Prompts: the material of a review, the code around it and the patterns known of it, under a token budget.

pub(super) mod code_context;
pub(super) mod pattern_hints;
pub(super) mod pattern_queries;
pub(super) mod prompt_material;
