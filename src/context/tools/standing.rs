//! What is said of places besides their text: when their lines changed last, and what tests reach of them.
//!
//! Invariants: it is found out once for a toolbox, so that the same call gets the same answer; of the history only what is
//! kept is looked at, and where nothing is, nothing is said.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::PathBuf;

use super::files::Files;
use crate::context::covered::{Covered, Reports};
use crate::context::given::history;
use crate::context::past::Known;
use crate::context::remarks::{LastChanges, changed_in_words, reached_in_words};
use crate::context::surroundings::HISTORY;
use crate::domain::LineRange;
use crate::git::{Repo, TreeFile};

/// Hunks of the past that are looked at for one call: a tenth of a second's work.
const MOST_HUNKS: usize = 20_000_000;

/// Where it is found out.
pub struct Standing {
    /// The commit whose history is told.
    tip: String,
    folder: Option<PathBuf>,
    past: OnceCell<Option<(Known, Vec<usize>)>>,
    /// With all code of the tree, where there are any.
    reports: OnceCell<(Reports, Vec<TreeFile>)>,
}

impl Standing {
    /// Of a snapshot. Facts about the repository are kept in `folder`.
    pub fn new(base: &str, snapshot: &str, folder: Option<PathBuf>) -> Self {
        let tip = history(base, snapshot).to_owned();
        Self { tip, folder, past: OnceCell::new(), reports: OnceCell::new() }
    }

    /// What can be said of some files.
    pub fn of<'a>(
        &'a self,
        repo: &'a Repo,
        files: &'a Files,
        paths: &HashSet<&str>,
        cancelled: &dyn Fn() -> bool,
    ) -> Remarks<'a> {
        let past = self.past.get_or_init(|| {
            let known = Known::kept(repo, &self.tip, HISTORY, self.folder.as_deref()?)?;
            let before = known.before(&self.tip);
            Some((known, before))
        });
        let changes = past.as_ref().map(|(known, before)| {
            LastChanges::of(repo, (known, before.as_slice()), paths.iter().copied(), MOST_HUNKS)
        });
        let (reports, code) = self.reports.get_or_init(|| {
            let reports = Reports::find(repo, files.entries(), self.folder.as_deref());
            let code = if reports.is_empty() { Vec::new() } else { files.code() };
            (reports, code)
        });
        Remarks { files, changes, covered: reports.of(repo, code, paths, cancelled) }
    }
}

/// What can be said of places in some files.
pub struct Remarks<'a> {
    files: &'a Files,
    changes: Option<LastChanges<'a>>,
    covered: Option<Covered>,
}

impl Remarks<'_> {
    /// What there is to say of some lines. Those of a changed file are not those of a commit.
    pub fn of_lines(&mut self, path: &str, lines: LineRange) -> Vec<String> {
        let changes = self.changes.as_mut().filter(|_| !self.files.is_changed(path));
        let change = changes.and_then(|changes| changes.of_lines(path, lines));
        let share = self.covered.as_ref().and_then(|covered| covered.share(path, lines));
        change.as_ref().map(changed_in_words).into_iter().chain(share.map(reached_in_words)).collect()
    }
}
