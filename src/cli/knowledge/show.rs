//! `revdeck knowledge show`.

use clap::Args;

use super::{find, look, told};
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::text::one_line;
use crate::domain::{Kind, Time};
use crate::knowledge::cache::Cache;
use crate::knowledge::pattern::Pattern;
use crate::knowledge::{rank, words};
use crate::report::{Look, Paint, json};

/// Arguments of `knowledge show`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Its id, or the beginning of it
    #[arg(value_name = "PATTERN")]
    pattern: String,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let look = look(invocation)?;
    let (_, pattern) = find(cache, &arguments.pattern)?;
    match arguments.format {
        PlainFormat::Json => {
            output::print_json(&json::versioned([("pattern", told::pattern(&pattern, look.now))]))?;
        }
        PlainFormat::Text => output::print(&text(&look, &pattern))?,
    }
    Ok(Exit::Done)
}

fn text(look: &Look, pattern: &Pattern) -> String {
    let (counted, standing) = (pattern.count(), rank::standing(pattern, look.now));
    let ago = |moment: Time| match moment == Time::UNIX_EPOCH {
        true => "never".to_owned(),
        false => format!("{} ago", look.age(moment)),
    };
    let mut lines = vec![
        ("language", pattern.language.clone()),
        ("kind", format!("{}{}{}", pattern.kind, look.dot(), pattern.stance)),
        ("broken", pattern.broken.clone()),
    ];
    if !pattern.fixed.is_empty() {
        lines.push(("fixed", pattern.fixed.clone()));
    }
    lines.extend([
        ("what to do", pattern.instruction.clone()),
        ("origin", format!("{}{}{}", pattern.origin, look.dot(), pattern.evidence)),
        (
            "seen",
            format!(
                "{}{}first {}{}last {}",
                words::seen(pattern),
                look.dot(),
                ago(pattern.first_seen),
                look.dot(),
                ago(pattern.last_seen)
            ),
        ),
        ("matched", pattern.last_matched.map_or("never".to_owned(), ago)),
        (
            "outcomes",
            told::rate(counted.successes.into(), counted.failures.into(), standing.success_rate, standing.at_least),
        ),
        ("confidence", format!("{:.2}{}{}", standing.confidence, look.dot(), standing.state(pattern).words())),
    ]);
    if !pattern.related.is_empty() {
        let kinds: Vec<&str> = pattern.related.iter().map(|kind: &Kind| kind.word()).collect();
        lines.push(("related", kinds.join(", ")));
    }
    if let Some(group) = &pattern.group {
        lines.push(("similar to", group.to_string()));
    }
    let mut said = format!("{}  {}\n", look.paint(Paint::Strong, pattern.id.as_str()), one_line(&pattern.description));
    for (name, value) in lines {
        said.push_str(&format!("  {}  {}\n", look.paint(Paint::Faint, &format!("{name:<10}")), one_line(&value)));
    }
    said
}
