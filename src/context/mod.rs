//! What a reviewer is given of the code, what it may ask for, and how many tokens it is.
//!
//! Invariants: everything but a report of test coverage is read from a snapshot's objects, bounded, and the same for the
//! same question; secrets are masked, and files that hold them are not given away; no text of the code ends what quotes it.

mod token_bound;
mod candidates;
pub mod chunk;
pub mod compress;
pub mod test_coverage;
mod diff;
mod disk;
pub mod evaluate;
mod focus;
pub mod query_input;
pub mod project_documents;
pub mod guidelines;
mod import_resolver;
mod summaries;
pub mod index;
mod interner;
mod keyword_snippets;
mod document_store;
mod symlinks;
pub mod mask;
pub mod diff_parts;
pub mod embeddings;
mod mentions;
pub mod omitted_files;
pub mod pack;
mod history_cache;
mod annotations;
mod enclosing_scope;
pub mod retrieve;
mod score;
mod secret_files;
mod disk_cache;
mod repo_outline;
mod fit_budget;
pub mod builder;
mod task_text;
mod file_analysis;
mod text;
mod parallel;
pub mod tokens;
pub mod tools;
mod units;
mod utility;

pub use secret_files::is_secret_file;
pub use text::{fence_text, escape_unsafe};
