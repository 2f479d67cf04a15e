//! `revdeck` without a command: opens the cockpit on a terminal, else prints a summary.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::{CliError, CliExitCode};
use super::session::{self, Invocation};
use super::{findings, output, quit_summary, runs};
use crate::config::{EffectiveSetting, RequiredAssets, SettingOrigin};
use crate::domain::FindingCounts;
use crate::domain::text::sanitize_line;
use crate::masking::mask_name;
use crate::report::text;
use crate::runner::{LedgerPreview, Services};
use crate::tui::{self, Cockpit};

/// Maximum number of runs and of findings in the summary.
const MAX_LISTED_ROWS: usize = 10;

/// Opens the cockpit, or prints the summary.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the terminal fails.
pub fn run(invocation: &Invocation) -> Result<CliExitCode, CliError> {
    let shows = std::env::var("TERM").map_or(true, |term| term != "dumb");
    if !(shows && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        let (services, look) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
        return print_summary(&services, &look);
    }
    let mut session = invocation.open_session(RequiredAssets::All)?;
    let is_default = |entry: &EffectiveSetting| entry.key == "ascii" && entry.origin == SettingOrigin::Default;
    if session.loaded.entries.iter().any(is_default) {
        session.loaded.settings.ascii = !tui::can_show_unicode(session::read_variable);
    }
    // Whoever presses keys is no job, even where `CI` is set.
    session.store = session.store.with_ci(false);
    let (services, _) = session.into_runner();
    let (root, home) = (services.repo.root(), services.paths.home().map(Path::to_owned));
    let summarized = services.settings.quit_summary.then(|| services.store.clone());
    let ledger = Box::new(move || run_ledger_process(&root, home.as_deref()));
    let end = tui::run(Cockpit { services, ledger }).map_err(|error| match error {
        tui::TuiError::Keymap(fault) => session::refuse_user_file(&fault),
        tui::TuiError::Terminal(_) | tui::TuiError::NotStored(_) => CliError::failed(error.to_string()),
    })?;
    match end {
        tui::CockpitExit::Quit => {
            if let Some(store) = summarized {
                let now = invocation.clock_and_ids()?.now();
                // The line is a courtesy: a store that cannot be read is reported by the next command.
                match quit_summary::summarize_today(&store, now, &jiff::tz::TimeZone::system()) {
                    Ok(Some(line)) => output::print(&format!("{line}\n"))?,
                    Ok(None) => {}
                    Err(error) => tracing::warn!(error = %error.message, "no summary of the day"),
                }
            }
            Ok(CliExitCode::Done)
        }
        tui::CockpitExit::Signal => Ok(CliExitCode::Interrupted),
    }
}

/// Runs `revdeck ledger --preview` in a separate process, so that the cockpit does not hold the memory of a ledger all day.
fn run_ledger_process(root: &Path, home: Option<&Path>) -> Result<LedgerPreview, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find revdeck itself: {error}"))?;
    let mut command = Command::new(&program);
    command.arg("-C").arg(root).args(["ledger", "--preview"]).stdin(Stdio::null());
    if let Some(home) = home {
        command.env("REVDECK_HOME", home);
    }
    let output = command.output().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
}

/// Prints a summary of runs and findings, for a pipe or a terminal that cannot show the cockpit.
fn print_summary(services: &Services, look: &crate::report::TextOptions) -> Result<CliExitCode, CliError> {
    runs::reconcile(services);
    let view = services.store.view()?;
    runs::print_notices(&view);
    let mut counts = FindingCounts::default();
    let mut undecided: Vec<usize> =
        (0..view.finding_count()).filter(|&index| view.finding(index).status.is_undecided()).collect();
    undecided.iter().for_each(|&index| counts.add(view.finding(index).priority));
    undecided.sort_by_key(|&index| (view.finding(index).priority, index));
    undecided.truncate(MAX_LISTED_ROWS);
    let branch = services.repo.branch();
    let branch = if branch.is_empty() { "detached HEAD".to_owned() } else { branch };
    let mut page = format!(
        "{} ({}){}{} to decide\n",
        sanitize_line(&mask_name(&services.repo.name())),
        sanitize_line(&mask_name(&branch)),
        look.separator(),
        text::format_counts(&counts)
    );
    let newest: Vec<usize> = (0..view.run_count().min(MAX_LISTED_ROWS)).collect();
    let newest = runs::list_runs(services, &view, &newest)?;
    page.push_str(&format!("\n{}", runs::format_runs(look, &view, &newest)));
    if !undecided.is_empty() {
        page.push_str(&format!("\n{}", findings::format_findings(look, &view, &undecided)));
    }
    output::print(&page)?;
    Ok(CliExitCode::Done)
}
