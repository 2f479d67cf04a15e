//! Records each ledger delivered to a coding assistant: its content and its token cost.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, RunId, Time};

word_enum!(
    /// Precision of a ledger's token count.
    TokenCountPrecision {
        Exact = "exact",
        /// An upper bound: never too low, about 10 % too high.
        AtMost = "at_most",
    }
);

/// Line of `surfaced.ndjson`: one delivery of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerDelivery {
    /// Time of the delivery.
    pub at: Time,
    /// Root folder of the working tree.
    #[serde(default)]
    pub worktree: String,
    /// Ended run whose result the ledger contained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Findings that the ledger listed.
    #[serde(default)]
    pub findings: Vec<FindingId>,
    /// Size of the ledger in `o200k_base` tokens.
    pub tokens: u64,
    /// Precision of `tokens`.
    pub counted: TokenCountPrecision,
    /// Number of ledger items that did not fit.
    #[serde(default)]
    pub left_out: u64,
}
