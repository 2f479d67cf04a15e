//! Presents the store as two tables for lists: runs and findings, newest first.
//!
//! Rows are small and borrowed, so that a list can draw the visible rows without touching the others. A view is
//! immutable; [`super::Store::refresh_view`] creates the next view, which shares all unchanged data.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use super::chunked_columns::ChunkedColumn;
use super::live_journal::LiveJournal;
use super::load::SettledTables;
use super::tables::StoreTables;
use crate::domain::{
    Finding, FindingDecision, FindingStatus, Kind, LineRange, Priority, Rating, RequestDecision, ReviewReach,
    ReviewedParts, RunRecord, RunReviewer, RunStatus, Severity, Shortfall, find_replacement,
};

/// A run in a list. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRow<'a> {
    /// Run id.
    pub id: &'a str,
    /// Status in the newest record.
    pub status: RunStatus,
    /// Scope in the text form of [`crate::domain::Scope`].
    pub scope: &'a str,
    /// Configured name of the reviewer.
    pub reviewer: &'a str,
    /// Configured model; empty for a reviewer without one.
    pub model: &'a str,
    /// Configured reasoning effort; empty when none is set.
    pub reasoning_effort: &'a str,
    /// Short name of the branch; empty when HEAD was detached.
    pub branch: &'a str,
    /// Time of the request.
    pub created_ms: i64,
    /// Time of the record's last change or, while the run works, of the last line in its journal.
    pub updated_ms: i64,
    /// Number of findings per priority, indexed by priority 0–3.
    pub counts: [u32; 4],
    /// Sum of input, output and reasoning tokens.
    pub tokens: u64,
    /// Number of changed files, including files left out.
    pub files_total: u32,
    /// Number of files that the reviewer has covered so far.
    pub files_covered: u32,
    /// Number of hunks to review.
    pub hunks_total: u32,
    /// Number of hunks that the reviewer has covered so far.
    pub hunks_covered: u32,
    /// True when the run completed or was skipped with gaps in its coverage.
    pub incomplete: bool,
    /// Files or hunks are carried over from an earlier run.
    pub has_carried: bool,
    /// Number of workers so far, including those of the run that it resumes; 0 before the first.
    pub attempt: u32,
    /// True when a person paused the run; meaningless for a run that has ended.
    pub paused: bool,
    /// Epoch of the newest request that the run answers.
    pub epoch: u64,
    /// Id of the run that superseded it; empty when there is none.
    pub superseded_by: &'a str,
    /// Cancel reason in the serialized form of [`crate::domain::CancelReason`]; empty when no cancellation was
    /// requested.
    pub cancel_reason: &'a str,
    /// Error class in the serialized form of [`crate::domain::ErrorClass`]; for a completed run, the error of a failed
    /// part.
    pub error_class: &'a str,
    /// Fingerprint of the change, as in [`RunRecord::diff_fingerprint`].
    pub diff_fingerprint: &'a str,
    /// Hash of the scope's settings, as in [`RunRecord::scope_hash`].
    pub scope_hash: &'a str,
    /// Hash of the prompts and thresholds, as in [`RunRecord::prompt_policy_version`].
    pub policy_version: &'a str,
    /// Id of the commit with the reviewed code.
    pub snapshot_commit: &'a str,
    /// Id of HEAD's commit at the request; empty when HEAD was unborn.
    pub head_commit: &'a str,
    /// Id of the newest HEAD at which the run is known to match the code: that of its last reuse, or of its request.
    pub matching_head: &'a str,
    /// Root folder of the working tree.
    pub worktree: &'a str,
    /// Commit or tree that the changes are compared with; empty when there is none.
    pub base_commit: &'a str,
    /// Cost in US dollars.
    pub cost: f64,
    /// Id of the run whose results answer the request of this skipped run; empty when there is none.
    pub reused_from: &'a str,
    /// Id of the run whose coverage and findings this run takes over; empty when there is none.
    pub carried_over_from: &'a str,
    /// Id of the run whose journal this run continues; empty when there is none.
    pub resumed_from: &'a str,
    /// Number of later requests that this run answered.
    pub reuse_count: u32,
    /// Id of the run of the panel that requested this run; empty when there is none.
    pub member_of: &'a str,
    /// Runs of the members, if this is the run of a panel; else empty. [`RunRow::panel_members`] reads it.
    pub members: &'a str,
}

impl<'a> RunRow<'a> {
    /// Returns the members of the panel in the order of the settings: the id of the run that answers for the member, and
    /// the decision about the member's request. Empty unless this is the run of a panel.
    pub fn panel_members(&self) -> impl Iterator<Item = (&'a str, RequestDecision)> + use<'a> {
        self.members.split_whitespace().map(|member| match member.split_once(':') {
            Some((run, word)) => (run, word.parse().unwrap_or(RequestDecision::Launch)),
            None => (member, RequestDecision::Launch),
        })
    }

    /// Returns true for the run of a panel.
    pub fn is_panel(&self) -> bool {
        !self.members.is_empty()
    }
}

impl RunRow<'_> {
    /// Returns the id of the newer run that replaced it, see [`find_replacement`]; empty when there is none.
    pub fn replaced_by(&self) -> &str {
        let [newer, panel] = [self.superseded_by, self.member_of].map(|id| (!id.is_empty()).then_some(id));
        find_replacement(newer, panel).unwrap_or_default()
    }

    /// Returns true when the run waits for a person to resume it.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.status.is_terminal()
    }

    /// Returns true when the run ended by itself, or was skipped, and did not review all that it should have.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete || self.status == RunStatus::Completed && !self.error_class.is_empty()
    }

    /// Returns the facts from which follows what the run has reviewed.
    fn reviewed_parts(&self) -> ReviewedParts {
        ReviewedParts {
            status: self.status,
            is_incomplete: self.is_incomplete(),
            files: self.files_total,
            files_reviewed: self.files_covered,
            hunks: self.hunks_total,
            hunks_reviewed: self.hunks_covered,
            has_carried: self.has_carried,
            findings: self.counts.iter().sum(),
            continues_earlier: !self.carried_over_from.is_empty() || !self.resumed_from.is_empty(),
            has_other_answer: !self.reused_from.is_empty() || !self.replaced_by().is_empty(),
        }
    }

    /// Returns what the run did not review, if it ended by itself.
    pub fn shortfall(&self) -> Option<Shortfall> {
        self.reviewed_parts().shortfall()
    }

    /// Returns the part of its change that the run has reviewed, however it ended.
    pub fn review_reach(&self) -> ReviewReach {
        self.reviewed_parts().reach()
    }

    /// Returns why the run reviewed less than its whole change, see [`ReviewedParts::describe_reason`].
    pub fn describe_unreviewed(&self) -> Option<String> {
        self.reviewed_parts().describe_reason(self.cancel_reason.parse().ok(), self.error_class.parse().ok())
    }

    /// Returns true when the run completed and reviewed a file, or had none to review: that it found nothing says something.
    pub fn has_reviewed(&self) -> bool {
        self.status == RunStatus::Completed && self.shortfall() != Some(Shortfall::NothingReviewed)
    }

    /// Returns the number of changed files that a review without gaps left out; `None` for none, and where the counts do not
    /// tell: those of a review that took parts over from an earlier one, and of a panel.
    pub fn left_out_files(&self) -> Option<u32> {
        let is_told = self.status == RunStatus::Completed
            && !self.is_incomplete()
            && !self.is_panel()
            && self.files_covered > 0
            && self.hunks_covered >= self.hunks_total;
        is_told.then(|| self.files_total.saturating_sub(self.files_covered)).filter(|files| *files > 0)
    }

    /// Returns the word that lists show for the run's state.
    pub fn state_word(&self) -> &'static str {
        self.status.list_word(self.paused, self.cancel_reason.parse().ok())
    }

    /// Returns the prompt set of the run's reviewer, as in [`RunReviewer::prompt_set`].
    pub fn prompt_set(&self) -> Option<&str> {
        RunReviewer::set_of_version(self.policy_version)
    }

    /// Returns true for a review of a fix's patch, which revdeck starts by itself.
    pub fn is_fix_review(&self) -> bool {
        self.scope_hash.starts_with(RunRecord::FIX_SCOPE_PREFIX)
    }

    /// Returns true for imported findings and for a comment of the user: nobody has reviewed code in such a run.
    pub fn is_import(&self) -> bool {
        self.scope_hash.starts_with(RunRecord::IMPORT_SCOPE_PREFIX)
    }
}

/// A finding in a list, with its current status.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingRow<'a> {
    /// Finding id.
    pub id: &'a str,
    /// Id of the earliest run that reported the finding.
    pub first_run: &'a str,
    /// Id of the latest run that reported the finding.
    pub last_run: &'a str,
    /// Status after all dispositions.
    pub status: FindingStatus,
    /// Priority in the latest report.
    pub priority: Priority,
    /// Severity in the latest report.
    pub severity: Severity,
    /// Kind in the latest report.
    pub kind: Kind,
    /// Path relative to the repository root, where a run last saw the finding.
    pub path: &'a str,
    /// First line of the anchor, 1-based.
    pub line_start: u32,
    /// Last line of the anchor, inclusive.
    pub line_end: u32,
    /// Title on one line.
    pub title: &'a str,
    /// Function around the finding; empty if it is not known, or if the title names it.
    pub symbol: &'a str,
    /// True when the reviewers of a panel contradict each other in the latest report, and no second opinion has settled that.
    pub panel_disputed: bool,
}

/// The part of a finding's row that statistics count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingOutline<'a> {
    /// Finding id.
    pub id: &'a str,
    /// Status after all dispositions.
    pub status: FindingStatus,
    /// Kind in the latest report.
    pub kind: Kind,
    /// Path as in [`FindingRow::path`].
    pub path: &'a str,
    /// Number of the path: equal paths of a view have the same one.
    pub path_number: u32,
}

impl FindingRow<'_> {
    /// Returns the lines of the anchor (1-based, inclusive).
    pub fn lines(&self) -> LineRange {
        LineRange::new(self.line_start, self.line_end)
    }
}

/// All runs and findings. Index 0 is the newest run. Findings are sorted by the run that last reported them, then by
/// priority, path and line.
///
/// "Newest" means the order of requests in the file, so that a clock that goes backwards does not change the order. An
/// index out of range gives an empty row.
#[derive(Debug, Default)]
pub struct StoreView {
    columns: StoreTables,
    /// Rows of [`StoreTables::runs`] in display order.
    run_order: Vec<u32>,
    finding_order: ChunkedColumn<u32>,
    /// Display index of each row; computed on first use.
    run_rank: OnceLock<Vec<u32>>,
    finding_rank: OnceLock<Vec<u32>>,
    /// Fingerprint of the files with undecided findings; computed on first use.
    undecided_files: OnceLock<u64>,
    /// Ratings of the listed findings, by id. Rows have the rated values.
    pub(super) ratings: HashMap<String, Rating>,
    /// Messages for the user, for example about corrupt lines or a newer schema.
    pub notices: Vec<String>,
    /// False for [`super::Store::recent_view`] and [`super::Store::runs_view`].
    pub complete: bool,
    /// State from which [`super::Store::refresh_view`] continues; `None` when it must start again.
    pub(super) origin: Option<ViewOrigin>,
}

/// State from which a complete view was built.
#[derive(Debug)]
pub(super) struct ViewOrigin {
    pub(super) settled: SettledTables,
    pub(super) live: Vec<Arc<LiveJournal>>,
    /// Length of `ratings.ndjson` when it was read, in bytes.
    pub(super) ratings_bytes: u64,
}

impl StoreView {
    pub(super) fn new(columns: StoreTables, run_order: Vec<u32>, finding_order: ChunkedColumn<u32>) -> Self {
        Self { columns, run_order, finding_order, ..Self::default() }
    }

    /// Returns the number of runs in the list.
    pub fn run_count(&self) -> usize {
        self.run_order.len()
    }

    /// Returns the run at a position of the list.
    pub fn run(&self, index: usize) -> RunRow<'_> {
        self.columns.run_row(self.run_order.get(index).map_or(usize::MAX, |row| *row as usize))
    }

    /// Returns the time of a run's request in milliseconds since 1970; cheaper than the whole row.
    pub fn run_created_ms(&self, index: usize) -> i64 {
        self.run_order.get(index).map_or(0, |row| self.columns.run_created_ms(*row as usize))
    }

    /// Returns the root folder of a run's working tree; cheaper than the whole row.
    pub fn run_worktree(&self, index: usize) -> &str {
        self.run_order.get(index).map_or("", |row| self.columns.run_worktree(*row as usize))
    }

    /// Returns the status of a run; cheaper than the whole row.
    pub fn run_status(&self, index: usize) -> RunStatus {
        self.columns.run_status(self.run_order.get(index).map_or(usize::MAX, |row| *row as usize))
    }

    /// Returns the id of a run; cheaper than the whole row.
    pub fn run_id(&self, index: usize) -> &str {
        self.columns.run_id(self.run_order.get(index).map_or(usize::MAX, |row| *row as usize))
    }

    /// Returns a fingerprint of the paths of all undecided findings and of the runs that last reported them, in any order:
    /// views with equal ones have, but for chance, the same. The first call reads the status of each finding, the next ones
    /// read nothing.
    pub fn undecided_files(&self) -> u64 {
        *self.undecided_files.get_or_init(|| {
            let undecided = (0..self.finding_count()).filter(|index| self.finding_status(*index).is_undecided());
            undecided.fold(0, |sum: u64, index| {
                let row = self.finding(index);
                let mut hasher = DefaultHasher::new();
                (row.path, row.last_run).hash(&mut hasher);
                sum.wrapping_add(hasher.finish())
            })
        })
    }

    /// Returns the position of the run with this id; `None` when the list does not contain it.
    pub fn run_index(&self, id: &str) -> Option<usize> {
        let row = self.columns.find_run(id)?;
        let rank = self.run_rank.get_or_init(|| rank_rows(self.columns.runs.len(), self.run_order.iter().copied()));
        rank.get(row).map(|index| *index as usize).filter(|index| *index < self.run_order.len())
    }

    /// Returns the number of findings in the list.
    pub fn finding_count(&self) -> usize {
        self.finding_order.len()
    }

    /// Returns the finding at a position of the list.
    pub fn finding(&self, index: usize) -> FindingRow<'_> {
        self.columns.finding_row(self.finding_table_row(index))
    }

    /// Returns the status of a finding; cheaper than the whole row.
    pub fn finding_status(&self, index: usize) -> FindingStatus {
        self.columns.finding_status(self.finding_table_row(index))
    }

    /// Returns the part of a finding that statistics count; cheaper than the whole row.
    pub fn finding_outline(&self, index: usize) -> FindingOutline<'_> {
        self.columns.finding_outline(self.finding_table_row(index))
    }

    /// Returns the row of a finding in the table; one that does not exist for an index out of range.
    fn finding_table_row(&self, index: usize) -> usize {
        if index < self.finding_order.len() { self.finding_order.get(index) as usize } else { usize::MAX }
    }

    /// Returns the indexes of the findings on any of these paths, in the order of the list. No whole row is read, which
    /// takes ten times as long.
    pub fn findings_on<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> impl Iterator<Item = usize> + '_ {
        let marked = self.columns.mark_paths(paths);
        let rows = self.finding_order.iter().enumerate();
        let is_marked = move |row: u32| marked.get(self.columns.path_number(row as usize) as usize) == Some(&true);
        rows.filter(move |(_, row)| is_marked(*row)).map(|(index, _)| index)
    }

    /// Returns the position of the finding with this id; `None` when the list does not contain it.
    pub fn finding_index(&self, id: &str) -> Option<usize> {
        let row = self.columns.find_finding(id)?;
        let rank = self.finding_rank.get_or_init(|| rank_rows(self.columns.findings.len(), self.finding_order.iter()));
        rank.get(row).map(|index| *index as usize).filter(|index| *index < self.finding_order.len())
    }

    /// Returns the index of the run that last reported a finding.
    pub fn last_reporting_run(&self, index: usize) -> Option<usize> {
        self.run_index_by(index, |(reported, _)| reported)
    }

    /// Returns the index of the run that first reported a finding.
    pub fn first_reporting_run(&self, index: usize) -> Option<usize> {
        let row = (index < self.finding_order.len()).then(|| self.finding_order.get(index) as usize)?;
        self.run_position(self.columns.first_reporting_run(row))
    }

    /// Returns the last disposition of a finding. `None` if there is none, if this version cannot read it, or if the view
    /// is not complete.
    pub fn decision(&self, index: usize) -> Option<FindingDecision> {
        let row =
            (self.complete && index < self.finding_order.len()).then(|| self.finding_order.get(index) as usize)?;
        self.columns.decision(row)
    }

    /// Returns the indexes of the findings that a run reported or carried over, each once; none if the view is not
    /// complete. A run that has not ended has those of its journal.
    pub fn reported_findings(&self, run: usize) -> impl Iterator<Item = usize> + '_ {
        let row = self.run_order.get(run).filter(|_| self.complete);
        let rank = self.finding_rank.get_or_init(|| rank_rows(self.columns.findings.len(), self.finding_order.iter()));
        let rows = row.into_iter().flat_map(move |row| self.columns.reports(*row as usize));
        rows.filter_map(move |row| {
            rank.get(row).map(|index| *index as usize).filter(|index| *index < self.finding_order.len())
        })
    }

    /// Returns the offset and the length in bytes of a run's latest line in `runs.ndjson`; `None` when it is not known.
    pub(super) fn run_line(&self, index: usize) -> Option<(u64, usize)> {
        self.columns.run_line(*self.run_order.get(index)? as usize)
    }

    /// Returns the index of the run whose snapshot contains the finding at the lines of its row: the run that last
    /// reported it, or a later run that saw it there.
    pub fn locating_run(&self, index: usize) -> Option<usize> {
        self.run_index_by(index, |(_, placed)| placed)
    }

    fn run_index_by(&self, index: usize, which: impl FnOnce((usize, usize)) -> usize) -> Option<usize> {
        let row = (index < self.finding_order.len()).then(|| self.finding_order.get(index) as usize)?;
        self.run_position(which(self.columns.finding_runs(row)))
    }

    /// Returns the position of a row of the table of runs.
    fn run_position(&self, row: usize) -> Option<usize> {
        let rank = self.run_rank.get_or_init(|| rank_rows(self.columns.runs.len(), self.run_order.iter().copied()));
        let index = *rank.get(row)? as usize;
        (index < self.run_order.len()).then_some(index)
    }

    /// Gives a finding, as a run reported it, the priority and kind of its rating, if it has one.
    pub fn rate_finding(&self, finding: &mut Finding) {
        if let Some(rating) = self.ratings.get(finding.finding_id.as_str()) {
            rating.apply(finding);
        }
    }

    /// Brings a finding, as a run reported it, up to date: moves it to its current location, together with the line range
    /// of its suggestion, and gives it the priority and kind of its rating.
    pub fn update_finding(&self, index: usize, finding: &mut Finding) {
        let row = self.finding(index);
        self.rate_finding(finding);
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

    /// Returns the memory of the tables in bytes, including data shared with other views.
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

/// Builds a view from rows in the given order; for tests and benches.
#[derive(Debug, Default)]
pub struct StoreViewBuilder {
    columns: StoreTables,
    runs: Vec<u32>,
    listed: HashSet<u32>,
    findings: Vec<u32>,
}

impl StoreViewBuilder {
    /// Adds a run at the end of the list; a run that is already listed gets the new data.
    pub fn run(&mut self, row: RunRow<'_>) -> &mut Self {
        let at = self.columns.upsert_run_row(&row) as u32;
        if self.listed.insert(at) {
            self.runs.push(at);
        }
        self
    }

    /// Adds a finding at the end of the list; a finding that is already listed gets the new data.
    pub fn finding(&mut self, row: FindingRow<'_>) -> &mut Self {
        let before = self.columns.findings.len();
        let at = self.columns.upsert_finding_row(&row);
        if at >= before {
            self.findings.push(at as u32);
        }
        self
    }

    /// Sets the findings that a listed run reported, by their ids; unknown ids are left out.
    pub fn reports(&mut self, run: &str, findings: &[&str]) -> &mut Self {
        let rows = findings.iter().filter_map(|id| self.columns.find_finding(id)).map(|row| row as u32).collect();
        if let Some(run) = self.columns.find_run(run) {
            self.columns.set_reports(run, rows);
        }
        self
    }

    /// Returns the view, marked as complete.
    pub fn build(self) -> Arc<StoreView> {
        let mut view = StoreView::new(self.columns, self.runs, self.findings.into_iter().collect());
        view.complete = true;
        Arc::new(view)
    }
}
