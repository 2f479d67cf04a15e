//! The plan of a review and its units.

use std::collections::{HashMap, HashSet};

use crate::domain::{CarriedFile, FileCoverage, LineRange, OmittedFile, ReviewUnitKind};

/// A changed file to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Path on the new side, relative to the repository root.
    pub path: String,
    /// Changed lines on the new side.
    pub hunks: Vec<LineRange>,
    /// Keys that recognise each hunk in a later run; empty if unknown.
    pub keys: Vec<String>,
    /// Number of lines that the change adds.
    pub added_lines: u32,
}

impl PlannedFile {
    /// Returns all hunks of the file with their keys, as covered.
    pub fn coverage(&self) -> FileCoverage {
        FileCoverage { path: self.path.clone(), hunks: self.hunks.clone(), keys: self.keys.clone() }
    }

    /// Returns the hunks for which `wanted` returns `true`, with their keys.
    pub fn partial_coverage(&self, wanted: impl Fn(LineRange) -> bool) -> FileCoverage {
        let mut part = FileCoverage { path: self.path.clone(), hunks: Vec::new(), keys: Vec::new() };
        for (index, hunk) in self.hunks.iter().enumerate().filter(|(_, hunk)| wanted(**hunk)) {
            part.hunks.push(*hunk);
            part.keys.extend(self.keys.get(index).cloned());
        }
        part
    }
}

/// The files of a run in the order of the review. Paths are unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewPlan {
    /// Files to review, including files whose hunks are carried over.
    pub files: Vec<PlannedFile>,
    /// Files in scope that are not reviewed, with their reasons.
    pub left_out: Vec<OmittedFile>,
    /// Number of files in a unit; at least 1.
    pub unit_files: usize,
    /// `true` if a last unit reviews all files together, including carried files.
    pub has_whole_unit: bool,
    /// Hunks of `files` that are not sent, because an earlier run has reviewed them unchanged.
    pub carried: Vec<CarriedFile>,
}

/// The files that the reviewer reviews in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewUnit {
    /// Index in the order of the calls, 0-based.
    pub index: usize,
    pub kind: ReviewUnitKind,
    /// Indices into [`ReviewPlan::files`], without finished files.
    pub files: Vec<usize>,
}

impl ReviewPlan {
    /// Returns the files with the hunks to send, without files that have none.
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

    /// Returns the units for the files that are not `done`.
    pub(super) fn units(&self, done: impl Fn(usize) -> bool) -> Vec<ReviewUnit> {
        let open: Vec<usize> = (0..self.files.len()).filter(|&file| !done(file)).collect();
        let mut units: Vec<ReviewUnit> = open
            .chunks(self.unit_files.max(1))
            .enumerate()
            .map(|(index, files)| ReviewUnit { index, kind: ReviewUnitKind::EachFile, files: files.to_vec() })
            .collect();
        if self.has_whole_unit && !self.files.is_empty() {
            let all = (0..self.files.len()).collect();
            units.push(ReviewUnit { index: units.len(), kind: ReviewUnitKind::CrossFile, files: all });
        }
        units
    }
}
