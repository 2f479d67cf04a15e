//! What a run has to review, cut into units, and what a reviewer answers about one of them.

use std::collections::{HashMap, HashSet};

use crate::domain::{CarriedFile, FileCoverage, Finding, LineRange, OmittedFile};

/// A changed file to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: String,
    /// Changed lines on the new side.
    pub hunks: Vec<LineRange>,
    /// What each hunk is recognised by in a later run; empty when that is not known.
    pub keys: Vec<String>,
    /// Lines that the change adds.
    pub added_lines: u32,
}

impl PlannedFile {
    pub fn coverage(&self) -> FileCoverage {
        FileCoverage { path: self.path.clone(), hunks: self.hunks.clone(), keys: self.keys.clone() }
    }

    /// The hunks that `wanted` says yes to, with their keys.
    pub fn partial_coverage(&self, wanted: impl Fn(LineRange) -> bool) -> FileCoverage {
        let mut part = FileCoverage { path: self.path.clone(), hunks: Vec::new(), keys: Vec::new() };
        for (index, hunk) in self.hunks.iter().enumerate().filter(|(_, hunk)| wanted(**hunk)) {
            part.hunks.push(*hunk);
            part.keys.extend(self.keys.get(index).cloned());
        }
        part
    }
}

/// The files of a run in the order in which they are reviewed. Paths are distinct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewPlan {
    pub files: Vec<PlannedFile>,
    pub left_out: Vec<OmittedFile>,
    /// Files in a unit; at least 1.
    pub unit_files: usize,
    /// Whether a last unit looks at all files together, the carried ones included.
    pub has_whole_unit: bool,
    /// Hunks of `files` that are not sent: an earlier run has reviewed them as they are.
    pub carried: Vec<CarriedFile>,
}

/// What the reviewer is asked to look at in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewUnit {
    /// Counts from 0 in the order of the calls.
    pub index: usize,
    pub kind: ReviewUnitKind,
    /// Indices into [`Plan::files`], those that are done already left out.
    pub files: Vec<usize>,
}

/// The sort of a [`Unit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewUnitKind {
    /// Each file by itself.
    Files,
    /// What can only be seen across files. It covers no file.
    Whole,
}

/// A file that the reviewer has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFileRead {
    pub path: String,
    /// Lines in the file; findings have to lie within them.
    pub lines: u32,
}

/// The reviewer's answer about a unit. Findings have their run ids and their time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitReport {
    pub findings: Vec<Finding>,
    pub read: Vec<UnitFileRead>,
    /// Files of the unit that could not be reviewed after all.
    pub left_out: Vec<OmittedFile>,
    /// Lines for a person.
    pub notes: Vec<String>,
}

impl ReviewPlan {
    /// The files with the hunks that are to be sent; files without any are left away.
    pub fn open_files(&self) -> Vec<PlannedFile> {
        let mut carried: HashMap<&str, HashSet<LineRange>> = HashMap::new();
        for CarriedFile { file, .. } in &self.carried {
            carried.entry(&file.path).or_default().extend(&file.hunks);
        }
        let open = self.files.iter().filter_map(|file| {
            let Some(carried) = carried.get(file.path.as_str()) else { return Some(file.clone()) };
            let FileCoverage { hunks, keys, .. } = file.partial_coverage(|hunk| !carried.contains(&hunk));
            (!hunks.is_empty()).then(|| PlannedFile { hunks, keys, ..file.clone() })
        });
        open.collect()
    }

    /// The units that `done` leaves to do.
    pub(super) fn units(&self, done: impl Fn(usize) -> bool) -> Vec<ReviewUnit> {
        let open: Vec<usize> = (0..self.files.len()).filter(|&file| !done(file)).collect();
        let mut units: Vec<ReviewUnit> = open
            .chunks(self.unit_files.max(1))
            .enumerate()
            .map(|(index, files)| ReviewUnit { index, kind: ReviewUnitKind::Files, files: files.to_vec() })
            .collect();
        if self.has_whole_unit && !self.files.is_empty() {
            let all = (0..self.files.len()).collect();
            units.push(ReviewUnit { index: units.len(), kind: ReviewUnitKind::Whole, files: all });
        }
        units
    }
}
