//! Holds the rows of the list of runs. Runs that another run replaced are folded away below it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Cursor;
use crate::config::RunOrder;
use crate::domain::{RequestDecision, text};
use crate::tui::run_label::RunSubjects;

/// Reason why a run stands below another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldReason {
    /// Newer code was requested.
    Superseded,
    /// Its request was answered with the results of the other run.
    Reused,
    /// The other run took over its findings.
    CarriedOver,
    /// The other run continued it.
    Resumed,
    /// It is a finding that the user wrote about the snapshot of the other run.
    Written,
    /// It is the run of a member, and the other one that of its panel.
    Member,
}

/// Number of runs below a run, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoldedRuns([u32; 6]);

impl FoldedRuns {
    /// Adds a run.
    pub fn add(&mut self, reason: FoldReason) {
        self.0[reason as usize] += 1;
    }

    /// Returns true if a run stands below for this reason.
    pub fn contains(self, reason: FoldReason) -> bool {
        self.0[reason as usize] > 0
    }

    /// Returns the number of runs.
    pub fn total(self) -> u32 {
        self.0.iter().sum()
    }

    /// Describes the runs: `2 superseded, 1 reused, 3 comments`.
    pub fn describe(self) -> String {
        let words = ["superseded", "reused", "carried over", "resumed", "comment", "member"];
        let parts = self.0.iter().zip(words).filter(|(count, _)| **count > 0);
        let describe = |(count, word): (&u32, &str)| match word {
            "comment" | "member" => text::format_count(*count as usize, word),
            word => format!("{count} {word}"),
        };
        parts.map(describe).collect::<Vec<_>>().join(", ")
    }
}

/// Row of the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEntry {
    /// Index of the run in [`crate::store::StoreView`].
    pub index: u32,
    /// The run is listed below another one: its replacement, or the panel whose member it is.
    pub nested: bool,
    /// The decision about the request of the panel above, if the run answers for a member of it. A run that several panels
    /// share is listed below each of them.
    pub member: Option<RequestDecision>,
    /// Runs that are folded away below this run. They have a line of their own.
    pub folded: FoldedRuns,
    /// The run replaced others, which are shown below it.
    pub unfolded: bool,
    /// The run is the first one of its branch, whose name stands on the line above.
    pub heads_branch: bool,
    /// Line of the list on which the run stands, 0-based.
    pub line: u32,
}

/// Commits that a run reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSubject {
    /// Number of commits, at most [`RunSubject::MAX_COMMITS`].
    pub commits: usize,
    /// First line of the message of the newest commit.
    pub title: String,
}

impl RunSubject {
    /// Number from which commits are not counted any more; enough for any review.
    pub const MAX_COMMITS: usize = 1_000;
}

/// Difference between the findings of a run and those of the run before it on its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunChange {
    /// Findings that the run before did not report.
    pub new: usize,
    /// Findings of the run before that were fixed and are not reported any more.
    pub fixed: usize,
}

impl RunChange {
    /// Describes the difference: `3 new, 2 fixed since`, `nothing new`.
    pub fn describe(self) -> String {
        match (self.new, self.fixed) {
            (0, 0) => "nothing new".to_owned(),
            (new, 0) => format!("{new} new"),
            (0, fixed) => format!("{fixed} fixed since"),
            (new, fixed) => format!("{new} new, {fixed} fixed since"),
        }
    }
}

/// Line of the list of runs on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunListLine {
    /// The run at this position of the list.
    Run(usize),
    /// The number of runs that are folded away below the run at this position.
    Fold(usize),
    /// The branch whose first run is at this position.
    Branch(usize),
}

/// List of runs.
#[derive(Debug, Default)]
pub struct RunList {
    /// Rows of the list.
    pub entries: Vec<RunEntry>,
    /// Number of runs, with those that are folded away, without comments below their review.
    pub run_count: usize,
    /// Order of the rows.
    pub order: RunOrder,
    /// Selected row, and the first line on the screen, fold lines counted.
    pub cursor: Cursor,
    /// Indices of the runs that have not ended, newest first.
    pub active: Vec<u32>,
    /// Runs whose replaced runs are shown below them.
    pub unfolded: HashSet<String>,
    /// Run to select as soon as the view of the store contains it.
    pub awaited: Option<String>,
    /// Run that answers the last request of the user.
    pub requested: Option<String>,
    /// Commits that runs reviewed, as far as they are read.
    pub subjects: Arc<RunSubjects>,
    /// Differences between runs and the runs before them, by run id, as far as they were on the screen; `None` for a run
    /// that has none before it.
    pub changes: HashMap<String, Option<RunChange>>,
}

impl RunList {
    /// Replaces the entries, whose lines are set here.
    pub fn set_entries(&mut self, mut entries: Vec<RunEntry>) {
        let mut line = 0;
        for entry in &mut entries {
            line += u32::from(entry.heads_branch);
            entry.line = line;
            line += 1 + u32::from(entry.folded.total() > 0);
        }
        self.entries = entries;
    }

    /// Returns the number of lines of the whole list, fold lines included.
    pub fn line_count(&self) -> usize {
        self.entries.last().map_or(0, |last| last.line as usize + 1 + usize::from(last.folded.total() > 0))
    }

    /// Returns the content of a line; `None` below the end of the list.
    pub fn line(&self, line: usize) -> Option<RunListLine> {
        let next = self.entries.partition_point(|entry| entry.line as usize <= line);
        let above = next.checked_sub(1).and_then(|at| Some((at, self.entries.get(at)?)));
        match above.map(|(at, entry)| (at, line - entry.line as usize, entry.folded.total() > 0)) {
            Some((at, 0, _)) => Some(RunListLine::Run(at)),
            Some((at, 1, true)) => Some(RunListLine::Fold(at)),
            _ => self.entries.get(next).filter(|entry| entry.heads_branch).map(|_| RunListLine::Branch(next)),
        }
    }

    fn line_of(&self, at: usize) -> usize {
        self.entries.get(at).map_or(0, |entry| entry.line as usize)
    }

    /// Scrolls by a number of lines; the selection moves only as far as it must to stay on the screen.
    pub fn scroll(&mut self, by: isize, height: usize) {
        let height = height.max(1);
        let last = self.line_count().saturating_sub(height);
        self.cursor.offset = self.cursor.offset.saturating_add_signed(by).min(last);
        let (top, bottom) = (self.cursor.offset, self.cursor.offset + height);
        let first = self.entries.partition_point(|entry| (entry.line as usize) < top);
        let end = self.entries.partition_point(|entry| (entry.line as usize) < bottom);
        self.cursor.selected = self.cursor.selected.clamp(first.min(end.saturating_sub(1)), end.saturating_sub(1));
    }

    /// Selects the run at a position and scrolls as little as possible.
    pub fn select(&mut self, at: usize, height: usize) {
        let height = height.max(1);
        self.cursor.selected = at.min(self.entries.len().saturating_sub(1));
        let line = self.line_of(self.cursor.selected);
        let has_fold = self.entries.get(self.cursor.selected).is_some_and(|entry| entry.folded.total() > 0);
        let end = line + 1 + usize::from(has_fold && height > 1);
        // The name of the branch is shown with its first run if there is room.
        let heads = self.entries.get(self.cursor.selected).is_some_and(|entry| entry.heads_branch);
        let first = line - usize::from(heads && height > 1 + usize::from(has_fold));
        self.cursor.offset = self.cursor.offset.clamp(end.saturating_sub(height).min(first), first);
        self.cursor.offset = self.cursor.offset.min(self.line_count().saturating_sub(height));
    }

    /// Selects the run at a position as a step of the user does.
    pub fn step_to(&mut self, at: usize, height: usize) {
        let before = self.cursor.offset;
        self.select(at, height);
        let lines = self.line_count();
        self.cursor.scroll_ahead(before, lines, height);
    }

    /// Returns the line of the screen on which the selected run stands.
    pub fn selected_line(&self) -> usize {
        self.line_of(self.cursor.selected).saturating_sub(self.cursor.offset)
    }

    /// Selects the run at a position after the rows changed, so that it stands on line `line` of the screen.
    pub fn select_on_line(&mut self, at: usize, line: usize, height: usize) {
        self.cursor.offset = self.line_of(at.min(self.entries.len().saturating_sub(1))).saturating_sub(line);
        self.select(at, height);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a list of runs; each number is that of the runs below it.
    fn list(folded: &[u32]) -> RunList {
        let entry = |count: &u32| RunEntry {
            index: 0,
            nested: false,
            member: None,
            folded: FoldedRuns([*count, 0, 0, 0, 0, 0]),
            unfolded: false,
            heads_branch: false,
            line: 0,
        };
        let mut list = RunList::default();
        list.set_entries(folded.iter().map(entry).collect());
        list
    }

    #[test]
    fn folded_runs_have_a_line_below_their_run() {
        use RunListLine::{Fold, Run};
        let list = list(&[0, 2, 0]);
        let lines: Vec<Option<RunListLine>> = (0..5).map(|line| list.line(line)).collect();
        assert_eq!(lines, [Some(Run(0)), Some(Run(1)), Some(Fold(1)), Some(Run(2)), None]);
        assert_eq!(list.line_count(), 4);
        assert_eq!(RunList::default().line(0), None);
    }

    #[test]
    fn the_selected_run_is_always_on_the_screen() {
        for folded in [&[][..], &[1], &[0, 2, 0, 0, 3, 1]] {
            for height in 1..6 {
                let mut list = list(folded);
                for at in [0, 5, 2, 1, 4, 0] {
                    list.select(at, height);
                    let line = list.line_of(list.cursor.selected);
                    let offset = list.cursor.offset;
                    assert!(offset <= line && line < offset + height, "{folded:?} {height} {at}: {offset}");
                }
            }
        }
    }

    #[test]
    fn the_name_of_a_branch_has_a_line_above_its_first_run() {
        use RunListLine::{Branch, Fold, Run};
        let mut list = list(&[1, 0, 0]);
        let mut entries = list.entries.clone();
        (entries[0].heads_branch, entries[2].heads_branch) = (true, true);
        list.set_entries(entries);
        let lines: Vec<Option<RunListLine>> = (0..7).map(|line| list.line(line)).collect();
        let expected = [Branch(0), Run(0), Fold(0), Run(1), Branch(2), Run(2)].map(Some);
        assert_eq!((&lines[..6], lines[6], list.line_count()), (&expected[..], None, 6));
        for height in 1..7 {
            for at in [0, 2, 1, 0, 2] {
                list.select(at, height);
                let (line, offset) = (list.line_of(at), list.cursor.offset);
                assert!(offset <= line && line < offset + height, "{height} {at}: {offset}");
                assert!(at != 0 || height < 3 || offset == 0, "the name of the branch is in sight");
            }
        }
    }

    #[test]
    fn a_change_is_described_in_a_few_words() {
        for (new, fixed, said) in
            [(0, 0, "nothing new"), (3, 0, "3 new"), (0, 1, "1 fixed since"), (3, 2, "3 new, 2 fixed since")]
        {
            assert_eq!(RunChange { new, fixed }.describe(), said);
        }
    }

    #[test]
    fn folded_runs_are_counted_by_reason() {
        let mut folded = FoldedRuns::default();
        for reason in [FoldReason::Superseded, FoldReason::Reused, FoldReason::Superseded] {
            folded.add(reason);
        }
        assert_eq!((folded.total(), folded.describe().as_str()), (3, "2 superseded, 1 reused"));
    }
}
