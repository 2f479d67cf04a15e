//! What a reviewer was told of the project, the change and the code around it, and what was left away: kept in the run's
//! journal, without anybody's code.

use serde::{Deserialize, Serialize};

/// The context of a run: what its first request tells, and the parts of the change that are for later ones. Scores are from
/// 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextRecord {
    /// In tokens.
    pub budget: u32,
    /// Of all sections, in tokens.
    pub total_tokens: u32,
    /// How the code was compressed to have more of it; empty when it was not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compression: String,
    /// What was learned and told, a line for each pattern.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// What the reviewer had to do without: an index that is being built, a history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// In the order in which they were sent, at most [`Surroundings::MAX_LISTED`].
    pub sections: Vec<ContextRecordSection>,
    /// The strongest of what was left away, at most [`Surroundings::MAX_LISTED`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<ContextRecordSection>,
    /// All that was left away, listed or not.
    pub left_out_total: u32,
}

/// A piece of code or text, sent or left away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextRecordSection {
    /// Empty for what is of no file.
    pub path: String,
    /// Lines in the snapshot, counted from 1; 0 for what has none.
    pub start_line: u32,
    pub end_line: u32,
    pub kind: String,
    pub tokens: u32,
    pub score: f32,
    /// Why it was sent, or left away.
    pub reason: String,
}

impl ContextRecord {
    pub const MAX_LISTED: usize = 200;
}
