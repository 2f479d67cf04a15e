//! What is said of places besides their text: when their lines changed last, and what tests reach of them.
//!
//! Invariants: it is found out once for a toolbox, so that the same call gets the same answer; of the history only what is
//! kept is looked at, and where nothing is, nothing is said.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::PathBuf;

use super::files::VisibleFiles;
use crate::context::annotations::{LastChangeLookup, describe_coverage, describe_last_change};
use crate::context::builder::MAX_HISTORY_COMMITS;
use crate::context::history_cache::RepoHistory;
use crate::context::query_input::history_tip;
use crate::context::test_coverage::{CoverageReports, TestCoverage};
use crate::domain::LineRange;
use crate::git::{Repo, TreeFile};

/// Hunks of the past that are looked at for one call: a tenth of a second's work.
const MAX_HUNKS: usize = 20_000_000;

/// Where it is found out.
pub struct LineMetadata {
    /// The commit whose history is told.
    tip: String,
    folder: Option<PathBuf>,
    past: OnceCell<Option<(RepoHistory, Vec<usize>)>>,
    /// With all code of the tree, where there are any.
    reports: OnceCell<(CoverageReports, Vec<TreeFile>)>,
}

impl LineMetadata {
    /// Of a snapshot. Facts about the repository are kept in `folder`.
    pub fn new(base: &str, snapshot: &str, folder: Option<PathBuf>) -> Self {
        let tip = history_tip(base, snapshot).to_owned();
        Self { tip, folder, past: OnceCell::new(), reports: OnceCell::new() }
    }

    /// What can be said of some files.
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

/// What can be said of places in some files.
pub struct LineRemarks<'a> {
    files: &'a VisibleFiles,
    changes: Option<LastChangeLookup<'a>>,
    covered: Option<TestCoverage>,
}

impl LineRemarks<'_> {
    /// What there is to say of some lines. Those of a changed file are not those of a commit.
    pub fn describe_lines(&mut self, path: &str, lines: LineRange) -> Vec<String> {
        let changes = self.changes.as_mut().filter(|_| !self.files.is_changed(path));
        let change = changes.and_then(|changes| changes.find_for_lines(path, lines));
        let share = self.covered.as_ref().and_then(|covered| covered.line_coverage(path, lines));
        change.as_ref().map(describe_last_change).into_iter().chain(share.map(describe_coverage)).collect()
    }
}
