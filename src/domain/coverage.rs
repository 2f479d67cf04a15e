//! Defines coverage: the hunks that a run showed to its reviewer, and the omitted files with their reasons.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::format_count;
use super::{FindingId, RunId, is_default};

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

/// Maximum number of files that are named in a description of gaps.
const MAX_NAMED_FILES: usize = 3;

/// Reason why a changed file, or a part of it, was not reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// The turns of the run were used up before the reviewer had seen the file.
    TurnLimit,
    /// The budget was reached before the reviewer had seen the file.
    Budget,
    /// The reviewer's answers about the file broke off or were cut at their longest length.
    BrokenAnswer,
    /// The change does not fit into the reviewer's window.
    Window,
}

impl OmissionReason {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 20] = [
        Self::Generated,
        Self::Vendored,
        Self::LockFile,
        Self::Minified,
        Self::Binary,
        Self::Oversized,
        Self::Submodule,
        Self::Symlink,
        Self::NoContentChange,
        Self::Deleted,
        Self::Ignored,
        Self::UnsupportedLanguage,
        Self::Secret,
        Self::TooComplex,
        Self::Unreadable,
        Self::NotReached,
        Self::TurnLimit,
        Self::Budget,
        Self::BrokenAnswer,
        Self::Window,
    ];

    /// The words of [`Self::ALL`], in the same order.
    pub const WORDS: &'static [&'static str] = &{
        let (mut words, mut at) = ([""; Self::ALL.len()], 0);
        while at < words.len() {
            words[at] = Self::ALL[at].word();
            at += 1;
        }
        words
    };

    /// Returns the word for this reason in files, in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Generated => "generated",
            Self::Vendored => "vendored",
            Self::LockFile => "lock_file",
            Self::Minified => "minified",
            Self::Binary => "binary",
            Self::Oversized => "oversized",
            Self::Submodule => "submodule",
            Self::Symlink => "symlink",
            Self::NoContentChange => "no_content_change",
            Self::Deleted => "deleted",
            Self::Ignored => "ignored",
            Self::UnsupportedLanguage => "unsupported_language",
            Self::Secret => "secret",
            Self::TooComplex => "too_complex",
            Self::Unreadable => "unreadable",
            Self::NotReached => "not_reached",
            Self::TurnLimit => "turn_limit",
            Self::Budget => "budget",
            Self::BrokenAnswer => "broken_answer",
            Self::Window => "window",
        }
    }

    /// Returns true if the file should have been reviewed and was not, whatever the change did to it.
    pub fn is_gap(self) -> bool {
        self == Self::Unreadable || self.is_early_end()
    }

    /// Returns true if the run ended before the reviewer had seen the file, so that a new run can go on with it.
    pub fn is_early_end(self) -> bool {
        matches!(self, Self::NotReached | Self::TurnLimit | Self::Budget | Self::BrokenAnswer | Self::Window)
    }
}

impl FromStr for OmissionReason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.word() == text)
            .ok_or_else(|| format!("{text:?} is none of {}", Self::WORDS.join(", ")))
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
            OmissionReason::TurnLimit => "turn limit",
            OmissionReason::Budget => "budget reached",
            OmissionReason::BrokenAnswer => "answers broke off",
            OmissionReason::Window => "too large for the window",
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
    /// True if the change itself puts the file out of sight: the base of the change would have reviewed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Inode of a file of the worktree that is too large for the snapshot; `None` for other files. A file that is moved in with its
    /// folder keeps all its times, so only the inode says that it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
}

impl OmittedFile {
    /// Describes why files were left out, in the order of the files: `2 lock file, binary`.
    pub fn describe_reasons(files: &[Self]) -> String {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for file in files {
            let reason = file.reason.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, number)) => *number += 1,
                None => reasons.push((reason, 1)),
            }
        }
        let reasons = reasons.into_iter().map(|(reason, n)| if n > 1 { format!("{n} {reason}") } else { reason });
        reasons.collect::<Vec<String>>().join(", ")
    }

    /// Creates an omission that the base of the change makes too.
    pub fn new(path: impl Into<String>, reason: OmissionReason) -> Self {
        Self { path: path.into(), reason, hidden: false, inode: None }
    }

    /// Returns true if the file should have been reviewed and was not.
    pub fn is_gap(&self) -> bool {
        self.hidden || self.reason.is_gap()
    }
}

/// Part of a change that should have been reviewed and was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageGap {
    /// Cause of the gap.
    pub reason: OmissionReason,
    /// Number of files that were not reviewed, or only in part.
    pub files: u32,
    /// Number of hunks that were not reviewed; 0 if the hunks of these files are not known.
    pub hunks: u32,
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
    #[serde(skip_serializing_if = "is_default")]
    pub hunks_left_out: u32,
    /// Number of added lines shown to the reviewer.
    pub lines_covered: u32,
    /// True if there are gaps. Records of older versions do not have it, see [`Coverage::is_incomplete`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Parts that should have been reviewed and were not, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<CoverageGap>,
    /// Shown hunks by file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileCoverage>,
    /// Files in scope that were not reviewed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedFile>,
    /// Hunks carried over from earlier runs, by file and run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedFile>,
    /// Paths of files of which hunks were reviewed, and others should have been and were not. Empty in records of older versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

impl Coverage {
    /// Removes a planned file with `hunks` hunks from the files to review.
    pub fn omit_file(&mut self, file: OmittedFile, hunks: u32) {
        if !file.is_gap() {
            self.hunks_total = self.hunks_total.saturating_sub(hunks);
            self.hunks_left_out = self.hunks_left_out.saturating_add(hunks);
        }
        self.left_out.push(file);
    }

    /// Returns the number of files that were to be reviewed, including files with a gap.
    pub fn reviewable_file_count(&self) -> u32 {
        let out = self.left_out.iter().filter(|file| !file.is_gap()).count();
        self.files_total.saturating_sub(u32::try_from(out).unwrap_or(u32::MAX))
    }

    /// Returns the paths of files that should have been reviewed and could not be read.
    pub fn unreadable_paths(&self) -> impl Iterator<Item = &str> {
        let unreadable = self.left_out.iter().filter(|file| file.reason == OmissionReason::Unreadable);
        unreadable.map(|file| file.path.as_str())
    }

    /// Computes the gaps from the lists. `planned` yields each file to review with its number of hunks; `early_end` is
    /// the reason of hunks that were not reviewed in files that the lists do not call left out.
    pub fn set_gaps<'a>(&mut self, planned: impl IntoIterator<Item = (&'a str, usize)>, early_end: OmissionReason) {
        let mut reviewed: HashMap<&str, usize> = HashMap::new();
        for file in self.reviewed_files() {
            *reviewed.entry(&file.path).or_default() += file.hunks.len();
        }
        let left_out: HashMap<&str, &OmittedFile> =
            self.left_out.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut gaps: BTreeMap<OmissionReason, (u32, u32)> = BTreeMap::new();
        let mut add = |reason, hunks: usize| {
            let gap = gaps.entry(reason).or_default();
            *gap = (gap.0.saturating_add(1), gap.1.saturating_add(u32::try_from(hunks).unwrap_or(u32::MAX)));
        };
        let (mut is_planned, mut partial) = (HashSet::new(), Vec::new());
        for (path, hunks) in planned {
            is_planned.insert(path);
            let seen = reviewed.get(path).copied().unwrap_or(0);
            let missing = hunks.saturating_sub(seen);
            if seen > 0 && missing > 0 {
                partial.push(path.to_owned());
            }
            match left_out.get(path) {
                Some(file) if file.is_gap() => add(file.reason, missing),
                None if missing > 0 => add(early_end, missing),
                _ => {}
            }
        }
        for file in self.left_out.iter().filter(|file| file.is_gap() && !is_planned.contains(file.path.as_str())) {
            add(file.reason, 0);
        }
        self.gaps = gaps.into_iter().map(|(reason, (files, hunks))| CoverageGap { reason, files, hunks }).collect();
        self.incomplete = !self.gaps.is_empty();
        self.partial = partial;
    }

    /// Returns the paths of the files that were reviewed in part only. Where no list says it (an older version, a worker that is
    /// gone), these are all reviewed files if hunks are missing that no other file can have: what was not reviewed is never clean.
    pub fn partial_files(&self) -> HashSet<&str> {
        if !self.partial.is_empty() {
            return self.partial.iter().map(String::as_str).collect();
        }
        let left_out = u32::try_from(self.left_out.len()).unwrap_or(u32::MAX);
        let named = self.files_covered.saturating_add(self.files_carried).saturating_add(left_out);
        let may_miss_elsewhere = self.files_total > named || self.left_out.iter().any(OmittedFile::is_gap);
        let files = self.reviewed_files().map(|file| file.path.as_str());
        files.filter(|_| self.missing_hunks() > 0 && !may_miss_elsewhere).collect()
    }

    /// Turns left-out files into gaps, because not even their text was searched.
    pub fn hide_files(&mut self, paths: &HashSet<String>) {
        for file in self.left_out.iter_mut().filter(|file| paths.contains(&file.path) && !file.is_gap()) {
            file.hidden = true;
            self.incomplete = true;
            match self.gaps.iter_mut().find(|gap| gap.reason == file.reason) {
                Some(gap) => gap.files = gap.files.saturating_add(1),
                None => self.gaps.push(CoverageGap { reason: file.reason, files: 1, hunks: 0 }),
            }
        }
        self.gaps.sort_by_key(|gap| gap.reason);
    }

    /// Returns true if something should have been reviewed and was not. Records of older versions tell it by their
    /// counts.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
            || !self.gaps.is_empty()
            || self.missing_hunks() > 0
            || self.left_out.iter().any(OmittedFile::is_gap)
    }

    /// Returns true if no changed file was reviewed, now or by an earlier run whose hunks were carried over.
    pub fn has_reviewed_nothing(&self) -> bool {
        self.files_total > 0
            && (self.files_covered, self.files_carried) == (0, 0)
            && (self.hunks_covered, self.hunks_carried) == (0, 0)
    }

    /// Returns the number of hunks that were to be reviewed and were not.
    pub fn missing_hunks(&self) -> u32 {
        self.hunks_total.saturating_sub(self.hunks_covered.saturating_add(self.hunks_carried))
    }

    /// Returns the gaps whose reason is not in `allowed`. A record of an older version has one gap at most: its missing
    /// hunks are not reached.
    pub fn gaps_besides(&self, allowed: &[OmissionReason]) -> Vec<CoverageGap> {
        let old = CoverageGap {
            reason: OmissionReason::NotReached,
            files: self.files_total.saturating_sub(self.files_covered.saturating_add(self.files_carried)),
            hunks: self.missing_hunks(),
        };
        let old = (self.gaps.is_empty() && self.is_incomplete()).then_some(old);
        self.gaps.iter().copied().chain(old).filter(|gap| !allowed.contains(&gap.reason)).collect()
    }

    /// Returns true if hunks were not reviewed only because the run ended early, so that a new run can go on.
    pub fn has_early_end(&self) -> bool {
        self.gaps_besides(&[]).iter().any(|gap| gap.reason.is_early_end())
    }

    /// Returns the number of files that the change itself puts out of sight.
    pub fn hidden_file_count(&self) -> u32 {
        let hidden = self.gaps.iter().filter(|gap| !gap.reason.is_gap());
        hidden.fold(0, |sum, gap| sum.saturating_add(gap.files))
    }

    /// Describes the gaps: `139 of 1,168 hunks reviewed (turn limit)`, or `1 file not reviewed: src/pay.py (binary)`.
    /// Returns `None` without gaps.
    pub fn describe_gaps(&self) -> Option<String> {
        let gaps = self.gaps_besides(&[]);
        let (cut, kept): (Vec<&CoverageGap>, Vec<&CoverageGap>) =
            gaps.iter().partition(|gap| gap.reason.is_early_end());
        let mut parts = Vec::new();
        if !cut.is_empty() {
            let reviewed = self.hunks_covered.saturating_add(self.hunks_carried);
            let noun = if self.hunks_total == 1 { "hunk" } else { "hunks" };
            let reasons: Vec<String> = cut.iter().map(|gap| gap.reason.to_string()).collect();
            let (reviewed, total) = (group_digits(reviewed), group_digits(self.hunks_total));
            parts.push(format!("{reviewed} of {total} {noun} reviewed ({})", reasons.join(", ")));
        }
        let files = kept.iter().fold(0_u32, |sum, gap| sum.saturating_add(gap.files));
        if files > 0 {
            let named = self.left_out.iter().filter(|file| file.is_gap() && !file.reason.is_early_end());
            let named: Vec<String> = named
                .take(MAX_NAMED_FILES)
                .map(|file| format!("{} ({})", super::text::sanitize_line(&file.path), file.reason))
                .collect();
            let more = (files as usize).saturating_sub(named.len());
            let listed = match (named.is_empty(), more) {
                (true, _) => kept.iter().map(|gap| gap.reason.to_string()).collect::<Vec<_>>().join(", "),
                (false, 0) => named.join(", "),
                (false, more) => format!("{} and {more} more", named.join(", ")),
            };
            parts.push(format!("{} not reviewed: {listed}", format_count(files as usize, "file")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the counts without the lists, as stored in a run record.
    pub fn without_lists(&self) -> Self {
        let (files, left_out, carried, partial) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { files, left_out, carried, partial, ..self.clone() }
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

/// Formats a number with commas between groups of three digits.
fn group_digits(n: u32) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, hunks: usize) -> FileCoverage {
        let hunks = (1..=hunks as u32).map(|line| LineRange::new(line * 10, line * 10)).collect();
        FileCoverage { path: path.into(), hunks, keys: Vec::new() }
    }

    #[test]
    fn gaps_are_what_should_have_been_reviewed() {
        let mut coverage = Coverage {
            files_total: 5,
            hunks_total: 9,
            hunks_covered: 4,
            files: vec![file("a", 2), file("b", 2)],
            left_out: vec![
                OmittedFile::new("Cargo.lock", OmissionReason::LockFile),
                OmittedFile::new("c", OmissionReason::TurnLimit),
                OmittedFile { hidden: true, ..OmittedFile::new("d", OmissionReason::Binary) },
            ],
            ..Coverage::default()
        };
        coverage.set_gaps([("a", 2), ("b", 5), ("c", 2)], OmissionReason::TurnLimit);
        let gap = |reason, files, hunks| CoverageGap { reason, files, hunks };
        assert_eq!(coverage.gaps, [gap(OmissionReason::Binary, 1, 0), gap(OmissionReason::TurnLimit, 2, 5)]);
        let said = "4 of 9 hunks reviewed (turn limit); 1 file not reviewed: d (binary)";
        assert_eq!(coverage.describe_gaps().as_deref(), Some(said));
        assert_eq!((coverage.has_early_end(), coverage.hidden_file_count()), (true, 1));
        assert_eq!(coverage.gaps_besides(&[OmissionReason::TurnLimit]), [gap(OmissionReason::Binary, 1, 0)]);
        let record = coverage.without_lists();
        let said = "4 of 9 hunks reviewed (turn limit); 1 file not reviewed: binary";
        assert_eq!(record.describe_gaps().as_deref(), Some(said), "a record has no lists");
    }

    #[test]
    fn a_file_of_which_hunks_are_missing_is_reviewed_in_part() {
        let planned = [("a", 2), ("b", 5), ("c", 2)];
        let (whole, part) = (vec![file("a", 2), file("b", 5)], vec![file("a", 2), file("b", 2)]);
        let gap = vec![OmittedFile::new("c", OmissionReason::Unreadable)];
        // Files, left-out files, whether the planned files are known, and the files that are partial.
        for (title, files, left_out, is_known, expected) in [
            ("two files as a whole", whole.clone(), vec![], true, vec![]),
            ("a part of b", part.clone(), vec![], true, vec!["b"]),
            ("c may lack all that is missing", part.clone(), vec![], false, vec![]),
            ("c was left out", part.clone(), gap, false, vec![]),
            ("nobody knows which", vec![file("a", 2), file("b", 2), file("c", 2)], vec![], false, vec!["a", "b", "c"]),
            ("all of three", vec![file("a", 2), file("b", 5), file("c", 2)], vec![], false, vec![]),
        ] {
            let mut coverage = Coverage { files_total: 3, hunks_total: 9, files, left_out, ..Coverage::default() };
            coverage.files_covered = u32::try_from(coverage.files.len()).expect("few");
            coverage.hunks_covered =
                coverage.files.iter().map(|file| u32::try_from(file.hunks.len()).expect("few")).sum();
            if is_known {
                coverage.set_gaps(planned, OmissionReason::TurnLimit);
            }
            let mut found: Vec<&str> = coverage.partial_files().into_iter().collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{title}");
            assert!(coverage.without_lists().partial.is_empty(), "{title}");
        }
    }

    #[test]
    fn a_record_of_an_older_version_tells_its_gaps_by_its_counts() {
        let old: Coverage = serde_json::from_value(serde_json::json!({
            "files_total": 40, "files_covered": 3, "hunks_total": 1168, "hunks_covered": 138, "hunks_carried": 1,
        }))
        .expect("a coverage");
        assert_eq!(old.describe_gaps().as_deref(), Some("139 of 1,168 hunks reviewed (not reached)"));
        assert!(old.is_incomplete() && old.has_early_end());
        let whole = Coverage { hunks_covered: 1_167, ..old };
        assert!(!whole.is_incomplete() && whole.describe_gaps().is_none());
        let written = serde_json::to_value(&whole).expect("JSON");
        assert!(written.get("incomplete").is_none() && written.get("gaps").is_none(), "{written}");
    }

    #[test]
    fn every_reason_has_one_word() {
        for reason in OmissionReason::ALL {
            assert_eq!(serde_json::to_value(reason).expect("JSON"), reason.word());
            assert_eq!(reason.word().parse(), Ok(reason));
        }
    }

    #[test]
    fn a_file_that_not_even_was_searched_becomes_a_gap() {
        let mut coverage = Coverage {
            left_out: vec![
                OmittedFile::new("a.json", OmissionReason::Oversized),
                OmittedFile::new("b.json", OmissionReason::Oversized),
            ],
            ..Coverage::default()
        };
        coverage.hide_files(&HashSet::from(["a.json".to_owned()]));
        assert_eq!(coverage.gaps, [CoverageGap { reason: OmissionReason::Oversized, files: 1, hunks: 0 }]);
        assert!(coverage.incomplete && coverage.left_out[0].hidden && !coverage.left_out[1].hidden);
    }
}
