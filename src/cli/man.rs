//! `revdeck man`: prints the manual page or writes all pages to a folder, generated from the clap arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::args::Cli;
use super::error::{CliError, CliExitCode};
use super::output;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write revdeck.1 and one page per command to this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs `revdeck man`.
///
/// # Errors
///
/// Returns an error if a page cannot be written.
pub fn run(arguments: &ManArgs) -> Result<CliExitCode, CliError> {
    let command = Cli::command();
    let Some(folder) = &arguments.out else {
        output::print(&render_page(command, Path::new("standard output"))?)?;
        return Ok(CliExitCode::Done);
    };
    std::fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    clap_mangen::generate_to(command, folder).map_err(|error| write_error(folder, &error))?;
    output::print(&format!("wrote the pages into {}\n", folder.display()))?;
    Ok(CliExitCode::Done)
}

fn render_page(command: Command, path: &Path) -> Result<String, CliError> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| write_error(path, &error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot write {}: {error}", path.display()))
}
