//! `revdeck runs`: the runs of this repository, newest first.

use clap::Args;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::text::count;
use crate::domain::{RunStatus, Time};
use crate::report::{Look, Paint, Table, json, text};
use crate::runner::{Reconciled, Runner};
use crate::store::View;

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only runs of this status; may be given several times
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<RunStatus>,
    /// At most this many; 0 for all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    limit: usize,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Sets right what dead processes left, before anything is said about it, and says so. A store that cannot be written can
/// still be read, so that a failure is only told.
pub fn reconcile(runner: &Runner) {
    tell(&runner.reconcile());
}

/// Says what was set right, if anything.
pub fn tell(reconciled: &Reconciled) {
    if let Some(summary) = reconciled.summary() {
        output::note(&format!("note: {summary}"));
    }
}

/// What the store wants to be told once.
pub fn notices(view: &View) {
    for notice in &view.notices {
        output::note(&format!("warning: {notice}"));
    }
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.reading_session(Texts::Smells)?;
    let mistaken = session.loaded.mistaken;
    let (runner, look) = session.into_runner();
    // This may start reviews, and none should go on with other settings than the user meant.
    if !mistaken {
        reconcile(&runner);
    }
    let view = runner.store.view()?;
    notices(&view);
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    let chosen: Vec<usize> = (0..view.run_count())
        .filter(|&index| arguments.status.is_empty() || arguments.status.contains(&view.run(index).status))
        .take(limit)
        .collect();
    match arguments.format {
        PlainFormat::Text => output::print(&list(&look, &view, &chosen))?,
        PlainFormat::Json => {
            let mut runs = Vec::with_capacity(chosen.len());
            for index in chosen {
                if let Ok(id) = view.run(index).id.parse()
                    && let Some(run) = runner.store.run(&id)?
                {
                    runs.push(json::run(&run));
                }
            }
            output::print_json(&json::versioned([("runs", runs.into())]))?;
        }
    }
    Ok(Exit::Done)
}

/// Runs as a table; a sentence when there are none.
pub fn list(look: &Look, view: &View, chosen: &[usize]) -> String {
    if chosen.is_empty() {
        return match view.run_count() {
            0 => "no runs yet: `revdeck review` makes a start\n".to_owned(),
            _ => "no run is like that\n".to_owned(),
        };
    }
    let mut table = Table::default();
    // Programs read lines of runs only.
    if look.width.is_some() {
        table.row(["run", "status", "age", "scope", "reviewer", "findings", "files"].map(|name| (Paint::Faint, name)));
    }
    for &index in chosen {
        let run = view.run(index);
        let age = Time::from_millisecond(run.created_ms).map(|moment| look.age(moment)).unwrap_or_default();
        let findings = text::by_priority(run.counts, " ");
        table.row([
            (Paint::Plain, run.id),
            (Paint::of_run(run.status), if run.is_paused() { "paused" } else { run.status.word() }),
            (Paint::Faint, &age),
            (Paint::Place, run.scope),
            (Paint::Plain, run.reviewer),
            (Paint::Plain, if findings.is_empty() { "-" } else { &findings }),
            (Paint::Faint, &count(run.files_total as usize, "file")),
        ]);
    }
    table.render(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RunRow, ViewBuilder};

    #[test]
    fn columns_are_named_on_a_terminal_only() {
        let (nothing, mut builder) = (View::default(), ViewBuilder::default());
        builder.run(RunRow { id: "ar_1", scope: "worktree", reviewer: "builtin", ..nothing.run(0) });
        let view = builder.build();
        let look = |width| Look { color: false, ascii: false, width, now: Time::UNIX_EPOCH };
        let shown = list(&look(Some(100)), &view, &[0]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].starts_with("run ") && lines[0].contains("findings"), "{shown}");
        assert_eq!(lines[0].find("scope"), lines[1].find("worktree"), "{shown}");
        assert!(list(&look(None), &view, &[0]).starts_with("ar_1"));
    }
}
