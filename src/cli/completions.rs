//! `revdeck completions SHELL`: a completion script, generated from the arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::arguments::Cli;
use super::error::{CliError, Exit};
use super::output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "revdeck", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
