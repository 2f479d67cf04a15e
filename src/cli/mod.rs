//! Command line: argument types, one file per command, error messages and exit codes.
//!
//! Invariants:
//!
//! - No other module of revdeck writes to standard output, except the cockpit while it draws.
//! - A closed pipe on standard output is not an error.
//! - Every failure becomes an [`error::CliError`] with a message, an optional hint and an exit code.

mod actor;
mod args;
mod ask;
mod asker;
mod cancel;
mod cockpit;
mod compare;
mod complete;
mod completions;
mod config;
mod context;
#[cfg(feature = "eval")]
mod context_eval;
mod crash_report;
mod details;
mod discover;
mod doctor;
mod error;
mod estimate;
mod examples;
mod export;
mod findings;
#[cfg(feature = "eval")]
mod fit_weights;
mod fix;
mod fixer;
mod fixes;
mod hook;
mod import;
mod indexer;
mod interrupt;
mod keep;
mod keys;
mod knowledge;
mod ledger;
mod logging;
mod lsp;
mod man;
mod mcp;
mod mute;
mod output;
mod pause;
mod publish;
mod quit_summary;
#[cfg(feature = "eval")]
mod replay;
mod repo_path;
mod repos;
mod resolve_id;
mod resume;
mod review;
mod reviewers;
mod run_result;
mod runs;
mod scope_args;
mod session;
mod show;
mod smells;
mod snooze;
mod stats;
mod status;
mod store;
mod sync;
mod team;
mod tokens;
mod triage;
mod undo;
mod variables;
mod watch;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, CliCommand};
use error::{CliError, CliExitCode};
use session::Invocation;

use crate::store::triage::UndoDirection;

/// Parses the arguments, runs the command and returns the exit code of the process.
pub fn main() -> ExitCode {
    crash_report::install();
    complete::answer_shell();
    let cli = match parse_command_line() {
        Ok(cli) => cli,
        Err(error) => {
            if hook::is_hook_call(std::env::args()) {
                return CliExitCode::Done.into();
            }
            // Help and version go to standard output with exit code 0, usage errors to standard error with 2. A write
            // error is ignored: it means that the reader has closed the pipe.
            let code = if error.use_stderr() { CliExitCode::Usage } else { CliExitCode::Done };
            let _ = error.print();
            return code.into();
        }
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli)));
    match outcome {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(error)) => {
            output::print_error(&error);
            error.exit.into()
        }
        // The panic hook has printed the message. The exit code says that the command did not complete.
        Err(_) => CliExitCode::Incomplete.into(),
    }
}

/// Parses the command line. Without arguments there is nothing to parse: describing all commands takes half a millisecond
/// of the first paint.
fn parse_command_line() -> Result<Cli, clap::Error> {
    if std::env::args_os().len() <= 1 {
        return Ok(Cli::default());
    }
    let command = examples::with_examples(Cli::command());
    command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches))
}

fn run(cli: Cli) -> Result<CliExitCode, CliError> {
    if let Some(exit) = hook::answer_assistant(cli.command.as_ref(), &cli.global) {
        return Ok(exit);
    }
    if let Some(directory) = &cli.global.directory {
        std::env::set_current_dir(directory)
            .map_err(|error| CliError::usage(format!("cannot change to {}: {error}", directory.display())))?;
    }
    if cli.all_repos && cli.command.is_some() {
        return Err(CliError::usage("--all-repos stands alone").hint("`revdeck repos` does the same"));
    }
    let command = match cli.command {
        // These commands need neither settings nor folders.
        Some(CliCommand::Completions(arguments)) => return completions::run(&arguments),
        Some(CliCommand::Man(arguments)) => return man::run(&arguments),
        Some(CliCommand::Tokens(arguments)) => return tokens::run(&arguments),
        Some(CliCommand::Keep(arguments)) => return keep::run(&arguments),
        command => command,
    };
    let invocation = Invocation::new(cli.global)?;
    logging::start(&invocation.paths)?;
    match command {
        None if cli.all_repos => repos::run(&invocation, &repos::ReposArgs::default()),
        None => cockpit::run(&invocation),
        Some(CliCommand::Repos(arguments)) => repos::run(&invocation, &arguments),
        Some(CliCommand::Review(arguments)) => review::run(&invocation, &arguments),
        Some(CliCommand::Runs(arguments)) => runs::run(&invocation, &arguments),
        Some(CliCommand::Findings(arguments)) => findings::run(&invocation, &arguments),
        Some(CliCommand::Show(arguments)) => show::run(&invocation, &arguments),
        Some(CliCommand::Details(arguments)) => details::run(&invocation, &arguments),
        Some(CliCommand::Triage(arguments)) => triage::run(&invocation, &arguments),
        Some(CliCommand::Fix(arguments)) => fix::run(&invocation, &arguments),
        Some(CliCommand::Fixes(arguments)) => fixes::run(&invocation, &arguments),
        Some(CliCommand::Fixer(arguments)) => fixer::run(&invocation, &arguments),
        Some(CliCommand::Ask(arguments)) => ask::run(&invocation, &arguments),
        Some(CliCommand::Asker(arguments)) => asker::run(&invocation, &arguments),
        Some(CliCommand::Mute(arguments)) => mute::mute(&invocation, &arguments),
        Some(CliCommand::Unmute(arguments)) => mute::unmute(&invocation, &arguments),
        Some(CliCommand::Undo(arguments)) => undo::run(&invocation, arguments.direction()),
        Some(CliCommand::Redo(_)) => undo::run(&invocation, UndoDirection::Redo),
        Some(CliCommand::Cancel(arguments)) => cancel::run(&invocation, &arguments),
        Some(CliCommand::Pause(arguments)) => pause::run(&invocation, &arguments),
        Some(CliCommand::Resume(arguments)) => resume::run(&invocation, &arguments),
        Some(CliCommand::Watch(arguments)) => watch::run(&invocation, &arguments),
        Some(CliCommand::Snooze(arguments)) => snooze::run(&invocation, &arguments),
        Some(CliCommand::Status(arguments)) => status::run(&invocation, &arguments),
        Some(CliCommand::Ledger(arguments)) => ledger::run(&invocation, &arguments),
        Some(CliCommand::Mcp(arguments)) => mcp::run(&invocation, &arguments),
        Some(CliCommand::Lsp(arguments)) => lsp::run(&invocation, &arguments),
        Some(CliCommand::Stats(arguments)) => stats::run(&invocation, &arguments),
        Some(CliCommand::Compare(arguments)) => compare::run(&invocation, &arguments),
        Some(CliCommand::Knowledge(arguments)) => knowledge::run(&invocation, &arguments),
        Some(CliCommand::Context(arguments)) => context::run(&invocation, &arguments),
        #[cfg(feature = "eval")]
        Some(CliCommand::ContextEval(arguments)) => context_eval::run(&invocation, &arguments),
        #[cfg(feature = "eval")]
        Some(CliCommand::FitWeights(arguments)) => fit_weights::run(&invocation, &arguments),
        Some(CliCommand::Smells(arguments)) => smells::run(&invocation, &arguments),
        Some(CliCommand::Store(arguments)) => store::run(&invocation, &arguments),
        Some(CliCommand::Import(arguments)) => import::run(&invocation, &arguments),
        Some(CliCommand::Publish(arguments)) => publish::run(&invocation, &arguments),
        Some(CliCommand::Team(arguments)) => team::run(&invocation, &arguments),
        Some(CliCommand::Sync(arguments)) => sync::run(&invocation, &arguments),
        Some(CliCommand::Hook(arguments)) => hook::run(&invocation, &arguments),
        Some(CliCommand::Config(arguments)) => config::run(&invocation, &arguments),
        Some(CliCommand::Keys(arguments)) => keys::run(&invocation, &arguments),
        Some(CliCommand::Reviewers(arguments)) => reviewers::run(&invocation, &arguments),
        #[cfg(feature = "eval")]
        Some(CliCommand::Replay(arguments)) => replay::run(&invocation, &arguments),
        Some(CliCommand::Doctor(arguments)) => doctor::run(&invocation, &arguments),
        Some(CliCommand::Worker(arguments)) => worker::run(&invocation, &arguments),
        Some(CliCommand::Indexer(arguments)) => indexer::run(&invocation, &arguments),
        Some(CliCommand::Completions(_) | CliCommand::Man(_) | CliCommand::Tokens(_) | CliCommand::Keep(_)) => {
            Ok(CliExitCode::Done)
        }
    }
}
