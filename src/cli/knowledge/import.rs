//! `revdeck knowledge import`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::now;
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::text::count;
use crate::knowledge::cache::{Cache, Merged};
use crate::knowledge::exchange;
use crate::report::json;

/// Arguments of `knowledge import`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What `revdeck knowledge export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let imported = exchange::import(cache, &arguments.file, now(invocation)?)?;
    let refused: usize = imported.refused.values().sum();
    if arguments.format == PlainFormat::Json {
        output::print_json(&json::versioned([("imported", json!(imported))]))?;
        return Ok(Exit::Done);
    }
    let Merged { new, more, unchanged, forgotten, evicted } = imported.merged;
    let mut said = format!("{} new, {more} with more counts, {unchanged} as they were\n", count(new, "pattern"));
    for (number, what) in
        [(forgotten, "forgotten before, and stayed so"), (evicted, "taken out to make room: the least useful")]
    {
        if number > 0 {
            said.push_str(&format!("{} {what}\n", count(number, "pattern")));
        }
    }
    output::print(&said)?;
    if refused > 0 {
        let reasons: Vec<String> = imported.refused.iter().map(|(reason, times)| format!("{reason} {times}")).collect();
        output::note(&format!(
            "warning: {} refused, by what was wrong with them: {}",
            count(refused, "pattern"),
            reasons.join(", ")
        ));
    }
    Ok(Exit::Done)
}
