//! `revdeck hook`: installs, removes and inspects the git hook that reviews every commit. The hook calls `hook run`,
//! which is hidden.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::git::Repo;
use crate::git::hooks::{
    HookCall, HookInstallation, HookManager, HookRemainder, HookStatus, HookWriteMode, InstallOutcome,
};
use crate::report::json;
use crate::runner::{log_failure, start_commit_review};

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Install the hook; existing hooks keep running
    Install {
        #[arg(value_enum)]
        host: HookHost,
        /// Print the changes without making them
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove the hook and restore the previous files
    Uninstall {
        #[arg(value_enum)]
        host: HookHost,
        /// Print the changes without making them
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the hook is installed and git runs it
    Status {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Request the review of a new commit (called by the hook)
    #[command(hide = true)]
    Run {
        #[arg(value_enum)]
        hook: HookKind,
        /// Request the review of this commit now
        #[arg(long)]
        commit: Option<String>,
    },
}

/// Program whose hooks are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HookHost {
    /// A post-commit hook for this repository and all its worktrees
    Git,
}

/// Hooks that call `revdeck hook run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HookKind {
    PostCommit,
}

/// Runs `revdeck hook`. `hook run` never fails.
///
/// # Errors
///
/// Returns an error outside of a repository, or if a hook file cannot be changed.
pub fn run(invocation: &Invocation, arguments: &HookArgs) -> Result<CliExitCode, CliError> {
    match &arguments.command {
        HookCommand::Install { host: HookHost::Git, dry_run } => install(invocation, to_mode(*dry_run)),
        HookCommand::Uninstall { host: HookHost::Git, dry_run } => uninstall(to_mode(*dry_run)),
        HookCommand::Status { format } => print_status(*format),
        HookCommand::Run { hook: HookKind::PostCommit, commit } => {
            // A failure must not disturb the commit, so it goes to the log only.
            if let Err(error) = run_hook(invocation, commit.as_deref()) {
                let folder = Invocation::current_folder().unwrap_or_default();
                let hint = error.hint.map_or(String::new(), |hint| format!("; {hint}"));
                if let Ok(ambient) = invocation.clock_and_ids() {
                    log_failure(&invocation.paths, ambient.now(), &folder, &format!("{}{hint}", error.message));
                }
            }
            Ok(CliExitCode::Done)
        }
    }
}

fn to_mode(dry_run: bool) -> HookWriteMode {
    if dry_run { HookWriteMode::DryRun } else { HookWriteMode::Apply }
}

fn run_hook(invocation: &Invocation, commit: Option<&str>) -> Result<(), CliError> {
    match commit {
        None => start_commit_review(&Invocation::current_folder()?, &invocation.paths).map(drop)?,
        Some(commit) => {
            let (runner, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
            if let Err(why) = runner.launcher().review_commit(commit)? {
                let (folder, said) = (runner.repo.root(), format!("{commit} is not reviewed: {why}"));
                log_failure(&invocation.paths, runner.ambient.now(), &folder, &said);
            }
        }
    }
    Ok(())
}

fn discover_repo() -> Result<Repo, CliError> {
    Ok(Repo::discover(&Invocation::current_folder()?)?)
}

/// Formats a path relative to the working tree, or absolute if it is outside.
fn display_path(repo: &Repo, file: &Path) -> String {
    output::format_path(file.strip_prefix(repo.root()).unwrap_or(file))
}

fn install(invocation: &Invocation, really: HookWriteMode) -> Result<CliExitCode, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("revdeck does not find its own file: {error}")))?;
    let repo = discover_repo()?;
    let installed = repo.install_hook(&HookCall::new(&program, invocation.paths.home())?, really)?;
    let HookInstallation { file, manager, outcome: done, is_shared, content } = &installed;
    let name = display_path(&repo, file);
    let would = if really == HookWriteMode::DryRun { "would be " } else { "" };
    let mut said = match done {
        InstallOutcome::Unchanged => format!("{name} has the hook already: nothing to do\n"),
        InstallOutcome::Updated if *is_shared => format!("{name}: {would}updated to call the revdeck in PATH\n"),
        InstallOutcome::Updated => format!("{name}: {would}updated to call {}\n", output::format_path(&program)),
        InstallOutcome::CreatedFile => format!("{name}: {would}made\n"),
        InstallOutcome::Inserted => format!("{name}: revdeck's lines {would}added\n"),
        InstallOutcome::MovedAside(aside) => {
            format!(
                "{name}: {would}made; what is there {would}moved to {}, and called last\n",
                display_path(&repo, aside)
            )
        }
    };
    if *done != InstallOutcome::Unchanged {
        said.push_str("each commit is reviewed in the background; `revdeck hook uninstall git` takes it back\n");
        match manager {
            HookManager::Git => {}
            HookManager::Husky => said.push_str("note: husky runs this file\n"),
            HookManager::Lefthook => said.push_str("note: lefthook reads this file, and says so at each commit\n"),
            HookManager::PreCommit => said.push_str("note: pre-commit runs this file before its own hooks\n"),
        }
        if *is_shared {
            said.push_str(
                "note: the file is in the working tree, so it calls the revdeck in PATH; where there is none it does \
                 nothing\n",
            );
        }
    }
    if really == HookWriteMode::DryRun && *done != InstallOutcome::Unchanged {
        said.push('\n');
        String::from_utf8_lossy(content)
            .lines()
            .for_each(|line| said.push_str(&format!("    {}\n", sanitize_line(line))));
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn uninstall(really: HookWriteMode) -> Result<CliExitCode, CliError> {
    let repo = discover_repo()?;
    let removed = repo.uninstall_hook(really)?;
    let mut said = String::new();
    let would = if really == HookWriteMode::DryRun { "would be " } else { "" };
    for removed in &removed {
        let name = display_path(&repo, &removed.file);
        said.push_str(&match removed.left {
            HookRemainder::Nothing => format!("{name}: {would}removed, it was made by revdeck\n"),
            HookRemainder::AsBefore => format!("{name}: {would}as it was before\n"),
            HookRemainder::Edited => {
                format!("{name}: was edited since; only revdeck's lines {would}taken out, the rest stays\n")
            }
            HookRemainder::EditedWithCall => format!(
                "{name}: was edited since; only revdeck's lines {would}taken out, and it goes on to call the hook that \
                 was moved aside\n"
            ),
        });
    }
    if removed.is_empty() {
        said.push_str("the hook is not in: nothing to do\n");
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn print_status(format: PlainFormat) -> Result<CliExitCode, CliError> {
    let repo = discover_repo()?;
    let HookStatus { present, damaged, manager } = repo.hook_status()?;
    if format == PlainFormat::Json {
        let files: Vec<_> = present
            .iter()
            .map(|hook| {
                json!({
                    "file": hook.file.to_string_lossy(),
                    "runs": hook.runs,
                    "edited": hook.edited,
                    "program": hook.program.as_ref().map(|program| program.to_string_lossy()),
                    "program_exists": hook.program.as_ref().map(|program| program.exists()),
                })
            })
            .collect();
        let damaged: Vec<_> = damaged.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        let git = json!({
            "host": "git",
            "hook": "post-commit",
            "installed": present.iter().any(|hook| hook.runs),
            "manager": manager.as_ref().ok().map(|manager| manager.word()),
            "obstacle": manager.as_ref().err().map(ToString::to_string),
            "files": files,
            "damaged": damaged,
        });
        output::print_json(&json::build_versioned([("hooks", json!([git]))]))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = String::new();
    for hook in &present {
        let name = display_path(&repo, &hook.file);
        let mut facts = vec![if hook.runs { "in" } else { "in, but git does not run this file" }.to_owned()];
        if hook.edited {
            facts.push("the rest of the file was edited since".to_owned());
        }
        facts.push(match &hook.program {
            None => "calls the revdeck in PATH, where there is one".to_owned(),
            Some(program) if program.exists() => format!("calls {}", output::format_path(program)),
            Some(program) => {
                format!("{} is gone: `revdeck` in PATH is called, where there is one", output::format_path(program))
            }
        });
        said.push_str(&format!("git  {name}: {}\n", facts.join("; ")));
    }
    for file in &damaged {
        said.push_str(&format!("git  {}: has only a part of revdeck's lines\n", display_path(&repo, file)));
    }
    match manager {
        Ok(_) if said.is_empty() => said.push_str("git  not in: `revdeck hook install git` puts it in\n"),
        Ok(_) => {}
        Err(error) => said.push_str(&format!("git  {}\n", sanitize_line(&error.to_string()))),
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}
