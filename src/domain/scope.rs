//! Defines review scopes and parses them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Code to review. Written as one word, for example `commit:HEAD~2`; [`fmt::Display`] and [`FromStr`] are inverse.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// Uncommitted changes, untracked files included: `worktree`.
    Worktree,
    /// Staged changes, the index against HEAD: `staged`.
    Staged,
    /// One commit against its first parent: `commit:REV`.
    Commit(String),
    /// From A to B without a merge base: `range:A..B`.
    Range {
        /// Revision of the old side; not part of the range.
        from: String,
        /// Revision of the new side.
        to: String,
    },
    /// From the merge base of A and B to B: `range:A...B`.
    Since {
        /// Revision A; the old side is its merge base with `to`.
        from: String,
        /// Revision of the new side.
        to: String,
    },
    /// HEAD against its merge base with a branch: `branch:BASE`, or `branch` when revdeck guesses the base.
    Branch(Option<String>),
    /// Whole tree, reviewed as if all of it were new: `all`.
    All,
}

/// Error for a text that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a scope; write worktree, staged, commit:REV, range:A..B, range:A...B, branch[:BASE] or all")]
pub struct ParseScopeError(String);

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Worktree => f.write_str("worktree"),
            Scope::Staged => f.write_str("staged"),
            Scope::Commit(rev) => write!(f, "commit:{rev}"),
            Scope::Range { from, to } => write!(f, "range:{from}..{to}"),
            Scope::Since { from, to } => write!(f, "range:{from}...{to}"),
            Scope::Branch(None) => f.write_str("branch"),
            Scope::Branch(Some(base)) => write!(f, "branch:{base}"),
            Scope::All => f.write_str("all"),
        }
    }
}

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        let bad = || ParseScopeError(text.to_owned());
        let (word, argument) = match text.split_once(':') {
            Some((word, argument)) if !argument.is_empty() => (word, Some(argument)),
            Some(_) => return Err(bad()),
            None => (text, None),
        };
        Ok(match (word, argument) {
            ("worktree", None) => Scope::Worktree,
            ("staged", None) => Scope::Staged,
            ("all", None) => Scope::All,
            ("branch", base) => Scope::Branch(base.map(str::to_owned)),
            ("commit", Some(rev)) => Scope::Commit(rev.to_owned()),
            ("range", Some(range)) => return Scope::parse_range(range).ok_or_else(bad),
            _ => return Err(bad()),
        })
    }
}

impl Scope {
    /// Parses `A..B` or `A...B`. A missing side means HEAD, as in git. Returns `None` if the text has no dots.
    pub fn parse_range(text: &str) -> Option<Self> {
        let side = |rev: &str| if rev.is_empty() { "HEAD".to_owned() } else { rev.to_owned() };
        if let Some((from, to)) = text.split_once("...") {
            return Some(Scope::Since { from: side(from), to: side(to) });
        }
        let (from, to) = text.split_once("..")?;
        Some(Scope::Range { from: side(from), to: side(to) })
    }
}

impl TryFrom<String> for Scope {
    type Error = ParseScopeError;

    fn try_from(text: String) -> Result<Self, ParseScopeError> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_back_as_they_are_written() {
        for text in [
            "worktree",
            "staged",
            "commit:HEAD~2",
            "range:a..b",
            "range:v1.0...HEAD",
            "branch",
            "branch:origin/main",
            "all",
        ] {
            assert_eq!(text.parse::<Scope>().map(|scope| scope.to_string()), Ok(text.to_owned()));
        }
        for bad in ["", "work", "commit", "commit:", "range:a", "worktree:x"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad:?}");
        }
        assert_eq!(Scope::parse_range("..b").map(|s| s.to_string()).as_deref(), Some("range:HEAD..b"));
    }
}
