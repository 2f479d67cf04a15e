//! `revdeck show`: prints a run with its findings, or a finding with its history.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::resolve_id::{self, RunOrFinding};
use super::run_result::RunResult;
use super::session::{Invocation, Session};
use super::{complete, export, output, team};
use crate::config::RequiredAssets;
use crate::domain::{Finding, FindingId, RunId, RunRecord, RunStatus, TeamPerson, Time};
use crate::report::text::PanelUsage;
use crate::report::{EarlierRuns, FindingHistory, FindingLocation, OutputFormat, ReviewedAt, json, markdown, text};
use crate::store::{DecisionHistory, Store, StoreView};

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Run or finding: an id, the beginning of an id, or `latest` (the newest run)
    #[arg(value_name = "RUN|FINDING", add = ArgValueCandidates::new(complete::list_runs_and_findings))]
    id: String,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
}

/// Runs `revdeck show`.
///
/// # Errors
///
/// Returns an error if the run or finding is unknown or cannot be read.
pub fn run(invocation: &Invocation, arguments: &ShowArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let shown = match resolve_id::resolve_run_or_finding(&session.store, &arguments.id)? {
        RunOrFinding::Run(id) => show_run(&session, &id, arguments.format)?,
        RunOrFinding::Finding(id) => show_finding(&session, &id, arguments.format)?,
    };
    output::print(&shown)?;
    Ok(CliExitCode::Done)
}

fn show_run(session: &Session, id: &RunId, format: OutputFormat) -> Result<String, CliError> {
    let record = session.store.run(id)?.ok_or_else(|| unreadable_error("run", id.as_str()))?;
    let outcome = RunResult::load(&session.repo, &session.store, record, session.ambient.now())?;
    Ok(match format {
        // Nothing was reviewed. The page of the run already gives the reason.
        OutputFormat::Text if outcome.run.status == RunStatus::Skipped => {
            let mut page = text::render_run(&session.look, &outcome.run, outcome.freshness);
            for line in text::list_left_out(&outcome.run, &outcome.coverage) {
                page.push_str(&format!("  {line}\n"));
            }
            page
        }
        OutputFormat::Text => {
            let mut page = text::render_run(&session.look, &outcome.run, outcome.freshness);
            page.push_str(&render_panel_usage(session, &outcome.run)?);
            format!("{page}\n{}", outcome.render_below_page(&session.look))
        }
        _ => outcome.render(&session.look, format),
    })
}

/// Renders what a panel has used with all its members; empty for any other run. Another request has paid for a run that was
/// adopted or reused.
fn render_panel_usage(session: &Session, run: &RunRecord) -> Result<String, CliError> {
    let Some(panel) = &run.links.panel else { return Ok(String::new()) };
    let mut usage = PanelUsage { tokens: run.usage.tokens, cost: run.usage.cost, ..PanelUsage::default() };
    for member in &panel.members {
        if let Some(record) = session.store.run(&member.run_id)? {
            let is_own = record.links.member_of.as_ref() == Some(&run.run_id);
            usage.add_member(&member.reviewer, &record.usage, !is_own);
        }
    }
    Ok(text::render_panel_usage(&session.look, &usage))
}

fn show_finding(session: &Session, id: &FindingId, format: OutputFormat) -> Result<String, CliError> {
    let view = session.store.view()?;
    let finding = session.store.finding_in(&view, id)?.ok_or_else(|| unreadable_error("finding", id.as_str()))?;
    if let Some(render) = format.exporter() {
        return Ok(render(&export::build_export(&session.store, &[finding], None)?));
    }
    if format == OutputFormat::Markdown {
        return Ok(markdown::render_finding(&finding));
    }
    let person = TeamPerson {
        name: session.repo.user_name().unwrap_or_default(),
        email: session.repo.user_email().unwrap_or_default(),
    };
    let story = load_story(&session.store, &view, &finding, &person)?;
    let sides = session.store.team_disputes()?.remove(id).unwrap_or_default();
    Ok(match format {
        OutputFormat::Json => {
            let mut encoded = json::encode_finding_with_history(&finding, &story);
            encoded["disputes"] = serde_json::json!(sides);
            format!("{}\n", output::to_json_text(&encoded))
        }
        _ => {
            let mut page = text::render_finding(&session.look, &finding) + &story.to_text(&session.look);
            if !sides.is_empty() {
                let said = team::describe_dispute(&sides);
                page.push_str(&format!("people disagree: {said}; whoever decides again ends it\n"));
            }
            page
        }
    })
}

/// Loads the history of a finding: decisions, place, carry-over and the finding that it undoes. `person` is the author of decisions
/// of this machine that the team does not have yet.
fn load_story(
    store: &Store,
    view: &StoreView,
    finding: &Finding,
    person: &TeamPerson,
) -> Result<FindingHistory, CliError> {
    let (id, last) = (&finding.finding_id, &finding.last_run_id);
    let place = |run: &RunId, finding: &Finding| FindingLocation {
        run: run.clone(),
        path: finding.repo_relative_path.clone(),
        lines: finding.lines(),
    };
    let placed = view.finding_index(id.as_str()).and_then(|index| view.locating_run(index));
    let placed = placed.and_then(|run| view.run(run).id.parse().ok()).unwrap_or_else(|| last.clone());
    let reported = store.finding_in_run(last, id)?;
    let output = store.output(last)?;
    let earlier = EarlierRuns::load(store, view, finding, output.as_ref())?;
    let carried_from = output.as_ref().and_then(|output| output.coverage.carried_from_run(id)).cloned();
    let flips = output.map(|output| output.flip_flops).unwrap_or_default();
    let DecisionHistory { lines, void } = store.shared_decision_history(id, person)?;
    Ok(FindingHistory {
        history: lines,
        void,
        notes: store.notes(id)?,
        snoozes: store.snooze_log()?.into_iter().filter(|snooze| snooze.finding_id == *id).collect(),
        ratings: store.rating_log()?.into_iter().filter(|rating| rating.finding_id == *id).collect(),
        questions: store.questions_about(view, id)?,
        reported: place(last, reported.as_ref().unwrap_or(finding)),
        place: place(&placed, finding),
        first: earlier.first.map(|first| name_review(&first.run, first.at)),
        carried_from,
        carried_review: earlier.carried_from.map(|run| name_review(&run, run.created_at)),
        undoes: flips.into_iter().find(|flip| flip.finding_id == *id).map(|flip| flip.undoes),
    })
}

fn name_review(run: &RunRecord, at: Time) -> ReviewedAt {
    ReviewedAt { run: run.run_id.clone(), at, review: text::describe_review(run) }
}

/// Creates the error for a run or finding that is listed but cannot be read.
pub fn unreadable_error(what: &str, id: &str) -> CliError {
    CliError::failed(format!("the {what} {id} is listed but cannot be read"))
        .hint("`revdeck store verify` looks for damage")
}
