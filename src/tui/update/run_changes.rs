//! Compares each run on the screen with the one before it on its branch, so that the list reads as a story: what is new, and
//! what has been fixed since.
//!
//! - Everything follows from the view of the store. A run is compared once for each view.
//! - Runs are compared if the same reviewer looked at the same kind of change: another reviewer says other things.

use super::super::app::{App, RunChange, RunEntry};
use crate::domain::FindingStatus;
use crate::runner::OWN_REVIEWER;
use crate::store::{RunRow, StoreView};

/// Number of older runs among which the run before is looked for, so that a long list costs no key press.
const MAX_LOOKBACK: usize = 200;

/// Compares those of the visible runs that were not compared yet.
pub fn compare_visible_runs(app: &mut App, visible: &[RunEntry]) {
    // The first view of a large store has no findings of older runs.
    if !app.store.view.complete {
        return;
    }
    for index in visible.iter().filter(|row| row.member.is_none()).map(|row| row.index as usize) {
        let view = &app.store.view;
        let id = view.run(index).id;
        if !app.run_list.changes.contains_key(id) {
            let change = compare_run(view, index);
            app.run_list.changes.insert(id.to_owned(), change);
        }
    }
}

/// Returns what changed from the run before to the run at `index`; `None` without a run before, or if the findings of one of
/// them are not known.
fn compare_run(view: &StoreView, index: usize) -> Option<RunChange> {
    let run = view.run(index);
    if !is_comparable(&run) {
        return None;
    }
    let older = (index + 1..view.run_count()).take(MAX_LOOKBACK);
    let former = older.map(|at| (at, view.run(at))).find(|(_, other)| is_comparable(other) && is_like(&run, other));
    let (former, former_run) = former?;
    let now = ReportedFindings::read(view, index, &run)?;
    let before = ReportedFindings::read(view, former, &former_run)?;
    let is_fixed = |finding: usize| view.finding_status(finding) == FindingStatus::Addressed;
    Some(RunChange {
        new: now.indices.iter().filter(|finding| !before.contains(**finding)).count(),
        fixed: before.indices.iter().filter(|finding| !now.contains(**finding) && is_fixed(**finding)).count(),
    })
}

/// Findings that a run reported. They are compared by flags, not by hashes: the list is compared anew at each change of the
/// store, and a run may have thousands of findings.
struct ReportedFindings {
    /// Indices in the view, each once.
    indices: Vec<usize>,
    is_reported: Vec<bool>,
}

impl ReportedFindings {
    /// Reads the findings; `None` if the record of the run counts some and its result is gone.
    fn read(view: &StoreView, index: usize, run: &RunRow<'_>) -> Option<Self> {
        let indices: Vec<usize> = view.reported_findings(index).collect();
        if indices.is_empty() && run.counts != [0; 4] {
            return None;
        }
        let mut is_reported = vec![false; view.finding_count()];
        for finding in &indices {
            is_reported[*finding] = true;
        }
        Some(Self { indices, is_reported })
    }

    fn contains(&self, finding: usize) -> bool {
        self.is_reported[finding]
    }
}

fn is_comparable(run: &RunRow<'_>) -> bool {
    run.has_reviewed() && !run.is_fix_review() && run.reviewer != OWN_REVIEWER
}

/// Returns true if the same reviewer looked at the same kind of change of the same branch: uncommitted changes, a commit, a
/// range.
fn is_like(one: &RunRow<'_>, other: &RunRow<'_>) -> bool {
    (one.branch, one.reviewer) == (other.branch, other.reviewer) && scope_kind(one.scope) == scope_kind(other.scope)
}

/// Returns the first word of a scope: `commit` of `commit:HEAD`.
fn scope_kind(scope: &str) -> &str {
    scope.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RunStatus;
    use crate::store::{FindingRow, StoreViewBuilder};
    use crate::tui::tests::support::{complete, finding_id, finding_row, run_id, run_row};

    #[test]
    fn a_run_is_compared_with_the_one_before_it_on_its_branch() {
        let [first, second, found] = [run_id(1), run_id(2), run_id(3)];
        let ids: Vec<String> = (1..6).map(finding_id).collect();
        let change = |new: usize, fixed: usize| Some(RunChange { new, fixed });
        let run = RunRow { branch: "topic", ..run_row(&second) };
        let like = RunRow { branch: "topic", ..run_row(&first) };
        for (why, newer, older, now, before, expected) in [
            ("new, fixed, and neither", run, like, &[0, 3, 4][..], &[0, 1, 2][..], change(2, 1)),
            ("the same", run, like, &[0], &[0], change(0, 0)),
            ("another branch", run, RunRow { branch: "main", ..like }, &[0], &[1], None),
            ("another reviewer", run, RunRow { reviewer: "gpt", ..like }, &[0], &[1], None),
            ("another kind of change", RunRow { scope: "commit:HEAD", ..run }, like, &[0], &[1], None),
            (
                "commits",
                RunRow { scope: "commit:HEAD", ..run },
                RunRow { scope: "commit:HEAD~1", ..like },
                &[0],
                &[1],
                change(1, 1),
            ),
            (
                "the older one left every file out",
                run,
                RunRow { files_covered: 0, hunks_total: 0, hunks_covered: 0, counts: [0; 4], ..like },
                &[0],
                &[],
                None,
            ),
            ("the older one failed", run, RunRow { status: RunStatus::Failed, ..like }, &[0], &[1], None),
            ("the newer one works", RunRow { status: RunStatus::Reviewing, ..run }, like, &[0], &[1], None),
            ("the result is gone", run, like, &[], &[1], None),
            ("nothing found", RunRow { counts: [0; 4], ..run }, like, &[], &[1], change(0, 1)),
        ] {
            let mut builder = StoreViewBuilder::default();
            builder.run(newer).run(older);
            for (number, id) in ids.iter().enumerate() {
                let status = if number == 1 { FindingStatus::Addressed } else { FindingStatus::Open };
                builder.finding(FindingRow { status, ..finding_row(id, &found) });
            }
            let names = |found: &[usize]| found.iter().map(|number| ids[*number].as_str()).collect::<Vec<_>>();
            builder.reports(&second, &names(now)).reports(&first, &names(before));
            let view = complete(builder);
            assert_eq!(compare_run(&view, 0), expected, "{why}");
        }
    }
}
