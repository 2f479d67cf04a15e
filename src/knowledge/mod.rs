//! Learns abstract patterns from findings, fixes and dismissals. A pattern holds none of the user's code.
//!
//! - Every form consists only of keywords, operators, placeholders and names from a published list; [`form`] cannot
//!   express anything else.
//! - Texts are generated from the forms, or written by revdeck's authors; they never come from a model or a user.
//!
//! Modules:
//!
//! - [`abstraction`] converts code to forms; [`privacy_gate`] checks forms against the list in [`stdlib_names`].
//! - [`history_mining`] extracts edits from a repository's history.
//! - [`cache`] stores learned patterns, one `knowledge_file` per language, merged with the [`builtin_patterns`];
//!   `clustering` groups similar patterns.
//! - [`rank`] computes the confidence of a pattern, [`descriptions`] its texts, [`totals`] the sums over patterns.
//! - [`exchange`] exports and imports patterns; [`kind_tallies`] counts finding kinds that are always dismissed.
//! - [`matcher`] finds patterns in code; [`prompt_hints`] writes patterns into a model's prompt.
//! - `eval::knowledge` (cargo feature `eval`) measures how well patterns point at buggy lines.

pub mod abstraction;
pub(crate) mod builtin_patterns;
pub(crate) mod cache;
mod clustering;
pub(crate) mod descriptions;
pub(crate) mod error;
pub(crate) mod event_log;
pub(crate) mod exchange;
pub mod form;
pub mod history_mining;
pub(crate) mod kind_tallies;
mod knowledge_file;
pub mod matcher;
pub mod pattern;
#[cfg(test)]
pub(crate) mod privacy;
pub(crate) mod privacy_gate;
pub(crate) mod prompt_hints;
pub(crate) mod rank;
pub(crate) mod stdlib_names;
#[cfg(test)]
mod test_support;
pub(crate) mod totals;
