//! `revdeck man`: prints the manual page or writes all pages to a folder, generated from the clap arguments.
//!
//! - The texts that stand behind the options of `--help` become sections of their own, with the names that readers of
//!   manual pages know.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::args::Cli;
use super::error::{CliError, CliExitCode};
use super::examples::with_examples;
use super::output;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write revdeck.1 and one page per command to this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Name of the page of `revdeck` itself.
const MAIN_PAGE: &str = "revdeck";

/// Runs `revdeck man`.
///
/// # Errors
///
/// Returns an error if a page cannot be written.
pub fn run(arguments: &ManArgs) -> Result<CliExitCode, CliError> {
    let mut command = with_examples(Cli::command());
    command.build();
    let Some(folder) = &arguments.out else {
        let page =
            render_page(&command, MAIN_PAGE).map_err(|error| write_error(Path::new("standard output"), &error))?;
        output::print(&page)?;
        return Ok(CliExitCode::Done);
    };
    std::fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    write_pages(folder, &command, MAIN_PAGE)?;
    output::print(&format!("wrote the pages into {}\n", folder.display()))?;
    Ok(CliExitCode::Done)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(folder: &Path, command: &Command, name: &str) -> Result<(), CliError> {
    let file = folder.join(format!("{name}.1"));
    let write = |page: String| std::fs::write(&file, page);
    render_page(command, name).and_then(write).map_err(|error| write_error(&file, &error))?;
    let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    for subcommand in visible.filter(|subcommand| subcommand.get_name() != "help") {
        write_pages(folder, subcommand, &format!("{name}-{}", subcommand.get_name()))?;
    }
    Ok(())
}

fn render_page(command: &Command, name: &str) -> std::io::Result<String> {
    let page = Man::new(command.clone().version(env!("CARGO_PKG_VERSION")).display_name(name.to_owned()))
        .title(name)
        .manual("revdeck manual")
        .source(concat!("revdeck ", env!("CARGO_PKG_VERSION")));
    let mut bytes = Vec::new();
    page.render_title(&mut bytes)?;
    page.render_name_section(&mut bytes)?;
    page.render_synopsis_section(&mut bytes)?;
    page.render_description_section(&mut bytes)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        page.render_options_section(&mut bytes)?;
    }
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        page.render_subcommands_section(&mut bytes)?;
    }
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut sections = split_sections(&text);
    if name == MAIN_PAGE {
        sections
            .push(("FILES", "`revdeck config path` prints the places of settings, state, caches and logs.".to_owned()));
    } else {
        sections.push(("SEE ALSO", format!("{MAIN_PAGE}(1)")));
    }
    for (heading, text) in sections {
        let mut roff = Roff::new();
        roff.control("SH", [format!("\"{heading}\"").as_str()]).control("nf", []);
        for line in text.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Headings in the help, and those of the sections in a page.
const HEADINGS: [(&str, &str); 3] =
    [("Examples", "EXAMPLES"), ("Exit codes", "EXIT STATUS"), ("Environment", "ENVIRONMENT")];

/// Splits the text behind the options at its headings, lines such as `Exit codes with --wait:`; text without a heading is
/// a section of notes.
fn split_sections(text: &str) -> Vec<(&'static str, String)> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let heading = HEADINGS.iter().find(|(known, _)| first.starts_with(known) && first.ends_with(':'));
        match (heading, sections.last_mut()) {
            (Some((_, heading)), _) => sections.push((heading, rest.to_owned())),
            (None, Some(("NOTES", notes))) => notes.push_str(&format!("\n\n{paragraph}")),
            (None, _) => sections.push(("NOTES", paragraph.to_owned())),
        }
    }
    sections
}

fn write_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_behind_the_options_becomes_sections() {
        let text = "Examples:\n  a\n\nExit codes with --wait:\n  0  done\n\nIds may be short.\n\nAnd more.";
        assert_eq!(
            split_sections(text),
            [
                ("EXAMPLES", "  a".to_owned()),
                ("EXIT STATUS", "  0  done".to_owned()),
                ("NOTES", "Ids may be short.\n\nAnd more.".to_owned())
            ]
        );
    }

    #[test]
    fn a_page_has_the_sections_that_readers_know_and_no_line_is_taken_for_a_macro() {
        let mut command = with_examples(Cli::command());
        command.build();
        let page = render_page(&command, MAIN_PAGE).expect("a page");
        for heading in
            ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "NOTES", "FILES"]
        {
            assert!(page.lines().any(|line| line.trim_matches('"').ends_with(heading)), "{heading}: {page}");
        }
        let review = command.find_subcommand("review").expect("a command");
        let page = render_page(review, "revdeck-review").expect("a page");
        assert!(page.contains("revdeck\\-review") && page.contains("SEE ALSO"), "{page}");
        // Every line that begins as a macro is one that the page means.
        let known = [".TH", ".SH", ".SS", ".TP", ".IP", ".RS", ".RE", ".PP", ".nf", ".fi", ".ie", ".el", ".br"];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(known.iter().any(|macro_name| line.starts_with(macro_name)), "{line}");
        }
    }
}
