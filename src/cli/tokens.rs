//! `revdeck tokens`: how many tokens files are.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use crate::context::tokens::{Encoding, count};
use crate::domain::text::{one_line, path_from_bytes};
use crate::report::json;

/// Arguments of `tokens`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The files; bytes that are not UTF-8 count as the replacement character
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// o200k_base or cl100k_base
    #[arg(long, value_name = "NAME", default_value = "o200k_base")]
    encoding: Encoding,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(arguments: &Arguments) -> Result<Exit, CliError> {
    let (mut counted, mut unreadable) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let shown = path_from_bytes(path.as_os_str().as_encoded_bytes());
        match std::fs::read(path) {
            Ok(content) => {
                let tokens = count(arguments.encoding, &String::from_utf8_lossy(&content));
                counted.push((shown, tokens));
            }
            Err(error) => unreadable.push((shown, error)),
        }
    }
    let complaints: Vec<String> =
        unreadable.iter().map(|(path, error)| format!("cannot read {path}: {error}")).collect();
    if counted.is_empty() {
        return Err(CliError::usage(complaints.join("\n")));
    }
    for complaint in &complaints {
        output::note(&format!("warning: {complaint}"));
    }
    let total: usize = counted.iter().map(|(_, tokens)| tokens).sum();
    match arguments.format {
        PlainFormat::Json => {
            let files: Vec<_> =
                counted.iter().map(|(path, tokens)| json!({ "path": path, "tokens": tokens })).collect();
            output::print_json(&json::versioned([
                ("encoding", json!(arguments.encoding.name())),
                ("files", files.into()),
                ("unreadable", unreadable.iter().map(|(path, _)| json!(path)).collect()),
                ("total_tokens", json!(total)),
            ]))?;
        }
        PlainFormat::Text => {
            let mut text = String::new();
            for (path, tokens) in &counted {
                text.push_str(&format!("{tokens:>9}  {}\n", one_line(path)));
            }
            if counted.len() > 1 {
                text.push_str(&format!("{total:>9}  total\n"));
            }
            output::print(&text)?;
        }
    }
    Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Incomplete })
}
