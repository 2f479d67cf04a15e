//! Locates findings of the store in a commit, for those who show them beside its code.

use std::collections::HashMap;

use super::finding_lifecycle::SnapshotFiles;
use crate::domain::{Finding, FindingId, LineRange, RunId};
use crate::git::Repo;
use crate::policy::anchor::AnchorLocation;
use crate::store::{Store, StoreError, StoreView};

/// State of earlier code in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeState {
    /// It is there, at the same or another place.
    Unchanged,
    /// Other code has replaced it, or a part of it.
    Changed,
    /// It is not there.
    Gone,
}

/// Compares lines of earlier commits with a commit. Reads each earlier commit once.
pub(crate) struct CodeComparison<'a> {
    repo: &'a Repo,
    commit: &'a str,
    earlier: HashMap<String, Option<SnapshotFiles<'a>>>,
}

impl<'a> CodeComparison<'a> {
    /// Creates a comparison with `commit`, a whole id. Reads nothing yet.
    pub fn new(repo: &'a Repo, commit: &'a str) -> Self {
        Self { repo, commit, earlier: HashMap::new() }
    }

    /// Returns the state of lines of a file of an earlier commit. `None` if the commit is not in the repository or the
    /// answer is uncertain.
    pub fn compare(&mut self, earlier: &str, path: &str, lines: LineRange) -> Option<CodeState> {
        if !is_commit_id(earlier) {
            return None;
        }
        if !self.earlier.contains_key(earlier) {
            let files = SnapshotFiles::new(self.repo, earlier, self.commit).ok();
            self.earlier.insert(earlier.to_owned(), files);
        }
        let files = self.earlier.get_mut(earlier)?.as_mut()?;
        Some(match files.locate_lines(earlier, path, lines)? {
            AnchorLocation::Unchanged { .. } => CodeState::Unchanged,
            AnchorLocation::Changed { .. } => CodeState::Changed,
            AnchorLocation::Deleted { .. } | AnchorLocation::FileGone => CodeState::Gone,
        })
    }
}

/// Returns `true` for a whole id of a commit. Other text that names a commit, such as `HEAD~3`, is refused where it comes
/// from elsewhere.
pub(crate) fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Finding in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LocatedFinding {
    /// Its code is in the commit, unchanged. Path and lines are those of the commit.
    Stands(Box<Finding>),
    /// Its code has changed since the review.
    Changed(FindingId),
    /// Its code is not in the commit.
    Gone(FindingId),
    /// The code that was reviewed cannot be read.
    Unknown(FindingId),
}

/// Locates the chosen rows of a view in a commit, in the same order. A replacement is kept only if the lines that it
/// replaces are unchanged.
///
/// # Errors
///
/// If a record, an output or a journal of a run cannot be read.
pub(crate) fn locate_findings(
    repo: &Repo,
    store: &Store,
    view: &StoreView,
    chosen: &[usize],
    commit: &str,
) -> Result<Vec<LocatedFinding>, StoreError> {
    let mut runs: HashMap<&str, HashMap<FindingId, Finding>> = HashMap::new();
    // Many runs may have one snapshot. Retention may have removed it.
    let mut snapshots: HashMap<&str, Option<ReviewedSnapshot<'_>>> = HashMap::new();
    let mut located = Vec::with_capacity(chosen.len());
    for &index in chosen {
        let row = view.finding(index);
        let (Ok(id), Ok(run_id)) = (row.id.parse::<FindingId>(), row.last_run.parse::<RunId>()) else { continue };
        let Some(run) = view.run_index(row.last_run).map(|at| view.run(at)) else {
            located.push(LocatedFinding::Unknown(id));
            continue;
        };
        let snapshot = snapshots.entry(run.snapshot_commit).or_insert_with(|| {
            let files = SnapshotFiles::new(repo, run.snapshot_commit, commit).ok()?;
            Some(ReviewedSnapshot { commit: run.snapshot_commit.to_owned(), files })
        });
        if !runs.contains_key(row.last_run) {
            let reported = store.reported_findings(&run_id)?;
            let reported = reported.into_iter().map(|finding| (finding.finding_id.clone(), finding)).collect();
            runs.insert(row.last_run, reported);
        }
        let reported = runs.get_mut(row.last_run).and_then(|reported| reported.remove(&id));
        located.push(match (reported, snapshot) {
            (Some(mut finding), Some(snapshot)) => {
                finding.status = row.status;
                view.rate_finding(&mut finding);
                snapshot.locate(finding)
            }
            _ => LocatedFinding::Unknown(id),
        });
    }
    Ok(located)
}

/// Snapshot of runs, compared with the commit.
struct ReviewedSnapshot<'a> {
    commit: String,
    files: SnapshotFiles<'a>,
}

impl ReviewedSnapshot<'_> {
    fn locate(&mut self, mut finding: Finding) -> LocatedFinding {
        let reported = finding.repo_relative_path.clone();
        let (path, lines) = match self.files.locate_lines(&self.commit, &reported, finding.lines()) {
            Some(AnchorLocation::Unchanged { path, lines }) => (path, lines),
            Some(AnchorLocation::Changed { .. }) => return LocatedFinding::Changed(finding.finding_id),
            Some(AnchorLocation::Deleted { .. } | AnchorLocation::FileGone) => {
                return LocatedFinding::Gone(finding.finding_id);
            }
            None => return LocatedFinding::Unknown(finding.finding_id),
        };
        let anchor = finding.lines();
        if let Some(suggestion) = finding.suggestion.as_mut() {
            let replaced = suggestion.lines.unwrap_or(anchor);
            let there = if replaced == anchor { Some(lines) } else { self.follow(&reported, replaced, &path) };
            match there {
                Some(there) => suggestion.lines = Some(there),
                None => (suggestion.replacement, suggestion.lines) = (None, None),
            }
        }
        finding.repo_relative_path = path;
        (finding.line_start, finding.line_end) = (lines.start, lines.end);
        LocatedFinding::Stands(Box::new(finding))
    }

    /// Returns where lines are in the file `there`; `None` if they have changed or are elsewhere.
    fn follow(&mut self, path: &str, lines: LineRange, there: &str) -> Option<LineRange> {
        match self.files.locate_lines(&self.commit, path, lines)? {
            AnchorLocation::Unchanged { path, lines } if path == there => Some(lines),
            _ => None,
        }
    }
}
