//! `revdeck knowledge show`: prints one pattern.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::{find_pattern, load_look, pattern_output};
use crate::cli::args::PlainFormat;
use crate::cli::complete;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::text::sanitize_line;
use crate::domain::{Kind, Time};
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::Pattern;
use crate::knowledge::{descriptions, rank};
use crate::report::{TextOptions, TextStyle, json};

/// Arguments of `knowledge show`.
#[derive(Debug, Args)]
pub struct KnowledgeShowArgs {
    /// Pattern: an id or the beginning of an id
    #[arg(value_name = "PATTERN", add = ArgValueCandidates::new(complete::list_patterns))]
    pattern: String,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck knowledge show`.
///
/// # Errors
///
/// Returns an error if the pattern is unknown.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeShowArgs,
) -> Result<CliExitCode, CliError> {
    let look = load_look(invocation)?;
    let (_, pattern) = find_pattern(cache, &arguments.pattern)?;
    match arguments.format {
        PlainFormat::Json => {
            output::print_json(&json::build_versioned([(
                "pattern",
                pattern_output::pattern_to_json(&pattern, look.now),
            )]))?;
        }
        PlainFormat::Text => output::print(&format_pattern(&look, &pattern))?,
    }
    Ok(CliExitCode::Done)
}

fn format_pattern(look: &TextOptions, pattern: &Pattern) -> String {
    let (counted, standing) = (pattern.total_count(), rank::assess_pattern(pattern, look.now));
    let ago = |moment: Time| match moment == Time::UNIX_EPOCH {
        true => "never".to_owned(),
        false => format!("{} ago", look.format_age(moment)),
    };
    let mut lines = vec![
        ("language", pattern.language.clone()),
        ("kind", format!("{}{}{}", pattern.kind, look.separator(), pattern.stance)),
        ("broken", pattern.broken.clone()),
    ];
    if !pattern.fixed.is_empty() {
        lines.push(("fixed", pattern.fixed.clone()));
    }
    lines.extend([
        ("what to do", pattern.instruction.clone()),
        ("origin", format!("{}{}{}", pattern.origin, look.separator(), pattern.evidence)),
        (
            "seen",
            format!(
                "{}{}first {}{}last {}",
                descriptions::describe_sightings(pattern),
                look.separator(),
                ago(pattern.first_seen),
                look.separator(),
                ago(pattern.last_seen)
            ),
        ),
        ("matched", pattern.last_matched.map_or("never".to_owned(), ago)),
        (
            "outcomes",
            pattern_output::format_rate(
                counted.successes.into(),
                counted.failures.into(),
                standing.success_rate,
                standing.at_least,
            ),
        ),
        ("confidence", format!("{:.2}{}{}", standing.confidence, look.separator(), standing.state(pattern).label())),
    ]);
    if !pattern.related.is_empty() {
        let kinds: Vec<&str> = pattern.related.iter().map(|kind: &Kind| kind.word()).collect();
        lines.push(("related", kinds.join(", ")));
    }
    if let Some(group) = &pattern.group {
        lines.push(("similar to", group.to_string()));
    }
    let mut said =
        format!("{}  {}\n", look.paint(TextStyle::Strong, pattern.id.as_str()), sanitize_line(&pattern.description));
    for (name, value) in lines {
        said.push_str(&format!(
            "  {}  {}\n",
            look.paint(TextStyle::Faint, &format!("{name:<10}")),
            sanitize_line(&value)
        ));
    }
    said
}
