//! Coverage: what a run really put before its reviewer, and what it left out and why.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::format_count;
use super::{FindingId, RunId};

/// Lines of a file, both ends included, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineRange {
    pub start: u32,
    pub end: u32,
}

impl LineRange {
    /// The lines `start` to `end`; a reversed pair is put right.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start: start.min(end), end: start.max(end) }
    }

    /// How many lines; 1 for a pair that is none, as other people's records may hold.
    pub fn count(self) -> u32 {
        self.end.saturating_sub(self.start).saturating_add(1)
    }

    /// Whether the two share a line.
    pub fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether all lines of the other are among these.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Lines from one to the other; 0 when they share one.
    pub fn distance(self, other: Self) -> u32 {
        other.start.saturating_sub(self.end).max(self.start.saturating_sub(other.end))
    }
}

/// Why a changed file was not reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// Marked `linguist-generated`, or says so itself in its first lines.
    Generated,
    /// Marked `linguist-vendored`, or below a folder of other people's code.
    Vendored,
    /// A lock file of a package manager.
    LockFile,
    /// Lines so long that a program wrote them.
    Minified,
    Binary,
    /// Over the configured size.
    Oversized,
    Submodule,
    Symlink,
    /// Only its mode changed, or it only moved.
    NoContentChange,
    /// It was deleted: there is nothing to point at.
    Deleted,
    /// A path that the settings ignore.
    Ignored,
    /// The reviewer does not know the language.
    UnsupportedLanguage,
    /// A file that holds secrets, by its name: it is not put before a model.
    Secret,
    /// Parsing it would take more work or memory than a file of its size may: it was made for that, or is no code.
    TooComplex,
    /// The reviewer could not read it; the run's log says why.
    Unreadable,
    /// The run ended before it got there.
    NotReached,
}

impl OmissionReason {
    /// Whether the file was to be reviewed and was not: what is missing then is the review, not a reason for one.
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

/// A changed file that was not reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedFile {
    pub path: String,
    pub reason: OmissionReason,
}

/// A changed file that was reviewed, with its changed lines on the new side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCoverage {
    pub path: String,
    pub hunks: Vec<LineRange>,
    /// What each hunk is recognised by in a later run, in the order of `hunks`; empty in records of older versions, and
    /// where the code could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl FileCoverage {
    /// Changed lines in all of these files.
    pub fn count_changed_lines<'a>(files: impl IntoIterator<Item = &'a Self>) -> u32 {
        let hunks = files.into_iter().flat_map(|file| &file.hunks);
        hunks.map(|hunk| hunk.count()).fold(0, u32::saturating_add)
    }
}

/// Hunks of a changed file that a run did not send again, because an earlier one has reviewed them as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFile {
    #[serde(flatten)]
    pub file: FileCoverage,
    /// The run that put them before the reviewer.
    pub from: RunId,
    /// Findings and held back reports that came along with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingId>,
}

/// Counts for a run record; a run's output has the lists as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Changed files in scope, those left out included.
    pub files_total: u32,
    pub files_covered: u32,
    /// Changed hunks in the files that were not left out, or only because of a gap ([`LeftOutReason::is_gap`]).
    pub hunks_total: u32,
    pub hunks_covered: u32,
    /// Files of which nothing was sent, because all of their hunks are carried over.
    pub files_carried: u32,
    /// Hunks that an earlier run has reviewed as they are; they are not among the covered ones.
    pub hunks_carried: u32,
    /// Changed hunks in the files that the reviewer itself left out; those of files that the settings leave out are not
    /// counted anywhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub hunks_left_out: u32,
    /// Added lines that were put before the reviewer.
    pub lines_covered: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileCoverage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedFile>,
}

impl Coverage {
    /// Takes a file of the plan, with this many hunks, out of what is to be reviewed.
    pub fn omit_file(&mut self, file: OmittedFile, hunks: u32) {
        if !file.reason.is_gap() {
            self.hunks_total = self.hunks_total.saturating_sub(hunks);
            self.hunks_left_out = self.hunks_left_out.saturating_add(hunks);
        }
        self.left_out.push(file);
    }

    /// Files that were to be reviewed, those with a gap included.
    pub fn reviewable_file_count(&self) -> u32 {
        let out = self.left_out.iter().filter(|file| !file.reason.is_gap()).count();
        self.files_total.saturating_sub(u32::try_from(out).unwrap_or(u32::MAX))
    }

    /// The paths of files that should have been reviewed and could not be read.
    pub fn unreadable_paths(&self) -> impl Iterator<Item = &str> {
        let unreadable = self.left_out.iter().filter(|file| file.reason == OmissionReason::Unreadable);
        unreadable.map(|file| file.path.as_str())
    }

    /// The counts without the lists, as a run record keeps them.
    pub fn without_lists(&self) -> Self {
        Self { files: Vec::new(), left_out: Vec::new(), carried: Vec::new(), ..self.clone() }
    }

    /// Puts carried hunks in, and counts them.
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

    /// The hunks that this run or an earlier one has put before the reviewer as they are.
    pub fn reviewed_files(&self) -> impl Iterator<Item = &FileCoverage> {
        self.files.iter().chain(self.carried.iter().map(|carried| &carried.file))
    }

    /// `12 of 14 hunks carried over from ar_…`; `None` when none are.
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

    /// The run that a finding was carried over from, when no report of this run stands behind it.
    pub fn carried_from_run(&self, finding: &FindingId) -> Option<&RunId> {
        self.carried.iter().find(|carried| carried.findings.contains(finding)).map(|carried| &carried.from)
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
