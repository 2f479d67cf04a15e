//! `revdeck knowledge forget`.

use clap::Args;

use super::{Named, find_all, name_of_kind, now};
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::cache::Cache;

/// Arguments of `knowledge forget`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Ids or their beginnings, or kinds such as python/LONG_METHOD
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let now = now(invocation)?;
    let mut said = String::new();
    for named in find_all(cache, &arguments.patterns)? {
        let line = match named {
            Named::Pattern(language, id) => {
                cache.forget(language, std::slice::from_ref(&id), now)?;
                format!("{id}  forgotten: it is neither learned nor imported again\n")
            }
            Named::Kind(language, kind) => {
                cache.forget_kind(language, kind, now)?;
                format!("{}  forgotten: its findings are counted anew\n", name_of_kind(language, kind))
            }
        };
        said.push_str(&line);
    }
    output::print(&said)?;
    Ok(Exit::Done)
}
