//! `revdeck watch`: reviews changes automatically and prints one line per action. `--status` and `--stop` act on the
//! running watcher of the repository.

use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::{Time, WatchMode, text};
use crate::report::json::build_versioned;
use crate::runner::{RepoWatcher, StopOutcome, TerminalBinding, WatchEnd, WatchLine, WatchStart, WatchState};
use crate::store::WatcherStatus;

/// Time for the last line of a watcher that hangs.
const MAX_LAST_LINE_TIME: Duration = Duration::from_millis(100);
/// Last line of a watcher that was asked to end.
const STOPPED: &str = "ended as asked";

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Show whether a watcher runs, and in which mode
    #[arg(long, conflicts_with = "stop")]
    status: bool,
    /// Stop the watcher
    #[arg(long)]
    stop: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", requires = "status")]
    format: PlainFormat,
    /// Keep running after the terminal has closed (set by revdeck itself)
    #[arg(long, hide = true, conflicts_with_all = ["status", "stop"])]
    detached: bool,
}

/// Runs `revdeck watch` until it is stopped.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the watcher cannot start.
pub fn run(invocation: &Invocation, arguments: &WatchArgs) -> Result<CliExitCode, CliError> {
    if arguments.status {
        return print_status(invocation, arguments.format);
    }
    if arguments.stop {
        return stop_watcher(invocation);
    }
    let leash = if arguments.detached { TerminalBinding::None } else { TerminalBinding::Terminal };
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    let again = invocation.clone();
    let open = Box::new(move |root: &std::path::Path| {
        again.open_runner_at(root, RequiredAssets::Smells).map_err(|error| error.message)
    });
    let reviewer = services.watcher().describe_reviewer()?;
    let watch = match RepoWatcher::begin(services, open)? {
        WatchStart::Watching(watch) => watch,
        WatchStart::Already(watcher) => {
            output::print(&format!("{}\n", describe_watcher(&watcher)))?;
            return Ok(CliExitCode::Done);
        }
    };
    let end_clock = invocation.clock_and_ids()?;
    let end_process = move || {
        // The watcher may hang because nobody reads its output.
        let (sender, printed) = channel();
        let line = WatchLine { at: end_clock.now(), text: STOPPED.to_owned() };
        std::thread::spawn(move || {
            print_line(&line, leash);
            sender.send(())
        });
        let _ = printed.recv_timeout(MAX_LAST_LINE_TIME);
        std::process::exit(CliExitCode::Done as i32);
    };
    let ambient = invocation.clock_and_ids()?;
    let signals = watch.end_on_signals(leash, end_process);
    signals.map_err(|error| CliError::failed(format!("cannot listen to signals: {error}")))?;
    let print = |said: &WatchLine| print_line(said, leash);
    for text in std::iter::once(watch.describe()).chain(reviewer) {
        print(&WatchLine { at: ambient.now(), text: text::sanitize_line(&text).into_owned() });
    }
    let end = watch.run(&mut |said| print(said))?;
    let text = match end {
        WatchEnd::Stopped => STOPPED.to_owned(),
        WatchEnd::Gone(path) => format!("ended: {} is no longer there", text::sanitize_line(&path.to_string_lossy())),
    };
    print(&WatchLine { at: ambient.now(), text });
    Ok(CliExitCode::Done)
}

fn print_line(said: &WatchLine, leash: TerminalBinding) {
    // The reviews continue after the reader of the pipe has gone.
    if let Err(error) = output::print(&format_line(said, leash)) {
        tracing::warn!(?error, "a line is not said");
    }
}

/// Formats a message with the time of day, and with the date if the watcher is detached.
fn format_line(said: &WatchLine, leash: TerminalBinding) -> String {
    let format = if leash == TerminalBinding::Terminal { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    format!("{}  {}\n", said.at.to_zoned(TimeZone::system()).strftime(format), said.text)
}

fn describe_watcher(watcher: &WatcherStatus) -> String {
    match watcher {
        WatcherStatus::None => "nobody watches this repository".to_owned(),
        WatcherStatus::Unknown => "a watcher is just beginning".to_owned(),
        WatcherStatus::Known(watching) => {
            let how = match &watching.mode {
                WatchMode::Events => String::new(),
                WatchMode::Polling { reason } => format!(", polling: {reason}"),
            };
            let words = format!(
                "process {} of {} watches this repository since {}{how}",
                watching.pid,
                watching.owner,
                format_time(watching.since)
            );
            text::sanitize_line(&words).into_owned()
        }
    }
}

/// Formats a time with its date in the local time zone.
pub fn format_time(time: Time) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn print_status(invocation: &Invocation, format: PlainFormat) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::None)?.into_runner();
    let state = WatchState::read(&services.store, services.ambient.now())?;
    if format == PlainFormat::Json {
        let known = match &state.watcher {
            WatcherStatus::Known(watching) => json!(watching),
            WatcherStatus::None | WatcherStatus::Unknown => json!(null),
        };
        let watching = state.watcher != WatcherStatus::None;
        output::print_json(&build_versioned([
            ("watching", watching.into()),
            ("watcher", known),
            ("snoozed_until", json!(state.snoozed)),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let snoozed = state.snoozed.map_or(String::new(), |until| format!("snoozed until {}\n", format_time(until)));
    output::print(&format!("{}\n{snoozed}", describe_watcher(&state.watcher)))?;
    Ok(CliExitCode::Done)
}

fn stop_watcher(invocation: &Invocation) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::None)?.into_runner();
    output::print(match services.watcher().stop_watch()? {
        StopOutcome::Now => "the watcher has ended; reviews that it began go on\n",
        StopOutcome::Before => "nobody watches this repository\n",
    })?;
    Ok(CliExitCode::Done)
}
