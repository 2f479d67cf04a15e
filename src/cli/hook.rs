//! `revdeck hook`: have every commit reviewed. What the hook itself calls is hidden: `hook run`.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::text::one_line;
use crate::git::Repo;
use crate::git::hooks::{Call, Done, Installed, Left, Manager, Really, Standing};
use crate::report::json;
use crate::runner::{after_commit, log_failure};

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put the hook in; what is there already runs on
    Install {
        #[arg(value_enum)]
        host: Host,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Take the hook out; what was there before is as it was
    Uninstall {
        #[arg(value_enum)]
        host: Host,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Whether the hook is in, and whether it is run
    Status {
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// What the hook calls
    #[command(hide = true)]
    Run {
        #[arg(value_enum)]
        hook: Hook,
        /// Ask for the review of this commit here and now
        #[arg(long)]
        commit: Option<String>,
    },
}

/// Whose hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Host {
    /// A post-commit hook of this repository, for all of its worktrees
    Git,
}

/// Hooks that call revdeck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hook {
    PostCommit,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    match &arguments.command {
        Command::Install { host: Host::Git, dry_run } => install(invocation, really(*dry_run)),
        Command::Uninstall { host: Host::Git, dry_run } => uninstall(really(*dry_run)),
        Command::Status { format } => status(*format),
        Command::Run { hook: Hook::PostCommit, commit } => {
            // A hook that fails must not trouble whoever commits.
            if let Err(error) = called(invocation, commit.as_deref()) {
                let folder = Invocation::here().unwrap_or_default();
                let hint = error.hint.map_or(String::new(), |hint| format!("; {hint}"));
                if let Ok(ambient) = invocation.ambient() {
                    log_failure(&invocation.paths, ambient.now(), &folder, &format!("{}{hint}", error.message));
                }
            }
            Ok(Exit::Done)
        }
    }
}

fn really(dry_run: bool) -> Really {
    if dry_run { Really::OnlySay } else { Really::Do }
}

fn called(invocation: &Invocation, commit: Option<&str>) -> Result<(), CliError> {
    match commit {
        None => after_commit(&Invocation::here()?, &invocation.paths).map(drop)?,
        Some(commit) => {
            let (runner, _) = invocation.session(Texts::Smells)?.into_runner();
            if let Err(why) = runner.review_commit(commit)? {
                let (folder, said) = (runner.repo.root(), format!("{commit} is not reviewed: {why}"));
                log_failure(&invocation.paths, runner.ambient.now(), &folder, &said);
            }
        }
    }
    Ok(())
}

fn repo() -> Result<Repo, CliError> {
    Ok(Repo::discover(&Invocation::here()?)?)
}

/// A file as the user knows it: below the working tree where it is there.
fn shown(repo: &Repo, file: &Path) -> String {
    output::path(file.strip_prefix(repo.root()).unwrap_or(file))
}

fn install(invocation: &Invocation, really: Really) -> Result<Exit, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("revdeck does not find its own file: {error}")))?;
    let repo = repo()?;
    let installed = repo.install_hook(&Call::new(&program, invocation.paths.home())?, really)?;
    let Installed { file, manager, done, is_shared, content } = &installed;
    let name = shown(&repo, file);
    let would = if really == Really::OnlySay { "would be " } else { "" };
    let mut said = match done {
        Done::Already => format!("{name} has the hook already: nothing to do\n"),
        Done::Updated if *is_shared => format!("{name}: {would}updated to call the revdeck in PATH\n"),
        Done::Updated => format!("{name}: {would}updated to call {}\n", output::path(&program)),
        Done::Made => format!("{name}: {would}made\n"),
        Done::Added => format!("{name}: revdeck's lines {would}added\n"),
        Done::Moved(aside) => {
            format!("{name}: {would}made; what is there {would}moved to {}, and called last\n", shown(&repo, aside))
        }
    };
    if *done != Done::Already {
        said.push_str("each commit is reviewed in the background; `revdeck hook uninstall git` takes it back\n");
        match manager {
            Manager::Git => {}
            Manager::Husky => said.push_str("note: husky runs this file\n"),
            Manager::Lefthook => said.push_str("note: lefthook reads this file, and says so at each commit\n"),
            Manager::PreCommit => said.push_str("note: pre-commit runs this file before its own hooks\n"),
        }
        if *is_shared {
            said.push_str(
                "note: the file is in the working tree, so it calls the revdeck in PATH; where there is none it does \
                 nothing\n",
            );
        }
    }
    if really == Really::OnlySay && *done != Done::Already {
        said.push('\n');
        String::from_utf8_lossy(content).lines().for_each(|line| said.push_str(&format!("    {}\n", one_line(line))));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}

fn uninstall(really: Really) -> Result<Exit, CliError> {
    let repo = repo()?;
    let removed = repo.uninstall_hook(really)?;
    let mut said = String::new();
    let would = if really == Really::OnlySay { "would be " } else { "" };
    for removed in &removed {
        let name = shown(&repo, &removed.file);
        said.push_str(&match removed.left {
            Left::Nothing => format!("{name}: {would}removed, it was made by revdeck\n"),
            Left::AsBefore => format!("{name}: {would}as it was before\n"),
            Left::Edited => {
                format!("{name}: was edited since; only revdeck's lines {would}taken out, the rest stays\n")
            }
            Left::EditedAndCalling => format!(
                "{name}: was edited since; only revdeck's lines {would}taken out, and it goes on to call the hook that \
                 was moved aside\n"
            ),
        });
    }
    if removed.is_empty() {
        said.push_str("the hook is not in: nothing to do\n");
    }
    output::print(&said)?;
    Ok(Exit::Done)
}

fn status(format: PlainFormat) -> Result<Exit, CliError> {
    let repo = repo()?;
    let Standing { present, damaged, manager } = repo.hook_standing()?;
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
        output::print_json(&json::versioned([("hooks", json!([git]))]))?;
        return Ok(Exit::Done);
    }
    let mut said = String::new();
    for hook in &present {
        let name = shown(&repo, &hook.file);
        let mut facts = vec![if hook.runs { "in" } else { "in, but git does not run this file" }.to_owned()];
        if hook.edited {
            facts.push("the rest of the file was edited since".to_owned());
        }
        facts.push(match &hook.program {
            None => "calls the revdeck in PATH, where there is one".to_owned(),
            Some(program) if program.exists() => format!("calls {}", output::path(program)),
            Some(program) => {
                format!("{} is gone: `revdeck` in PATH is called, where there is one", output::path(program))
            }
        });
        said.push_str(&format!("git  {name}: {}\n", facts.join("; ")));
    }
    for file in &damaged {
        said.push_str(&format!("git  {}: has only a part of revdeck's lines\n", shown(&repo, file)));
    }
    match manager {
        Ok(_) if said.is_empty() => said.push_str("git  not in: `revdeck hook install git` puts it in\n"),
        Ok(_) => {}
        Err(error) => said.push_str(&format!("git  {}\n", one_line(&error.to_string()))),
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
