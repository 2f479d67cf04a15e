//! Printing to standard output and standard error. Outside of the cockpit no other function of revdeck prints.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use super::error::CliError;
use crate::domain::text;
use crate::report::json::escape_json_text;
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

/// Prints a document as JSON on one line, escaped as in [`to_json_text`].
///
/// # Errors
///
/// Returns an error if the document cannot be encoded or standard output cannot be written.
pub fn print_json_document(document: &impl serde::Serialize) -> Result<(), CliError> {
    // A document of ten megabytes is never in memory as a whole.
    let mut out = JsonEscaper(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let written = match serde_json::to_writer(&mut out, document) {
        Err(error) if !error.is_io() => return Err(CliError::failed(format!("cannot encode: {error}"))),
        written => written.map_err(io::Error::from),
    };
    check_written(written.and_then(|()| writeln!(out.0)).and_then(|()| out.0.flush()))
}

/// Writer that escapes JSON text as [`to_json_text`] does. Each write must end with a whole character, as those of serde_json do.
struct JsonEscaper<W: Write>(W);

impl<W: Write> Write for JsonEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        self.0.write_all(escape_json_text(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_escaped_on_its_way_as_a_whole_text_is() {
        let document = json!({"ü": ["\u{202e}a\u{7f}", "\u{1b}[31m", 1.5, null], "b": "日本\u{feff}"});
        let mut out = JsonEscaper(Vec::new());
        serde_json::to_writer(&mut out, &document).expect("written");
        assert_eq!(String::from_utf8(out.0).expect("a text"), to_json_text(&document));
    }
}
