//! Builds the list of runs: replaced runs below the run that replaced them. Requests what the visible runs reviewed.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::app::{App, FoldReason, FoldedRuns, Pane, RunEntry, RunList, RunListLine};
use super::super::draw::plain_rows_on_page;
use super::super::message::{AppCommand, RunSubjectQuery};
use super::data;
use crate::config::RunOrder;
use crate::domain::{RequestDecision, RunStatus};
use crate::runner::OWN_REVIEWER;
use crate::store::{RunRow, StoreView};

/// Rebuilds the list of runs and selects the run with this id, or the run that replaced it.
pub fn rebuild_runs(app: &mut App, selected: Option<&str>) {
    let view = &app.store.view;
    let replacements = find_replacements(view, &mut app.run_list.active);
    let mut below: HashMap<usize, (FoldedRuns, Vec<usize>)> = HashMap::new();
    let mut top = Vec::new();
    let mut run_count = 0;
    for index in 0..view.run_count() {
        match find_root(&replacements, index) {
            Some((root, reason)) => {
                run_count += usize::from(reason != FoldReason::Written);
                let (folded, runs) = below.entry(root).or_default();
                folded.add(reason);
                runs.push(index);
            }
            None => {
                run_count += 1;
                top.push(index);
            }
        }
    }
    if app.run_list.order == RunOrder::Branch {
        sort_by_branch(view, &mut top);
    }
    let mut entries = Vec::with_capacity(top.len());
    let mut branch = None;
    for index in top {
        let to_row = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let run = view.run(index);
        let its = Some(run.branch).filter(|_| app.run_list.order == RunOrder::Branch);
        let entry = RunEntry {
            index: to_row(index),
            nested: false,
            member: None,
            folded: FoldedRuns::default(),
            unfolded: false,
            heads_branch: its.is_some() && its != branch,
            line: 0,
        };
        branch = its;
        let (mut folded, runs) = below.remove(&index).unwrap_or_default();
        let nested = list_nested(view, &run, &runs, &mut folded);
        if nested.is_empty() {
            entries.push(entry);
            continue;
        }
        // Members show their progress while their panel works.
        let is_open_panel = folded.contains(FoldReason::Member) && !run.status.is_terminal();
        if !is_open_panel && !app.run_list.unfolded.contains(run.id) {
            entries.push(RunEntry { folded, ..entry });
            continue;
        }
        entries.push(RunEntry { unfolded: true, ..entry });
        let child = RunEntry { nested: true, heads_branch: false, ..entry };
        entries.extend(nested.into_iter().map(|(index, member)| RunEntry { index: to_row(index), member, ..child }));
    }
    let line = app.run_list.selected_line();
    let place = ListedPlace::of_selected(&app.run_list);
    app.run_list.set_entries(entries);
    app.run_list.run_count = run_count;
    app.run_list.changes.clear();
    let height = app.pane_height(Pane::Runs);
    // If the selected run was folded away, its replacement is selected.
    let at = selected.and_then(|id| app.store.view.run_index(id)).and_then(|index| {
        place
            .find(app, index)
            .or_else(|| find_root(&replacements, index).and_then(|(root, _)| position_of_run(app, root)))
    });
    app.run_list.select_on_line(at.unwrap_or(0), line, height);
    if let Some(id) = app.run_list.awaited.take() {
        data::select_run(app, &id);
    }
}

/// Lists the runs below a run, given those that it replaced or requested: the members of a panel in the order of the
/// settings, with the decisions about them, then the others. A member that another request asked for has a place of its own
/// in the list and is added to `folded`.
fn list_nested(
    view: &StoreView,
    run: &RunRow<'_>,
    below: &[usize],
    folded: &mut FoldedRuns,
) -> Vec<(usize, Option<RequestDecision>)> {
    let mut nested: Vec<(usize, Option<RequestDecision>)> = Vec::new();
    for (id, decision) in run.panel_members() {
        let Some(index) = view.run_index(id).filter(|_| id != run.id) else { continue };
        if nested.iter().any(|(known, _)| *known == index) {
            continue;
        }
        if !below.contains(&index) {
            folded.add(FoldReason::Member);
        }
        nested.push((index, Some(decision)));
    }
    let is_other = |index: &&usize| nested.iter().all(|(member, _)| member != *index);
    let others: Vec<_> = below.iter().filter(is_other).map(|index| (*index, None)).collect();
    nested.extend(others);
    nested
}

/// Place of the selected row among the rows of its run: a run that several panels share has a row for each of them.
struct ListedPlace {
    is_nested: bool,
    /// Number of rows above that show the run in the same way.
    earlier: usize,
}

impl ListedPlace {
    fn of_selected(list: &RunList) -> Self {
        let (at, entries) = (list.cursor.selected, &list.entries);
        let Some(row) = entries.get(at) else { return Self { is_nested: false, earlier: 0 } };
        let is_same = |other: &&RunEntry| (other.index, other.nested) == (row.index, row.nested);
        Self { is_nested: row.nested, earlier: entries[..at].iter().filter(is_same).count() }
    }

    /// Returns the position of a run at this place, else its first position; `None` if it is not listed.
    fn find(&self, app: &App, index: usize) -> Option<usize> {
        let rows = || app.run_list.entries.iter().enumerate().filter(move |(_, entry)| entry.index as usize == index);
        let same = rows().filter(|(_, entry)| entry.nested == self.is_nested).nth(self.earlier);
        same.or_else(|| rows().next()).map(|(at, _)| at)
    }
}

/// Selects the run of a member below its panel, whose members are shown from now on. Both are given by their ids.
pub fn select_member(app: &mut App, panel: &str, member: &str) {
    app.run_list.unfolded.insert(panel.to_owned());
    rebuild_runs(app, Some(panel));
    let position = |app: &App, id: &str| app.store.view.run_index(id).and_then(|index| position_of_run(app, index));
    let Some(index) = app.store.view.run_index(member) else { return };
    let first = position(app, panel).unwrap_or(0);
    let below = app.run_list.entries.iter().skip(first + 1).take_while(|entry| entry.nested);
    let at = below.map(|entry| entry.index as usize).position(|below| below == index).map(|at| first + 1 + at);
    if let Some(at) = at.or_else(|| position(app, member)) {
        let height = app.pane_height(Pane::Runs);
        app.run_list.select(at, height);
        app.panes.list = Pane::Runs;
    }
}

/// Puts the runs of a branch together; the branch of the newest run comes first.
fn sort_by_branch(view: &StoreView, runs: &mut [usize]) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for index in runs.iter() {
        let next = places.len();
        places.entry(view.run(*index).branch).or_insert(next);
    }
    runs.sort_by_key(|index| places.get(view.run(*index).branch).copied());
}

/// Sorts the list anew; the selected run stays selected.
pub fn arrange_runs(app: &mut App, order: RunOrder) {
    app.run_list.order = order;
    let selected = app.selected_run().map(|run| run.id.to_owned());
    rebuild_runs(app, selected.as_deref());
}

/// Returns the position of a run in the list, by its index in the view.
pub fn position_of_run(app: &App, index: usize) -> Option<usize> {
    app.run_list.entries.iter().position(|entry| entry.index as usize == index)
}

/// Replacement of a run, by index in the view.
type Replacement = Option<(u32, FoldReason)>;

/// Returns the replacement of each run, and fills `active` with the runs that have not ended.
fn find_replacements(view: &StoreView, active: &mut Vec<u32>) -> Vec<Replacement> {
    active.clear();
    let mut found: Vec<Replacement> = vec![None; view.run_count()];
    let mut reviews = None;
    for (at, index) in (0..view.run_count()).zip(0_u32..) {
        let run = view.run(at);
        if !run.status.is_terminal() {
            active.push(index);
        }
        let newer = match run.status {
            RunStatus::Skipped => [(run.superseded_by, FoldReason::Superseded), (run.reused_from, FoldReason::Reused)],
            _ => [(run.superseded_by, FoldReason::Superseded), ("", FoldReason::Reused)],
        };
        let known = newer.into_iter().find_map(|(id, reason)| Some((find_other(view, id, at)?, reason)));
        let written = find_commented(view, &run, at, &mut reviews).map(|review| (review, FoldReason::Written));
        let member = find_other(view, run.member_of, at).map(|panel| (panel, FoldReason::Member));
        let known = member.or(written).or(known);
        if let Some((other, reason)) = known {
            found[at] = Some((other as u32, reason));
        }
        for (id, reason) in [(run.resumed_from, FoldReason::Resumed), (run.carried_over_from, FoldReason::CarriedOver)]
        {
            // Runs are sorted from new to old.
            if let Some(other) = find_other(view, id, at).filter(|other| *other > at && found[*other].is_none())
                && takes_place_of(&run, &view.run(other), reason)
            {
                found[other] = Some((index, reason));
            }
        }
    }
    found
}

/// Runs by snapshot, without those of comments; from new to old, as the view is sorted.
type ReviewsBySnapshot<'a> = HashMap<&'a str, Vec<usize>>;

/// Returns the index of the newest run before the one at `at` that has its snapshot, if `at` is a comment. `reviews` is
/// filled for the first comment.
fn find_commented<'a>(
    view: &'a StoreView,
    run: &RunRow<'_>,
    at: usize,
    reviews: &mut Option<ReviewsBySnapshot<'a>>,
) -> Option<usize> {
    if run.reviewer != OWN_REVIEWER || run.snapshot_commit.is_empty() {
        return None;
    }
    let reviews = reviews.get_or_insert_with(|| {
        let mut reviews = ReviewsBySnapshot::new();
        for (index, run) in (0..view.run_count()).map(|index| (index, view.run(index))) {
            if run.reviewer != OWN_REVIEWER {
                reviews.entry(run.snapshot_commit).or_default().push(index);
            }
        }
        reviews
    });
    let same = reviews.get(run.snapshot_commit)?;
    same.get(same.partition_point(|index| *index <= at)).copied()
}

/// Returns the index of the run with an id, unless the id is empty or that of the run at `at`.
fn find_other(view: &StoreView, id: &str, at: usize) -> Option<usize> {
    (!id.is_empty()).then(|| view.run_index(id)).flatten().filter(|other| *other != at)
}

/// Returns true if a newer run stands for an older one in the list: it says all that the older one says.
fn takes_place_of(newer: &RunRow<'_>, older: &RunRow<'_>, reason: FoldReason) -> bool {
    use RunStatus as S;
    let has_results = !matches!(newer.status, S::Failed | S::Cancelled | S::Skipped | S::Lost);
    let is_same_scope = newer.scope == older.scope && newer.branch == older.branch;
    older.status.is_terminal() && has_results && (reason == FoldReason::Resumed || is_same_scope)
}

/// Returns the run at the end of the chain of replacements, with the reason of the first one; `None` if the run was not
/// replaced.
fn find_root(replacements: &[Replacement], index: usize) -> Option<(usize, FoldReason)> {
    let (next, reason) = (*replacements.get(index)?)?;
    let mut at = next as usize;
    // A damaged store may have a circle.
    for _ in 0..replacements.len() {
        match replacements.get(at).copied().flatten() {
            Some((next, _)) if next as usize != index => at = next as usize,
            Some(_) => return None,
            None => return Some((at, reason)),
        }
    }
    None
}

/// Returns the rows of the runs that are on the screen.
pub fn list_visible_runs(app: &App) -> Vec<RunEntry> {
    let list = &app.run_list;
    if app.display.plain {
        let page = plain_rows_on_page(app, Pane::Runs).into_iter();
        return page.filter_map(|at| list.entries.get(at).copied()).collect();
    }
    let lines = list.cursor.offset..list.cursor.offset + app.pane_height(Pane::Runs);
    let rows = lines.map_while(|line| list.line(line)).filter_map(|line| match line {
        RunListLine::Run(at) => list.entries.get(at).copied(),
        RunListLine::Fold(_) | RunListLine::Branch(_) => None,
    });
    rows.collect()
}

/// Requests the commits of those runs that reviewed commits, given by their indices in the view, once for each run.
pub fn request_subjects(app: &mut App, runs: impl IntoIterator<Item = usize>, commands: &mut Vec<AppCommand>) {
    let mut queries = Vec::new();
    for index in runs {
        let run = app.store.view.run(index);
        let has_commits = ["commit:", "range:", "branch"].iter().any(|scope| run.scope.starts_with(scope));
        if has_commits && !run.snapshot_commit.is_empty() && !app.run_list.subjects.contains_key(run.id) {
            queries.push(RunSubjectQuery {
                run: run.id.to_owned(),
                base: run.base_commit.to_owned(),
                tip: run.snapshot_commit.to_owned(),
            });
        }
    }
    if !queries.is_empty() {
        let subjects = Arc::make_mut(&mut app.run_list.subjects);
        subjects.extend(queries.iter().map(|query| (query.run.clone(), None)));
        commands.push(AppCommand::LoadRunSubjects(queries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreViewBuilder;
    use crate::tui::tests::support::{run_id, run_row};

    /// Returns for each run, new to old, the number of the run below which it stands.
    fn roots(runs: &[RunRow<'_>]) -> Vec<Option<usize>> {
        let mut builder = StoreViewBuilder::default();
        for run in runs {
            builder.run(*run);
        }
        let view = builder.build();
        let found = find_replacements(&view, &mut Vec::new());
        (0..runs.len()).map(|index| find_root(&found, index).map(|(root, _)| root)).collect()
    }

    #[test]
    fn replaced_runs_stand_below_the_last_replacement() {
        let ids: Vec<String> = (0..4).map(|n| run_id(9 - n)).collect();
        let row = |at: usize| run_row(&ids[at]);
        let superseded =
            |at: usize, by: usize| RunRow { status: RunStatus::Superseded, superseded_by: &ids[by], ..row(at) };
        assert_eq!(roots(&[row(0), superseded(1, 0), superseded(2, 1)]), [None, Some(0), Some(0)], "a chain");
        let skipped = RunRow { status: RunStatus::Skipped, reused_from: &ids[1], ..row(0) };
        assert_eq!(roots(&[skipped, row(1)]), [Some(1), None], "an older run answered the request");
        let carrying = RunRow { carried_over_from: &ids[1], ..row(0) };
        assert_eq!(roots(&[carrying, row(1)]), [None, Some(0)], "its findings were taken over");
        assert_eq!(roots(&[carrying, RunRow { scope: "staged", ..row(1) }]), [None, None], "another scope stays");
        assert_eq!(roots(&[carrying, RunRow { branch: "other", ..row(1) }]), [None, None], "another branch stays");
        assert_eq!(roots(&[RunRow { status: RunStatus::Failed, ..carrying }, row(1)]), [None, None], "no results");
        assert_eq!(
            roots(&[carrying, RunRow { status: RunStatus::Reviewing, ..row(1) }]),
            [None, None],
            "a run that works is never hidden"
        );
        let resumed = RunRow { resumed_from: &ids[1], ..row(0) };
        assert_eq!(roots(&[resumed, RunRow { status: RunStatus::Lost, ..row(1) }]), [None, Some(0)]);
        let member = |at: usize, panel: usize| RunRow { member_of: &ids[panel], ..row(at) };
        let working = RunRow { status: RunStatus::Reviewing, ..member(1, 0) };
        assert_eq!(roots(&[row(0), working, member(2, 0)]), [None, Some(0), Some(0)], "members of a panel");
        let older = RunRow { superseded_by: &ids[0], ..row(1) };
        assert_eq!(roots(&[row(0), older, member(2, 1)]), [None, Some(0), Some(0)], "of a replaced panel, too");
        assert_eq!(roots(&[superseded(0, 1), superseded(1, 0)]), [None, None], "a circle hides nothing");
        assert_eq!(roots(&[superseded(0, 0), superseded(1, 3)]), [None, None], "an unknown run hides nothing");
    }
}
