//! Syntax of the supported languages: detection, parsing under limits, node kinds and their roles, metrics of functions and
//! classes.
//!
//! Languages are data: `assets/languages/NAME.toml` says how to recognize a language and lists its node kinds by role
//! ([`definition`], [`role_map`]).
//!
//! Parsing has limits for any text: caps that a scan checks first, parser steps, time, and the memory of a worker
//! process. [`parse_log`] remembers the text that ended a process. Reading a tree has a limit of steps and time, too, see
//! [`work_budget`].
//!
//! A file is parsed once ([`source::Parsers`]) and its tree is flattened once into an array of [`source::Node`]s in
//! document order, so that every reader of the tree is a loop. [`facts::FileFacts`] holds what later steps ask for most:
//! functions, classes, test code.

pub(crate) mod conventions;
pub(crate) mod copy_rules;
pub(crate) mod declarations;
pub(crate) mod definition;
pub(crate) mod facts;
mod field_rules;
pub(crate) mod import_rules;
pub mod language;
pub(crate) mod metrics;
pub(crate) mod node_kinds;
pub(crate) mod node_roles;
pub(crate) mod occurrences;
pub(crate) mod parse_log;
pub(crate) mod role_map;
pub mod source;
pub(crate) mod syntax_check;
pub mod work_budget;

use thiserror::Error;

use crate::domain::InterruptedParse;

/// Reason why a file was not analyzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ParseFailure {
    /// Neither the path nor the content shows a supported language.
    #[error("it is of no language that revdeck reads")]
    UnknownLanguage,
    /// The file exceeds a cap, or parsing it needs more parser steps or time than the limit for a file of this size.
    #[error("it is too complex to parse")]
    TooComplex,
    /// Checking the file needs more steps or time than the limit for a file of this size.
    #[error("it is too complex to check")]
    TooComplexToCheck,
    /// An earlier process ran out of memory while it parsed the file, see [`parse_log`].
    #[error("{}", InterruptedParse::REASON)]
    OutOfMemory,
    /// The analysis panicked, or the parser thread could not start or has died.
    #[error("the analysis failed on it; that is a fault of revdeck")]
    Failed,
}
