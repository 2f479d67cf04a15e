//! Ledgers that were handed to an assistant: what that cost, and what the assistant was told.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, RunId, Time};

word_enum!(
    /// How the tokens of a ledger were counted.
    TokenCountPrecision {
        Exact = "exact",
        /// Never too few; about a tenth too many.
        AtMost = "at_most",
    }
);

/// One line of `surfaced.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerDelivery {
    pub at: Time,
    /// The working tree's folder.
    #[serde(default)]
    pub worktree: String,
    /// The ended run whose result was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The findings that were named.
    #[serde(default)]
    pub findings: Vec<FindingId>,
    /// By `o200k_base`.
    pub tokens: u64,
    pub counted: TokenCountPrecision,
    /// Elements that did not fit.
    #[serde(default)]
    pub left_out: u64,
}
