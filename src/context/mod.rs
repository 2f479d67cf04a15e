//! Builds the context that a reviewer receives, offers tools for more code, and counts tokens.
//!
//! Invariants:
//! - Everything except a test coverage report is read from the git objects of a snapshot.
//! - Every input is bounded, and the same question gets the same answer.
//! - Secrets are masked, and files that hold secrets are never sent.
//! - No text from the code can end the fence that quotes it.

mod annotations;
pub mod builder;
mod candidates;
pub mod chunk;
pub mod compress;
mod diff;
pub mod diff_parts;
mod disk;
mod disk_cache;
mod document_store;
pub mod embeddings;
mod enclosing_scope;
pub mod evaluate;
mod file_analysis;
mod fit_budget;
mod focus;
pub mod guidelines;
mod history_cache;
mod import_resolver;
pub mod index;
mod interner;
mod keyword_snippets;
pub mod mask;
mod mentions;
pub mod omitted_files;
pub mod pack;
mod parallel;
pub mod project_documents;
pub mod query_input;
mod repo_outline;
pub mod retrieve;
mod score;
mod secret_files;
mod summaries;
mod symlinks;
mod task_text;
pub mod test_coverage;
mod text;
mod token_bound;
pub mod tokens;
pub mod tools;
mod units;
mod utility;

pub use secret_files::is_secret_file;
pub use text::{escape_unsafe, fence_text};
