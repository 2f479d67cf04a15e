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

word_enum!(
    /// Format of a ledger.
    LedgerFormat {
        /// XML, one element per line.
        Xml = "xml",
        /// Plain text, one element per line.
        Text = "text",
    }
);

word_enum!(
    /// Form in which a ledger was delivered.
    LedgerForm {
        /// All elements that fit.
        Whole = "whole",
        /// One line, because the session knows the rest.
        Unchanged = "unchanged",
        /// Nothing was delivered: the session's earlier ledgers no longer count, because the assistant has dropped
        /// them from its context.
        Forgotten = "forgotten",
    }
);

impl LedgerForm {
    /// Returns true for the form of lines that name none, such as those of older versions.
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

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
    /// Name of the assistant, such as `claude-code`; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Session of the assistant; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Form of the ledger.
    #[serde(default = "default_form", skip_serializing_if = "LedgerForm::is_whole")]
    pub form: LedgerForm,
    /// Format of the text; `None` in lines of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<LedgerFormat>,
    /// Maximum size in tokens that the reader asked for; `None` for the setting `ledger_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Hash of what the session knew after the delivery; empty without a session. An equal hash means that there is
    /// nothing new to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
}

fn default_form() -> LedgerForm {
    LedgerForm::Whole
}

impl LedgerDelivery {
    /// Returns true if the assistant received text.
    pub fn is_text(&self) -> bool {
        self.form != LedgerForm::Forgotten
    }
}
