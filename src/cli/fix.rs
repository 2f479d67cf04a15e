//! `revdeck fix`: creates a patch for findings, and shows, applies, undoes or drops it.

use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, fixes, output, resolve_id};
use crate::config::RequiredAssets;
use crate::domain::text;
use crate::domain::{Fix, FixId, FixStatus, SCHEMA_VERSION, Source};
use crate::runner::{FixRequest, Services};

/// Interval between two checks for a finished fix.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Checks between two tests that the worker of the fix is still alive.
const POLLS_PER_RECONCILE: u32 = 10;

/// Arguments of `fix`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct FixArgs {
    #[command(subcommand)]
    step: Option<FixCommand>,
    /// Findings: ids or beginnings of ids
    #[arg(value_name = "FINDING", required = true, add = ArgValueCandidates::new(complete::list_findings))]
    findings: Vec<String>,
    /// Reviewer that makes the patch, instead of [resolve] in the settings; builtin applies exact suggestions only
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::list_reviewers))]
    reviewer: Option<String>,
    /// Wait until the patch is offered
    #[arg(long)]
    wait: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: PlainFormat,
}

/// Actions on an existing fix.
#[derive(Debug, Subcommand)]
enum FixCommand {
    /// Print the patch
    Show(FixIdArgs),
    /// Apply the patch to your files, if it applies cleanly
    Apply(FixIdArgs),
    /// Remove the patch from your files; your later changes stay
    Undo(FixIdArgs),
    /// Discard the patch
    Drop(FixIdArgs),
}

#[derive(Debug, Args)]
struct FixIdArgs {
    /// Fix: an id, the beginning of an id, or `latest`
    #[arg(add = ArgValueCandidates::new(complete::list_fixes))]
    fix: String,
}

/// Runs `revdeck fix`.
///
/// # Errors
///
/// Returns an error if a finding or fix is unknown, or the action is refused.
pub fn run(invocation: &Invocation, arguments: &FixArgs) -> Result<CliExitCode, CliError> {
    match &arguments.step {
        None => make_fix(invocation, arguments),
        Some(FixCommand::Show(of)) => show_patch(invocation, &of.fix),
        Some(FixCommand::Apply(of)) => {
            let actor = invocation.actor()?.actor;
            run_step(invocation, &of.fix, |services, id| Ok(services.fixer().apply_fix(id, actor)?))
        }
        Some(FixCommand::Undo(of)) => {
            let actor = invocation.actor()?;
            run_step(invocation, &of.fix, |services, id| {
                if services.fixer().was_applied_by_user(id)? {
                    actor.require_person("undo a fix that the user applied")?;
                }
                Ok(services.fixer().undo_fix(id, actor.actor)?)
            })
        }
        Some(FixCommand::Drop(of)) => {
            let actor = invocation.actor()?;
            run_step(invocation, &of.fix, |services, id| {
                if services.store.fix(id)?.is_some_and(|fix| fix.source != Source::Assistant) {
                    actor.require_person("drop a fix that no assistant asked for")?;
                }
                Ok(services.fixer().drop_fix(id)?)
            })
        }
    }
}

fn make_fix(invocation: &Invocation, arguments: &FixArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    let view = services.store.view()?;
    let mut findings = Vec::new();
    for given in &arguments.findings {
        let id = resolve_id::resolve_finding_in(&view, given)?;
        if !findings.contains(&id) {
            findings.push(id);
        }
    }
    let request = FixRequest { findings, reviewer: arguments.reviewer.clone(), source: invocation.actor()?.source() };
    let mut fix = services.fixer().request_fix(&request)?;
    if arguments.wait {
        fix = wait_for_fix(&services, fix)?;
    }
    match arguments.format {
        PlainFormat::Json => output::print_json(&json!({ "version": SCHEMA_VERSION, "fix": fix }))?,
        PlainFormat::Text => {
            let view = services.store.view()?;
            let mut said = format!("{}\n", fixes::format_line(&fix, &view));
            for unfixed in &fix.left_out {
                let reason = text::sanitize_line(&unfixed.reason);
                said.push_str(&format!("  not fixed: {}: {reason}\n", unfixed.finding_id));
            }
            if fix.status == FixStatus::Offered {
                said.push_str(&format!(
                    "look at it with `revdeck fix show {0}`, apply it with `revdeck fix apply {0}`\n",
                    fix.fix_id
                ));
            }
            output::print(&said)?;
        }
    }
    Ok(if fix.status == FixStatus::Failed { CliExitCode::Incomplete } else { CliExitCode::Done })
}

/// Blocks until the fix is offered or has failed.
fn wait_for_fix(services: &Services, mut fix: Fix) -> Result<Fix, CliError> {
    let mut looks = 0;
    while fix.status.is_working() {
        std::thread::sleep(POLL_INTERVAL);
        looks += 1;
        if looks % POLLS_PER_RECONCILE == 0 {
            services.fixer().reconcile_fixes()?;
        }
        fix = services.store.fix(&fix.fix_id)?.unwrap_or(fix);
    }
    Ok(fix)
}

fn show_patch(invocation: &Invocation, given: &str) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let id = resolve_id::resolve_fix(&session.store, given)?;
    let Some(patch) = session.store.patch(&id)? else {
        let view = session.store.view()?;
        let said = session.store.fix(&id)?.map(|fix| fixes::format_line(&fix, &view)).unwrap_or_default();
        return Err(CliError::usage(format!("there is no patch of {id}")).hint(said));
    };
    output::print_patch(&patch)?;
    Ok(CliExitCode::Done)
}

fn run_step(
    invocation: &Invocation,
    given: &str,
    act: impl FnOnce(&Services, &FixId) -> Result<Fix, CliError>,
) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    let id = resolve_id::resolve_fix(&services.store, given)?;
    let fix = act(&services, &id)?;
    output::print(&format_fix(&services, &fix)?)?;
    Ok(CliExitCode::Done)
}

/// Formats a fix after an action, with the files that were written.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub fn format_fix(services: &Services, fix: &Fix) -> Result<String, CliError> {
    let view = services.store.view()?;
    let mut said = format!("{}\n", fixes::format_line(fix, &view));
    if matches!(fix.status, FixStatus::Applied | FixStatus::Undone) {
        for file in &fix.files {
            said.push_str(&format!("  {}\n", text::sanitize_line(&file.path)));
        }
    }
    Ok(said)
}
