//! `revdeck` without a command: the cockpit on a terminal, else a plain summary.

use std::io::IsTerminal;

use super::error::{CliError, Exit};
use super::session::Invocation;
use super::{findings, ledger, output, runs};
use crate::config::Texts;
use crate::domain::FindingCounts;
use crate::report::text;
use crate::runner::Runner;
use crate::tui::{self, Cockpit, LedgerText};

/// Lines of each list in the summary.
const LISTED: usize = 10;

pub fn run(invocation: &Invocation) -> Result<Exit, CliError> {
    let session = invocation.session(Texts::All)?;
    let (runner, look) = session.into_runner();
    let shows = std::env::var("TERM").map_or(true, |term| term != "dumb");
    if !(shows && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return summary(&runner, &look);
    }
    let again = invocation.clone();
    let ledger = move || match ledger::exact(&again) {
        Ok(ledger) => Ok(ledger.map(|(text, tokens)| LedgerText { text, tokens })),
        Err(error) => Err(error.message),
    };
    match tui::run(Cockpit { runner, ledger: Box::new(ledger) }).map_err(|error| CliError::failed(error.to_string()))? {
        tui::Exit::Quit => Ok(Exit::Done),
        tui::Exit::Signal => Ok(Exit::Interrupted),
    }
}

/// Where the repository stands, for a pipe or a terminal that cannot show the cockpit.
fn summary(runner: &Runner, look: &crate::report::Look) -> Result<Exit, CliError> {
    runs::recover(runner);
    let view = runner.store.view()?;
    runs::notices(&view);
    let mut counts = FindingCounts::default();
    let mut undecided: Vec<usize> =
        (0..view.finding_count()).filter(|&index| view.finding(index).status.is_undecided()).collect();
    undecided.iter().for_each(|&index| counts.add(view.finding(index).priority));
    undecided.sort_by_key(|&index| (view.finding(index).priority, index));
    undecided.truncate(LISTED);
    let branch = runner.repo.branch();
    let branch = if branch.is_empty() { "detached HEAD".to_owned() } else { branch };
    let mut page = format!(
        "{} ({}){}{} to decide\n",
        crate::domain::text::one_line(&runner.repo.name()),
        crate::domain::text::one_line(&branch),
        look.dot(),
        text::counts(&counts)
    );
    let newest: Vec<usize> = (0..view.run_count().min(LISTED)).collect();
    page.push_str(&format!("\n{}", runs::list(look, &view, &newest)));
    if !undecided.is_empty() {
        page.push_str(&format!("\n{}", findings::list(look, &view, &undecided)));
    }
    output::print(&page)?;
    Ok(Exit::Done)
}
