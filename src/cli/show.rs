//! `revdeck show`: one run with its findings, or one finding with its history.

use clap::Args;

use super::arguments::Format;
use super::error::{CliError, Exit};
use super::output;
use super::resolve::{self, Named};
use super::review::Outcome;
use super::session::{Invocation, Session};
use crate::config::Texts;
use crate::domain::{FindingId, RunId, RunStatus};
use crate::report::{json, markdown, text};

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A run or a finding: its id, the beginning of it, or `latest`
    #[arg(value_name = "RUN|FINDING")]
    id: String,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.reading_session(Texts::None)?;
    let shown = match resolve::either(&session.store, &arguments.id)? {
        Named::Run(id) => show_run(&session, &id, arguments.format)?,
        Named::Finding(id) => show_finding(&session, &id, arguments.format)?,
    };
    output::print(&shown)?;
    Ok(Exit::Done)
}

fn show_run(session: &Session, id: &RunId, format: Format) -> Result<String, CliError> {
    let record = session.store.run(id)?.ok_or_else(|| gone("run", id.as_str()))?;
    let outcome = Outcome::of(&session.store, record)?;
    Ok(match format {
        // Nothing was reviewed: the decision says why, and once is enough.
        Format::Text if outcome.run.status == RunStatus::Skipped => {
            let mut page = text::run(&session.look, &outcome.run);
            for line in text::left_out_by_name(&outcome.run, &outcome.coverage) {
                page.push_str(&format!("  {line}\n"));
            }
            page
        }
        Format::Text => {
            format!("{}\n{}", text::run(&session.look, &outcome.run), outcome.render(&session.look, format))
        }
        Format::Json | Format::Markdown => outcome.render(&session.look, format),
    })
}

fn show_finding(session: &Session, id: &FindingId, format: Format) -> Result<String, CliError> {
    let finding = session.store.finding(id)?.ok_or_else(|| gone("finding", id.as_str()))?;
    let history = session.store.dispositions(id)?;
    Ok(match format {
        Format::Text => text::finding(&session.look, &finding, &history),
        Format::Json => format!("{}\n", output::json_text(&json::finding_with_history(&finding, &history))),
        Format::Markdown => markdown::finding(&finding),
    })
}

/// An id that the lists know while its file does not.
pub fn gone(what: &str, id: &str) -> CliError {
    CliError::failed(format!("the {what} {id} is listed but cannot be read"))
        .hint("`revdeck store verify` looks for damage")
}
