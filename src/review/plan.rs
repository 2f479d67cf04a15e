//! What a run has to review, cut into units, and what a reviewer answers about one of them.

use crate::domain::{FileCoverage, Finding, LeftOut, LineRange};

/// A changed file to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: String,
    /// Changed lines on the new side.
    pub hunks: Vec<LineRange>,
    /// Lines that the change adds.
    pub added_lines: u32,
}

impl PlannedFile {
    pub fn coverage(&self) -> FileCoverage {
        FileCoverage { path: self.path.clone(), hunks: self.hunks.clone() }
    }
}

/// The files of a run in the order in which they are reviewed. Paths are distinct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub files: Vec<PlannedFile>,
    pub left_out: Vec<LeftOut>,
    /// Files in a unit; at least 1.
    pub unit_files: usize,
    /// Whether a last unit looks at all files together.
    pub whole: bool,
}

/// What the reviewer is asked to look at in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Counts from 0 in the order of the calls.
    pub index: usize,
    pub kind: UnitKind,
    /// Indices into [`Plan::files`], those that are done already left out.
    pub files: Vec<usize>,
}

/// The sort of a [`Unit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// Each file by itself.
    Files,
    /// What can only be seen across files. It covers no file.
    Whole,
}

/// A file that the reviewer has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    pub path: String,
    /// Lines in the file; findings have to lie within them.
    pub lines: u32,
}

/// The reviewer's answer about a unit. Findings have their run ids and their time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub read: Vec<FileRead>,
    /// Files of the unit that could not be reviewed after all.
    pub left_out: Vec<LeftOut>,
    /// Lines for a person.
    pub notes: Vec<String>,
}

impl Plan {
    /// The units that `done` leaves to do.
    pub(super) fn units(&self, done: impl Fn(usize) -> bool) -> Vec<Unit> {
        let open: Vec<usize> = (0..self.files.len()).filter(|&file| !done(file)).collect();
        let mut units: Vec<Unit> = open
            .chunks(self.unit_files.max(1))
            .enumerate()
            .map(|(index, files)| Unit { index, kind: UnitKind::Files, files: files.to_vec() })
            .collect();
        if self.whole && !self.files.is_empty() {
            let all = (0..self.files.len()).collect();
            units.push(Unit { index: units.len(), kind: UnitKind::Whole, files: all });
        }
        units
    }
}
