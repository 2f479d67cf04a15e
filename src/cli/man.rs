//! `revdeck man`: the manual page, or all of them into a folder, generated from the arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::arguments::Cli;
use super::error::{CliError, Exit};
use super::output;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write revdeck.1 and a page for every command into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<Exit, CliError> {
    let command = Cli::command();
    let Some(folder) = &arguments.out else {
        output::print(&page(command, Path::new("standard output"))?)?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut written = Vec::new();
    for (name, command) in pages(command) {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page(command, &path)?).map_err(|error| failed(&path, &error))?;
        written.push(format!("{}\n", path.display()));
    }
    output::print(&written.concat())?;
    Ok(Exit::Done)
}

/// The program and each command that is not hidden, by the name of its page.
fn pages(command: Command) -> Vec<(String, Command)> {
    let mut pages = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("revdeck-{}", sub.get_name());
        let sub = sub.clone().name(name.clone()).bin_name(format!("revdeck {}", sub.get_name()));
        pages.push((name, sub.version(env!("CARGO_PKG_VERSION"))));
    }
    pages.insert(0, ("revdeck".to_owned(), command));
    pages
}

fn page(command: Command, path: &Path) -> Result<String, CliError> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| failed(path, &error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot write {}: {error}", path.display()))
}
