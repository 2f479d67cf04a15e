//! Facts about the session. All but the branch stay the same while the cockpit is open.

use std::collections::{BTreeMap, BTreeSet};

use crate::runner::ReviewerTerms;

/// Repository, branch and limits of this session.
#[derive(Debug, Clone, Default)]
pub struct SessionInfo {
    /// Display name of the repository.
    pub repository: String,
    /// Short name of the branch that is checked out; empty when HEAD is detached.
    pub branch: String,
    /// Greatest number of turns of a run, by reviewer.
    pub turn_limits: TurnLimits,
    /// Limits of a run's cost from the settings.
    pub budget: RunBudget,
    /// Names of the reviewers that answer questions about their findings.
    pub answering_reviewers: BTreeSet<String>,
    /// Default reviewer and the most that its reviews may cost; `None` before it is known. The built-in one is known at once.
    pub reviewer: Option<ReviewerTerms>,
    /// True if opening the cockpit has the built-in reviewer review what is new.
    pub reviews_on_open: bool,
}

/// Greatest number of turns of a run. Second opinions come after them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnLimits {
    /// Limit of a reviewer that is not in the settings any more.
    pub default: u32,
    /// Limits by the name of the reviewer.
    pub by_reviewer: BTreeMap<String, u32>,
}

impl TurnLimits {
    /// Returns the limit of a reviewer's runs.
    pub fn of_reviewer(&self, name: &str) -> u32 {
        self.by_reviewer.get(name).copied().unwrap_or(self.default)
    }
}

/// Limits of a run's cost; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunBudget {
    /// US dollars.
    pub cost: Option<f64>,
    /// Number of tokens.
    pub tokens: Option<u64>,
}
