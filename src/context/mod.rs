//! Builds the context that a reviewer receives, offers tools for more code, and counts tokens.
//!
//! Invariants:
//! - Everything except a test coverage report is read from the git objects of a snapshot.
//! - Every input is bounded, and the same question gets the same answer.
//! - Secrets are masked, and files that hold secrets are never sent.
//! - No text from the code can end the fence that quotes it.

mod annotations;
mod background_map;
pub mod builder;
mod candidates;
pub(crate) mod compress;
pub(crate) mod diff;
pub mod diff_parts;
pub(crate) mod embeddings;
mod enclosing_scope;
pub(crate) mod file_analysis;
pub(crate) mod fit_budget;
mod focus;
pub mod guidelines;
pub(crate) mod import_resolver;
pub(crate) mod keyword_snippets;
mod mentions;
pub(crate) mod omitted_files;
pub(crate) mod pack;
pub mod project_documents;
pub mod query_input;
pub(crate) mod read_ahead;
pub(crate) mod repo_outline;
pub mod retrieve;
mod score;
mod summaries;
mod symlinks;
mod task_text;
pub(crate) mod test_coverage;
mod text;
pub mod tools;
mod units;
mod utility;

pub(crate) use text::escape_unsafe;
