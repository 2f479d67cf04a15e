//! Sorts and groups the findings of the list, and counts them. Runs where findings are filtered, never while drawing.

use std::collections::HashMap;
use std::sync::Arc;

use super::filter::{FilterOverrides, FindingFilter};
use crate::config::{FindingGrouping, FindingSort};
use crate::domain::{Kind, Priority};
use crate::ledger::FindingRank;
use crate::runner::UncommittedElsewhere;
use crate::store::{FindingRow, StoreView};

/// Order and groups of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FindingArrangement {
    /// Order of the findings, or of those in a group.
    pub sort: FindingSort,
    /// Groups of the findings.
    pub grouping: FindingGrouping,
}

/// Question that the list answers: which findings, in which order.
#[derive(Debug, Clone)]
pub struct FindingQuery {
    /// Filter to apply.
    pub filter: FindingFilter,
    /// Knowledge that the view lacks.
    pub overrides: Arc<FilterOverrides>,
    /// Order and groups.
    pub arrangement: FindingArrangement,
}

/// Findings of the list, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedFindings {
    /// Indices of the findings in the view.
    pub rows: Vec<u32>,
    /// Position in `rows` at which each group starts, ascending; empty without groups.
    pub groups: Vec<u32>,
    /// Counts of all findings of the view, listed or not.
    pub totals: FindingTotals,
}

/// Counts of the undecided findings of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FindingTotals {
    /// Findings that nobody has decided and that are not snoozed, without those of uncommitted code of other machines.
    pub undecided: usize,
    /// Findings that nobody has decided and that are snoozed.
    pub snoozed: usize,
    /// Part of `undecided` that is new since the last visit.
    pub new: usize,
    /// Number of [`FilterOverrides::seen`] when the findings were counted.
    pub seen: usize,
    /// [`StoreView::undecided_files`] of the view, which does not know the decisions on their way.
    pub undecided_files: u64,
}

impl FindingQuery {
    /// Returns the matching findings of a view, sorted and grouped, and counts all of them.
    pub fn list(&self, view: &StoreView) -> ListedFindings {
        let rows = self.filter.matching_rows(view, &self.overrides);
        ListedFindings { totals: count_findings(view, &self.overrides), ..arrange(view, &rows, self.arrangement) }
    }
}

fn count_findings(view: &StoreView, overrides: &FilterOverrides) -> FindingTotals {
    let mut totals = FindingTotals {
        seen: overrides.seen.len(),
        undecided_files: view.undecided_files(),
        ..FindingTotals::default()
    };
    let elsewhere = UncommittedElsewhere::read(view);
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        let status = overrides.status_of(&row);
        if overrides.snoozed.hides(row.id, status) {
            totals.snoozed += 1;
        } else if status.is_undecided() && !elsewhere.has_finding(view, index) {
            totals.undecided += 1;
            totals.new += usize::from(overrides.is_new(view, index, &row));
        }
    }
    totals
}

/// Sort key of a finding: the numbers of its order around its importance, then its index in the view.
type FindingSortKey = (u32, u32, FindingRank, u32, u32, u32);

/// Sorts and groups findings, given by their indices in the view.
pub fn arrange(view: &StoreView, rows: &[u32], arrangement: FindingArrangement) -> ListedFindings {
    let paths = rank_paths(view, rows);
    let kinds = rank_kinds();
    let newest = |run: Option<usize>| run.and_then(|at| u32::try_from(at).ok()).unwrap_or(u32::MAX);
    let key = |row: u32| -> FindingSortKey {
        let index = row as usize;
        let finding = view.finding(index);
        let rank = FindingRank::new(finding.priority, finding.kind, false, 0);
        let path = paths.get(finding.path).copied().unwrap_or(u32::MAX);
        let by = |first: u32| (first, 0, rank, path, finding.line_start, row);
        match arrangement.sort {
            FindingSort::Priority => by(0),
            FindingSort::File => (path, finding.line_start, rank, 0, 0, row),
            FindingSort::Age => by(newest(view.first_reporting_run(index))),
            FindingSort::Kind => by(kinds[finding.kind as usize]),
            FindingSort::Run => by(newest(view.last_reporting_run(index))),
        }
    };
    let mut keys: Vec<FindingSortKey> = rows.iter().map(|row| key(*row)).collect();
    keys.sort_unstable();
    let sorted: Vec<u32> = keys.into_iter().map(|key| key.5).collect();
    match arrangement.grouping {
        FindingGrouping::None => ListedFindings { rows: sorted, ..ListedFindings::default() },
        FindingGrouping::Priority => group_rows(&sorted, true, |row| view.finding(row as usize).priority as u32),
        FindingGrouping::File => {
            group_rows(&sorted, false, |row| paths.get(view.finding(row as usize).path).copied().unwrap_or(u32::MAX))
        }
        FindingGrouping::Kind => group_rows(&sorted, false, |row| view.finding(row as usize).kind as u32),
        FindingGrouping::Run => group_rows(&sorted, true, |row| newest(view.last_reporting_run(row as usize))),
    }
}

/// Returns the position of each path in the order of all paths of these findings.
fn rank_paths<'a>(view: &'a StoreView, rows: &[u32]) -> HashMap<&'a str, u32> {
    let mut ranks: HashMap<&str, u32> = rows.iter().map(|row| (view.finding(*row as usize).path, 0)).collect();
    let mut paths: Vec<&str> = ranks.keys().copied().collect();
    paths.sort_unstable();
    for (rank, path) in (0..).zip(paths) {
        ranks.insert(path, rank);
    }
    ranks
}

/// Returns the position of each kind, indexed by the kind: by danger, then in the order of their declaration.
fn rank_kinds() -> Vec<u32> {
    let mut order: Vec<Kind> = Kind::ALL.to_vec();
    order.sort_by_key(|kind| FindingRank::new(Priority::P0, *kind, false, 0));
    let mut ranks = vec![0; Kind::ALL.len()];
    for (rank, kind) in (0..).zip(order) {
        ranks[kind as usize] = rank;
    }
    ranks
}

/// Puts rows of the same group together and keeps their order. The groups are sorted by their key, or stand in the order
/// of their first rows.
fn group_rows(sorted: &[u32], by_key: bool, key: impl Fn(u32) -> u32) -> ListedFindings {
    let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut order: Vec<u32> = Vec::new();
    for row in sorted {
        let key = key(*row);
        let group = members.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        group.push(*row);
    }
    if by_key {
        order.sort_unstable();
    }
    let mut listed = ListedFindings { rows: Vec::with_capacity(sorted.len()), ..ListedFindings::default() };
    for key in order {
        listed.groups.extend(u32::try_from(listed.rows.len()).ok());
        listed.rows.append(&mut members.remove(&key).unwrap_or_default());
    }
    listed
}

/// Returns the label of a group from its first finding.
pub fn group_label(finding: &FindingRow<'_>, grouping: FindingGrouping) -> String {
    match grouping {
        FindingGrouping::None => String::new(),
        FindingGrouping::Priority => super::pages::priority_label(finding.priority).to_owned(),
        FindingGrouping::File => finding.path.to_owned(),
        FindingGrouping::Kind => finding.kind.label().to_owned(),
        FindingGrouping::Run => finding.last_run.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::store::{RunRow, StoreViewBuilder};
    use crate::tui::tests::support::{finding_id, finding_row, run_id, run_row};

    /// Builds a view of three runs; each finding has a number, its first and last run, priority, kind, path and line.
    fn view() -> Arc<StoreView> {
        let mut builder = StoreViewBuilder::default();
        for run in [3, 2, 1] {
            builder.run(RunRow { ..run_row(&run_id(run)) });
        }
        for (number, first, last, priority, kind, path, line) in [
            (1, 3, 3, Priority::P2, Kind::DeadCode, "src/b.rs", 9),
            (2, 1, 3, Priority::P1, Kind::LongMethod, "src/b.rs", 3),
            (3, 2, 2, Priority::P1, Kind::Security, "src/c.rs", 5),
            (4, 2, 2, Priority::P1, Kind::MissingErrorHandling, "src/a.rs", 7),
            (5, 1, 1, Priority::P1, Kind::LongMethod, "src/a.rs", 70),
            (6, 1, 1, Priority::P0, Kind::Correctness, "src/d.rs", 1),
        ] {
            let (id, first, last) = (finding_id(number), run_id(first), run_id(last));
            let row =
                FindingRow { first_run: &first, priority, kind, path, line_start: line, ..finding_row(&id, &last) };
            builder.finding(row);
        }
        builder.build()
    }

    /// Describes a list: the numbers of its findings, a bar before each group.
    fn describe(view: &StoreView, listed: &ListedFindings) -> String {
        let mut words = Vec::new();
        for (at, row) in (0..).zip(&listed.rows) {
            if listed.groups.contains(&at) {
                words.push("|".to_owned());
            }
            words.push(view.finding(*row as usize).id.trim_start_matches(['f', '_', '0']).to_owned());
        }
        words.join(" ")
    }

    #[test]
    fn findings_of_uncommitted_code_of_other_machines_do_not_count() {
        for (scope, worktree, scope_hash, expected) in [
            ("worktree", "/repo", "s", 2),
            ("worktree", "", "s", 1),
            ("staged", "", "s", 1),
            ("commit:c0ffee", "", "s", 2),
            // The review of a fix belongs to no worktree either.
            ("worktree", "", "fix:s", 2),
        ] {
            let (own, other) = (run_id(1), run_id(2));
            let (reported_here, reported_there) = (finding_id(1), finding_id(2));
            let mut builder = StoreViewBuilder::default();
            builder.run(RunRow { scope, worktree, scope_hash, ..run_row(&other) }).run(run_row(&own));
            builder.finding(finding_row(&reported_here, &own)).finding(finding_row(&reported_there, &other));
            let totals = count_findings(&builder.build(), &FilterOverrides::default());
            assert_eq!(totals.undecided, expected, "{scope} {worktree} {scope_hash}");
        }
    }

    #[rstest]
    #[case::across_runs_then_danger(FindingSort::Priority, FindingGrouping::None, "6 3 4 5 2 1")]
    #[case::with_headers(FindingSort::Priority, FindingGrouping::Priority, "| 6 | 3 4 5 2 | 1")]
    #[case::worst_file_first(FindingSort::Priority, FindingGrouping::File, "| 6 | 3 | 4 5 | 2 1")]
    #[case::worst_kind_first(FindingSort::Priority, FindingGrouping::Kind, "| 6 | 3 | 4 | 5 2 | 1")]
    #[case::newest_run_first(FindingSort::Priority, FindingGrouping::Run, "| 2 1 | 3 4 | 6 5")]
    #[case::lines_count_as_numbers(FindingSort::File, FindingGrouping::None, "4 5 2 1 3 6")]
    #[case::urgent_groups_stay_first(FindingSort::File, FindingGrouping::Priority, "| 6 | 4 5 2 3 | 1")]
    #[case::newest_first(FindingSort::Age, FindingGrouping::None, "1 3 4 6 5 2")]
    #[case::by_danger_of_the_kind(FindingSort::Kind, FindingGrouping::None, "6 3 4 5 2 1")]
    #[case::by_run(FindingSort::Run, FindingGrouping::None, "2 1 3 4 6 5")]
    fn findings_are_sorted_and_grouped(
        #[case] sort: FindingSort,
        #[case] grouping: FindingGrouping,
        #[case] expected: &str,
    ) {
        let view = view();
        let rows: Vec<u32> = (0..6).collect();
        let listed = arrange(&view, &rows, FindingArrangement { sort, grouping });
        assert_eq!(describe(&view, &listed), expected);
    }

    #[test]
    fn nothing_listed_has_no_groups() {
        assert_eq!(arrange(&view(), &[], FindingArrangement::default()), ListedFindings::default());
    }
}
