//! Pure decisions: launch, adopt, reuse, resume, skip; freshness; the life of a finding.
//!
//! Invariants: no IO, no clock, no randomness; imports `domain` only. [`freshness`] is given no start time and no
//! duration, so a long run can never be taken for a stale one.

use crate::domain::RunId;

/// What somebody wants reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub scope_hash: String,
    pub diff_fingerprint: String,
    pub prompt_policy_version: String,
    pub reviewer: String,
    pub model: String,
    pub reasoning_effort: String,
    pub branch: String,
    pub worktree: String,
    /// Review again although an equivalent review exists.
    pub force: bool,
    /// Tokens the reviewer would be sent, estimated.
    pub prompt_estimate: u64,
}

/// What the harness does about a request, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    /// One sentence for a person.
    pub reason: String,
    pub saved_token_estimate: u64,
}

/// The action of a [`Decision`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a new run; these active runs are superseded by it.
    Launch { supersedes: Vec<RunId> },
    /// A live equivalent run does it.
    Adopt(RunId),
    /// A completed equivalent run has done it.
    Reuse(RunId),
    /// An equivalent run that was lost goes on.
    Resume(RunId),
    /// Nothing to review.
    Skip,
}
