//! `revdeck fix`: creates a patch for findings, and shows, applies, undoes or drops it.

use std::borrow::Cow;
use std::io::IsTerminal;
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
use crate::masking::Mask;
use crate::runner::{FixError, FixRequest, RunnerError, Services};

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
    let mut fix = services.fixer().request_fix(&request).map_err(describe_refusal)?;
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

/// Describes why no fix is made. The command line can name a fixer without the settings.
fn describe_refusal(error: RunnerError) -> CliError {
    let lacks_fixer = matches!(error, RunnerError::Fix(FixError::NothingExact(_)));
    let mut error = CliError::from(error);
    if let Some(hint) = error.hint.as_mut().filter(|_| lacks_fixer) {
        hint.push_str(", or --reviewer NAME");
    }
    error
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
    // A program that reads the patch needs its exact bytes; a person only looks at it.
    match std::io::stdout().is_terminal() {
        true => output::print_patch(&mask_patch(&patch))?,
        false => output::print_patch(&patch)?,
    }
    Ok(CliExitCode::Done)
}

/// Masks the secrets in a patch: those of the files on either side, as far as its lines show them, and those in names.
fn mask_patch(patch: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(patch);
    let mut lines: Vec<Cow<'_, str>> = text.split('\n').map(Cow::Borrowed).collect();
    let mut start = 0;
    for end in
        (1..=lines.len()).filter(|at| *at == lines.len() || lines[*at].starts_with("diff --git ")).collect::<Vec<_>>()
    {
        mask_file(&mut lines[start..end]);
        start = end;
    }
    lines.join("\n").into_bytes()
}

/// Masks the lines of one file of a patch.
fn mask_file(lines: &mut [Cow<'_, str>]) {
    let header = lines.iter().take_while(|line| !line.starts_with("@@")).count();
    let path = |sign: &str| {
        let line = lines[..header].iter().find_map(|line| line.strip_prefix(sign))?;
        Some(line.trim_end_matches(['\t', '\r', '"']).to_owned())
    };
    let (old, new) = (path("--- a/").or_else(|| path("--- \"a/")), path("+++ b/").or_else(|| path("+++ \"b/")));
    for (removed, path) in [('-', old), ('+', new)] {
        let side: Vec<usize> = (header..lines.len()).filter(|at| lines[*at].starts_with([removed, ' '])).collect();
        let whole = side.iter().map(|at| &lines[*at][1..]).collect::<Vec<_>>().join("\n");
        let masked = Mask::On.mask_text(path.as_deref(), &whole);
        if let Cow::Owned(masked) = masked {
            for (at, masked) in side.iter().zip(masked.split('\n')) {
                let sign = lines[*at][..1].to_owned();
                lines[*at] = Cow::Owned(sign + masked);
            }
        }
    }
    // Git repeats a line of the file behind the numbers of a hunk.
    for line in lines
        .iter_mut()
        .filter(|line| !line.starts_with(['+', '-', ' ']) || line.starts_with("+++ ") || line.starts_with("--- "))
    {
        if let Cow::Owned(masked) = Mask::On.mask_key_shapes(line) {
            *line = Cow::Owned(masked);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_on_a_terminal_shows_no_secret_and_keeps_its_lines() {
        let (old, new) = ("Xq9vTz4Lw7Pn2KdR", ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat());
        let patch = format!(
            "diff --git a/{new}.py b/{new}.py\n--- a/{new}.py\n+++ b/{new}.py\n@@ -1,3 +1,3 @@ key = \"{new}\"\n \
             import os\n-password = \"{old}\"\n+key = \"{new}\"\n x = 1\ndiff --git a/b.py b/b.py\n--- a/b.py\n+++ \
             b/b.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
        );
        let masked = String::from_utf8(mask_patch(patch.as_bytes())).expect("a text");
        assert!(!masked.contains(old) && !masked.contains(&new), "{masked}");
        assert_eq!(masked.lines().count(), patch.lines().count());
        assert!(masked.contains("-password = \"«secret»\"\n+key = \"«secret:aws_access_key»\"\n x = 1\n"), "{masked}");
        let plain = "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n";
        assert_eq!(mask_patch(plain.as_bytes()), plain.as_bytes());
    }
}
