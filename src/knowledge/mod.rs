//! Knowledge: what findings, fixes and dismissals teach, as abstract patterns that hold none of the user's code.
//!
//! Invariants: every form consists of keywords, operators, placeholders and names of a published list only, and [`form`]
//! cannot make another; texts are revdeck's own, made from the forms or curated with them, never a model's or a person's.
//!
//! [`abstraction`] makes forms of code, [`gate`] holds them against the list in [`names`], [`mine`] takes edits from a
//! repository's history.
//!
//! [`cache`] keeps what was learned, each language in one `document`, merged with the [`base`] that comes with revdeck;
//! similar patterns are in a `group`. [`rank`] says how far a pattern is trusted, [`words`] what it is in words,
//! [`figures`] what all of them come to, [`exchange`] carries patterns from machine to machine. [`kinds`] of findings that
//! are always dismissed are counted beside them.
//!
//! [`matcher`] holds patterns against code, [`evaluate`] measures how well they point at mistakes; [`hints`] are what a model is told.

pub mod abstraction;
pub mod builtin_patterns;
pub mod cache;
mod clustering;
pub mod descriptions;
pub mod error;
pub mod evaluate;
pub mod event_log;
pub mod exchange;
pub mod form;
pub mod history_mining;
pub mod kind_tallies;
mod knowledge_file;
pub mod matcher;
pub mod pattern;
#[cfg(test)]
mod privacy;
pub mod privacy_gate;
pub mod prompt_hints;
pub mod rank;
pub mod stdlib_names;
#[cfg(test)]
mod test_support;
pub mod totals;
