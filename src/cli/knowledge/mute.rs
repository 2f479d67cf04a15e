//! `revdeck knowledge mute` and `unmute`: switches the use of patterns and kinds off and on.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::{PatternOrKind, current_time, find_targets, format_kind_name};
use crate::cli::complete;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::MuteAction;
use crate::knowledge::cache::KnowledgeCache;

/// Arguments of `knowledge mute` and `unmute`.
#[derive(Debug, Args)]
pub struct KnowledgeMuteArgs {
    /// Patterns (ids or beginnings of ids) or kinds such as python/LONG_METHOD
    #[arg(value_name = "PATTERN", required = true, add = ArgValueCandidates::new(complete::list_patterns_and_kinds))]
    patterns: Vec<String>,
}

/// Runs `revdeck knowledge mute` or `unmute`.
///
/// # Errors
///
/// Returns an error if a pattern or kind is unknown.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeMuteArgs,
    action: MuteAction,
) -> Result<CliExitCode, CliError> {
    let now = current_time(invocation)?;
    let (of_pattern, of_kind) = match action {
        MuteAction::Mute => ("muted: it is kept, counted and not used", "muted: it is counted and not lowered"),
        MuteAction::Unmute => {
            ("used again, as far as its confidence allows", "lowered again where it is always dismissed")
        }
    };
    let mut said = String::new();
    for named in find_targets(cache, &arguments.patterns)? {
        let (name, changed, is_now) = match named {
            PatternOrKind::Pattern(language, id) => {
                let changed = cache.mute(language, std::slice::from_ref(&id), action, now)? > 0;
                (id.to_string(), changed, of_pattern)
            }
            PatternOrKind::Kind(language, kind) => {
                let changed = cache.mute_kind(language, kind, action, now)?;
                (format_kind_name(language, kind), changed, of_kind)
            }
        };
        said.push_str(&format!("{name}  {}\n", if changed { is_now } else { "is so already" }));
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}
