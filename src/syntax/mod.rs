//! Syntax of twelve languages: detection, parsing under limits, node kinds and their roles, metrics of functions and
//! classes.
//!
//! Languages are data: `assets/languages/NAME.toml` says how to recognize a language and lists its node kinds by role
//! ([`definition`], [`role_map`]).
//!
//! A file is parsed once ([`source::Parsers`]) and its tree is flattened once into an array of [`source::Node`]s in
//! document order, so that every reader of the tree is a loop. [`facts::FileFacts`] holds what later steps ask for most:
//! functions, classes, test code.

pub mod declarations;
pub mod definition;
pub mod facts;
pub mod language;
pub mod metrics;
pub mod node_kinds;
pub mod node_roles;
pub mod occurrences;
pub mod role_map;
pub mod source;
pub mod syntax_check;

use thiserror::Error;

/// Reason why a file was not analyzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ParseFailure {
    #[error("it is of no language that revdeck reads")]
    UnknownLanguage,
    /// Parsing needs more parser steps or memory than the limit for a file of this size.
    #[error("it is too complex to parse")]
    TooComplex,
    #[error("the analysis failed on it; that is a fault of revdeck")]
    Failed,
}
