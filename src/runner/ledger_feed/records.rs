//! Reads the records from which a ledger is projected.
//!
//! Every turn of an assistant waits for this: only the runs that the ledger can show are read as records, and of the
//! findings only the most important are kept.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use super::standing_code::StandingCode;
use super::{LedgerSources, worktree_path};
use crate::domain::text::format_count;
use crate::domain::{FindingId, RunId, RunRecord, RunStatus, Time};
use crate::ledger::{FindingRank, LedgerFinding, LedgerRun, LedgerView, MAX_CANDIDATES, SurfacedState};
use crate::runner::{FreshnessFacts, SnoozedFindings};
use crate::store::{FindingFacts, FindingSelector, Heartbeat, RunRow, StoreError, StoreView};

/// Number of files that are looked at for changes since the newest run; own choice, about a millisecond.
const MAX_EXAMINED_FILES: usize = 200;
/// Number of findings whose code was found in changed files, after which no other is looked for: more than fit into the
/// largest ledger.
const MAX_STANDING_FINDINGS: usize = 40;

/// Records of a ledger, and findings that it does not consider.
pub(super) struct LedgerRecords<'a> {
    pub(super) view: LedgerView<'a>,
    /// Number of undecided findings below the least priority.
    pub(super) below_priority: usize,
    /// Findings whose code does not stand in the worktree any more.
    pub(super) stale: Vec<FindingId>,
}

/// Rows from which records are made.
pub(super) struct LedgerRows {
    view: Arc<StoreView>,
    /// For each run of the view, whether it is one of this worktree.
    is_here: Vec<bool>,
    /// Paths of the change that the newest run reviews.
    changed: BTreeSet<String>,
    skipped: SkippedFindings,
    /// Findings that the user does not want to see for a time.
    snoozed: SnoozedFindings,
}

impl LedgerRows {
    /// Returns the time, in milliseconds since 1970, of the last run of this worktree that reported a finding or saw it at
    /// its place.
    fn last_seen_ms(&self, id: &str) -> i64 {
        let Some(index) = self.view.finding_index(id) else { return 0 };
        let runs = [self.view.last_reporting_run(index), self.view.locating_run(index)].into_iter().flatten();
        let is_here = |run: &usize| self.is_here.get(*run).copied().unwrap_or(false);
        runs.filter(is_here).map(|run| self.view.run(run).created_ms).max().unwrap_or_default()
    }
}

/// Numbers of undecided findings that were not loaded.
#[derive(Debug, Clone, Copy, Default)]
struct SkippedFindings {
    below_priority: usize,
    beyond: usize,
}

/// Loads the runs, and the most important findings of this worktree.
pub(super) fn load_ledger_rows(sources: &LedgerSources<'_>) -> Result<LedgerRows, StoreError> {
    let worktree = worktree_path(sources.repo);
    let (below, wanted) = (Cell::new(0), Cell::new(0_usize));
    let (mut is_here, mut changed) = (Vec::new(), BTreeSet::new());
    let least = sources.settings.ledger_priority;
    let ids = sources.store.snoozes()?.into_iter().map(|snooze| snooze.finding_id.as_str().to_owned()).collect();
    let view = sources.store.select_findings(|runs| {
        is_here = (0..runs.run_count()).map(|index| runs.run_worktree(index) == worktree).collect();
        changed = read_changed_paths(sources, runs, &is_here)?;
        let created: Vec<i64> = (0..runs.run_count()).map(|index| runs.run_created_ms(index)).collect();
        let (is_here, below, wanted) = (is_here.clone(), &below, &wanted);
        Ok(FindingSelector {
            paths: changed.iter().cloned().collect(),
            ids,
            limit: MAX_CANDIDATES,
            rank: Box::new(move |facts: &FindingFacts| {
                if !facts.status.is_undecided() || !is_here.get(facts.last_run).copied().unwrap_or(false) {
                    return None;
                }
                if least.is_none_or(|least| facts.priority > least) {
                    below.set(below.get() + 1);
                    return None;
                }
                wanted.set(wanted.get() + 1);
                let reported_ms = created.get(facts.first_run).copied().unwrap_or_default();
                Some(FindingRank::new(facts.priority, facts.kind, facts.in_paths, reported_ms))
            }),
        })
    })?;
    let skipped = SkippedFindings { below_priority: below.get(), beyond: wanted.get().saturating_sub(MAX_CANDIDATES) };
    let snoozed = SnoozedFindings::read(Some(sources.repo), sources.store, &view, sources.now)?;
    Ok(LedgerRows { view, is_here, changed, skipped, snoozed })
}

/// Reads the paths of the change that the newest run of this worktree reviews.
fn read_changed_paths(
    sources: &LedgerSources<'_>,
    view: &StoreView,
    is_here: &[bool],
) -> Result<BTreeSet<String>, StoreError> {
    let mut here = (0..view.run_count()).filter(|index| is_here[*index]).map(|index| view.run(index));
    let Some(newest) = here.find(|row| row.status != RunStatus::Skipped) else { return Ok(BTreeSet::new()) };
    let mut known = sources.store.latest_records_of(&BTreeSet::from([newest.id]))?;
    Ok(known.remove(newest.id).map(|record| record.subject.changed_paths.into_iter().collect()).unwrap_or_default())
}

/// Builds the records of this worktree.
pub(super) fn read_ledger_records<'a>(
    sources: &LedgerSources<'_>,
    rows: &'a LedgerRows,
) -> Result<LedgerRecords<'a>, StoreError> {
    let (view, is_here) = (&*rows.view, &rows.is_here);
    let newest = (0..view.run_count()).find(|index| is_here[*index]).map(|index| view.run(index).created_ms);
    let mut records = select_findings(sources, rows);
    let mut code = StandingCode::new(sources.repo.root());
    mark_changed_files(&mut records.view.findings, newest.unwrap_or_default(), &mut code);
    drop_stale_findings(sources, rows, &mut records, &mut code);
    records.view.repo = sources.repo.name();
    records.view.runs = read_runs(sources, view, is_here)?;
    Ok(records)
}

/// Reads the runs that a ledger can show: those that work, and the newest one that has ended and was not skipped.
fn read_runs(sources: &LedgerSources<'_>, view: &StoreView, is_here: &[bool]) -> Result<Vec<LedgerRun>, StoreError> {
    let facts = FreshnessFacts::read(sources.repo, sources.store, view);
    let here = || (0..view.run_count()).filter(|index| is_here[*index]).map(|index| view.run(index));
    let is_result = |row: &RunRow<'_>| row.status.is_terminal() && row.status != RunStatus::Skipped;
    let shown: Vec<RunRow<'_>> = here().filter(|row| !row.status.is_terminal()).chain(here().find(is_result)).collect();
    let wanted: BTreeSet<&str> = shown.iter().map(|row| row.id).collect();
    let mut known: BTreeMap<String, RunRecord> = sources.store.latest_records_of(&wanted)?;
    let mut runs = Vec::new();
    for row in shown {
        let Some(record) = known.remove(row.id) else { continue };
        let heartbeat = match row.status.is_working() {
            true => sources.store.heartbeat(&record.run_id),
            false => None,
        };
        let mut run = to_ledger_run(record, &row, heartbeat.as_ref(), &facts, sources.now);
        if run.status.is_terminal() && sources.store.is_run_delivered(&run.id)? {
            run.surfaced = SurfacedState::Yes;
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Selects the most important undecided findings of the loaded ones, and counts the others.
fn select_findings<'a>(sources: &LedgerSources<'_>, rows: &'a LedgerRows) -> LedgerRecords<'a> {
    let LedgerRows { view, is_here, changed, skipped, snoozed } = rows;
    let SkippedFindings { below_priority, beyond } = *skipped;
    let has_undecided = below_priority + beyond > 0;
    let ledger = LedgerView { beyond, has_undecided, ..LedgerView::default() };
    let mut records = LedgerRecords { view: ledger, below_priority, stale: Vec::new() };
    let mut kept: BinaryHeap<(FindingRank, usize)> = BinaryHeap::new();
    let reported_ms = |index: usize| view.first_reporting_run(index).map_or(0, |run| view.run(run).created_ms);
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        let run = view.last_reporting_run(index);
        let is_listed = run.is_some_and(|run| is_here.get(run).copied().unwrap_or(false));
        if !row.status.is_undecided() || !is_listed || snoozed.hides(row.id, row.status) {
            continue;
        }
        records.view.has_undecided = true;
        if sources.settings.ledger_priority.is_none_or(|least| row.priority > least) {
            records.below_priority += 1;
            continue;
        }
        kept.push((FindingRank::new(row.priority, row.kind, changed.contains(row.path), reported_ms(index)), index));
        if kept.len() > MAX_CANDIDATES {
            kept.pop();
            records.view.beyond += 1;
        }
    }
    records.view.findings = kept
        .into_sorted_vec()
        .into_iter()
        .map(|(_, index)| {
            let row = view.finding(index);
            LedgerFinding {
                id: row.id.into(),
                run: row.last_run.into(),
                status: row.status,
                priority: row.priority,
                kind: row.kind,
                path: row.path.into(),
                line: row.line_start,
                title: row.title.into(),
                in_change: changed.contains(row.path),
                reported_ms: reported_ms(index),
            }
        })
        .collect();
    records
}

/// Counts files that were written after the newest run, requested at `newest_ms`, as a part of the present change.
fn mark_changed_files(findings: &mut [LedgerFinding<'_>], newest_ms: i64, code: &mut StandingCode) {
    for finding in findings {
        if code.examined_files() >= MAX_EXAMINED_FILES {
            return;
        }
        finding.in_change |= code.is_changed(&finding.path, newest_ms);
    }
}

/// Drops findings whose file is gone, or was written after the last run that saw the finding and has lost the code. A newer
/// run of other files says nothing about it.
fn drop_stale_findings(
    sources: &LedgerSources<'_>,
    rows: &LedgerRows,
    records: &mut LedgerRecords<'_>,
    code: &mut StandingCode,
) {
    let mut reported = ReportedCode::new(&records.view.findings);
    let stale = &mut records.stale;
    let mut standing = 0;
    records.view.findings.retain(|finding| {
        if standing >= MAX_STANDING_FINDINGS && !code.is_missing(&finding.path) {
            return true;
        }
        let is_changed = code.is_changed(&finding.path, rows.last_seen_ms(&finding.id));
        let stands = match is_changed {
            true => match reported.find(sources, finding) {
                Some(quoted) => code.contains(&finding.path, quoted),
                // A finding whose details cannot be read is shown: silence would hide it.
                None => true,
            },
            false => !code.is_missing(&finding.path),
        };
        standing += usize::from(is_changed && stands);
        if !stands {
            stale.extend(finding.id.parse::<FindingId>());
        }
        stands
    });
}

/// Code that findings quote, read once for each run that reported them.
struct ReportedCode {
    /// Ids of the wanted findings by the run that last reported them.
    wanted: HashMap<String, BTreeSet<String>>,
    /// Quoted code by finding, of the runs that were read.
    quoted: HashMap<String, String>,
}

impl ReportedCode {
    fn new(findings: &[LedgerFinding<'_>]) -> Self {
        let mut wanted: HashMap<String, BTreeSet<String>> = HashMap::new();
        for finding in findings {
            wanted.entry(finding.run.to_string()).or_default().insert(finding.id.to_string());
        }
        Self { wanted, quoted: HashMap::new() }
    }

    /// Returns the code that a finding quotes; `None` if it cannot be read.
    fn find(&mut self, sources: &LedgerSources<'_>, finding: &LedgerFinding<'_>) -> Option<&str> {
        if let Some(ids) = self.wanted.remove(finding.run.as_ref())
            && let Ok(run) = finding.run.parse::<RunId>()
        {
            let found = sources.store.findings_in_run(&run, &ids).unwrap_or_default();
            self.quoted.extend(found.into_iter().map(|one| (one.finding_id.to_string(), one.quoted_code)));
        }
        self.quoted.get(finding.id.as_ref()).map(String::as_str)
    }
}

fn to_ledger_run(
    run: RunRecord,
    row: &RunRow<'_>,
    heartbeat: Option<&Heartbeat>,
    facts: &FreshnessFacts,
    now: Time,
) -> LedgerRun {
    let recorded = Time::from_millisecond(row.updated_ms).unwrap_or(run.updated_at);
    let beat = heartbeat.map(|heartbeat| heartbeat.last_sign_of_life(now));
    let incomplete = match run.is_incomplete() {
        true => run.outcome.coverage.describe_gaps().unwrap_or_else(|| run.ending.error_summary.clone()),
        false => String::new(),
    };
    LedgerRun {
        incomplete,
        id: run.run_id,
        status: run.status,
        created_at: run.created_at,
        last_activity: beat.map_or(recorded, |beat| beat.max(recorded)),
        snapshot: run.subject.snapshot_commit,
        freshness: facts.derive(row, heartbeat, now).word().to_owned(),
        scope: format_count(run.outcome.coverage.files_total as usize, "file"),
        findings: run.outcome.finding_counts.total(),
        surfaced: SurfacedState::No,
        summary: if run.ending.error_summary.is_empty() { run.outcome.summary } else { run.ending.error_summary },
    }
}
