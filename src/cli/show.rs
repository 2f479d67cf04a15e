//! `revdeck show`: one run with its findings, or one finding with its history.

use clap::Args;

use super::arguments::Format;
use super::error::{CliError, Exit};
use super::output;
use super::resolve::{self, Named};
use super::review::Outcome;
use super::session::{Invocation, Session};
use crate::config::Texts;
use crate::domain::{Finding, FindingId, RunId, RunStatus};
use crate::report::{Place, Story, json, markdown, text};
use crate::store::{Store, View};

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
    let view = session.store.view()?;
    let finding = session.store.finding_in(&view, id)?.ok_or_else(|| gone("finding", id.as_str()))?;
    if format == Format::Markdown {
        return Ok(markdown::finding(&finding));
    }
    let story = story(&session.store, &view, &finding)?;
    Ok(match format {
        Format::Json => format!("{}\n", output::json_text(&json::finding_with_story(&finding, &story))),
        _ => text::finding(&session.look, &finding, &story.history) + &story.text(&session.look),
    })
}

/// What became of a finding, by everything that is on record.
fn story(store: &Store, view: &View, finding: &Finding) -> Result<Story, CliError> {
    let (id, last) = (&finding.finding_id, &finding.last_run_id);
    let place = |run: &RunId, finding: &Finding| Place {
        run: run.clone(),
        path: finding.repo_relative_path.clone(),
        lines: finding.lines(),
    };
    let placed = view.finding_index(id.as_str()).and_then(|index| view.placed_by(index));
    let placed = placed.and_then(|run| view.run(run).id.parse().ok()).unwrap_or_else(|| last.clone());
    let reported = store.reported(last, id)?;
    let output = store.output(last)?;
    let carried_from = output.as_ref().and_then(|output| output.coverage.carried_from(id)).cloned();
    let flips = output.map(|output| output.flip_flops).unwrap_or_default();
    Ok(Story {
        history: store.dispositions(id)?,
        reported: place(last, reported.as_ref().unwrap_or(finding)),
        place: place(&placed, finding),
        carried_from,
        undoes: flips.into_iter().find(|flip| flip.finding_id == *id).map(|flip| flip.undoes),
    })
}

/// An id that the lists know while its file does not.
pub fn gone(what: &str, id: &str) -> CliError {
    CliError::failed(format!("the {what} {id} is listed but cannot be read"))
        .hint("`revdeck store verify` looks for damage")
}
