//! Finds notes about lines: when the lines changed last, and how much of them tests cover.
//!
//! - The data is loaded once per toolbox, so that the same call gets the same answer.
//! - Only cached history is used. Without cached history there is no note about changes.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::PathBuf;

use super::files::VisibleFiles;
use crate::context::annotations::{LastChangeLookup, describe_coverage, describe_last_change};
use crate::context::builder::MAX_HISTORY_COMMITS;
use crate::context::query_input::history_tip;
use crate::context::test_coverage::{CoverageReports, TestCoverage};
use crate::domain::LineRange;
use crate::git::{Repo, TreeFile};
use crate::index::history_cache::RepoHistory;

/// Most past hunks that are examined per call; takes about a tenth of a second.
const MAX_HUNKS: usize = 20_000_000;

/// Sources of the notes, loaded on first use.
pub struct LineMetadata {
    /// Commit whose history is used.
    tip: String,
    folder: Option<PathBuf>,
    past: OnceCell<Option<(RepoHistory, Vec<usize>)>>,
    /// Coverage reports with the code files of the tree; the list is empty without reports.
    reports: OnceCell<(CoverageReports, Vec<TreeFile>)>,
}

impl LineMetadata {
    /// Creates the sources for a snapshot. `folder` is the cache folder of the repository.
    pub fn new(base: &str, snapshot: &str, folder: Option<PathBuf>) -> Self {
        let tip = history_tip(base, snapshot).to_owned();
        Self { tip, folder, past: OnceCell::new(), reports: OnceCell::new() }
    }

    /// Collects the notes for some files.
    pub fn find_remarks<'a>(
        &'a self,
        repo: &'a Repo,
        files: &'a VisibleFiles,
        paths: &HashSet<&str>,
        cancelled: &dyn Fn() -> bool,
    ) -> LineRemarks<'a> {
        let past = self.past.get_or_init(|| {
            let known = RepoHistory::read_cached(repo, &self.tip, MAX_HISTORY_COMMITS, self.folder.as_deref()?)?;
            let before = known.ancestors(&self.tip);
            Some((known, before))
        });
        let changes = past.as_ref().map(|(known, before)| {
            LastChangeLookup::new(repo, (known, before.as_slice()), paths.iter().copied(), MAX_HUNKS)
        });
        let (reports, code) = self.reports.get_or_init(|| {
            let reports = CoverageReports::find(repo, files.entries(), self.folder.as_deref());
            let code = if reports.is_empty() { Vec::new() } else { files.code_files() };
            (reports, code)
        });
        LineRemarks { files, changes, covered: reports.find_coverage(repo, code, paths, cancelled) }
    }
}

/// Notes about lines of some files.
pub struct LineRemarks<'a> {
    files: &'a VisibleFiles,
    changes: Option<LastChangeLookup<'a>>,
    covered: Option<TestCoverage>,
}

impl LineRemarks<'_> {
    /// Returns the notes about `lines`. A changed file gets no note about its last change, because its lines differ
    /// from the commit's lines.
    pub fn describe_lines(&mut self, path: &str, lines: LineRange) -> Vec<String> {
        let changes = self.changes.as_mut().filter(|_| !self.files.is_changed(path));
        let change = changes.and_then(|changes| changes.find_for_lines(path, lines));
        let share = self.covered.as_ref().and_then(|covered| covered.line_coverage(path, lines));
        change.as_ref().map(describe_last_change).into_iter().chain(share.map(describe_coverage)).collect()
    }
}
