//! What a reviewer is given of the code, what it may ask for, and how many tokens it is.
//!
//! Invariants: everything but a report of test coverage is read from a snapshot's objects, bounded, and the same for the
//! same question; secrets are masked, and files that hold them are not given away; no text of the code ends what quotes it.

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
