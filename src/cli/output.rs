//! Printing to standard output and standard error. Outside of the cockpit no other function of revdeck prints.

use std::io::{self, ErrorKind, IsTerminal, Write};

use super::error::CliError;
use crate::domain::text;
use crate::report::json::encode_json_text;
pub use crate::report::json::to_json_text;

/// Writes text to standard output and flushes it. A closed pipe is not an error.
///
/// # Errors
///
/// Returns an error if standard output cannot be written, for instance because the disk is full.
pub fn print(content: &str) -> Result<(), CliError> {
    write_stdout(content.as_bytes())
}

fn write_stdout(content: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    check_written(out.write_all(content).and_then(|()| out.flush()))
}

/// Converts the result of a write to standard output. A closed pipe is not an error.
fn check_written(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a patch: unchanged bytes into a pipe, escaped control characters on a terminal.
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn print_patch(patch: &[u8]) -> Result<(), CliError> {
    if io::stdout().is_terminal() {
        return print(&text::sanitize_lines(&String::from_utf8_lossy(patch), 4));
    }
    write_stdout(patch)
}

/// Prints a document as JSON on one line, encoded by [`encode_json_text`].
///
/// # Errors
///
/// Returns an error if the document cannot be encoded or standard output cannot be written.
pub fn print_json_document(document: &impl serde::Serialize) -> Result<(), CliError> {
    print_json_parts([encode_json_text(document)])
}

/// Prints the parts of a JSON text one after the other, each as soon as it is there, and ends the line.
///
/// # Errors
///
/// Returns an error if a part cannot be encoded or standard output cannot be written.
pub fn print_json_parts(parts: impl IntoIterator<Item = serde_json::Result<String>>) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    for part in parts {
        let part = part.map_err(|error| CliError::failed(format!("cannot encode: {error}")))?;
        let written = out.write_all(part.as_bytes());
        if written.is_err() {
            return check_written(written);
        }
    }
    check_written(writeln!(out).and_then(|()| out.flush()))
}

/// Prints a JSON value on one line, encoded by [`to_json_text`].
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<(), CliError> {
    print(&format!("{}\n", to_json_text(value)))
}

/// Formats a path: unchanged for a pipe, on one line without control characters for a terminal.
pub fn format_path(path: &std::path::Path) -> String {
    let shown = path.to_string_lossy();
    if io::stdout().is_terminal() { text::sanitize_line(&shown).into_owned() } else { shown.into_owned() }
}

/// Prints a line to standard error without control characters. A write error is ignored.
pub fn print_note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text::sanitize_lines(line, 4));
}

/// Returns whether standard error is a terminal whose user did not refuse colours with `NO_COLOR`.
pub fn has_color_on_stderr() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints `error: …` and, if there is a hint, `  hint: …` to standard error.
pub fn print_error(error: &CliError) {
    if let Some(report) = &error.report {
        let _ = writeln!(std::io::stderr().lock(), "{report:?}");
        return;
    }
    let (red, bold, plain) = if has_color_on_stderr() { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut lines = format!("{red}error:{plain} {}\n", text::sanitize_lines(error.message.trim_end(), 4));
    if let Some(hint) = &error.hint {
        lines.push_str(&format!("  {bold}hint:{plain} {}\n", text::sanitize_lines(hint, 4)));
    }
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}
