//! `revdeck snooze`: pauses automatic reviews until a time. Reviews that a user requests are not affected.

use clap::Args;
use jiff::tz::TimeZone;

use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use super::watch::format_time;
use crate::config::RequiredAssets;
use crate::runner::parse_snooze;

/// Arguments of `snooze`.
#[derive(Debug, Args)]
pub struct SnoozeArgs {
    /// Duration or end: 30m, 2h, 1d, until 14:00, or off; without it, show the current state
    #[arg(value_name = "TIME", num_args = 0..=2)]
    time: Vec<String>,
}

/// Runs `revdeck snooze`.
///
/// # Errors
///
/// Returns an error if the time cannot be parsed.
pub fn run(invocation: &Invocation, arguments: &SnoozeArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let now = session.ambient.now();
    let text = arguments.time.join(" ");
    let until = match text.is_empty() {
        true => session.store.snoozed_until(now),
        false => {
            let until = parse_snooze(&text, now, &TimeZone::system()).map_err(CliError::usage)?;
            session.store.set_snooze(until)?;
            until
        }
    };
    output::print(&match until {
        Some(until) => format!("snoozed until {}: nothing begins by itself\n", format_time(until)),
        None => "not snoozed\n".to_owned(),
    })?;
    Ok(CliExitCode::Done)
}
