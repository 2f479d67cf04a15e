//! `revdeck hook`: installs, removes and inspects the git hooks that review every commit and notice rewritten ones, and
//! the hooks of coding assistants. The hooks call `hook run`, which is hidden.

mod answer;
mod assistants;

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use self::assistants::{Confirmation, SettingsAction};
use super::args::{CliCommand, GlobalArgs, PlainFormat};
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::assistants::{Assistant, InstallScope, StopHook};
use crate::config::RequiredAssets;
use crate::domain::text::sanitize_line;
use crate::git::hooks::{
    HookCall, HookInstallation, HookManager, HookName, HookRemainder, HookStatus, HookWriteMode, InstallOutcome,
};
use crate::git::{GitError, Repo};
use crate::report::json;
use crate::runner::{describe_commit_problem, log_failure, start_commit_review, start_rewrite_notice};

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Install the hooks; existing hooks keep running
    Install {
        #[arg(value_enum)]
        host: HookHost,
        #[command(flatten)]
        change: HookChangeArgs,
        /// Also ask the assistant, when it stops, to look at new p0 and p1 findings in what it changed
        #[arg(long)]
        stop: bool,
    },
    /// Remove the hooks and restore the previous files
    Uninstall {
        #[arg(value_enum)]
        host: HookHost,
        #[command(flatten)]
        change: HookChangeArgs,
    },
    /// Show which hooks are installed, whether they run, and what is outdated
    Status {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Do the work of a git hook, or print what an assistant gets at its turn (called by the hooks)
    #[command(hide = true)]
    Run {
        #[arg(value_enum)]
        hook: HookKind,
        /// Do the work of the hook for this commit now
        #[arg(long)]
        commit: Option<String>,
        /// Settings of an assistant that call
        #[arg(long, value_enum, default_value = "user")]
        scope: ScopeWord,
        /// Time for the answer to an assistant, in milliseconds
        #[arg(long, value_name = "MS")]
        patience: Option<u64>,
    },
}

/// Arguments of `hook install` and `hook uninstall`.
#[derive(Debug, Args)]
struct HookChangeArgs {
    /// Settings of an assistant to change: yours for all repositories, or files of this repository [default: user]
    #[arg(long, value_enum, hide_default_value = true)]
    scope: Option<ScopeWord>,
    /// Change the settings of an assistant without a question
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
}

/// Program whose hooks are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HookHost {
    /// A post-commit and a post-rewrite hook for this repository and all its worktrees
    Git,
    /// Hooks, MCP server and status line of Claude Code
    ClaudeCode,
    /// Hooks and MCP server of Codex
    Codex,
    /// Hooks and MCP server of Gemini CLI
    Gemini,
    /// Plugin and MCP server of opencode
    #[value(name = "opencode")]
    OpenCode,
}

impl HookHost {
    /// Returns the assistant; `None` for git.
    fn assistant(self) -> Option<Assistant> {
        match self {
            Self::Git => None,
            Self::ClaudeCode => Some(Assistant::ClaudeCode),
            Self::Codex => Some(Assistant::Codex),
            Self::Gemini => Some(Assistant::Gemini),
            Self::OpenCode => Some(Assistant::OpenCode),
        }
    }
}

/// Values of `--scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeWord {
    /// Your settings, for all repositories
    User,
    /// Files of this repository, for everybody who works in it
    Project,
}

impl From<ScopeWord> for InstallScope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::User => Self::User,
            ScopeWord::Project => Self::Project,
        }
    }
}

/// Hooks that call `revdeck hook run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HookKind {
    PostCommit,
    PostRewrite,
    ClaudeCode,
    Codex,
    Gemini,
    #[value(name = "opencode")]
    OpenCode,
}

impl HookKind {
    /// Returns the assistant that calls; `None` for git.
    fn assistant(self) -> Option<Assistant> {
        match self {
            Self::PostCommit | Self::PostRewrite => None,
            Self::ClaudeCode => Some(Assistant::ClaudeCode),
            Self::Codex => Some(Assistant::Codex),
            Self::Gemini => Some(Assistant::Gemini),
            Self::OpenCode => Some(Assistant::OpenCode),
        }
    }
}

/// Answers the call of an assistant, if the command is one: before anything that can fail.
pub fn answer_assistant(command: Option<&CliCommand>, global: &GlobalArgs) -> Option<CliExitCode> {
    let Some(CliCommand::Hook(HookArgs { command: HookCommand::Run { hook, scope, patience, .. } })) = command else {
        return None;
    };
    let assistant = hook.assistant()?;
    let call = answer::AssistantCall { assistant, scope: (*scope).into() };
    Some(answer::answer(global.clone(), call, patience.map(Duration::from_millis)))
}

/// Returns whether the arguments of the process are a call of a hook. Such a call must not fail, even if a later revdeck
/// has installed it and this one does not know it: some assistants drop the user's prompt when a hook fails.
pub fn is_hook_call(mut arguments: impl Iterator<Item = String>) -> bool {
    arguments.nth(1).is_some_and(|word| word == "hook") && arguments.next().is_some_and(|word| word == "run")
}

/// Runs `revdeck hook`. `hook run` never fails.
///
/// # Errors
///
/// Returns an error outside of a repository, or if a hook file cannot be changed.
pub fn run(invocation: &Invocation, arguments: &HookArgs) -> Result<CliExitCode, CliError> {
    match &arguments.command {
        HookCommand::Install { host, change, stop } => match host.assistant() {
            Some(assistant) => {
                let stop = if *stop { StopHook::On } else { StopHook::Off };
                change_settings(invocation, assistant, change, SettingsAction::Install(stop))
            }
            None => {
                refuse_assistant_flags(change, *stop)?;
                install(invocation, to_mode(change.dry_run))
            }
        },
        HookCommand::Uninstall { host, change } => match host.assistant() {
            Some(assistant) => change_settings(invocation, assistant, change, SettingsAction::Uninstall),
            None => {
                refuse_assistant_flags(change, false)?;
                uninstall(to_mode(change.dry_run))
            }
        },
        HookCommand::Status { format } => print_status(invocation, *format),
        HookCommand::Run { hook, commit, .. } => {
            // A failure must not disturb the commit, so it goes to the log only.
            if let Err(error) = run_hook(invocation, *hook, commit.as_deref()) {
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

fn change_settings(
    invocation: &Invocation,
    assistant: Assistant,
    change: &HookChangeArgs,
    action: SettingsAction,
) -> Result<CliExitCode, CliError> {
    let scope = change.scope.map_or(InstallScope::User, InstallScope::from);
    let confirmation = match change {
        HookChangeArgs { dry_run: true, .. } => Confirmation::DryRun,
        HookChangeArgs { yes: true, .. } => Confirmation::Given,
        HookChangeArgs { .. } => Confirmation::Ask,
    };
    assistants::change(invocation, assistant, scope, action, confirmation)
}

fn refuse_assistant_flags(change: &HookChangeArgs, stop: bool) -> Result<(), CliError> {
    let flag = match change {
        HookChangeArgs { scope: Some(_), .. } => "--scope",
        _ if stop => "--stop",
        _ => return Ok(()),
    };
    Err(CliError::usage(format!("{flag} is for the hooks of assistants, not for git")))
}

fn to_mode(dry_run: bool) -> HookWriteMode {
    if dry_run { HookWriteMode::DryRun } else { HookWriteMode::Apply }
}

/// Runs a hook. Without a commit, starts a separate process that does the work.
fn run_hook(invocation: &Invocation, hook: HookKind, commit: Option<&str>) -> Result<(), CliError> {
    match (hook, commit) {
        (HookKind::PostCommit, None) => {
            start_commit_review(&Invocation::current_folder()?, &invocation.paths).map(drop)?;
        }
        (HookKind::PostRewrite, None) => start_rewrite_notice(&Invocation::current_folder()?, &invocation.paths)?,
        (HookKind::PostRewrite, Some(_)) => {
            let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
            services.launcher().notice_rewritten_commits()?;
        }
        // Answered before the folders are known, see `answer_assistant`.
        (HookKind::ClaudeCode | HookKind::Codex | HookKind::Gemini | HookKind::OpenCode, _) => {}
        (HookKind::PostCommit, Some(commit)) => {
            let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
            let asked = services.launcher().review_commit(commit)?;
            if let Some(said) = describe_commit_problem(commit, &asked) {
                log_failure(&invocation.paths, services.ambient.now(), &services.repo.root(), &said);
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
    let call = HookCall::new(&program, invocation.paths.home())?;
    let installed = repo.install_hooks(&call, really)?;
    let mut said: String =
        installed.iter().map(|installed| describe_installation(&repo, installed, &program, really)).collect();
    let changed: Vec<&HookInstallation> =
        installed.iter().filter(|installed| installed.outcome != InstallOutcome::Unchanged).collect();
    if let Some(HookInstallation { manager, .. }) = changed.first() {
        said.push_str(
            "each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook \
             uninstall git` takes it back\n",
        );
        match manager {
            HookManager::Git => {}
            HookManager::Husky => said.push_str("note: husky runs these files\n"),
            HookManager::Lefthook => said.push_str("note: lefthook reads this file, and says so at each commit\n"),
            HookManager::PreCommit => said.push_str("note: pre-commit runs its `.legacy` file before its own hooks\n"),
        }
        if changed.iter().any(|installed| installed.is_shared) {
            said.push_str(
                "note: the files are in the working tree, so they call the revdeck in PATH; where there is none they do \
                 nothing\n",
            );
        }
    }
    if really == HookWriteMode::DryRun {
        for HookInstallation { file, content, .. } in changed {
            said.push_str(&format!("\n{}:\n", display_path(&repo, file)));
            let lines = String::from_utf8_lossy(content);
            lines.lines().for_each(|line| said.push_str(&format!("    {}\n", sanitize_line(line))));
        }
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Returns the line about one hook.
fn describe_installation(repo: &Repo, installed: &HookInstallation, program: &Path, really: HookWriteMode) -> String {
    let name = display_path(repo, &installed.file);
    let would = if really == HookWriteMode::DryRun { "would be " } else { "" };
    match &installed.outcome {
        InstallOutcome::Unchanged => format!("{name} has the hook already: nothing to do\n"),
        InstallOutcome::Updated if installed.is_shared => {
            format!("{name}: {would}updated to call the revdeck in PATH\n")
        }
        InstallOutcome::Updated => format!("{name}: {would}updated to call {}\n", output::format_path(program)),
        InstallOutcome::CreatedFile => format!("{name}: {would}made\n"),
        InstallOutcome::Inserted => format!("{name}: revdeck's lines {would}added\n"),
        InstallOutcome::MovedAside(aside) => format!(
            "{name}: {would}made; what is there {would}moved to {}, and called last\n",
            display_path(repo, aside)
        ),
    }
}

fn uninstall(really: HookWriteMode) -> Result<CliExitCode, CliError> {
    let repo = discover_repo()?;
    let removed = repo.uninstall_hooks(really)?;
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

fn print_status(invocation: &Invocation, format: PlainFormat) -> Result<CliExitCode, CliError> {
    // The user's settings of assistants have a state outside of a repository, too.
    let repo = match Repo::discover(&Invocation::current_folder()?) {
        Err(GitError::NotARepository { .. }) => None,
        found => Some(found?),
    };
    let git = repo.as_ref().map(Repo::hook_status).transpose()?;
    if format == PlainFormat::Json {
        let mut hooks: Vec<Value> = git.iter().map(build_git_state_json).collect();
        hooks.extend(assistants::build_states_json(invocation)?);
        output::print_json(&json::build_versioned([("hooks", json!(hooks))]))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = match (&repo, git) {
        (Some(repo), Some(status)) => list_git_state(repo, status),
        _ => String::new(),
    };
    said.push_str(&assistants::list_states(invocation)?);
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Returns the state of the git hooks for `hook status --format json`.
fn build_git_state_json(status: &HookStatus) -> Value {
    let HookStatus { present, damaged, manager } = status;
    let files: Vec<_> = present
        .iter()
        .map(|hook| {
            json!({
                "hook": hook.hook.word(),
                "file": hook.file.to_string_lossy(),
                "runs": hook.runs,
                "edited": hook.edited,
                "program": hook.program.as_ref().map(|program| program.to_string_lossy()),
                "program_exists": hook.program.as_ref().map(|program| program.exists()),
            })
        })
        .collect();
    let damaged: Vec<_> = damaged.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    json!({
        "host": "git",
        "hook": "post-commit",
        "installed": present.iter().any(|hook| hook.runs && hook.hook == HookName::PostCommit),
        "manager": manager.as_ref().ok().map(|manager| manager.word()),
        "obstacle": manager.as_ref().err().map(ToString::to_string),
        "files": files,
        "damaged": damaged,
    })
}

/// Shows the state of the git hooks as text lines.
fn list_git_state(repo: &Repo, status: HookStatus) -> String {
    let HookStatus { present, damaged, manager } = status;
    let is_rewrite_missing = present.iter().all(|hook| hook.hook != HookName::PostRewrite);
    let mut said = String::new();
    for hook in &present {
        let name = display_path(repo, &hook.file);
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
        said.push_str(&format!("git  {}: has only a part of revdeck's lines\n", display_path(repo, file)));
    }
    match manager {
        Ok(_) if said.is_empty() => said.push_str("git  not in: `revdeck hook install git` puts it in\n"),
        // Installed by a version that knew only the other hook.
        Ok(manager) if manager != HookManager::Lefthook && is_rewrite_missing => {
            said.push_str("git  post-rewrite: not in: `revdeck hook install git` puts it in\n");
        }
        Ok(_) => {}
        Err(error) => said.push_str(&format!("git  {}\n", sanitize_line(&error.to_string()))),
    }
    said
}
