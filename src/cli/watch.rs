//! `revdeck watch`: reviews of what changes, one line for each thing it does; `--status` and `--stop` for one that runs.

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use crate::config::Texts;
use crate::domain::{Time, WatchMode, text};
use crate::report::json::versioned;
use crate::runner::{Began, Leash, Said, Stopped, Watch, WatchEnd, WatchState};
use crate::store::Watcher;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Say whether a watcher runs, and how
    #[arg(long, conflicts_with = "stop")]
    status: bool,
    /// Have the watcher end
    #[arg(long)]
    stop: bool,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", requires = "status")]
    format: PlainFormat,
    /// Started by revdeck itself: goes on without its terminal
    #[arg(long, hide = true, conflicts_with_all = ["status", "stop"])]
    detached: bool,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    if arguments.status {
        return status(invocation, arguments.format);
    }
    if arguments.stop {
        return stop(invocation);
    }
    let leash = if arguments.detached { Leash::None } else { Leash::Terminal };
    let (runner, _) = invocation.session(Texts::Smells)?.into_runner();
    let ambient = invocation.ambient()?;
    let again = invocation.clone();
    let open =
        Box::new(move |root: &std::path::Path| again.runner_at(root, Texts::Smells).map_err(|error| error.message));
    let watch = match Watch::begin(runner, open)? {
        Began::Watching(watch) => watch,
        Began::Already(watcher) => {
            output::print(&format!("{}\n", in_words(&watcher)))?;
            return Ok(Exit::Done);
        }
    };
    let signals = watch.end_on_signals(leash);
    signals.map_err(|error| CliError::failed(format!("cannot listen to signals: {error}")))?;
    let print = |said: &Said| {
        // Whoever closed the pipe may want the reviews nevertheless.
        if let Err(error) = output::print(&line(said, leash)) {
            tracing::warn!(?error, "a line is not said");
        }
    };
    print(&Said { at: ambient.now(), text: watch.what() });
    let end = watch.run(&mut |said| print(said))?;
    let text = match end {
        WatchEnd::Stopped => "ended as asked".to_owned(),
        WatchEnd::Gone(path) => format!("ended: {} is no longer there", text::one_line(&path.to_string_lossy())),
    };
    print(&Said { at: ambient.now(), text });
    Ok(Exit::Done)
}

/// With the time of day; in a log with the day, too.
fn line(said: &Said, leash: Leash) -> String {
    let format = if leash == Leash::Terminal { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    format!("{}  {}\n", said.at.to_zoned(TimeZone::system()).strftime(format), said.text)
}

fn in_words(watcher: &Watcher) -> String {
    match watcher {
        Watcher::None => "nobody watches this repository".to_owned(),
        Watcher::Unknown => "a watcher is just beginning".to_owned(),
        Watcher::Known(watching) => {
            let how = match &watching.mode {
                WatchMode::Events => String::new(),
                WatchMode::Polling { reason } => format!(", polling: {reason}"),
            };
            let words = format!(
                "process {} of {} watches this repository since {}{how}",
                watching.pid,
                watching.owner,
                clock(watching.since)
            );
            text::one_line(&words).into_owned()
        }
    }
}

/// A moment with its day, where the user is.
pub fn clock(time: Time) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn status(invocation: &Invocation, format: PlainFormat) -> Result<Exit, CliError> {
    let (runner, _) = invocation.reading_session(Texts::None)?.into_runner();
    let state = WatchState::of(&runner.store, runner.ambient.now())?;
    if format == PlainFormat::Json {
        let known = match &state.watcher {
            Watcher::Known(watching) => json!(watching),
            Watcher::None | Watcher::Unknown => json!(null),
        };
        let watching = state.watcher != Watcher::None;
        output::print_json(&versioned([
            ("watching", watching.into()),
            ("watcher", known),
            ("snoozed_until", json!(state.snoozed)),
        ]))?;
        return Ok(Exit::Done);
    }
    let snoozed = state.snoozed.map_or(String::new(), |until| format!("snoozed until {}\n", clock(until)));
    output::print(&format!("{}\n{snoozed}", in_words(&state.watcher)))?;
    Ok(Exit::Done)
}

fn stop(invocation: &Invocation) -> Result<Exit, CliError> {
    let (runner, _) = invocation.reading_session(Texts::None)?.into_runner();
    output::print(match runner.stop_watch()? {
        Stopped::Now => "the watcher has ended; reviews that it began go on\n",
        Stopped::Before => "nobody watches this repository\n",
    })?;
    Ok(Exit::Done)
}
