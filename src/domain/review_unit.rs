//! Defines the units of a review and the report of a reviewer about one of them.

use super::{Finding, LineRange, OmittedFile};

/// Kind of work in one unit of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewUnitKind {
    /// Review each file by itself.
    EachFile,
    /// Look for problems that are visible only across files. The unit covers no file.
    CrossFile,
}

/// File that a reviewer read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedFile {
    /// Path relative to the repository.
    pub path: String,
    /// Number of lines in the file; findings must lie within them.
    pub lines: u32,
}

/// Report of a reviewer about a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitReport {
    /// Findings in the order of the unit's files, so that two reviews of the same unit report the same findings in the
    /// same order. The worker sets their run ids and times.
    pub findings: Vec<Finding>,
    /// Files that were read completely.
    pub read: Vec<ReviewedFile>,
    /// Files of the unit that could not be reviewed.
    pub left_out: Vec<OmittedFile>,
    /// Messages for the user, one line each.
    pub notes: Vec<String>,
    /// Bytes of unchanged files that the reviewer had to read because the index did not know their content.
    pub unindexed_bytes: u64,
}

/// Part of a change's diff, from one file, that a model receives at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPart {
    /// Path of the file on the new side; of a deleted file, on the old side.
    pub path: String,
    /// Changed lines in this part on the new side (1-based), one range for each hunk or piece of a hunk: a hunk that is
    /// too long for one part is split over several parts. For a pure deletion, the line before it.
    pub hunks: Vec<LineRange>,
    /// File name and unified diff with line numbers of the new side. Every line ends with a line end.
    pub text: String,
    /// Tokens of `text`.
    pub tokens: u64,
}
