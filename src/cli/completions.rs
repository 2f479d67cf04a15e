//! `revdeck completions SHELL`: prints a completion script, generated from the clap arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::args::Cli;
use super::error::{CliError, CliExitCode};
use super::output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Runs `revdeck completions`.
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn run(arguments: &CompletionsArgs) -> Result<CliExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "revdeck", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(CliExitCode::Done)
}
