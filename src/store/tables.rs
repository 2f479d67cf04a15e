//! Stores runs and findings as two tables of fixed-size rows, with their texts in a shared pool.
//!
//! Invariants:
//! - Runs are in the order in which their first lines were written, regardless of the clock, and keep their rows.
//! - A finding has a single row, with the data of the latest run that reported it, in whatever order the runs are
//!   added.

use bytemuck::{Pod, Zeroable};

use super::chunked_columns::{ChunkedColumn, HashIndex, TextPool, TextSpan, fold_hash};
use super::finding_scan::FindingFacts;
use super::parse::{FindingLine, MovedLine, RunLine};
use super::view::{FindingOutline, FindingRow, RunRow};
use crate::domain::{
    Actor, DismissalReason, FindingDecision, FindingStatus, Kind, Priority, Rating, RunStatus, Severity, Time,
};

/// Length of a finding id in bytes.
pub(super) const FINDING_ID_BYTES: usize = 18;

/// A finding id as bytes, for tables without text.
pub(super) type FindingIdBytes = [u8; FINDING_ID_BYTES];

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PackedRun {
    id: TextSpan,
    created_ms: i64,
    pub(super) updated_ms: i64,
    tokens: u64,
    epoch: u64,
    cost: f64,
    /// Offset of the run's latest readable line in `runs.ndjson`, and its length without the line feed; 0 and 0 when it is
    /// not known.
    line_at: u64,
    line_bytes: u32,
    /// First row of the run's findings in [`StoreTables::reports`], and their number.
    reports_at: u32,
    report_count: u32,
    pub(super) counts: [u32; 4],
    pub(super) files_total: u32,
    pub(super) files_covered: u32,
    pub(super) hunks_total: u32,
    pub(super) hunks_covered: u32,
    attempt: u32,
    scope: u32,
    reviewer: u32,
    model: u32,
    reasoning_effort: u32,
    branch: u32,
    superseded_by: u32,
    cancel_reason: u32,
    error_class: u32,
    scope_hash: u32,
    policy_version: u32,
    head_commit: u32,
    matching_head: u32,
    worktree: u32,
    base_commit: u32,
    reused_from: u32,
    carried_over_from: u32,
    resumed_from: u32,
    reuse_count: u32,
    member_of: u32,
    diff_fingerprint: TextSpan,
    snapshot_commit: TextSpan,
    members: TextSpan,
    pub(super) status: u8,
    /// [`PackedRun::UNSETTLED`], [`PackedRun::SETTLED`] or [`PackedRun::RAISED`].
    pub(super) settled: u8,
    /// 1 while a person has paused the run.
    paused: u8,
    /// [`PackedRun::INCOMPLETE`] and [`PackedRun::CARRIED`].
    coverage_flags: u8,
}

impl PackedRun {
    /// Flag of a run that completed or was skipped and did not review all that it should have.
    const INCOMPLETE: u8 = 1;
    /// Flag of a run that carries files or hunks over from an earlier one.
    const CARRIED: u8 = 2;
    /// The table does not contain the final findings of the run yet.
    pub(super) const UNSETTLED: u8 = 0;
    /// The run has ended and the table contains its final findings.
    pub(super) const SETTLED: u8 = 1;
    /// As settled, but the findings must be read once more, because they count for more than when they were read.
    pub(super) const RAISED: u8 = 2;
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PackedFinding {
    pub(super) id: TextSpan,
    pub(super) status: u8,
    priority: u8,
    /// Position in [`Severity::ALL`]; the highest bit is [`PackedFinding::DISPUTED`].
    severity: u8,
    kind: u8,
    first_run: u32,
    pub(super) last_run: u32,
    pub(super) path: u32,
    line_start: u32,
    line_end: u32,
    /// Row of the run whose snapshot contains the finding at this path and these lines.
    location_run: u32,
    pub(super) title: TextSpan,
    /// Interned name of the function around the finding; 0 if it is not known.
    pub(super) symbol: u32,
}

/// Texts of a finding's row in another table.
pub(super) struct FindingTexts<'a> {
    pub(super) id: &'a str,
    pub(super) path: &'a str,
    pub(super) title: &'a str,
    pub(super) symbol: &'a str,
}

impl PackedFinding {
    /// Bit of `severity` that says that the reviewers of a panel contradict each other. A row has no byte to spare, and a
    /// field of its own would add 4 bytes to every finding.
    const DISPUTED: u8 = 0x80;

    /// Returns the severity and the dispute of a report as one byte.
    fn pack_severity(severity: Severity, is_disputed: bool) -> u8 {
        severity as u8 | if is_disputed { Self::DISPUTED } else { 0 }
    }

    fn severity(&self) -> Severity {
        enum_from_index(Severity::ALL, self.severity & !Self::DISPUTED).unwrap_or(Severity::Low)
    }

    fn is_disputed(&self) -> bool {
        self.severity & Self::DISPUTED != 0
    }

    /// Returns the facts by which a finding is selected, in a list of `runs` runs.
    pub(super) fn facts(&self, runs: usize, in_paths: bool) -> FindingFacts {
        // The list of runs is the table in reverse.
        let position = |row: u32| runs.wrapping_sub(1).wrapping_sub(row as usize);
        FindingFacts {
            status: enum_from_index(FindingStatus::ALL, self.status).unwrap_or(FindingStatus::Open),
            priority: enum_from_index(&Priority::ALL, self.priority).unwrap_or(Priority::P3),
            kind: enum_from_index(Kind::ALL, self.kind).unwrap_or(Kind::Correctness),
            first_run: position(self.first_run),
            last_run: position(self.last_run),
            in_paths,
        }
    }
}

/// Last disposition of a finding; all zeros when there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PackedDecision {
    at_ms: i64,
    /// Position in [`Actor::ALL`] plus 1; 0 when nobody decided.
    actor: u8,
    /// Position in [`DismissalReason::ALL`].
    reason: u8,
    unused: [u8; 6],
}

impl From<FindingDecision> for PackedDecision {
    fn from(decision: FindingDecision) -> Self {
        Self {
            at_ms: decision.at.as_millisecond(),
            actor: decision.actor as u8 + 1,
            reason: decision.reason as u8,
            unused: [0; 6],
        }
    }
}

impl PackedDecision {
    fn unpack(self) -> Option<FindingDecision> {
        Some(FindingDecision {
            actor: enum_from_index(Actor::ALL, self.actor.checked_sub(1)?)?,
            at: Time::from_millisecond(self.at_ms).ok()?,
            reason: enum_from_index(DismissalReason::ALL, self.reason)?,
        })
    }
}

/// Status of a finding after its last disposition, with that disposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedStatus {
    pub(super) status: u8,
    pub(super) decision: PackedDecision,
}

impl PackedStatus {
    /// Status of a finding about which nobody has decided.
    pub(super) const OPEN: Self = Self {
        status: FindingStatus::Open as u8,
        decision: PackedDecision { at_ms: 0, actor: 0, reason: 0, unused: [0; 6] },
    };
}

/// The tables of runs and findings.
#[derive(Debug, Clone)]
pub(super) struct StoreTables {
    pub(super) runs: ChunkedColumn<PackedRun>,
    pub(super) run_ids: HashIndex,
    pub(super) run_text: TextPool,
    /// Rows of the findings that runs reported, one run after the other.
    pub(super) reports: ChunkedColumn<u32>,
    pub(super) findings: ChunkedColumn<PackedFinding>,
    /// Last dispositions of the findings of the same rows. Rows that [`StoreTables::insert_packed_finding`] added have none.
    pub(super) decisions: ChunkedColumn<PackedDecision>,
    pub(super) finding_ids: HashIndex,
    pub(super) finding_text: TextPool,
    pub(super) seed: u64,
}

impl Default for StoreTables {
    fn default() -> Self {
        use std::hash::BuildHasher;
        Self::new(std::hash::RandomState::new().hash_one(0_u64))
    }
}

/// Converts a text to a fixed number of bytes, padded with zeros or truncated.
pub(super) fn pad_bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    bytes
}

/// Result of [`StoreTables::upsert_run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunUpsert {
    pub(super) row: usize,
    /// True if the reports of the run count for more than when they were read, so that they must be read once more.
    pub(super) is_raised: bool,
}

/// Result of [`StoreTables::upsert_finding`]; the number is the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingUpsert {
    Inserted(usize),
    /// The row now contains the report of this run.
    Replaced(usize),
    /// The row keeps the report of a later run.
    Kept(usize),
}

impl FindingUpsert {
    /// Returns the row of the finding.
    pub(super) fn row(self) -> usize {
        match self {
            Self::Inserted(row) | Self::Replaced(row) | Self::Kept(row) => row,
        }
    }
}

impl StoreTables {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            runs: ChunkedColumn::default(),
            run_ids: HashIndex::default(),
            run_text: TextPool::new(seed),
            reports: ChunkedColumn::default(),
            findings: ChunkedColumn::default(),
            decisions: ChunkedColumn::default(),
            finding_ids: HashIndex::default(),
            finding_text: TextPool::new(seed),
            seed,
        }
    }

    pub(super) fn find_run(&self, id: &str) -> Option<usize> {
        self.run_ids.find(fold_hash(self.seed, id.as_bytes()), |row| self.run_id(row) == id)
    }

    pub(super) fn find_finding(&self, id: &str) -> Option<usize> {
        let is = |row| self.finding_text.get(self.findings.get(row).id) == id;
        self.finding_ids.find(fold_hash(self.seed, id.as_bytes()), is)
    }

    pub(super) fn run_id(&self, row: usize) -> &str {
        self.run_text.get(self.runs.get(row).id)
    }

    /// Returns the time of a run's request in milliseconds since 1970.
    pub(super) fn run_created_ms(&self, row: usize) -> i64 {
        self.runs.get(row).created_ms
    }

    /// Returns the root folder of a run's working tree.
    pub(super) fn run_worktree(&self, row: usize) -> &str {
        self.run_text.get_interned(self.runs.get(row).worktree)
    }

    /// Returns the status of a run.
    pub(super) fn run_status(&self, row: usize) -> RunStatus {
        enum_from_index(RunStatus::ALL, self.runs.get(row).status).unwrap_or(RunStatus::Lost)
    }

    /// Adds a run's row or updates it from a line of `line_bytes` at offset `line_at`.
    pub(super) fn upsert_run(&mut self, line: &RunLine<'_>, (line_at, line_bytes): (u64, usize)) -> RunUpsert {
        let upsert = self.pack_run(&line.to_row(), None);
        let line_bytes = u32::try_from(line_bytes).unwrap_or(0);
        self.runs.set(upsert.row, PackedRun { line_at, line_bytes, ..self.runs.get(upsert.row) });
        upsert
    }

    /// Returns the offset and the length of the latest line of a run; `None` when it is not known.
    pub(super) fn run_line(&self, row: usize) -> Option<(u64, usize)> {
        let run = self.runs.get(row);
        (run.line_bytes > 0).then_some((run.line_at, run.line_bytes as usize))
    }

    /// Sets the findings that a run reported; each counts once.
    pub(super) fn set_reports(&mut self, run: usize, mut findings: Vec<u32>) {
        findings.sort_unstable();
        findings.dedup();
        let reports_at = self.reports.len() as u32;
        findings.iter().for_each(|finding| self.reports.push(*finding));
        self.runs.set(run, PackedRun { reports_at, report_count: findings.len() as u32, ..self.runs.get(run) });
    }

    /// Returns the rows of the findings that a run reported, each once.
    pub(super) fn reports(&self, run: usize) -> impl Iterator<Item = usize> + '_ {
        let run = self.runs.get(run);
        let begin = run.reports_at as usize;
        let end = begin.saturating_add(run.report_count as usize).min(self.reports.len());
        (begin..end).map(|at| self.reports.get(at) as usize)
    }

    /// Returns the last disposition of a finding.
    pub(super) fn decision(&self, row: usize) -> Option<FindingDecision> {
        self.decisions.get(row).unpack()
    }

    /// Adds a run's row of a view unchanged.
    pub(super) fn upsert_run_row(&mut self, row: &RunRow<'_>) -> usize {
        self.pack_run(row, Some(PackedRun::SETTLED)).row
    }

    /// Adds a run or updates it; keeps whether it is settled unless `settled` says it.
    fn pack_run(&mut self, row: &RunRow<'_>, settled: Option<u8>) -> RunUpsert {
        let known = self.find_run(row.id);
        let old = known.map_or(PackedRun::zeroed(), |known| self.runs.get(known));
        let text = &mut self.run_text;
        // An empty text has the number 0.
        let worktree = text.intern(row.worktree);
        let is_raised = old.settled == PackedRun::SETTLED && old.worktree == 0 && worktree != 0;
        let incomplete = if row.incomplete { PackedRun::INCOMPLETE } else { 0 };
        let coverage_flags = incomplete | if row.has_carried { PackedRun::CARRIED } else { 0 };
        let column = PackedRun {
            id: text.replace(old.id, row.id),
            status: row.status as u8,
            settled: if is_raised { PackedRun::RAISED } else { settled.unwrap_or(old.settled) },
            paused: u8::from(row.paused),
            coverage_flags,
            line_at: old.line_at,
            line_bytes: old.line_bytes,
            reports_at: old.reports_at,
            report_count: old.report_count,
            epoch: row.epoch,
            cost: row.cost,
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
            tokens: row.tokens,
            counts: row.counts,
            files_total: row.files_total,
            files_covered: row.files_covered,
            hunks_total: row.hunks_total,
            hunks_covered: row.hunks_covered,
            attempt: row.attempt,
            scope: text.intern(row.scope),
            reviewer: text.intern(row.reviewer),
            model: text.intern(row.model),
            reasoning_effort: text.intern(row.reasoning_effort),
            branch: text.intern(row.branch),
            superseded_by: text.intern(row.superseded_by),
            cancel_reason: text.intern(row.cancel_reason),
            error_class: text.intern(row.error_class),
            scope_hash: text.intern(row.scope_hash),
            policy_version: text.intern(row.policy_version),
            head_commit: text.intern(row.head_commit),
            matching_head: text.intern(row.matching_head),
            worktree,
            base_commit: text.intern(row.base_commit),
            reused_from: text.intern(row.reused_from),
            carried_over_from: text.intern(row.carried_over_from),
            resumed_from: text.intern(row.resumed_from),
            reuse_count: row.reuse_count,
            member_of: text.intern(row.member_of),
            diff_fingerprint: text.replace(old.diff_fingerprint, row.diff_fingerprint),
            snapshot_commit: text.replace(old.snapshot_commit, row.snapshot_commit),
            members: text.replace(old.members, row.members),
        };
        RunUpsert { row: self.write_run(known, column), is_raised }
    }

    fn write_run(&mut self, row: Option<usize>, column: PackedRun) -> usize {
        if let Some(row) = row {
            self.runs.set(row, column);
            return row;
        }
        let row = self.runs.len();
        self.runs.push(column);
        let (runs, text, seed) = (&self.runs, &self.run_text, self.seed);
        let code = |row: usize| fold_hash(seed, text.get(runs.get(row).id).as_bytes());
        self.run_ids.insert(code(row), row, code);
        row
    }

    /// Returns the rank of the reports of a run: the highest one counts. A run of another machine that has answered no request
    /// here has no worktree: whatever it reports, the reports of this machine say more about the code that is here. Its rank
    /// rises when it answers one.
    fn report_rank(&self, run: u32) -> (bool, u32) {
        (!self.run_worktree(run as usize).is_empty(), run)
    }

    /// Adds a finding that a run reported. The latest report is determined by the run's row, so the order of calls does
    /// not matter. When a run reports a finding twice, the later call wins.
    pub(super) fn upsert_finding(&mut self, run: usize, line: &FindingLine<'_>, status: PackedStatus) -> FindingUpsert {
        let run = run as u32;
        let row = self.find_finding(&line.finding_id);
        let old = row.map(|row| self.findings.get(row));
        if let (Some(row), Some(mut old)) = (row, old)
            && self.report_rank(old.last_run) > self.report_rank(run)
        {
            if run < old.first_run {
                old.first_run = run;
                self.findings.set(row, old);
            }
            return FindingUpsert::Kept(row);
        }
        let text = &mut self.finding_text;
        // A later run may have seen the finding elsewhere without reporting it.
        let seen = old.filter(|old| old.location_run > run);
        let column = PackedFinding {
            id: text.replace(old.map_or(TextSpan::default(), |old| old.id), &line.finding_id),
            status: old.map_or(status.status, |old| old.status),
            priority: line.priority as u8,
            severity: PackedFinding::pack_severity(line.severity, line.is_disputed()),
            kind: line.kind as u8,
            first_run: old.map_or(run, |old| old.first_run.min(run)),
            last_run: run,
            path: seen.map_or_else(|| text.intern(&line.repo_relative_path), |seen| seen.path),
            line_start: seen.map_or(line.line_start, |seen| seen.line_start),
            line_end: seen.map_or(line.line_end, |seen| seen.line_end),
            location_run: seen.map_or(run, |seen| seen.location_run),
            title: text.replace(old.map_or(TextSpan::default(), |old| old.title), &line.title),
            symbol: text.intern(&line.symbol),
        };
        if let Some(row) = row {
            self.findings.set(row, column);
            return FindingUpsert::Replaced(row);
        }
        let row = self.findings.len();
        self.findings.push(column);
        self.decisions.push(status.decision);
        let (findings, text, seed) = (&self.findings, &self.finding_text, self.seed);
        let code = |row: usize| fold_hash(seed, text.get(findings.get(row).id).as_bytes());
        self.finding_ids.insert(code(row), row, code);
        FindingUpsert::Inserted(row)
    }

    /// Adds a row of another table of the same runs, with its texts.
    pub(super) fn insert_packed_finding(&mut self, row: PackedFinding, texts: FindingTexts<'_>) {
        let FindingTexts { id, path, title, symbol } = texts;
        let text = &mut self.finding_text;
        let (path, symbol) = (text.intern(path), text.intern(symbol));
        let packed = PackedFinding { id: text.push(id), path, title: text.push(title), symbol, ..row };
        let at = self.findings.len();
        self.findings.push(packed);
        self.decisions.push(PackedDecision::default());
        let (findings, text, seed) = (&self.findings, &self.finding_text, self.seed);
        let code = |row: usize| fold_hash(seed, text.get(findings.get(row).id).as_bytes());
        self.finding_ids.insert(code(at), at, code);
    }

    /// Moves a finding to the location where a run saw it, unless a later run has reported or seen it. Returns the row
    /// if it changed.
    pub(super) fn move_finding(&mut self, run: usize, line: &MovedLine<'_>) -> Option<usize> {
        let row = self.find_finding(&line.finding_id)?;
        let old = self.findings.get(row);
        let run = run as u32;
        if run < old.location_run || line.line_start == 0 || line.line_end < line.line_start {
            return None;
        }
        let path = self.finding_text.intern(&line.path);
        let moved =
            PackedFinding { path, line_start: line.line_start, line_end: line.line_end, location_run: run, ..old };
        self.findings.set(row, moved);
        Some(row)
    }

    /// Returns the row of the run that last reported a finding, and the row of the run whose snapshot contains its
    /// location.
    pub(super) fn finding_runs(&self, row: usize) -> (usize, usize) {
        let column = self.findings.get(row);
        (column.last_run as usize, column.location_run as usize)
    }

    /// Returns the current status of a finding.
    pub(super) fn finding_status(&self, row: usize) -> FindingStatus {
        enum_from_index(FindingStatus::ALL, self.findings.get(row).status).unwrap_or(FindingStatus::Open)
    }

    /// Returns the row of the run that first reported a finding.
    pub(super) fn first_reporting_run(&self, row: usize) -> usize {
        self.findings.get(row).first_run as usize
    }

    /// Gives a finding the priority and kind of a rating. Returns its row; `None` if it is unknown.
    pub(super) fn rate_finding(&mut self, id: &str, rating: Rating) -> Option<usize> {
        let row = self.find_finding(id)?;
        let mut finding = self.findings.get(row);
        finding.priority = rating.priority.map_or(finding.priority, |priority| priority as u8);
        finding.kind = rating.kind.map_or(finding.kind, |kind| kind as u8);
        self.findings.set(row, finding);
        Some(row)
    }

    /// Sets the current status of a finding; returns false when no run has reported it yet.
    pub(super) fn set_status(&mut self, id: &str, status: PackedStatus) -> bool {
        let Some(row) = self.find_finding(id) else { return false };
        let mut column = self.findings.get(row);
        if column.status != status.status {
            column.status = status.status;
            self.findings.set(row, column);
        }
        self.decisions.set(row, status.decision);
        true
    }

    /// Compares findings for the list order: latest run first, then priority, path and line.
    pub(super) fn compare_findings(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let (a, b) = (self.findings.get(a), self.findings.get(b));
        b.last_run
            .cmp(&a.last_run)
            .then(a.priority.cmp(&b.priority))
            .then_with(|| {
                if a.path == b.path {
                    return std::cmp::Ordering::Equal;
                }
                self.finding_text.get_interned(a.path).cmp(self.finding_text.get_interned(b.path))
            })
            .then(a.line_start.cmp(&b.line_start))
            .then_with(|| self.finding_text.get(a.id).cmp(self.finding_text.get(b.id)))
    }

    pub(super) fn run_row(&self, row: usize) -> RunRow<'_> {
        let (column, text) = (self.runs.get(row), &self.run_text);
        RunRow {
            id: self.run_id(row),
            status: enum_from_index(RunStatus::ALL, column.status).unwrap_or(RunStatus::Lost),
            scope: text.get_interned(column.scope),
            reviewer: text.get_interned(column.reviewer),
            model: text.get_interned(column.model),
            reasoning_effort: text.get_interned(column.reasoning_effort),
            branch: text.get_interned(column.branch),
            created_ms: column.created_ms,
            updated_ms: column.updated_ms,
            counts: column.counts,
            tokens: column.tokens,
            files_total: column.files_total,
            files_covered: column.files_covered,
            hunks_total: column.hunks_total,
            hunks_covered: column.hunks_covered,
            incomplete: column.coverage_flags & PackedRun::INCOMPLETE != 0,
            has_carried: column.coverage_flags & PackedRun::CARRIED != 0,
            attempt: column.attempt,
            paused: column.paused != 0,
            epoch: column.epoch,
            superseded_by: text.get_interned(column.superseded_by),
            cancel_reason: text.get_interned(column.cancel_reason),
            error_class: text.get_interned(column.error_class),
            diff_fingerprint: text.get(column.diff_fingerprint),
            scope_hash: text.get_interned(column.scope_hash),
            policy_version: text.get_interned(column.policy_version),
            snapshot_commit: text.get(column.snapshot_commit),
            head_commit: text.get_interned(column.head_commit),
            matching_head: text.get_interned(column.matching_head),
            worktree: text.get_interned(column.worktree),
            base_commit: text.get_interned(column.base_commit),
            cost: column.cost,
            reused_from: text.get_interned(column.reused_from),
            carried_over_from: text.get_interned(column.carried_over_from),
            resumed_from: text.get_interned(column.resumed_from),
            reuse_count: column.reuse_count,
            member_of: text.get_interned(column.member_of),
            members: text.get(column.members),
        }
    }

    pub(super) fn finding_row(&self, row: usize) -> FindingRow<'_> {
        let (column, text) = (self.findings.get(row), &self.finding_text);
        FindingRow {
            id: text.get(column.id),
            first_run: self.run_id(column.first_run as usize),
            last_run: self.run_id(column.last_run as usize),
            status: enum_from_index(FindingStatus::ALL, column.status).unwrap_or(FindingStatus::Open),
            priority: enum_from_index(&Priority::ALL, column.priority).unwrap_or(Priority::P3),
            severity: column.severity(),
            kind: enum_from_index(Kind::ALL, column.kind).unwrap_or(Kind::Correctness),
            path: text.get_interned(column.path),
            line_start: column.line_start,
            line_end: column.line_end,
            title: text.get(column.title),
            symbol: text.get_interned(column.symbol),
            panel_disputed: column.is_disputed(),
        }
    }

    /// Returns which of the numbers of texts are those of `paths`.
    pub(super) fn mark_paths<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> Vec<bool> {
        let mut marked = vec![false; self.finding_text.number_end()];
        for number in paths.into_iter().filter_map(|path| self.finding_text.number(path)) {
            if let Some(mark) = marked.get_mut(number as usize) {
                *mark = true;
            }
        }
        marked
    }

    /// Returns the number of a finding's path.
    pub(super) fn path_number(&self, row: usize) -> u32 {
        self.findings.get(row).path
    }

    /// Returns the part of a finding's row that statistics count.
    pub(super) fn finding_outline(&self, row: usize) -> FindingOutline<'_> {
        let column = self.findings.get(row);
        FindingOutline {
            id: self.finding_text.get(column.id),
            status: enum_from_index(FindingStatus::ALL, column.status).unwrap_or(FindingStatus::Open),
            kind: enum_from_index(Kind::ALL, column.kind).unwrap_or(Kind::Correctness),
            path: self.finding_text.get_interned(column.path),
            path_number: column.path,
        }
    }

    /// Adds a run of which only the id is known; findings can refer to it, but no list shows it.
    pub(super) fn upsert_run_id(&mut self, id: &str) -> usize {
        match self.find_run(id) {
            Some(row) => row,
            None => {
                let id = self.run_text.push(id);
                self.write_run(None, PackedRun { id, settled: PackedRun::SETTLED, ..PackedRun::zeroed() })
            }
        }
    }

    /// Adds a finding's row of a view unchanged.
    pub(super) fn upsert_finding_row(&mut self, row: &FindingRow<'_>) -> usize {
        let (first_run, last_run) = (self.upsert_run_id(row.first_run) as u32, self.upsert_run_id(row.last_run) as u32);
        let line = FindingLine {
            finding_id: row.id.into(),
            priority: row.priority,
            severity: row.severity,
            kind: row.kind,
            title: row.title.into(),
            repo_relative_path: row.path.into(),
            line_start: row.line_start,
            line_end: row.line_end,
            disputed: row.panel_disputed,
            settled: false,
            symbol: row.symbol.into(),
        };
        let status = PackedStatus { status: row.status as u8, ..PackedStatus::OPEN };
        match self.upsert_finding(u32::MAX as usize, &line, status) {
            FindingUpsert::Inserted(at) | FindingUpsert::Replaced(at) => {
                let column = self.findings.get(at);
                let place_run = last_run;
                self.findings.set(
                    at,
                    PackedFinding { first_run, last_run, location_run: place_run, status: row.status as u8, ..column },
                );
                at
            }
            FindingUpsert::Kept(_) => 0,
        }
    }

    /// Returns the memory of the tables in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.memory_bytes()
            + self.run_ids.memory_bytes()
            + self.run_text.memory_bytes()
            + self.reports.memory_bytes()
            + self.decisions.memory_bytes()
            + self.findings.memory_bytes()
            + self.finding_ids.memory_bytes()
            + self.finding_text.memory_bytes()
    }
}

fn enum_from_index<T: Copy>(all: &[T], index: u8) -> Option<T> {
    all.get(usize::from(index)).copied()
}
