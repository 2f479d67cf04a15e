//! Measurements on real repositories: how well retrieval finds the code around changes, how well learned patterns point
//! at buggy lines, and how much a replayed coding session saves. [`weight_fit`] fits the weights of retrieval.
//!
//! Nothing here runs in a review: the cargo feature `eval` compiles this room, and what users install has none of it.

pub(crate) mod knowledge;
pub(crate) mod replay;
pub(crate) mod retrieval;
pub(crate) mod single_signals;
pub(crate) mod weight_fit;
