//! `revdeck completions SHELL`: prints a completion script, which asks revdeck itself for candidates.

use clap::Args;
use clap_complete::Shell;

use super::error::{CliError, CliExitCode};
use super::{complete, output};

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
    let name = arguments.shell.to_string();
    let script = complete::registration_script(&name)
        .ok_or_else(|| CliError::internal(format!("there is no completion script for {name}")))?;
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(CliExitCode::Done)
}
