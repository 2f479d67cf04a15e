//! Defines coverage: the hunks that a run showed to its reviewer, and the omitted files with their reasons.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::format_count;
use super::{FindingId, RunId};

/// Lines of a file (1-based, inclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineRange {
    /// First line.
    pub start: u32,
    /// Last line; never before `start`, unless the range was read from elsewhere.
    pub end: u32,
}

impl LineRange {
    /// Creates a range of the lines `start` to `end`; swaps a reversed pair.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start: start.min(end), end: start.max(end) }
    }

    /// Returns the number of lines; 1 for a reversed pair, which records from elsewhere may hold.
    pub fn count(self) -> u32 {
        self.end.saturating_sub(self.start).saturating_add(1)
    }

    /// Returns true if both ranges share a line.
    pub fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Returns true if `other` lies inside this range.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the distance in lines between the ranges; 0 when they share a line.
    pub fn distance(self, other: Self) -> u32 {
        other.start.saturating_sub(self.end).max(self.start.saturating_sub(other.end))
    }
}

/// Reason why a changed file was not reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// Marked `linguist-generated`, or its first lines say that it is generated.
    Generated,
    /// Marked `linguist-vendored`, or in a folder of third-party code.
    Vendored,
    /// A lock file of a package manager.
    LockFile,
    /// Has lines so long that a program must have written them.
    Minified,
    /// Has a NUL byte, or is marked `-diff`.
    Binary,
    /// Larger than the configured limit.
    Oversized,
    /// Commit of another repository.
    Submodule,
    /// Symbolic link; its target is not followed.
    Symlink,
    /// Only the mode changed, or the file was only moved.
    NoContentChange,
    /// Deleted, so no line is left to report.
    Deleted,
    /// Its path is ignored by the settings.
    Ignored,
    /// The reviewer does not support the language.
    UnsupportedLanguage,
    /// Holds secrets, judged by its name; never shown to a model.
    Secret,
    /// Parsing would need more work or memory than allowed for a file of its size: the content is hostile, or not
    /// code.
    TooComplex,
    /// The reviewer could not read the file; the run's log says why.
    Unreadable,
    /// The run ended before it reached the file.
    NotReached,
}

impl OmissionReason {
    /// Returns true if the file should have been reviewed and was not.
    pub fn is_gap(self) -> bool {
        matches!(self, Self::Unreadable | Self::NotReached)
    }
}

impl fmt::Display for OmissionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            OmissionReason::Generated => "generated",
            OmissionReason::Vendored => "vendored",
            OmissionReason::LockFile => "lock file",
            OmissionReason::Minified => "minified",
            OmissionReason::Binary => "binary",
            OmissionReason::Oversized => "oversized",
            OmissionReason::Submodule => "submodule",
            OmissionReason::Symlink => "symbolic link",
            OmissionReason::NoContentChange => "no change of content",
            OmissionReason::Deleted => "deleted",
            OmissionReason::Ignored => "ignored by settings",
            OmissionReason::UnsupportedLanguage => "language not supported by this reviewer",
            OmissionReason::Secret => "holds secrets",
            OmissionReason::TooComplex => "too complex to parse",
            OmissionReason::Unreadable => "unreadable",
            OmissionReason::NotReached => "not reached",
        })
    }
}

/// Changed file that was not reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedFile {
    /// Path relative to the repository root.
    pub path: String,
    /// Cause of the omission.
    pub reason: OmissionReason,
}

/// Reviewed file with its changed lines on the new side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCoverage {
    /// Path relative to the repository root, on the new side.
    pub path: String,
    /// Changed lines of each hunk on the new side.
    pub hunks: Vec<LineRange>,
    /// Key of each hunk, in the order of `hunks`; a later run recognizes an unchanged hunk by its key. Empty in
    /// records of older versions, and when the code could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl FileCoverage {
    /// Returns the number of changed lines in all files.
    pub fn count_changed_lines<'a>(files: impl IntoIterator<Item = &'a Self>) -> u32 {
        let hunks = files.into_iter().flat_map(|file| &file.hunks);
        hunks.map(|hunk| hunk.count()).fold(0, u32::saturating_add)
    }
}

/// Hunks of a changed file that a run did not send again, because an earlier run reviewed them unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFile {
    /// Carried hunks of the file, which may have further hunks.
    #[serde(flatten)]
    pub file: FileCoverage,
    /// Run that showed the hunks to the reviewer.
    pub from: RunId,
    /// Findings and suppressed reports that are carried over with the hunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingId>,
}

/// Coverage of a run. A run record holds only the counts; a run's output also holds the lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Number of changed files in scope, including omitted files.
    pub files_total: u32,
    /// Number of files of which this run showed at least one hunk to the reviewer.
    pub files_covered: u32,
    /// Number of changed hunks in all files that were to be reviewed: files that are not omitted, or omitted because
    /// of a gap ([`OmissionReason::is_gap`]).
    pub hunks_total: u32,
    /// Number of hunks that this run showed to the reviewer.
    pub hunks_covered: u32,
    /// Number of files of which nothing was sent, because all of their hunks are carried over.
    pub files_carried: u32,
    /// Number of hunks that an earlier run reviewed unchanged; not included in `hunks_covered`.
    pub hunks_carried: u32,
    /// Number of changed hunks in files that the reviewer itself omitted. Hunks in files that the settings omit are
    /// not counted anywhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub hunks_left_out: u32,
    /// Number of added lines shown to the reviewer.
    pub lines_covered: u32,
    /// Shown hunks by file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileCoverage>,
    /// Files in scope that were not reviewed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedFile>,
    /// Hunks carried over from earlier runs, by file and run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedFile>,
}

impl Coverage {
    /// Removes a planned file with `hunks` hunks from the files to review.
    pub fn omit_file(&mut self, file: OmittedFile, hunks: u32) {
        if !file.reason.is_gap() {
            self.hunks_total = self.hunks_total.saturating_sub(hunks);
            self.hunks_left_out = self.hunks_left_out.saturating_add(hunks);
        }
        self.left_out.push(file);
    }

    /// Returns the number of files that were to be reviewed, including files with a gap.
    pub fn reviewable_file_count(&self) -> u32 {
        let out = self.left_out.iter().filter(|file| !file.reason.is_gap()).count();
        self.files_total.saturating_sub(u32::try_from(out).unwrap_or(u32::MAX))
    }

    /// Returns the paths of files that should have been reviewed and could not be read.
    pub fn unreadable_paths(&self) -> impl Iterator<Item = &str> {
        let unreadable = self.left_out.iter().filter(|file| file.reason == OmissionReason::Unreadable);
        unreadable.map(|file| file.path.as_str())
    }

    /// Returns the counts without the lists, as stored in a run record.
    pub fn without_lists(&self) -> Self {
        Self { files: Vec::new(), left_out: Vec::new(), carried: Vec::new(), ..self.clone() }
    }

    /// Sets the carried hunks and updates their counts.
    pub fn set_carried(&mut self, carried: &[CarriedFile]) {
        let covered: HashSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let paths: HashSet<&str> = carried.iter().map(|carried| carried.file.path.as_str()).collect();
        let left_out: HashSet<&str> = self.left_out.iter().map(|file| file.path.as_str()).collect();
        let whole = paths.iter().filter(|path| !covered.contains(*path) && !left_out.contains(*path)).count();
        let hunks: usize = carried.iter().map(|carried| carried.file.hunks.len()).sum();
        self.files_carried = u32::try_from(whole).unwrap_or(u32::MAX);
        self.hunks_carried = u32::try_from(hunks).unwrap_or(u32::MAX);
        self.carried = carried.to_vec();
    }

    /// Returns the hunks that this run or an earlier run showed to the reviewer unchanged.
    pub fn reviewed_files(&self) -> impl Iterator<Item = &FileCoverage> {
        self.files.iter().chain(self.carried.iter().map(|carried| &carried.file))
    }

    /// Describes the carried hunks: `12 of 14 hunks carried over from ar_…`. Returns `None` without carried hunks.
    pub fn describe_carried(&self) -> Option<String> {
        if self.hunks_carried == 0 {
            return None;
        }
        let mut runs: Vec<&RunId> = self.carried.iter().map(|carried| &carried.from).collect();
        runs.sort();
        runs.dedup();
        let from = match runs.as_slice() {
            [] => String::new(),
            [run] => format!(" from {run}"),
            [.., newest] => format!(" from {newest} and {}", format_count(runs.len() - 1, "other run")),
        };
        Some(format!(
            "{} of {} carried over{from}",
            self.hunks_carried,
            format_count(self.hunks_total as usize, "hunk")
        ))
    }

    /// Returns the run that a finding was carried over from; `None` for a finding that is not carried over.
    pub fn carried_from_run(&self, finding: &FindingId) -> Option<&RunId> {
        self.carried.iter().find(|carried| carried.findings.contains(finding)).map(|carried| &carried.from)
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
