//! Scope of a command: as one word (`commit:HEAD~1`) or as a flag (`--commit HEAD~1`).

use clap::{ArgGroup, Args};

use super::error::CliError;
use crate::domain::Scope;

/// Arguments that name a scope, in either way.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("scope").multiple(false))]
pub struct ScopeArgs {
    /// Scope: worktree, staged, commit:REV, range:A..B, range:A...B, branch[:BASE] or all; the flags below say the same
    #[arg(group = "scope", value_name = "SCOPE")]
    word: Option<Scope>,
    /// Uncommitted changes, including untracked files
    #[arg(long, group = "scope")]
    worktree: bool,
    /// Staged changes
    #[arg(long, group = "scope")]
    staged: bool,
    /// One commit against its first parent
    #[arg(long, group = "scope", value_name = "REV")]
    commit: Option<String>,
    /// The changes from A to B; with three dots (A...B) from their merge base to B
    #[arg(long, group = "scope", value_name = "A..B")]
    range: Option<String>,
    /// HEAD against its merge base with BASE; without BASE revdeck guesses it
    #[arg(long, group = "scope", value_name = "BASE", num_args = 0..=1, default_missing_value = "")]
    branch: Option<String>,
    /// The whole tree as if all files were new
    #[arg(long, group = "scope")]
    all: bool,
}

impl ScopeArgs {
    /// Returns the scope; `None` if the arguments name none.
    ///
    /// # Errors
    ///
    /// Returns an error if the value of `--range` is no range.
    pub fn scope(&self) -> Result<Option<Scope>, CliError> {
        Ok(if let Some(scope) = &self.word {
            Some(scope.clone())
        } else if self.worktree {
            Some(Scope::Worktree)
        } else if self.staged {
            Some(Scope::Staged)
        } else if self.all {
            Some(Scope::All)
        } else if let Some(revision) = &self.commit {
            Some(Scope::Commit(revision.clone()))
        } else if let Some(range) = &self.range {
            Some(Scope::parse_range(range).ok_or_else(|| {
                CliError::usage(format!("{range:?} is no range")).hint("write --range A..B or --range A...B")
            })?)
        } else {
            self.branch.as_ref().map(|base| Scope::Branch(Some(base.clone()).filter(|base| !base.is_empty())))
        })
    }
}
