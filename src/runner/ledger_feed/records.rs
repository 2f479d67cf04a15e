//! Reads the records from which a ledger is projected.

use std::collections::{BTreeSet, HashMap};

use super::{LedgerSources, worktree_path};
use crate::domain::text::format_count;
use crate::domain::{Priority, RunRecord, Time};
use crate::ledger::{LedgerFinding, LedgerRun, LedgerView, SurfacedState};
use crate::runner::FreshnessFacts;
use crate::store::{Heartbeat, RunRow, StoreError, StoreView};

/// Number of ended runs that are searched for the latest relevant one.
const MAX_ENDED_RUNS: usize = 20;

/// Builds the view of this worktree's runs and undecided findings.
pub(super) fn build_ledger_view<'a>(
    sources: &LedgerSources<'_>,
    view: &'a StoreView,
) -> Result<LedgerView<'a>, StoreError> {
    let (store, now) = (sources.store, sources.now);
    let worktree = worktree_path(sources.repo);
    let facts = FreshnessFacts::read(sources.repo, store, view)?;
    let (mut runs, mut ended) = (Vec::new(), 0);
    let mut here: HashMap<&str, i64> = HashMap::new();
    let mut changed: BTreeSet<String> = BTreeSet::new();
    for index in 0..view.run_count() {
        let row = view.run(index);
        if row.worktree != worktree {
            continue;
        }
        here.insert(row.id, row.created_ms);
        let is_over = row.status.is_terminal();
        if is_over && ended >= MAX_ENDED_RUNS {
            continue;
        }
        ended += usize::from(is_over);
        let Ok(id) = row.id.parse() else { continue };
        let Some(mut record) = store.run(&id)? else { continue };
        if runs.is_empty() {
            changed.extend(std::mem::take(&mut record.subject.changed_paths));
        }
        let heartbeat = if row.status.is_working() { store.heartbeat(&id) } else { None };
        runs.push(to_ledger_run(record, &row, heartbeat.as_ref(), &facts, now));
    }
    mark_surfaced(sources, &mut runs)?;
    let mut ledger = LedgerView { repo: sources.repo.name(), runs, ..LedgerView::default() };
    let least: Option<Priority> = sources.settings.ledger_priority;
    for row in (0..view.finding_count()).map(|index| view.finding(index)) {
        if !row.status.is_undecided() || !here.contains_key(row.last_run) {
            continue;
        }
        ledger.has_undecided = true;
        if least.is_none_or(|least| row.priority > least) {
            continue;
        }
        ledger.findings.push(LedgerFinding {
            id: row.id.into(),
            run: row.last_run.into(),
            status: row.status,
            priority: row.priority,
            kind: row.kind,
            path: row.path.into(),
            line: row.line_start,
            title: row.title.into(),
            in_change: changed.contains(row.path),
            reported_ms: here.get(row.first_run).copied().unwrap_or_default(),
        });
    }
    Ok(ledger)
}

/// Marks the ended runs that an assistant was already told about.
fn mark_surfaced(sources: &LedgerSources<'_>, runs: &mut [LedgerRun]) -> Result<(), StoreError> {
    let ended = || runs.iter().filter(|run| run.status.is_terminal());
    let Some(oldest) = ended().map(|run| run.created_at).min() else { return Ok(()) };
    let told = sources.store.delivered_runs_since(oldest)?;
    for run in runs {
        run.surfaced = if told.contains(&run.id) { SurfacedState::Yes } else { SurfacedState::No };
    }
    Ok(())
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
