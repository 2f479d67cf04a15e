//! `revdeck ledger`: prints the summary that a coding assistant receives at each turn. Prints nothing, not even a
//! newline, if there is nothing to report.

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{Invocation, Session};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{LedgerDelivery, RunRecord, Time, TokenCountPrecision};
use crate::ledger::{
    Ledger, LedgerClock, LedgerFinding, LedgerRun, LedgerView, MAX_LEDGER_TOKENS, SurfacedState, project_ledger,
};
use crate::policy::{Activity, CurrentCode, Freshness, FreshnessSubject, Liveness, derive_freshness};
use crate::report::json;
use crate::store::StoreView;
use crate::tokens::{self, Encoding};

/// Arguments of `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Token limit, at most 1200; 0 prints nothing
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Record that an assistant received the summary, with its token count and findings
    #[arg(long)]
    record: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Age in seconds of the last record up to which a worker counts as active.
const MAX_RECENT_SECONDS: i64 = 60;
/// Age in seconds of the last record after which a worker counts as silent: no step of a review takes that long.
const MAX_QUIET_SECONDS: i64 = 600;
/// Number of ended runs that are searched for the latest relevant one.
const MAX_ENDED_RUNS: usize = 20;

/// Runs `revdeck ledger`.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the store fails.
pub fn run(invocation: &Invocation, arguments: &LedgerArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_session(RequiredAssets::None)?;
    let cap = arguments.max_tokens.unwrap_or(session.loaded.settings.ledger_tokens).min(MAX_LEDGER_TOKENS);
    let view = session.store.view()?;
    let now = session.ambient.now();
    let records = build_ledger_view(&session, &view, now)?;
    let mut told = fit_budget(&records, &LedgerClock { now }, cap);
    match arguments.format {
        PlainFormat::Text => output::print(told.as_ref().map_or("", |(ledger, _)| &ledger.text))?,
        PlainFormat::Json => {
            if let Some((ledger, counted)) = &mut told {
                (ledger.tokens, *counted) =
                    (tokens::count_tokens(Encoding::O200kBase, &ledger.text), TokenCountPrecision::Exact);
            }
            let ledger = told.as_ref().map(|(ledger, _)| ledger);
            output::print_json(&json::build_versioned([
                ("ledger", json!(ledger.map(|ledger| &ledger.text))),
                ("tokens", json!(ledger.map_or(0, |ledger| ledger.tokens))),
                ("encoding", json!(Encoding::O200kBase.name())),
                ("cap", json!(cap)),
                ("surfaced", json!(ledger.map_or(&[][..], |ledger| &ledger.surfaced))),
                ("left_out", json!(ledger.map_or(0, |ledger| ledger.left_out))),
            ]))?;
        }
    }
    if let Some((ledger, counted)) = told.filter(|_| arguments.record) {
        session.store.record_ledger_delivery(&LedgerDelivery {
            at: now,
            worktree: worktree_path(&session),
            run_id: ledger.run,
            findings: ledger.surfaced,
            tokens: ledger.tokens as u64,
            counted,
            left_out: ledger.left_out as u64,
        })?;
    }
    Ok(CliExitCode::Done)
}

/// Projects the ledger within `cap` tokens. Uses a cheap upper bound of the token count first and the exact tokenizer
/// only if that bound would drop an element.
fn fit_budget(view: &LedgerView<'_>, world: &LedgerClock, cap: usize) -> Option<(Ledger, TokenCountPrecision)> {
    let bounded = project_ledger(view, world, cap, &tokens::upper_bound);
    match bounded {
        Some(ledger) if ledger.left_out == 0 => Some((ledger, TokenCountPrecision::AtMost)),
        // Even an empty ledger does not fit: its frame alone takes about 40 tokens.
        None if cap < 30 => None,
        None if view.runs.is_empty() && view.findings.is_empty() => None,
        _ => {
            let exact = project_ledger(view, world, cap, &|text| tokens::count_tokens(Encoding::O200kBase, text));
            exact.map(|ledger| (ledger, TokenCountPrecision::Exact))
        }
    }
}

fn worktree_path(session: &Session) -> String {
    session.repo.root().to_string_lossy().into_owned()
}

/// Builds the view of this worktree's runs and undecided findings from the store.
fn build_ledger_view<'a>(session: &Session, view: &'a StoreView, now: Time) -> Result<LedgerView<'a>, CliError> {
    let worktree = worktree_path(session);
    let surroundings =
        WorktreeState { epoch: session.store.epoch()?, branch: session.repo.branch(), head: session.repo.head() };
    let (mut records, mut ended) = (Vec::new(), 0);
    let mut here = std::collections::HashSet::new();
    for index in 0..view.run_count() {
        let row = view.run(index);
        if row.worktree != worktree {
            continue;
        }
        here.insert(row.id);
        let is_over = row.status.is_terminal();
        if is_over && ended >= MAX_ENDED_RUNS {
            continue;
        }
        ended += usize::from(is_over);
        let Ok(id) = row.id.parse() else { continue };
        let Some(record) = session.store.run(&id)? else { continue };
        records.push(record);
    }
    // A run of the current epoch knows the current diff fingerprint of its scope.
    let looks: Vec<_> = records.iter().filter(|run| run.subject.epoch == surroundings.epoch).cloned().collect();
    let of_run = |run| to_ledger_run(session, run, &looks, &surroundings, now);
    let mut runs: Vec<LedgerRun> = records.into_iter().map(of_run).collect();
    mark_surfaced(session, &mut runs)?;
    let findings = (0..view.finding_count())
        .map(|index| view.finding(index))
        .filter(|row| row.status.is_undecided() && here.contains(row.last_run))
        .map(|row| LedgerFinding {
            id: row.id.into(),
            status: row.status,
            priority: row.priority,
            path: row.path.into(),
            line: row.line_start,
            title: row.title.into(),
        })
        .collect();
    Ok(LedgerView { repo: session.repo.name(), runs, findings })
}

/// Marks the ended runs that an assistant was already told about.
fn mark_surfaced(session: &Session, runs: &mut [LedgerRun]) -> Result<(), CliError> {
    let ended = || runs.iter().filter(|run| run.status.is_terminal());
    let Some(oldest) = ended().map(|run| run.created_at).min() else { return Ok(()) };
    let told = session.store.delivered_runs_since(oldest)?;
    for run in runs {
        run.surfaced = if told.contains(&run.id) { SurfacedState::Yes } else { SurfacedState::No };
    }
    Ok(())
}

/// Current epoch, branch and HEAD of the worktree.
struct WorktreeState {
    epoch: u64,
    branch: String,
    head: String,
}

fn to_ledger_run(
    session: &Session,
    run: RunRecord,
    looks: &[RunRecord],
    place: &WorktreeState,
    now: Time,
) -> LedgerRun {
    let look =
        looks.iter().find(|look| look.subject.scope == run.subject.scope && look.subject.branch == run.subject.branch);
    let freshness =
        compute_freshness(session, &run, look.map(|look| look.subject.diff_fingerprint.as_str()), place, now);
    LedgerRun {
        id: run.run_id,
        status: run.status,
        created_at: run.created_at,
        last_activity: run.updated_at,
        snapshot: run.subject.snapshot_commit,
        freshness: freshness.word().to_owned(),
        scope: format_count(run.outcome.coverage.files_total as usize, "file"),
        findings: run.outcome.finding_counts.total(),
        surfaced: SurfacedState::No,
        summary: if run.ending.error_summary.is_empty() { run.outcome.summary } else { run.ending.error_summary },
    }
}

fn compute_freshness(
    session: &Session,
    run: &RunRecord,
    fingerprint: Option<&str>,
    place: &WorktreeState,
    now: Time,
) -> Freshness {
    let quiet = now.as_second().saturating_sub(run.updated_at.as_second());
    let liveness = if run.status.is_terminal() {
        Liveness::Ended
    } else if !run.status.is_working() {
        Liveness::Waiting
    } else {
        match session.store.is_live(&run.run_id) {
            Ok(true) => Liveness::Working(match quiet {
                ..=MAX_RECENT_SECONDS => Activity::Recent,
                quiet if quiet <= MAX_QUIET_SECONDS => Activity::Quiet,
                _ => Activity::Silent,
            }),
            Ok(false) => Liveness::Dead,
            Err(_) => Liveness::Unknown,
        }
    };
    let scope = run.subject.scope.to_string();
    let superseded_by = run.links.superseded_by.as_ref().map_or(String::new(), ToString::to_string);
    let target = FreshnessSubject {
        status: run.status,
        scope: &scope,
        branch: &run.subject.branch,
        head_commit: run.last_matching_head(),
        epoch: run.subject.epoch,
        diff_fingerprint: &run.subject.diff_fingerprint,
        superseded_by: &superseded_by,
    };
    // On another branch the same scope means other code.
    let fingerprint = fingerprint.filter(|_| run.subject.branch == place.branch);
    let surroundings = CurrentCode { epoch: place.epoch, branch: &place.branch, head_commit: &place.head, fingerprint };
    derive_freshness(&target, liveness, &surroundings)
}
