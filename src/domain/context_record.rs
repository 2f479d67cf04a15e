//! Records which context a reviewer received and which context was omitted. The record stands in the run's journal
//! and holds no source code.

use serde::{Deserialize, Serialize};

/// Context of a run: the sections of its first request, and the parts of the change that follow in later requests.
/// Scores are from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextRecord {
    /// Token budget.
    pub budget: u32,
    /// Tokens of all sections.
    pub total_tokens: u32,
    /// Description of how code was compressed to fit more of it; empty without compression.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compression: String,
    /// Learned patterns in the prompt, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Inputs that were missing, for example an index that is still being built, or the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Sent sections in prompt order, at most [`ContextRecord::MAX_LISTED`].
    pub sections: Vec<ContextRecordSection>,
    /// Omitted sections with the highest scores, at most [`ContextRecord::MAX_LISTED`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<ContextRecordSection>,
    /// Number of all omitted sections, listed or not.
    pub left_out_total: u32,
}

/// Section of code or text that was sent or omitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextRecordSection {
    /// Empty for text that belongs to no file.
    pub path: String,
    /// First line in the snapshot (1-based); 0 for text without lines.
    pub start_line: u32,
    /// Last line (1-based, inclusive); 0 for text without lines.
    pub end_line: u32,
    /// Kind of the section in one word, for example `function` or `test`.
    pub kind: String,
    /// Size of the section in tokens.
    pub tokens: u32,
    /// Relevance for the change, from 0 to 1.
    pub score: f32,
    /// Reason why the section was sent or omitted.
    pub reason: String,
}

impl ContextRecord {
    /// Maximum number of sections in each list of the record.
    pub const MAX_LISTED: usize = 200;
}
