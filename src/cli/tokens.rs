//! `revdeck tokens`: counts the tokens of files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use crate::domain::text::{path_from_bytes, sanitize_line};
use crate::masking::mask_name;
use crate::report::json;
use crate::tokens::{Encoding, count_tokens};

/// Maximum file size in bytes: counting more takes over half a minute.
const MAX_BYTES: u64 = 256 * MB;
const MB: u64 = 1_000_000;

/// Arguments of `tokens`.
#[derive(Debug, Args)]
pub struct TokensArgs {
    /// Files to count; bytes that are not UTF-8 count as the replacement character
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Encoding: o200k_base or cl100k_base
    #[arg(long, value_name = "NAME", default_value = "o200k_base")]
    encoding: Encoding,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck tokens`. Exits with 3 if a file cannot be read.
///
/// # Errors
///
/// Returns an error if no file can be read (text output only).
pub fn run(arguments: &TokensArgs) -> Result<CliExitCode, CliError> {
    let (mut counted, mut unreadable) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let shown = path_from_bytes(path.as_os_str().as_encoded_bytes());
        match read_content(path) {
            Ok(content) => {
                let tokens = count_tokens(arguments.encoding, &String::from_utf8_lossy(&content));
                counted.push((shown, tokens));
            }
            Err(error) => unreadable.push((shown, error)),
        }
    }
    let complaints: Vec<String> =
        unreadable.iter().map(|(path, error)| format!("cannot read {}: {error}", mask_name(path))).collect();
    if counted.is_empty() && arguments.format == PlainFormat::Text {
        return Err(CliError::usage(complaints.join("\n")));
    }
    for complaint in &complaints {
        output::print_note(&format!("warning: {complaint}"));
    }
    let total: usize = counted.iter().map(|(_, tokens)| tokens).sum();
    match arguments.format {
        PlainFormat::Json => {
            let files: Vec<_> =
                counted.iter().map(|(path, tokens)| json!({ "path": path, "tokens": tokens })).collect();
            output::print_json(&json::build_versioned([
                ("encoding", json!(arguments.encoding.name())),
                ("files", files.into()),
                ("unreadable", unreadable.iter().map(|(path, _)| json!(path)).collect()),
                ("total_tokens", json!(total)),
            ]))?;
        }
        PlainFormat::Text => {
            let mut text = String::new();
            for (path, tokens) in &counted {
                text.push_str(&format!("{tokens:>9}  {}\n", sanitize_line(&mask_name(path))));
            }
            if counted.len() > 1 {
                text.push_str(&format!("{total:>9}  total\n"));
            }
            output::print(&text)?;
        }
    }
    Ok(if unreadable.is_empty() { CliExitCode::Done } else { CliExitCode::Incomplete })
}

/// Reads a file. Returns a message if it is unreadable, too large or not a regular file.
fn read_content(path: &Path) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| error.to_string();
    // Check the type before opening: opening a pipe may block forever.
    let data = path.metadata().map_err(wrong)?;
    if !data.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let too_large = || format!("it has more than {} MB", MAX_BYTES / MB);
    if data.len() > MAX_BYTES {
        return Err(too_large());
    }
    let mut content = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut content)).map_err(wrong)?;
    if content.len() as u64 > MAX_BYTES { Err(too_large()) } else { Ok(content) }
}
