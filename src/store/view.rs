//! The store as two tables of rows for lists: runs and findings, newest first.
//!
//! Rows are small and borrowed, so that a list draws the rows on screen without touching the others. A view never
//! changes; [`super::Store::refresh`] makes the next one, which shares with it all that is still the same.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use super::chunked_columns::ChunkedColumn;
use super::live_journal::LiveJournal;
use super::load::SettledTables;
use super::tables::StoreTables;
use crate::domain::{Finding, FindingStatus, Kind, LineRange, Priority, RunRecord, RunStatus, Severity};

/// A run in a list. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRow<'a> {
    pub id: &'a str,
    pub status: RunStatus,
    pub scope: &'a str,
    pub reviewer: &'a str,
    pub model: &'a str,
    pub reasoning_effort: &'a str,
    pub branch: &'a str,
    pub created_ms: i64,
    /// The last change of the record; while the run works, the last line of its journal.
    pub updated_ms: i64,
    /// Findings by priority.
    pub counts: [u32; 4],
    pub tokens: u64,
    pub files_total: u32,
    pub files_covered: u32,
    pub hunks_total: u32,
    pub hunks_covered: u32,
    pub attempt: u32,
    /// A person has stopped it for a while; says nothing about a run that has ended.
    pub paused: bool,
    pub epoch: u64,
    /// Empty when nothing superseded it.
    pub superseded_by: &'a str,
    /// Why its end was asked for, as [`crate::domain::CancelReason`] writes itself; empty when it was not.
    pub cancel_reason: &'a str,
    /// What failed, as [`crate::domain::ErrorClass`] writes itself; of a completed run what a part of it failed by.
    pub error_class: &'a str,
    pub diff_fingerprint: &'a str,
    pub scope_hash: &'a str,
    pub policy_version: &'a str,
    pub snapshot_commit: &'a str,
    pub head_commit: &'a str,
    pub worktree: &'a str,
}

impl RunRow<'_> {
    /// Whether it waits for a person to let it go on.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.status.is_terminal()
    }

    /// Whether it reviews the patch of a fix: nobody asked for it by itself.
    pub fn is_fix_review(&self) -> bool {
        self.scope_hash.starts_with(RunRecord::FIX_SCOPE_PREFIX)
    }
}

/// A finding in a list, with its present status.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingRow<'a> {
    pub id: &'a str,
    pub first_run: &'a str,
    pub last_run: &'a str,
    pub status: FindingStatus,
    pub priority: Priority,
    pub severity: Severity,
    pub kind: Kind,
    pub path: &'a str,
    pub line_start: u32,
    pub line_end: u32,
    pub title: &'a str,
}

impl FindingRow<'_> {
    /// The lines of the anchor.
    pub fn lines(&self) -> LineRange {
        LineRange::new(self.line_start, self.line_end)
    }
}

/// All runs and findings. Index 0 is the newest run; findings are in the order of the runs that last reported them, then
/// by priority, path and line.
///
/// "Newest" is by the order in which runs were asked for, as the file has it, so that a clock that goes backwards
/// changes no order. An index that is out of range gives an empty row.
#[derive(Debug, Default)]
pub struct StoreView {
    columns: StoreTables,
    /// From an index to the row of [`Columns::runs`].
    run_order: Vec<u32>,
    finding_order: ChunkedColumn<u32>,
    /// From a row to its index, made when first asked for.
    run_rank: OnceLock<Vec<u32>>,
    finding_rank: OnceLock<Vec<u32>>,
    /// What a reader should be told once: corrupt lines set aside, a newer schema.
    pub notices: Vec<String>,
    /// False for [`super::Store::recent`] and [`super::Store::runs_view`].
    pub complete: bool,
    /// What [`super::Store::refresh`] goes on from; `None` when it has to start afresh.
    pub(super) origin: Option<ViewOrigin>,
}

/// Where a complete view came from.
#[derive(Debug)]
pub(super) struct ViewOrigin {
    pub(super) settled: SettledTables,
    pub(super) live: Vec<Arc<LiveJournal>>,
}

impl StoreView {
    pub(super) fn new(columns: StoreTables, run_order: Vec<u32>, finding_order: ChunkedColumn<u32>) -> Self {
        Self { columns, run_order, finding_order, ..Self::default() }
    }

    pub fn run_count(&self) -> usize {
        self.run_order.len()
    }

    pub fn run(&self, index: usize) -> RunRow<'_> {
        self.columns.run_row(self.run_order.get(index).map_or(usize::MAX, |row| *row as usize))
    }

    pub fn run_index(&self, id: &str) -> Option<usize> {
        let row = self.columns.find_run(id)?;
        let rank = self.run_rank.get_or_init(|| rank_rows(self.columns.runs.len(), self.run_order.iter().copied()));
        rank.get(row).map(|index| *index as usize).filter(|index| *index < self.run_order.len())
    }

    pub fn finding_count(&self) -> usize {
        self.finding_order.len()
    }

    pub fn finding(&self, index: usize) -> FindingRow<'_> {
        let row = if index < self.finding_order.len() { self.finding_order.get(index) as usize } else { usize::MAX };
        self.columns.finding_row(row)
    }

    pub fn finding_index(&self, id: &str) -> Option<usize> {
        let row = self.columns.find_finding(id)?;
        let rank = self.finding_rank.get_or_init(|| rank_rows(self.columns.findings.len(), self.finding_order.iter()));
        rank.get(row).map(|index| *index as usize).filter(|index| *index < self.finding_order.len())
    }

    /// The index of the run that reported a finding last.
    pub fn last_reporting_run(&self, index: usize) -> Option<usize> {
        self.run_index_by(index, |(reported, _)| reported)
    }

    /// The index of the run in whose snapshot a finding stands at the lines of its row: the one that reported it last, or
    /// a later one that saw it there.
    pub fn locating_run(&self, index: usize) -> Option<usize> {
        self.run_index_by(index, |(_, placed)| placed)
    }

    fn run_index_by(&self, index: usize, which: impl FnOnce((usize, usize)) -> usize) -> Option<usize> {
        let row = (index < self.finding_order.len()).then(|| self.finding_order.get(index) as usize)?;
        let rank = self.run_rank.get_or_init(|| rank_rows(self.columns.runs.len(), self.run_order.iter().copied()));
        let index = *rank.get(which(self.columns.finding_runs(row)))? as usize;
        (index < self.run_order.len()).then_some(index)
    }

    /// Puts a finding, as a run reported it, where it stands now. Code that moved is the same code: what its suggestion
    /// replaces moves with it.
    pub fn relocate_finding(&self, index: usize, finding: &mut Finding) {
        let row = self.finding(index);
        if row.line_start == 0 || (finding.repo_relative_path == row.path && finding.lines() == row.lines()) {
            return;
        }
        if let Some(lines) = finding.suggestion.as_mut().and_then(|suggestion| suggestion.lines.as_mut()) {
            let moved = |line: u32| (line + row.line_start).saturating_sub(finding.line_start).max(1);
            *lines = LineRange::new(moved(lines.start), moved(lines.end));
        }
        row.path.clone_into(&mut finding.repo_relative_path);
        (finding.line_start, finding.line_end) = (row.line_start, row.line_end);
    }

    /// Bytes of memory that the tables hold, those shared with other views included.
    pub fn memory_bytes(&self) -> usize {
        self.columns.memory_bytes() + self.run_order.capacity() * 4 + self.finding_order.memory_bytes()
    }
}

fn rank_rows(rows: usize, order: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut rank = vec![u32::MAX; rows];
    for (index, row) in order.enumerate() {
        if let Some(slot) = rank.get_mut(row as usize) {
            *slot = index as u32;
        }
    }
    rank
}

/// Makes a view from rows, in the order in which they are given: for tests and benches.
#[derive(Debug, Default)]
pub struct StoreViewBuilder {
    columns: StoreTables,
    runs: Vec<u32>,
    listed: HashSet<u32>,
    findings: Vec<u32>,
}

impl StoreViewBuilder {
    pub fn run(&mut self, row: RunRow<'_>) -> &mut Self {
        let at = self.columns.upsert_run_row(&row) as u32;
        if self.listed.insert(at) {
            self.runs.push(at);
        }
        self
    }

    pub fn finding(&mut self, row: FindingRow<'_>) -> &mut Self {
        let before = self.columns.findings.len();
        let at = self.columns.upsert_finding_row(&row);
        if at >= before {
            self.findings.push(at as u32);
        }
        self
    }

    pub fn build(self) -> Arc<StoreView> {
        let mut view = StoreView::new(self.columns, self.runs, self.findings.into_iter().collect());
        view.complete = true;
        Arc::new(view)
    }
}
