//! Defines the mark that the user has viewed a file of a diff, or one of its changes.

use serde::{Deserialize, Serialize};

use super::Time;

/// Line of `viewed.ndjson`. The last line of a path and content counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewedFile {
    /// Path relative to the repository root.
    pub path: String,
    /// Name of the content, such as the id of its blob; the mark does not count for another content. A name that begins with `#` is
    /// that of one change of the file.
    pub content: String,
    /// False if the mark was taken back.
    pub viewed: bool,
    /// Time of the change.
    pub at: Time,
}
