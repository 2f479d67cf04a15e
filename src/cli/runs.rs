//! `revdeck runs`: lists the runs of this repository, newest first.

use clap::Args;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{RunStatus, Time};
use crate::policy::Freshness;
use crate::report::{TextOptions, TextStyle, TextTable, json, text};
use crate::runner::{FreshnessFacts, ReconcileReport, Services};
use crate::store::StoreView;

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Show only runs with this status; may be repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<RunStatus>,
    /// Maximum number of runs; 0 shows all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Repairs the state that killed processes left behind and prints a note. A failure is printed too and is not an error,
/// because a read-only store can still be read.
pub fn reconcile(services: &Services) {
    print_reconciled(&services.recovery().reconcile());
}

/// Prints a note about repaired state, if there is any.
pub fn print_reconciled(reconciled: &ReconcileReport) {
    if let Some(summary) = reconciled.summary() {
        output::print_note(&format!("note: {summary}"));
    }
}

/// Prints the warnings of the store.
pub fn print_notices(view: &StoreView) {
    for notice in &view.notices {
        output::print_note(&format!("warning: {notice}"));
    }
}

/// Runs `revdeck runs`.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the store cannot be read.
pub fn run(invocation: &Invocation, arguments: &RunsArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::Smells)?;
    let mistaken = session.loaded.has_mistakes;
    let (services, look) = session.into_runner();
    // Reconciliation may restart reviews, which must not run with settings that the user did not mean.
    if !mistaken {
        reconcile(&services);
    }
    let view = services.store.view()?;
    print_notices(&view);
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    let chosen: Vec<usize> = (0..view.run_count())
        .filter(|&index| arguments.status.is_empty() || arguments.status.contains(&view.run(index).status))
        .take(limit)
        .collect();
    match arguments.format {
        PlainFormat::Text => output::print(&format_runs(&look, &view, &list_runs(&services, &view, &chosen)?))?,
        PlainFormat::Json => {
            let mut runs = Vec::with_capacity(chosen.len());
            for listed in list_runs(&services, &view, &chosen)? {
                if let Ok(id) = view.run(listed.index).id.parse()
                    && let Some(run) = services.store.run(&id)?
                {
                    runs.push(json::encode_run(&run, listed.freshness));
                }
            }
            output::print_json(&json::build_versioned([("runs", runs.into())]))?;
        }
    }
    Ok(CliExitCode::Done)
}

/// Run of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedRun {
    /// Index in the view.
    pub index: usize,
    pub freshness: Freshness,
}

/// Derives the freshness of the chosen runs (indices into `view`).
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub fn list_runs(services: &Services, view: &StoreView, chosen: &[usize]) -> Result<Vec<ListedRun>, CliError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let (facts, now) = (FreshnessFacts::read(&services.repo, &services.store, view), services.ambient.now());
    let freshness = |index| facts.derive_from_store(&services.store, &view.run(index), now);
    Ok(chosen.iter().map(|&index| ListedRun { index, freshness: freshness(index) }).collect())
}

/// Formats the listed runs of `view` as a table, or a sentence if there are none.
pub fn format_runs(look: &TextOptions, view: &StoreView, chosen: &[ListedRun]) -> String {
    if chosen.is_empty() {
        return match view.run_count() {
            0 => "no runs yet: `revdeck review` makes a start\n".to_owned(),
            _ => "no run is like that\n".to_owned(),
        };
    }
    let mut table = TextTable::default();
    // Column names appear on a terminal only, so that scripts see nothing but runs.
    if look.width.is_some() {
        table.push_row(
            ["run", "status", "freshness", "age", "scope", "reviewer", "findings", "files"]
                .map(|name| (TextStyle::Faint, name)),
        );
    }
    for listed in chosen {
        let run = view.run(listed.index);
        let age = Time::from_millisecond(run.created_ms).map(|moment| look.format_age(moment)).unwrap_or_default();
        let findings = text::format_by_priority(run.counts, " ");
        // A member stands below its panel, which was recorded after it.
        let mut reviewer = match (run.member_of.is_empty(), look.ascii) {
            (true, _) => run.reviewer.to_owned(),
            (false, true) => format!("- {}", run.reviewer),
            (false, false) => format!("└ {}", run.reviewer),
        };
        if let Some(set) = run.prompt_set() {
            reviewer.push_str(&format!(" (prompts {set})"));
        }
        table.push_row([
            (TextStyle::Plain, run.id),
            text::run_status_word(run.status, run.state_word(), run.shortfall()),
            (TextStyle::from_freshness(listed.freshness), listed.freshness.word()),
            (TextStyle::Faint, &age),
            (TextStyle::Location, run.scope),
            (TextStyle::Plain, &reviewer),
            (TextStyle::Plain, if findings.is_empty() { "-" } else { &findings }),
            (TextStyle::Faint, &format_count(run.files_total as usize, "file")),
        ]);
    }
    table.render(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RunRow, StoreViewBuilder};

    #[test]
    fn columns_are_named_on_a_terminal_only() {
        let (nothing, mut builder) = (StoreView::default(), StoreViewBuilder::default());
        builder.run(RunRow { id: "ar_1", scope: "worktree", reviewer: "builtin", ..nothing.run(0) });
        let view = builder.build();
        let look = |width| TextOptions { color: false, ascii: false, width, now: Time::UNIX_EPOCH };
        let listed = [ListedRun { index: 0, freshness: Freshness::Obsolete }];
        let shown = format_runs(&look(Some(100)), &view, &listed);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].starts_with("run ") && lines[0].contains("findings"), "{shown}");
        assert_eq!(lines[0].find("scope"), lines[1].find("worktree"), "{shown}");
        assert_eq!(lines[0].find("freshness"), lines[1].find("obsolete"), "{shown}");
        assert!(format_runs(&look(None), &view, &listed).starts_with("ar_1"));
    }
}
