//! Layered settings, keymaps, themes; defaults embedded from `assets/`. Also what comes from outside: clock and ids.
//!
//! Invariant: a reviewed repository can set only harmless keys (thresholds, ignored paths, scope).

mod ambient;
mod paths;

pub use ambient::Ambient;
pub use paths::Paths;

use crate::domain::Priority;

/// The settings in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub default_reviewer: String,
    pub max_parallel_runs: usize,
    /// Globs in the syntax of .gitignore: changed files that no review looks at.
    pub ignored_paths: Vec<String>,
    pub max_file_bytes: u64,
    pub ledger_tokens: usize,
    pub fail_on: Option<Priority>,
    pub theme: String,
    pub ascii: bool,
    /// `assets/smells.toml` with the user's and the repository's changes laid over it, as TOML.
    pub smells: String,
    /// `assets/keymap.toml` with the user's changes laid over it, as TOML.
    pub keymap: String,
}
