//! Finds the findings of other runs that stand in a snapshot: those of other reviewers, of imports and of the user.

use std::collections::{HashMap, HashSet};

use super::PageLoader;
use crate::domain::Finding;
use crate::runner::{LocatedFinding, OWN_REVIEWER, locate_findings};
use crate::store::{FindingRow, StoreView};

/// Most comments of the user that are located in a snapshot. Each is a run, whose result is read.
const MAX_COMMENTS: usize = 200;
/// Most runs of other reviewers whose findings are located in a snapshot, the newest ones. With all of 10,000 runs, the
/// cockpit takes 266 MB instead of 60.
const MAX_RUNS: usize = 40;
/// Snapshots whose findings are kept: those of the diff, of the list of files and of what was shown before.
const MAX_KEPT: usize = 4;

/// Findings that were located in a snapshot, by id and the run that reported them last; `None` for one whose code is not
/// there. They are kept, because a page is read again with each decision.
#[derive(Debug, Default)]
pub struct StandingFindings {
    commit: String,
    located: HashMap<(String, String), Option<Finding>>,
}

impl StandingFindings {
    /// Keeps what was found of the findings `wanted`.
    fn keep(&mut self, wanted: &[usize], found: Vec<LocatedFinding>, key: impl Fn(usize) -> (String, String)) {
        let mut by_id: HashMap<String, Finding> = HashMap::new();
        for located in found {
            if let LocatedFinding::Stands(finding) = located {
                by_id.insert(finding.finding_id.to_string(), *finding);
            }
        }
        for key in wanted.iter().map(|index| key(*index)) {
            let finding = by_id.remove(&key.0);
            self.located.insert(key, finding);
        }
    }
}

impl PageLoader {
    /// Returns the findings on `paths` that runs other than `run` reported and whose code is in the snapshot `commit` of `run`,
    /// with their lines there. Decided ones are among them only if a reviewer reported them in this very snapshot.
    pub(in crate::tui) fn find_standing_findings<'p>(
        &mut self,
        view: &StoreView,
        (run, commit): (&str, &str),
        paths: impl IntoIterator<Item = &'p str>,
        is_wanted: impl Fn(&FindingRow<'_>) -> bool,
    ) -> Vec<Finding> {
        let Some(repo) = self.repo.as_ref().filter(|_| !commit.is_empty()) else { return Vec::new() };
        match self.standing.iter().position(|known| known.commit == commit) {
            Some(at) => self.standing[..=at].rotate_right(1),
            None => {
                self.standing.truncate(MAX_KEPT - 1);
                let located = HashMap::new();
                self.standing.insert(0, StandingFindings { commit: commit.to_owned(), located });
            }
        }
        let Some(standing) = self.standing.first_mut() else { return Vec::new() };
        let chosen = choose_findings(view, commit, paths, |row| row.last_run != run && is_wanted(row));
        let key = |index: usize| {
            let row = view.finding(index);
            (row.id.to_owned(), row.last_run.to_owned())
        };
        let unknown: Vec<usize> =
            chosen.iter().copied().filter(|index| !standing.located.contains_key(&key(*index))).collect();
        // An output that cannot be read hides the findings of its run only.
        let mut by_run: HashMap<&str, Vec<usize>> = HashMap::new();
        match locate_findings(repo, &self.store, view, &unknown, commit) {
            Ok(found) => standing.keep(&unknown, found, key),
            Err(_) => {
                unknown.iter().for_each(|index| by_run.entry(view.finding(*index).last_run).or_default().push(*index))
            }
        }
        for (run, unknown) in by_run {
            match locate_findings(repo, &self.store, view, &unknown, commit) {
                Ok(found) => standing.keep(&unknown, found, key),
                Err(error) => tracing::warn!(run, %error, "findings are not located"),
            }
        }
        chosen
            .into_iter()
            .filter_map(|index| {
                let mut finding = standing.located.get(&key(index))?.clone()?;
                finding.status = view.finding(index).status;
                view.rate_finding(&mut finding);
                Some(finding)
            })
            .collect()
    }
}

/// Returns the findings on `paths` that may stand in the snapshot `commit`: undecided ones, and those that a reviewer reported
/// in this very snapshot. What the user has written comes first; then the newest runs, as the view is sorted.
fn choose_findings<'p>(
    view: &StoreView,
    commit: &str,
    paths: impl IntoIterator<Item = &'p str>,
    is_wanted: impl Fn(&FindingRow<'_>) -> bool,
) -> Vec<usize> {
    // Most findings of a large store are passed over, so that of each run is read once what its findings need.
    let mut runs: HashMap<usize, (bool, bool)> = HashMap::new();
    let (mut comments, mut others) = (ChosenFindings::default(), ChosenFindings::default());
    for index in view.findings_on(paths) {
        let run = view.last_reporting_run(index);
        let (is_comment, is_here) = run.map_or((false, false), |at| {
            *runs.entry(at).or_insert_with(|| {
                let row = view.run(at);
                (row.reviewer == OWN_REVIEWER, row.snapshot_commit == commit)
            })
        });
        // A comment that its author has withdrawn is gone.
        if !view.finding_status(index).is_undecided() && (is_comment || !is_here) {
            continue;
        }
        let (chosen, most) = if is_comment { (&mut comments, MAX_COMMENTS) } else { (&mut others, MAX_RUNS) };
        if (chosen.runs.len() < most || chosen.runs.contains(&run)) && is_wanted(&view.finding(index)) {
            chosen.runs.insert(run);
            chosen.findings.push(index);
        }
    }
    [comments.findings, others.findings].concat()
}

/// Findings of runs whose number is limited.
#[derive(Default)]
struct ChosenFindings {
    runs: HashSet<Option<usize>>,
    findings: Vec<usize>,
}
