//! `revdeck snooze`: for a while nothing begins by itself; reviews by hand do as ever.

use clap::Args;
use jiff::tz::TimeZone;

use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use super::watch::clock;
use crate::config::Texts;
use crate::runner::parse_snooze;

/// Arguments of `snooze`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// 30m, 2h, 1d, until 14:00, or off; without it, what is so now
    #[arg(value_name = "TIME", num_args = 0..=2)]
    time: Vec<String>,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.reading_session(Texts::None)?;
    let now = session.ambient.now();
    let text = arguments.time.join(" ");
    let until = match text.is_empty() {
        true => session.store.snoozed(now),
        false => {
            let until = parse_snooze(&text, now, &TimeZone::system()).map_err(CliError::usage)?;
            session.store.snooze(until)?;
            until
        }
    };
    output::print(&match until {
        Some(until) => format!("snoozed until {}: nothing begins by itself\n", clock(until)),
        None => "not snoozed\n".to_owned(),
    })?;
    Ok(Exit::Done)
}
