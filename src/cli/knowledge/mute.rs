//! `revdeck knowledge mute` and `unmute`.

use clap::Args;

use super::{find_all, now};
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::MuteAction;
use crate::knowledge::cache::Cache;

/// Arguments of `knowledge mute` and `unmute`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Ids, or their beginnings
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
}

pub fn run(
    invocation: &Invocation,
    cache: &Cache,
    arguments: &Arguments,
    action: MuteAction,
) -> Result<Exit, CliError> {
    let now = now(invocation)?;
    let is_now = match action {
        MuteAction::Mute => "muted: it is kept, counted and not used",
        MuteAction::Unmute => "used again, as far as its confidence allows",
    };
    let mut said = String::new();
    for (language, pattern) in find_all(cache, &arguments.patterns)? {
        let changed = cache.mute(language, std::slice::from_ref(&pattern.id), action, now)?;
        said.push_str(&format!("{}  {}\n", pattern.id, if changed > 0 { is_now } else { "is so already" }));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
