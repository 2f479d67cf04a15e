//! `revdeck knowledge mute` and `unmute`.

use clap::Args;

use super::{Named, find_all, name_of_kind, now};
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::MuteAction;
use crate::knowledge::cache::Cache;

/// Arguments of `knowledge mute` and `unmute`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Ids or their beginnings, or kinds such as python/LONG_METHOD
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
    let (of_pattern, of_kind) = match action {
        MuteAction::Mute => ("muted: it is kept, counted and not used", "muted: it is counted and not lowered"),
        MuteAction::Unmute => {
            ("used again, as far as its confidence allows", "lowered again where it is always dismissed")
        }
    };
    let mut said = String::new();
    for named in find_all(cache, &arguments.patterns)? {
        let (name, changed, is_now) = match named {
            Named::Pattern(language, id) => {
                let changed = cache.mute(language, std::slice::from_ref(&id), action, now)? > 0;
                (id.to_string(), changed, of_pattern)
            }
            Named::Kind(language, kind) => {
                let changed = cache.mute_kind(language, kind, action, now)?;
                (name_of_kind(language, kind), changed, of_kind)
            }
        };
        said.push_str(&format!("{name}  {}\n", if changed { is_now } else { "is so already" }));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
