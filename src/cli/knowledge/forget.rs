//! `revdeck knowledge forget`.

use clap::Args;

use super::{find_all, now};
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::cache::Cache;

/// Arguments of `knowledge forget`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Ids, or their beginnings
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let now = now(invocation)?;
    let mut said = String::new();
    for (language, pattern) in find_all(cache, &arguments.patterns)? {
        cache.forget(language, std::slice::from_ref(&pattern.id), now)?;
        said.push_str(&format!("{}  forgotten: it is neither learned nor imported again\n", pattern.id));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
