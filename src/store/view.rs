//! The store as two tables of rows for lists: runs and findings, newest first.
//!
//! Rows are small and borrowed, so that a list draws the rows on screen without touching the others.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{FindingStatus, Kind, Priority, RunStatus, Severity};

/// A run in a list. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRow<'a> {
    pub id: &'a str,
    pub status: RunStatus,
    pub scope: &'a str,
    pub reviewer: &'a str,
    pub model: &'a str,
    pub branch: &'a str,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// Findings by priority.
    pub counts: [u32; 4],
    pub tokens: u64,
    pub files_total: u32,
    pub files_covered: u32,
    pub hunks_total: u32,
    pub hunks_covered: u32,
    pub attempt: u32,
    /// Empty when nothing superseded it.
    pub superseded_by: &'a str,
    pub diff_fingerprint: &'a str,
    pub scope_hash: &'a str,
    pub policy_version: &'a str,
    pub snapshot_commit: &'a str,
    pub head_commit: &'a str,
    pub worktree: &'a str,
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

/// All runs and findings. Index 0 is the newest run; findings are in the order of the runs that last reported them.
#[derive(Debug, Default)]
pub struct View {
    runs: Vec<RunRow<'static>>,
    findings: Vec<FindingRow<'static>>,
    run_index: HashMap<String, usize>,
    finding_index: HashMap<String, usize>,
    /// What a reader should be told once: corrupt lines set aside, a newer schema.
    pub notices: Vec<String>,
    /// False for [`super::Store::recent`].
    pub complete: bool,
}

impl View {
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    pub fn run(&self, index: usize) -> RunRow<'_> {
        self.runs[index]
    }

    pub fn run_index(&self, id: &str) -> Option<usize> {
        self.run_index.get(id).copied()
    }

    pub fn finding_count(&self) -> usize {
        self.findings.len()
    }

    pub fn finding(&self, index: usize) -> FindingRow<'_> {
        self.findings[index]
    }

    pub fn finding_index(&self, id: &str) -> Option<usize> {
        self.finding_index.get(id).copied()
    }
}

/// Makes a view from rows: for tests and benches.
#[derive(Debug, Default)]
pub struct ViewBuilder {
    view: View,
}

impl ViewBuilder {
    pub fn run(&mut self, _row: RunRow<'_>) -> &mut Self {
        unimplemented!()
    }

    pub fn finding(&mut self, _row: FindingRow<'_>) -> &mut Self {
        unimplemented!()
    }

    pub fn build(self) -> Arc<View> {
        Arc::new(self.view)
    }
}
