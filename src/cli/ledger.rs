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
use crate::masking::Mask;
use crate::report::json;
use crate::runner::FreshnessFacts;
use crate::store::{Heartbeat, RunRow, StoreView};
use crate::tokens::{self, Encoding};

/// Length from which a word may be a secret, in bytes. Own choice, below the shortest key of a provider.
const MIN_LONG_NAME_BYTES: usize = 16;

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
    // Texts of findings are masked in the store; paths and branches are what they are.
    if let Some((ledger, _)) = told.as_mut().filter(|(ledger, _)| has_long_name(&ledger.text)) {
        ledger.text = Mask::On.mask_key_shapes(&ledger.text).into_owned();
    }
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

/// Returns whether a text has a word that is long enough for a secret and no id of ours. Most ledgers have none, and to read
/// the rules for secrets takes longer than to print the ledger.
fn has_long_name(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c: char| !is_word(c)).any(|word| {
        word.len() >= MIN_LONG_NAME_BYTES
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && !word.starts_with("ar_")
            && !word.starts_with("f_")
    })
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
    let facts = FreshnessFacts::read(&session.repo, &session.store, view)?;
    let (mut runs, mut ended) = (Vec::new(), 0);
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
        let heartbeat = if row.status.is_working() { session.store.heartbeat(&id) } else { None };
        runs.push(to_ledger_run(record, &row, heartbeat.as_ref(), &facts, now));
    }
    mark_surfaced(session, &mut runs)?;
    let findings = (0..view.finding_count())
        .map(|index| view.finding(index))
        .filter(|row| row.status.is_undecided() && here.contains(row.last_run))
        .map(|row| LedgerFinding {
            id: row.id.into(),
            run: row.last_run.into(),
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
