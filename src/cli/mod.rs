//! Arguments, one file per command, and the one place that turns errors into words and exit codes.
//!
//! Invariants: nothing else in revdeck writes to standard output; a closed pipe is no error; every failure ends in
//! [`error::CliError`], which has a message, a hint and an exit code.

mod arguments;
mod cancel;
mod cockpit;
mod completions;
mod config;
mod context;
mod context_eval;
mod details;
mod doctor;
mod error;
mod findings;
mod fix;
mod fixer;
mod fixes;
mod hook;
mod indexer;
mod interrupt;
mod keep;
mod knowledge;
mod ledger;
mod log;
mod man;
mod mute;
mod output;
mod pause;
mod place;
mod replay;
mod resolve;
mod resume;
mod review;
mod reviewers;
mod runs;
mod session;
mod show;
mod smells;
mod snooze;
mod stats;
mod store;
mod tokens;
mod triage;
mod undo;
mod watch;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Cli, Command};
use error::{CliError, Exit};
use session::Invocation;

/// The whole program: reads the arguments, does what they say, and says how it went.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output with 0, everything else to standard error with 2. Failing to
            // write either is no news: whoever closed the pipe knows.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return code.into();
        }
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli)));
    match outcome {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(error)) => {
            output::complain(&error);
            error.exit.into()
        }
        // The panic's message has been printed; a review that ended so is never "clean".
        Err(_) => Exit::Incomplete.into(),
    }
}

fn run(cli: Cli) -> Result<Exit, CliError> {
    if let Some(directory) = &cli.global.directory {
        std::env::set_current_dir(directory)
            .map_err(|error| CliError::usage(format!("cannot change to {}: {error}", directory.display())))?;
    }
    let command = match cli.command {
        // These need no settings and no folders.
        Some(Command::Completions(arguments)) => return completions::run(&arguments),
        Some(Command::Man(arguments)) => return man::run(&arguments),
        Some(Command::Tokens(arguments)) => return tokens::run(&arguments),
        Some(Command::Keep(arguments)) => return keep::run(&arguments),
        command => command,
    };
    let invocation = Invocation::new(cli.global)?;
    log::start(&invocation.paths)?;
    match command {
        None => cockpit::run(&invocation),
        Some(Command::Review(arguments)) => review::run(&invocation, &arguments),
        Some(Command::Runs(arguments)) => runs::run(&invocation, &arguments),
        Some(Command::Findings(arguments)) => findings::run(&invocation, &arguments),
        Some(Command::Show(arguments)) => show::run(&invocation, &arguments),
        Some(Command::Details(arguments)) => details::run(&invocation, &arguments),
        Some(Command::Triage(arguments)) => triage::run(&invocation, &arguments),
        Some(Command::Fix(arguments)) => fix::run(&invocation, &arguments),
        Some(Command::Fixes(arguments)) => fixes::run(&invocation, &arguments),
        Some(Command::Fixer(arguments)) => fixer::run(&invocation, &arguments),
        Some(Command::Mute(arguments)) => mute::mute(&invocation, &arguments),
        Some(Command::Unmute(arguments)) => mute::unmute(&invocation, &arguments),
        Some(Command::Undo(arguments)) => undo::run(&invocation, arguments.direction()),
        Some(Command::Redo(_)) => undo::run(&invocation, undo::Direction::Redo),
        Some(Command::Cancel(arguments)) => cancel::run(&invocation, &arguments),
        Some(Command::Pause(arguments)) => pause::run(&invocation, &arguments),
        Some(Command::Resume(arguments)) => resume::run(&invocation, &arguments),
        Some(Command::Watch(arguments)) => watch::run(&invocation, &arguments),
        Some(Command::Snooze(arguments)) => snooze::run(&invocation, &arguments),
        Some(Command::Ledger(arguments)) => ledger::run(&invocation, &arguments),
        Some(Command::Stats(arguments)) => stats::run(&invocation, &arguments),
        Some(Command::Knowledge(arguments)) => knowledge::run(&invocation, &arguments),
        Some(Command::Context(arguments)) => context::run(&invocation, &arguments),
        Some(Command::ContextEval(arguments)) => context_eval::run(&invocation, &arguments),
        Some(Command::Smells(arguments)) => smells::run(&invocation, &arguments),
        Some(Command::Store(arguments)) => store::run(&invocation, &arguments),
        Some(Command::Hook(arguments)) => hook::run(&invocation, &arguments),
        Some(Command::Config(arguments)) => config::run(&invocation, &arguments),
        Some(Command::Reviewers(arguments)) => reviewers::run(&invocation, &arguments),
        Some(Command::Replay(arguments)) => replay::run(&invocation, &arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&invocation, &arguments),
        Some(Command::Worker(arguments)) => worker::run(&invocation, &arguments),
        Some(Command::Indexer(arguments)) => indexer::run(&invocation, &arguments),
        Some(Command::Completions(_) | Command::Man(_) | Command::Tokens(_) | Command::Keep(_)) => Ok(Exit::Done),
    }
}
